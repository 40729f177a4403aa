//! The engine thread's side of a lane: jobs of one kind of queries that were taken out of the queue and
//! wait for their passes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::hand_out::{Finished, Running};
use super::job::{Job, JobError};
use super::shared::{HasLane, Lent, Shared};

pub(super) struct Lane<Q: HasLane> {
    /// Jobs with queries that no pass has taken yet, first come first.
    waiting: VecDeque<Running<Q>>,
    /// What is lent to [`Shared`] in each pass; empty between passes.
    lent: Lent<Q>,
}

impl<Q: HasLane> Lane<Q> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), lent: Vec::new() }
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
        shared.free::<Q>(dead.iter().map(|running| running.job.places).sum());
        for running in dead {
            running.fail(JobError::DeadlinePassed);
        }
    }

    /// Gives the next pass the first so many queries.
    pub(super) fn choose(&mut self, mut number: usize) {
        for running in &mut self.waiting {
            running.in_pass = running.left().min(number);
            number -= running.in_pass;
        }
    }

    /// All queries that wait, first come first.
    pub(super) fn queries(&self) -> impl Iterator<Item = &Q> {
        self.waiting.iter().flat_map(|running| &running.job.queries[running.done()..])
    }

    /// The queries that the next pass was [given](Self::choose).
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Q> {
        self.waiting
            .iter()
            .take_while(|running| running.in_pass > 0)
            .flat_map(|running| &running.job.queries[running.done()..][..running.in_pass])
    }

    /// While the engine works, `watch_deadlines` has the callers.
    pub(super) fn lend_replies(&mut self, shared: &Shared) {
        let lend = |running: &mut Running<Q>| (running.job.deadline, running.job.reply.take());
        self.lent.extend(self.waiting.iter_mut().map(lend));
        shared.lend::<Q>(&mut self.lent);
    }

    pub(super) fn take_replies_back(&mut self, shared: &Shared) {
        shared.lend::<Q>(&mut self.lent);
        for (running, (_, reply)) in self.waiting.iter_mut().zip(self.lent.drain(..)) {
            running.job.reply = reply;
        }
    }

    /// Takes a pass's answers to the chosen queries; returns the jobs that it finished.
    pub(super) fn finish(
        &mut self,
        shared: &Shared,
        mut answers: Vec<Q::Found>,
        started: Instant,
        took: Duration,
    ) -> Finished<Q> {
        let is_finished = |running: &&Running<Q>| running.in_pass == running.left();
        let finished = self.waiting.iter().take_while(is_finished).count();
        // At most one job is left with some of its queries answered: the last of the pass.
        if let Some(running) = self.waiting.get_mut(finished) {
            let first = answers.len() - running.in_pass;
            running.take(&mut answers.drain(first..), started, took);
        }
        let jobs = self.take_out(finished, shared);
        Finished { jobs, answers, started, took }
    }

    pub(super) fn fail_pass(&mut self, shared: &Shared) {
        let in_pass = self.waiting.iter().take_while(|running| running.in_pass > 0).count();
        for running in self.take_out(in_pass, shared) {
            running.fail(JobError::EngineFailed);
        }
    }

    /// Takes the first so many jobs out of the queue, which has room for as many again before any
    /// caller hears of it.
    fn take_out(&mut self, jobs: usize, shared: &Shared) -> VecDeque<Running<Q>> {
        let left = self.waiting.split_off(jobs);
        let jobs = std::mem::replace(&mut self.waiting, left);
        shared.free::<Q>(jobs.iter().map(|running| running.job.places).sum());
        jobs
    }
}
