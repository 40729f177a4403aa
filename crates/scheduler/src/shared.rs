//! What both ends of the queue see: the jobs that wait, and how many queries may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{FullPassQuery, Query};
use tokio::sync::watch;

use super::engine_state::{EngineLost, EngineState};
use super::hand_out::Finished;
use super::job::{Ask, Job};
use super::state::{Arrived, HasLane, Lent, State};
use super::statistics::{QueueStatistics, Statistics};
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, wait_at_most};
use super::{Limits, SubmitError};
use crate::account::{Account, Slots, at_most_half, may_take};

/// One lock, held for a push by callers and for a swap by the engine thread: that takes all that
/// waits at once, however much it is.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Told when there is work for an engine thread that waits for some, or will never be.
    changed: Condvar,
    /// What the last search finished, to be handed out as soon as the device is at work on the next pass. Here,
    /// so that it is not lost with an engine that hangs before that.
    finished: Mutex<Option<Finished<Query>>>,
    /// Not 0: jobs have arrived that the engine thread has not taken yet. Beside the lock, for a full pass asks often.
    arrived: AtomicU64,
    capacity: u32,
    hang_timeout: Duration,
    /// Why there will be no engine any more, for whoever ends the process then.
    lost: watch::Sender<Option<EngineLost>>,
    pub(super) statistics: Arc<Statistics>,
    /// How many callers have gone without their answer: while it stays the same, nobody needs to
    /// look for their jobs.
    hung_up: AtomicU64,
}

impl Shared {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
            finished: Mutex::new(None),
            arrived: AtomicU64::new(0),
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

    /// Slots for these queries. More than half of the queue count as half.
    pub(super) fn places<Q: Ask>(&self, queries: &[Q]) -> u32 {
        let places = queries.iter().map(Ask::places).sum::<usize>() as u64;
        // No more than the capacity, which is a u32.
        at_most_half(places, self.capacity.into()) as u32
    }

    /// Takes a caller's job in, if there is room and the caller does not hold too much of it already.
    pub(super) fn admit<Q: HasLane>(
        &self,
        mut job: Job<Q>,
        account: &Arc<Account>,
        asked: u32,
    ) -> Result<(), SubmitError> {
        self.put(|state| {
            let free = self.capacity - state.searches.taken - state.full_passes.taken;
            let held = account.slots();
            if !may_take(asked.into(), held.into(), free.into()) {
                state.refused_full += 1;
                let (searches, full) = (&state.searches, &state.full_passes);
                let left = searches.nanoseconds_left().saturating_add(full.nanoseconds_left());
                let (capacity, retry_after) = (self.capacity, Duration::from_nanos(left));
                return Err(SubmitError::Full { asked, held, free, capacity, retry_after });
            }
            job.slots = Some(Slots::take(account.clone(), asked));
            let lane = Q::lane(state);
            lane.taken += asked;
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
        self.arrived.store(1, Ordering::Relaxed);
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
        self.arrived.store(0, Ordering::Relaxed);
        std::mem::swap(&mut state.searches.jobs, &mut arrived.searches);
        std::mem::swap(&mut state.full_passes.jobs, &mut arrived.full_passes);
        arrived.probe = state.probe.take();
        true
    }

    /// Whether jobs have arrived that the engine thread has not taken yet.
    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.load(Ordering::Relaxed) != 0
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
        // Whom nobody can ask any more may end.
        let is_missed = !state.callers_gone;
        let abandoned = state.give_up();
        drop(state);
        if let Some(finished) = self.take_finished() {
            finished.hand_out(&self.statistics);
        }
        abandoned.tell(SubmitError::EngineGone, &self.statistics);
        if is_missed {
            self.lost.send_replace(Some(reason));
        }
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
