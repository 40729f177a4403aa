//! From a pass back to those who wait for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::SubmitError;
use super::job::{Ask, Job, tell};
use super::statistics::Statistics;
use super::sync::Home;

/// A job on its way: one larger than a batch takes several passes.
pub(super) struct Running<Q: Ask> {
    pub(super) job: Job<Q>,
    /// Tells the jobs of a lane apart.
    pub(super) number: u64,
    /// What its queries that no pass has taken yet cost, in the engine's measure.
    pub(super) cost_left: usize,
    found: Vec<Q::Found>,
    /// How many of its queries the pass at hand takes.
    pub(super) in_pass: usize,
    queued: Option<Duration>,
    engine: Duration,
}

impl<Q: Ask> Running<Q> {
    pub(super) fn new(job: Job<Q>, number: u64, cost_left: usize) -> Self {
        let (found, engine) = (Vec::new(), Duration::ZERO);
        Self { job, number, cost_left, found, in_pass: 0, queued: None, engine }
    }

    /// How many of its queries have been answered.
    pub(super) fn done(&self) -> usize {
        self.found.len()
    }

    /// The queries that the pass at hand takes.
    pub(super) fn chosen(&self) -> std::slice::Iter<'_, Q> {
        self.job.queries[self.done()..][..self.in_pass].iter()
    }

    pub(super) fn left(&self) -> usize {
        self.job.queries.len() - self.found.len()
    }

    /// Takes its share of a pass's answers, which are in the order of the jobs.
    pub(super) fn take(
        &mut self,
        answers: &mut impl Iterator<Item = Q::Found>,
        started: Instant,
        took: Duration,
    ) {
        self.found.reserve_exact(self.left());
        self.found.extend(answers.take(self.in_pass));
        self.queued.get_or_insert_with(|| started.duration_since(self.job.entered));
        self.engine += took;
    }

    pub(super) fn fail(self, error: SubmitError, statistics: &Statistics) {
        tell::<Q>(self.job.reply, Err(error), statistics);
    }

    /// Sends the answer, unless the caller's time is over by now.
    fn answer(self, now: Instant, statistics: &Statistics) {
        if now >= self.job.deadline {
            return self.fail(SubmitError::DeadlinePassed, statistics);
        }
        let Self { job, found, queued, engine, .. } = self;
        // Who asks again at once has them back.
        drop(job.slots);
        let queued = queued.unwrap_or_default();
        tell::<Q>(job.reply, Ok(Q::answer(job.queries, found, queued, engine)), statistics);
    }
}

/// The jobs that a pass finished, and its answers in their order.
pub(super) struct Finished<Q: Ask> {
    pub(super) jobs: VecDeque<Running<Q>>,
    pub(super) answers: Vec<Q::Found>,
    pub(super) started: Instant,
    pub(super) took: Duration,
    /// What all queries of the pass were estimated to cost, those of unfinished jobs too.
    pub(super) work: usize,
}

impl<Q: Ask> Finished<Q> {
    /// Places that its jobs took.
    pub(super) fn places(&self) -> u32 {
        self.jobs.iter().map(|running| running.job.places()).sum()
    }

    /// Starts telling the callers. That costs about as much as the engine's host work for their queries, so
    /// it happens on the runtimes on which they wait; and wakes each thread of theirs once, not once for
    /// each of them.
    pub(super) fn hand_out(self, statistics: &Arc<Statistics>) {
        let Self { jobs, answers, started, took, .. } = self;
        let mut shares: Vec<Share<Q>> = Vec::new();
        let mut answers = answers.into_iter();
        for running in jobs {
            let home = running.job.home.id();
            let place = shares.iter().position(|share| share.home.id() == home);
            let place = place.unwrap_or_else(|| {
                let home = running.job.home.clone();
                shares.push(Share { home, jobs: Vec::new(), answers: Vec::new() });
                shares.len() - 1
            });
            shares[place].answers.extend(answers.by_ref().take(running.in_pass));
            shares[place].jobs.push(running);
        }
        for Share { home, jobs, answers } in shares {
            let statistics = statistics.clone();
            home.spawn(async move {
                let (mut answers, now) = (answers.into_iter(), Instant::now());
                for mut running in jobs {
                    running.take(&mut answers, started, took);
                    running.answer(now, &statistics);
                }
            });
        }
    }
}

/// What a pass finished for the callers on one runtime.
struct Share<Q: Ask> {
    home: Home,
    jobs: Vec<Running<Q>>,
    answers: Vec<Q::Found>,
}
