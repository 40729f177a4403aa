//! What both ends of the queue see: the jobs that wait, and how many queries may.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use model_store::{FullPassQuery, Query};

use super::SubmitError;
use super::job::{Ask, Job, JobError, Reply, tell};

/// One lock, held for a push by callers and for a swap by the engine thread: that takes all that
/// waits at once, however much it is.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Told when there is work for an engine thread that waits for some, or will never be.
    changed: Condvar,
    capacity: u32,
    /// How many callers have gone without their answer: while it stays the same, nobody needs to
    /// look for their jobs.
    hung_up: AtomicU64,
}

#[derive(Default)]
pub(super) struct State {
    searches: Arrivals<Query>,
    full_passes: Arrivals<FullPassQuery>,
    /// The readiness check's own place, which no load can take away.
    probe: Option<Job<Query>>,
    /// Waking a thread costs microseconds: only one that sleeps is woken.
    engine_sleeps: bool,
    engine_gone: bool,
    callers_gone: bool,
}

/// One lane, as both ends see it.
pub(super) struct Arrivals<Q: Ask> {
    jobs: Vec<Job<Q>>,
    /// Of the jobs in the engine thread's hands, while the engine works: until when their callers wait, and
    /// where their answers go.
    lent: Lent<Q>,
    /// Places of the jobs that wait or are in work.
    taken: u32,
    /// Nanoseconds that a place has lately taken of the engine's time.
    nanoseconds_per_place: u64,
}

pub(super) type Lent<Q> = Vec<(Instant, Option<Reply<Q>>)>;

impl<Q: Ask> Default for Arrivals<Q> {
    fn default() -> Self {
        Self { jobs: Vec::new(), lent: Vec::new(), taken: 0, nanoseconds_per_place: 0 }
    }
}

impl<Q: Ask> Arrivals<Q> {
    fn nanoseconds_left(&self) -> u64 {
        u64::from(self.taken).saturating_mul(self.nanoseconds_per_place)
    }

    /// All that waits for an answer.
    fn give_up(&mut self) -> (Vec<Job<Q>>, Lent<Q>) {
        (std::mem::take(&mut self.jobs), std::mem::take(&mut self.lent))
    }

    /// Replies to those whose time is over.
    fn late(&mut self, now: Instant) -> Vec<Reply<Q>> {
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

/// What the engine thread takes out of the queue at once.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) searches: Vec<Job<Query>>,
    pub(super) full_passes: Vec<Job<FullPassQuery>>,
    pub(super) probe: Option<Job<Query>>,
}

impl Shared {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            capacity,
            hung_up: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this lock")
    }

    /// Places for these queries. More than the queue holds are let in when it is otherwise empty.
    pub(super) fn places<Q: Ask>(&self, queries: &[Q]) -> u32 {
        let places = queries.iter().map(Ask::places).sum::<usize>();
        u32::try_from(places).unwrap_or(u32::MAX).min(self.capacity)
    }

    /// Places that are taken, by searches and by full passes, and how many there are for both.
    pub(super) fn taken_and_capacity(&self) -> ([u32; 2], u32) {
        let state = self.lock();
        ([state.searches.taken, state.full_passes.taken], self.capacity)
    }

    /// Takes a job in, if there is room.
    pub(super) fn admit<Q: HasLane>(&self, job: Job<Q>) -> Result<(), SubmitError> {
        self.put(|state| {
            let taken = state.searches.taken + state.full_passes.taken;
            if job.places > self.capacity - taken {
                let (searches, full) = (&state.searches, &state.full_passes);
                let left = searches.nanoseconds_left().saturating_add(full.nanoseconds_left());
                return Err(SubmitError::Full { retry_after: Duration::from_nanos(left) });
            }
            let lane = Q::lane(state);
            lane.taken += job.places;
            lane.jobs.push(job);
            Ok(())
        })
    }

    /// Takes a probe in, in place of one that may be there.
    pub(super) fn admit_probe(&self, probe: Job<Query>) -> Result<(), SubmitError> {
        self.put(|state| {
            state.probe = Some(probe);
            Ok(())
        })
    }

    fn put(
        &self,
        put: impl FnOnce(&mut State) -> Result<(), SubmitError>,
    ) -> Result<(), SubmitError> {
        let mut state = self.lock();
        if state.engine_gone {
            return Err(SubmitError::EngineGone);
        }
        put(&mut state)?;
        let wake = std::mem::take(&mut state.engine_sleeps);
        drop(state);
        if wake {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// For the engine thread: moves all jobs that wait into `arrived`, which is empty. If it `may_sleep`,
    /// not before there is something. `false` when there never will be again.
    pub(super) fn take(&self, arrived: &mut Arrived, may_sleep: bool) -> bool {
        let mut state = self.lock();
        while may_sleep
            && state.searches.jobs.is_empty()
            && state.full_passes.jobs.is_empty()
            && state.probe.is_none()
        {
            if state.callers_gone {
                return false;
            }
            state.engine_sleeps = true;
            state = self.changed.wait(state).expect("nothing panics while it holds this lock");
        }
        state.engine_sleeps = false;
        std::mem::swap(&mut state.searches.jobs, &mut arrived.searches);
        std::mem::swap(&mut state.full_passes.jobs, &mut arrived.full_passes);
        arrived.probe = state.probe.take();
        true
    }

    /// Places of jobs that are about to be answered.
    pub(super) fn free<Q: HasLane>(&self, places: u32) {
        Q::lane(&mut self.lock()).taken -= places;
    }

    /// For the engine thread, before and after a pass: exchanges what is lent here, so that callers
    /// whose time is over can be told so while the pass takes its time.
    pub(super) fn lend<Q: HasLane>(&self, replies: &mut Lent<Q>) {
        std::mem::swap(&mut Q::lane(&mut self.lock()).lent, replies);
    }

    /// Tells callers whose time is over so. `false` when there will be none any more.
    pub(super) fn expire(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let mut searches = state.searches.late(now);
        let probe = state.probe.as_mut().filter(|probe| now >= probe.deadline);
        searches.extend(probe.and_then(|probe| probe.reply.take()));
        let full_passes = state.full_passes.late(now);
        let over = state.engine_gone || state.callers_gone;
        drop(state);
        for reply in searches {
            tell::<Query>(Some(reply), Err(JobError::DeadlinePassed));
        }
        for reply in full_passes {
            tell::<FullPassQuery>(Some(reply), Err(JobError::DeadlinePassed));
        }
        !over
    }

    /// There will be no more callers.
    pub(super) fn callers_are_gone(&self) {
        self.lock().callers_gone = true;
        self.changed.notify_one();
    }

    /// There is no engine any more: what waits gets no answer but an error.
    pub(super) fn engine_is_gone(&self) {
        let mut state = self.lock();
        state.engine_gone = true;
        let abandoned = (state.searches.give_up(), state.full_passes.give_up(), state.probe.take());
        drop(state);
        // Dropping a job wakes its caller, which may ask again at once.
        drop(abandoned);
    }

    /// A caller has gone without its answer.
    pub(super) fn hang_up(&self) {
        self.hung_up.fetch_add(1, Ordering::Release);
    }

    /// How many have, so far.
    pub(super) fn hung_up(&self) -> u64 {
        self.hung_up.load(Ordering::Acquire)
    }

    /// Keeps a moving average of a place's share of the passes.
    pub(super) fn note_pass<Q: HasLane>(&self, places: usize, took: Duration) {
        let now = (took.as_nanos() / places.max(1) as u128).min(u128::from(u64::MAX)) as u64;
        let mut state = self.lock();
        let average = &mut Q::lane(&mut state).nanoseconds_per_place;
        *average = if *average == 0 { now } else { *average - *average / 8 + now / 8 };
    }
}
