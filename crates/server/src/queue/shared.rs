//! What both ends of the queue see: the jobs that wait, and how many queries may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model_store::{FullPassQuery, Query};
use tokio::sync::watch;

use super::engine_state::{EngineLost, EngineState};
use super::hand_out::Finished;
use super::job::{Ask, Job, Reply, tell};
use super::statistics::{QueueStatistics, Statistics};
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, wait_at_most};
use super::{Limits, SubmitError};

/// One lock, held for a push by callers and for a swap by the engine thread: that takes all that
/// waits at once, however much it is.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Told when there is work for an engine thread that waits for some, or will never be.
    changed: Condvar,
    /// What the last search finished, to be handed out as soon as the device is at work on the next pass. Here,
    /// so that it is not lost with an engine that hangs before that.
    finished: Mutex<Option<Finished<Query>>>,
    capacity: u32,
    hang_timeout: Duration,
    /// Why there will be no engine any more, for whoever ends the process then.
    lost: watch::Sender<Option<EngineLost>>,
    pub(super) statistics: Arc<Statistics>,
    /// How many callers have gone without their answer: while it stays the same, nobody needs to
    /// look for their jobs.
    hung_up: AtomicU64,
}

pub(super) struct State {
    searches: Arrivals<Query>,
    full_passes: Arrivals<FullPassQuery>,
    /// The readiness check's own place, which no load can take away.
    probe: Option<Job<Query>>,
    /// Waking a thread costs microseconds: only one that sleeps is woken.
    engine_sleeps: bool,
    engine: EngineState,
    /// What the engine is doing, and since when, unless it is in the queue's hands.
    busy: Option<(&'static str, Instant)>,
    callers_gone: bool,
    refused_full: u64,
    refused_without_engine: u64,
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

    /// Replies to all that wait for an answer. Their places stay taken where the engine thread has the jobs.
    fn give_up(&mut self) -> Vec<Reply<Q>> {
        let jobs = std::mem::take(&mut self.jobs);
        self.taken -= jobs.iter().map(|job| job.places).sum::<u32>();
        let lent = std::mem::take(&mut self.lent);
        let replies = jobs.into_iter().map(|job| job.reply);
        replies.chain(lent.into_iter().map(|(_, reply)| reply)).flatten().collect()
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

/// Replies to callers of both lanes.
#[derive(Default)]
struct Replies {
    searches: Vec<Reply<Query>>,
    full_passes: Vec<Reply<FullPassQuery>>,
}

impl Replies {
    fn tell(self, error: SubmitError, statistics: &Statistics) {
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
    fn give_up(&mut self) -> Replies {
        let mut searches = self.searches.give_up();
        searches.extend(self.probe.take().and_then(|probe| probe.reply));
        Replies { searches, full_passes: self.full_passes.give_up() }
    }

    fn late(&mut self, now: Instant) -> Replies {
        let mut searches = self.searches.late(now);
        let probe = self.probe.as_mut().filter(|probe| now >= probe.deadline);
        searches.extend(probe.and_then(|probe| probe.reply.take()));
        Replies { searches, full_passes: self.full_passes.late(now) }
    }

    /// Whoever asks hears this, if there is no working engine.
    fn refusal(&self) -> Option<SubmitError> {
        match self.engine {
            EngineState::Working => None,
            EngineState::Restarting { retry_after } => {
                Some(SubmitError::EngineRestarting { retry_after })
            }
            EngineState::Lost => Some(SubmitError::EngineGone),
        }
    }
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        let state = State {
            searches: Arrivals::default(),
            full_passes: Arrivals::default(),
            probe: None,
            engine_sleeps: false,
            engine: EngineState::Working,
            busy: None,
            callers_gone: false,
            refused_full: 0,
            refused_without_engine: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            finished: Mutex::new(None),
            capacity: limits.capacity_queries,
            hang_timeout: limits.engine_hang_timeout,
            lost: watch::Sender::new(None),
            statistics: Arc::default(),
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

    /// Takes a job in, if there is room.
    pub(super) fn admit<Q: HasLane>(&self, job: Job<Q>) -> Result<(), SubmitError> {
        self.put(|state| {
            let taken = state.searches.taken + state.full_passes.taken;
            if job.places > self.capacity - taken {
                state.refused_full += 1;
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
        if let Some(refusal) = state.refusal() {
            state.refused_without_engine += 1;
            return Err(refusal);
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

    /// After a pass that answered: the places of the jobs that it finished, and what a place's share of it was,
    /// for a moving average.
    pub(super) fn pass_is_done<Q: HasLane>(&self, finished: u32, places: usize, took: Duration) {
        let now = (took.as_nanos() / places.max(1) as u128).min(u128::from(u64::MAX)) as u64;
        let mut state = self.lock();
        let lane = Q::lane(&mut state);
        lane.taken -= finished;
        let average = &mut lane.nanoseconds_per_place;
        *average = if *average == 0 { now } else { *average - *average / 8 + now / 8 };
    }

    /// For the engine thread, before it does what may take long: lends the replies of both lanes, so that
    /// callers whose time is over can be told so meanwhile, and lets [`watch`](Self::watch) look at the clock.
    pub(super) fn begin(
        &self,
        doing: &'static str,
        now: Instant,
        searches: &mut Lent<Query>,
        full_passes: &mut Lent<FullPassQuery>,
    ) {
        let mut state = self.lock();
        std::mem::swap(&mut state.searches.lent, searches);
        std::mem::swap(&mut state.full_passes.lent, full_passes);
        state.busy = Some((doing, now));
    }

    /// After it: takes the replies back. `false` if the engine was given up meanwhile.
    pub(super) fn end(
        &self,
        searches: &mut Lent<Query>,
        full_passes: &mut Lent<FullPassQuery>,
    ) -> bool {
        let mut state = self.lock();
        std::mem::swap(&mut state.searches.lent, searches);
        std::mem::swap(&mut state.full_passes.lent, full_passes);
        state.busy = None;
        state.engine != EngineState::Lost
    }

    /// Keeps what a pass finished until it is [taken](Self::take_finished).
    pub(super) fn keep_finished(&self, finished: Finished<Query>) {
        *self.finished.lock().expect("nothing panics while it holds this lock") = Some(finished);
    }

    pub(super) fn take_finished(&self) -> Option<Finished<Query>> {
        self.finished.lock().expect("nothing panics while it holds this lock").take()
    }

    /// Tells callers whose time is over so, and gives up an engine that hangs. `false` when there is nothing to
    /// watch any more.
    pub(super) fn watch(&self, now: Instant) -> bool {
        let state = self.lock();
        if let Some((doing, since)) = state.busy
            && now.saturating_duration_since(since) >= self.hang_timeout
        {
            let milliseconds = self.hang_timeout.as_millis();
            self.lose(state, EngineLost::Hangs { doing, milliseconds });
            return false;
        }
        let over = state.engine == EngineState::Lost || state.callers_gone;
        drop(state);
        self.tell_the_late(now);
        !over
    }

    /// Tells callers whose time is over so.
    pub(super) fn tell_the_late(&self, now: Instant) {
        let late = self.lock().late(now);
        late.tell(SubmitError::DeadlinePassed, &self.statistics);
    }

    /// There will be no more callers.
    pub(super) fn callers_are_gone(&self) {
        self.lock().callers_gone = true;
        self.changed.notify_one();
    }

    /// The engine failed: who asks from now on is refused, and who waits goes on waiting.
    pub(super) fn engine_restarts(&self, retry_after: Duration) {
        let mut state = self.lock();
        if state.engine != EngineState::Lost {
            state.engine = EngineState::Restarting { retry_after };
        }
    }

    /// There is a working engine again. `false` if it was given up meanwhile.
    pub(super) fn engine_works(&self) -> bool {
        let mut state = self.lock();
        if state.engine == EngineState::Lost {
            return false;
        }
        state.engine = EngineState::Working;
        true
    }

    /// For the engine thread, while there is no engine: fails what is in the queue.
    pub(super) fn fail_arrived(&self, error: SubmitError) {
        let abandoned = self.lock().give_up();
        abandoned.tell(error, &self.statistics);
    }

    /// For the engine thread: does nothing for so long. `false`, and at once, if there are no callers any more
    /// or the engine was given up.
    pub(super) fn pause(&self, duration: Duration) -> bool {
        let until = Instant::now() + duration;
        let (mut state, mut is_over) = (self.lock(), false);
        while !is_over && !state.callers_gone {
            let left = until.saturating_duration_since(Instant::now());
            (state, is_over) = wait_at_most(&self.changed, state, left);
        }
        !state.callers_gone && state.engine != EngineState::Lost
    }

    /// There is no engine any more: what waits gets no answer but an error.
    pub(super) fn engine_is_lost(&self, reason: EngineLost) {
        self.lose(self.lock(), reason);
    }

    fn lose(&self, mut state: MutexGuard<'_, State>, reason: EngineLost) {
        if state.engine == EngineState::Lost {
            return;
        }
        state.engine = EngineState::Lost;
        let abandoned = state.give_up();
        drop(state);
        if let Some(finished) = self.take_finished() {
            finished.hand_out(&self.statistics);
        }
        abandoned.tell(SubmitError::EngineGone, &self.statistics);
        self.lost.send_replace(Some(reason));
    }

    /// Hears why the engine was lost.
    pub(super) fn lost(&self) -> watch::Receiver<Option<EngineLost>> {
        self.lost.subscribe()
    }

    /// How the engine is.
    pub(super) fn engine_state(&self) -> EngineState {
        self.lock().engine
    }

    /// A caller has gone without its answer.
    pub(super) fn hang_up(&self) {
        self.hung_up.fetch_add(1, Ordering::Release);
    }

    /// How many have, so far.
    pub(super) fn hung_up(&self) -> u64 {
        self.hung_up.load(Ordering::Acquire)
    }

    /// What was counted, and what waits now.
    pub(super) fn statistics(&self) -> QueueStatistics {
        let statistics = &self.statistics;
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        let state = self.lock();
        let (searches, full_passes) = (state.searches.taken, state.full_passes.taken);
        let (engine_state, refused_full) = (state.engine, state.refused_full);
        let refused_without_engine = state.refused_without_engine;
        drop(state);
        QueueStatistics {
            searches: statistics.searches.snapshot(searches),
            full_passes: statistics.full_passes.snapshot(full_passes),
            capacity_places: self.capacity,
            refused_full,
            refused_without_engine,
            deadline_passed: statistics.deadline_passed.load(relaxed),
            hung_up: self.hung_up(),
            failed: statistics.failed.load(relaxed),
            engine_restarts: statistics.engine_restarts.load(relaxed),
            engine_state,
            engine_counters: statistics.engine_counters(),
        }
    }
}
