//! The engine thread's side of a lane: jobs of one kind of queries that were taken out of the queue and
//! wait for their passes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::SubmitError;
use super::hand_out::{Finished, Running};
use super::job::Job;
use super::shared::Shared;
use super::state::{HasLane, Lent};
use crate::account::Turns;

pub(super) struct Lane<Q: HasLane> {
    /// Jobs with queries that no pass has answered yet, those whose turn is first in front.
    pub(super) waiting: VecDeque<Running<Q>>,
    /// What is lent to [`Shared`] in each pass; empty between passes.
    pub(super) lent: Lent<Q>,
    next_number: u64,
}

impl<Q: HasLane> Lane<Q> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), lent: Vec::new(), next_number: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What the queries that no pass has answered yet cost.
    pub(super) fn cost(&self) -> usize {
        self.waiting.iter().map(|running| running.cost_left).sum()
    }

    /// Takes jobs in, each with what its queries cost.
    pub(super) fn add(&mut self, jobs: &mut Vec<Job<Q>>, cost: impl Fn(&Q) -> usize) {
        for job in jobs.drain(..) {
            let running = self.running(job, &cost);
            self.waiting.push_back(running);
        }
    }

    pub(super) fn add_first(&mut self, job: Job<Q>, cost: impl Fn(&Q) -> usize) {
        let running = self.running(job, &cost);
        self.waiting.push_front(running);
    }

    fn running(&mut self, job: Job<Q>, cost: &impl Fn(&Q) -> usize) -> Running<Q> {
        self.next_number += 1;
        let cost_left = job.queries.iter().map(cost).sum();
        Running::new(job, self.next_number, cost_left)
    }

    /// Work that nobody waits for is not done. Who hung up is looked for only if `somebody_hung_up`. Whether a job
    /// was dropped.
    pub(super) fn drop_expired(&mut self, shared: &Shared, somebody_hung_up: bool) -> bool {
        let now = Instant::now();
        let is_expired = |running: &Running<Q>| {
            now >= running.job.deadline || (somebody_hung_up && running.job.is_abandoned())
        };
        if !self.waiting.iter().any(is_expired) {
            return false;
        }
        let (expired, others): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(is_expired);
        self.waiting = others;
        self.give_up(expired, SubmitError::DeadlinePassed, shared);
        true
    }

    /// The clock of the caller whose turn comes first, among the jobs that the pass at hand has taken if there is one
    /// and among all otherwise. A probe comes before all.
    pub(super) fn first_clock(&self, turns: &Turns) -> u64 {
        let clock =
            |running: &Running<Q>| running.job.caller().map_or(0, |caller| turns.clock(caller));
        let in_pass = self.waiting.iter().filter(|running| running.in_pass > 0).map(clock).min();
        in_pass.or_else(|| self.waiting.iter().map(clock).min()).unwrap_or(u64::MAX)
    }

    /// The queries that the next pass was given.
    pub(super) fn chosen(&self) -> impl Iterator<Item = &Q> {
        self.waiting.iter().flat_map(|running| running.chosen())
    }

    /// Charges the callers of the pass at hand for the time that it took, by what their queries cost.
    pub(super) fn charge(&self, turns: &mut Turns, took: Duration, cost: impl Fn(&Q) -> usize) {
        let of_job = |running: &Running<Q>| running.chosen().map(&cost).sum::<usize>();
        let all: usize = self.waiting.iter().map(of_job).sum();
        for running in self.waiting.iter().filter(|running| running.in_pass > 0) {
            if let Some(caller) = running.job.caller() {
                turns.charge(caller, took.mul_f64(of_job(running) as f64 / all.max(1) as f64));
            }
        }
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
        cost: impl Fn(&Q) -> usize,
    ) -> Finished<Q> {
        let in_pass = self.take_chosen();
        if in_pass.iter().all(|running| running.in_pass == running.left()) {
            let work = in_pass.iter().map(|running| running.cost_left).sum();
            return Finished { jobs: in_pass, answers, started, took, work };
        }
        let mut answers = answers.into_iter();
        let (jobs, of_jobs) = (VecDeque::new(), Vec::new());
        let mut finished = Finished { jobs, answers: of_jobs, started, took, work: 0 };
        for mut running in in_pass {
            if running.in_pass == running.left() {
                finished.work += running.cost_left;
                finished.answers.extend(answers.by_ref().take(running.in_pass));
                finished.jobs.push_back(running);
            } else {
                let spent = running.chosen().map(&cost).sum::<usize>();
                finished.work += spent;
                running.cost_left = running.cost_left.saturating_sub(spent);
                running.take(&mut answers, started, took);
                running.in_pass = 0;
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
        let is_chosen = |running: &Running<Q>| running.in_pass > 0;
        if self.waiting.iter().all(is_chosen) {
            return std::mem::take(&mut self.waiting);
        }
        let (chosen, others) = self.waiting.drain(..).partition(is_chosen);
        self.waiting = others;
        chosen
    }

    /// The queue has room for as many again before any caller hears of it.
    fn give_up(&self, jobs: VecDeque<Running<Q>>, error: SubmitError, shared: &Shared) {
        shared.free::<Q>(jobs.iter().map(|running| running.job.places()).sum());
        for running in jobs {
            running.fail(error, &shared.statistics);
        }
    }
}
