//! From a pass back to those who wait for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use model_store::Hit;
use tokio::runtime;

use super::job::{Answer, Job, JobError, tell};

/// A job on its way: one larger than a batch takes several passes.
pub(super) struct Running {
    pub(super) job: Job,
    hits: Vec<Vec<Hit>>,
    /// How many of its queries the pass at hand takes.
    pub(super) in_pass: usize,
    queued: Option<Duration>,
    engine: Duration,
}

impl Running {
    pub(super) fn new(job: Job) -> Self {
        Self { job, hits: Vec::new(), in_pass: 0, queued: None, engine: Duration::ZERO }
    }

    /// How many of its queries have been searched.
    pub(super) fn done(&self) -> usize {
        self.hits.len()
    }

    pub(super) fn left(&self) -> usize {
        self.job.queries.len() - self.hits.len()
    }

    /// Takes its share of a pass's answers, which are in the order of the jobs.
    pub(super) fn take(
        &mut self,
        answers: &mut impl Iterator<Item = Vec<Hit>>,
        started: Instant,
        took: Duration,
    ) {
        self.hits.reserve_exact(self.left());
        self.hits.extend(answers.take(self.in_pass));
        self.queued.get_or_insert_with(|| started.duration_since(self.job.entered));
        self.engine += took;
    }

    pub(super) fn fail(self, error: JobError) {
        tell(self.job.reply, Err(error));
    }

    fn answer(self) {
        let Self { job, hits, queued, engine, .. } = self;
        let answer = Answer { hits, queued: queued.unwrap_or_default(), engine };
        tell(job.reply, Ok(answer));
    }
}

/// The jobs that a pass finished, and its answers in their order.
pub(super) struct Finished {
    pub(super) jobs: VecDeque<Running>,
    pub(super) answers: Vec<Vec<Hit>>,
    pub(super) started: Instant,
    pub(super) took: Duration,
}

impl Finished {
    /// Starts telling the callers. That costs about as much as the engine's host work for their queries, so
    /// it happens on the runtimes on which they wait; and wakes each thread of theirs once, not once for
    /// each of them.
    pub(super) fn hand_out(self) {
        let Self { jobs, answers, started, took } = self;
        let mut shares: Vec<Share> = Vec::new();
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
            home.spawn(async move {
                let mut answers = answers.into_iter();
                for mut running in jobs {
                    running.take(&mut answers, started, took);
                    running.answer();
                }
            });
        }
    }
}

/// What a pass finished for the callers on one runtime.
struct Share {
    home: runtime::Handle,
    jobs: Vec<Running>,
    answers: Vec<Vec<Hit>>,
}
