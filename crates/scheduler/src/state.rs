//! What the queue's one lock guards: the jobs that wait, the places they take, what is lent while the engine works,
//! and how the engine is.

use std::time::Instant;

use contract::{FullPassQuery, Query};

use super::SubmitError;
use super::engine_state::EngineState;
use super::job::{Ask, Job, Reply, tell};
use super::statistics::Statistics;

pub(super) struct State {
    pub(super) searches: Arrivals<Query>,
    pub(super) full_passes: Arrivals<FullPassQuery>,
    /// The readiness check's own place, which no load can take away.
    pub(super) probe: Option<Job<Query>>,
    /// Waking a thread costs microseconds: only one that sleeps is woken.
    pub(super) engine_sleeps: bool,
    pub(super) engine: EngineState,
    /// What the engine is doing, and since when, unless it is in the queue's hands.
    pub(super) busy: Option<(&'static str, Instant)>,
    pub(super) callers_gone: bool,
    pub(super) refused_full: u64,
    pub(super) refused_without_engine: u64,
}

/// One lane, as both ends see it.
pub(super) struct Arrivals<Q: Ask> {
    pub(super) jobs: Vec<Job<Q>>,
    /// Of the jobs in the engine thread's hands, while the engine works: until when their callers wait, and
    /// where their answers go.
    pub(super) lent: Lent<Q>,
    /// Places of the jobs that wait or are in work.
    pub(super) taken: u32,
    /// Nanoseconds that a place has lately taken of the engine's time.
    pub(super) nanoseconds_per_place: u64,
}

pub(super) type Lent<Q> = Vec<(Instant, Option<Reply<Q>>)>;

impl<Q: Ask> Default for Arrivals<Q> {
    fn default() -> Self {
        Self { jobs: Vec::new(), lent: Vec::new(), taken: 0, nanoseconds_per_place: 0 }
    }
}

impl<Q: Ask> Arrivals<Q> {
    pub(super) fn nanoseconds_left(&self) -> u64 {
        u64::from(self.taken).saturating_mul(self.nanoseconds_per_place)
    }

    /// Replies to all that wait for an answer. Their places stay taken where the engine thread has the jobs.
    pub(super) fn give_up(&mut self) -> Vec<Reply<Q>> {
        let jobs = std::mem::take(&mut self.jobs);
        self.taken -= jobs.iter().map(Job::places).sum::<u32>();
        let lent = std::mem::take(&mut self.lent);
        let replies = jobs.into_iter().map(|job| job.reply);
        replies.chain(lent.into_iter().map(|(_, reply)| reply)).flatten().collect()
    }

    /// Replies to those whose time is over.
    pub(super) fn late(&mut self, now: Instant) -> Vec<Reply<Q>> {
        let waiting = self.jobs.iter_mut().map(|job| (job.deadline, &mut job.reply));
        let lent = self.lent.iter_mut().map(|(deadline, reply)| (*deadline, reply));
        waiting
            .chain(lent)
            .filter(|(deadline, _)| now >= *deadline)
            .filter_map(|(_, reply)| reply.take())
            .collect()
    }
}

/// Which lane a kind of queries waits in.
pub(super) trait HasLane: Ask {
    fn lane(state: &mut State) -> &mut Arrivals<Self>;
}

impl HasLane for Query {
    fn lane(state: &mut State) -> &mut Arrivals<Self> {
        &mut state.searches
    }
}

impl HasLane for FullPassQuery {
    fn lane(state: &mut State) -> &mut Arrivals<Self> {
        &mut state.full_passes
    }
}

/// Replies to callers of both lanes.
#[derive(Default)]
pub(super) struct Replies {
    pub(super) searches: Vec<Reply<Query>>,
    pub(super) full_passes: Vec<Reply<FullPassQuery>>,
}

impl Replies {
    pub(super) fn tell(self, error: SubmitError, statistics: &Statistics) {
        for reply in self.searches {
            tell::<Query>(Some(reply), Err(error), statistics);
        }
        for reply in self.full_passes {
            tell::<FullPassQuery>(Some(reply), Err(error), statistics);
        }
    }
}

/// What the engine thread takes out of the queue at once.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) searches: Vec<Job<Query>>,
    pub(super) full_passes: Vec<Job<FullPassQuery>>,
    pub(super) probe: Option<Job<Query>>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            searches: Arrivals::default(),
            full_passes: Arrivals::default(),
            probe: None,
            engine_sleeps: false,
            engine: EngineState::Working,
            busy: None,
            callers_gone: false,
            refused_full: 0,
            refused_without_engine: 0,
        }
    }

    pub(super) fn give_up(&mut self) -> Replies {
        let mut searches = self.searches.give_up();
        searches.extend(self.probe.take().and_then(|probe| probe.reply));
        Replies { searches, full_passes: self.full_passes.give_up() }
    }

    pub(super) fn late(&mut self, now: Instant) -> Replies {
        let mut searches = self.searches.late(now);
        let probe = self.probe.as_mut().filter(|probe| now >= probe.deadline);
        searches.extend(probe.and_then(|probe| probe.reply.take()));
        Replies { searches, full_passes: self.full_passes.late(now) }
    }

    /// Whoever asks hears this, if there is no working engine.
    pub(super) fn refusal(&self) -> Option<SubmitError> {
        match self.engine {
            EngineState::Working => None,
            EngineState::Restarting { retry_after } => {
                Some(SubmitError::EngineRestarting { retry_after })
            }
            EngineState::Lost => Some(SubmitError::EngineGone),
        }
    }
}
