//! The engine thread's side of a lane: jobs of one kind of queries that were taken out of the queue and
//! wait for their passes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use model_store::{FullPassQuery, Query};

use super::SubmitError;
use super::hand_out::{Finished, Running};
use super::job::Job;
use super::share::{Level, share_full_pass};
use super::shared::Shared;
use super::state::{HasLane, Lent};

pub(super) struct Lane<Q: HasLane> {
    /// Jobs with queries that no pass has taken yet, those whose turn is first in front.
    waiting: VecDeque<Running<Q>>,
    /// What is lent to [`Shared`] in each pass; empty between passes.
    pub(super) lent: Lent<Q>,
    /// Room to think in; empty between passes.
    scratch: Vec<usize>,
}

impl Lane<Query> {
    /// Gives the next pass so many queries of all that wait.
    pub(super) fn choose(&mut self, room: usize) {
        let mut level = if self.len() <= room {
            Level { share: usize::MAX, more: 0 }
        } else {
            self.scratch.extend(self.waiting.iter().map(Running::left));
            Level::of(room, &mut self.scratch)
        };
        self.scratch.clear();
        for running in &mut self.waiting {
            running.in_pass = level.take(running.left());
        }
    }
}

impl Lane<FullPassQuery> {
    /// Gives the next pass as many queries as fit together.
    pub(super) fn choose(&mut self) {
        share_full_pass(&mut self.waiting);
    }
}

impl<Q: HasLane> Lane<Q> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), lent: Vec::new(), scratch: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Queries that no pass has taken yet.
    pub(super) fn len(&self) -> usize {
        self.waiting.iter().map(Running::left).sum()
    }

    pub(super) fn add(&mut self, jobs: &mut Vec<Job<Q>>) {
        self.waiting.extend(jobs.drain(..).map(Running::new));
    }

    pub(super) fn add_first(&mut self, job: Job<Q>) {
        self.waiting.push_front(Running::new(job));
    }

    /// Work that nobody waits for is not done. Who hung up is looked for only if `somebody_hung_up`.
    pub(super) fn drop_the_dead(&mut self, shared: &Shared, somebody_hung_up: bool) {
        let now = Instant::now();
        let is_dead = |running: &Running<Q>| {
            now >= running.job.deadline || (somebody_hung_up && running.job.is_abandoned())
        };
        if !self.waiting.iter().any(is_dead) {
            return;
        }
        let (dead, alive): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_dead);
        self.waiting = alive;
        self.give_up(dead, SubmitError::DeadlinePassed, shared);
    }

    /// The queries that the next pass was given.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Q> {
        self.waiting
            .iter()
            .take_while(|running| running.in_pass > 0)
            .flat_map(|running| &running.job.queries[running.done()..][..running.in_pass])
    }

    /// Puts into `lent` what `watch_deadlines` needs while the engine works.
    pub(super) fn lend_replies(&mut self) {
        let lend = |running: &mut Running<Q>| (running.job.deadline, running.job.reply.take());
        self.lent.extend(self.waiting.iter_mut().map(lend));
    }

    /// Takes back from `lent` what is left: nothing, if the engine was given up meanwhile.
    pub(super) fn take_replies_back(&mut self) {
        for (running, (_, reply)) in self.waiting.iter_mut().zip(self.lent.drain(..)) {
            running.job.reply = reply;
        }
    }

    /// Takes a pass's answers to the chosen queries, one each; returns the jobs that it finished. Those that it
    /// left unfinished go to the end of the line.
    pub(super) fn finish(
        &mut self,
        answers: Vec<Q::Found>,
        started: Instant,
        took: Duration,
    ) -> Finished<Q> {
        let in_pass = self.take_chosen();
        if in_pass.iter().all(|running| running.in_pass == running.left()) {
            return Finished { jobs: in_pass, answers, started, took };
        }
        let mut answers = answers.into_iter();
        let mut finished = Finished { jobs: VecDeque::new(), answers: Vec::new(), started, took };
        for mut running in in_pass {
            if running.in_pass == running.left() {
                finished.answers.extend(answers.by_ref().take(running.in_pass));
                finished.jobs.push_back(running);
            } else {
                running.take(&mut answers, started, took);
                self.waiting.push_back(running);
            }
        }
        finished
    }

    /// The jobs of the pass at hand fail, each as a whole.
    pub(super) fn fail_pass(&mut self, shared: &Shared) {
        let in_pass = self.take_chosen();
        self.give_up(in_pass, SubmitError::EngineFailed, shared);
    }

    /// All jobs fail.
    pub(super) fn fail_all(&mut self, error: SubmitError, shared: &Shared) {
        let all = std::mem::take(&mut self.waiting);
        self.give_up(all, error, shared);
    }

    fn take_chosen(&mut self) -> VecDeque<Running<Q>> {
        let in_pass = self.waiting.iter().take_while(|running| running.in_pass > 0).count();
        let left = self.waiting.split_off(in_pass);
        std::mem::replace(&mut self.waiting, left)
    }

    /// The queue has room for as many again before any caller hears of it.
    fn give_up(&self, jobs: VecDeque<Running<Q>>, error: SubmitError, shared: &Shared) {
        shared.free::<Q>(jobs.iter().map(|running| running.job.places()).sum());
        for running in jobs {
            running.fail(error, &shared.statistics);
        }
    }
}
