//! What the workers of one scheduler share, and what the timer watches: callers that wait too long,
//! devices that hang.

use std::mem::take;
use std::sync::Arc;
use std::time::Instant;

use tracing::error;

use crate::dispatch::Dispatch;
use crate::error::SubmitError;
use crate::hand_out::HandOut;
use crate::lane_state::Back;
use crate::pass::Lent;
use crate::shared::{LaneShared, Limits, Shared};
use crate::state::{DeviceState, EngineLost, ReplicaState};
use crate::statistics::DeviceCounters;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, lock};

pub(crate) struct Core<D: ?Sized> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lanes: Vec<Arc<LaneShared>>,
    dispatch: Mutex<Dispatch<D>>,
    /// Whether the lanes have jobs that no pass has taken. Written under the lock of `dispatch`.
    waits: AtomicBool,
    workers: Vec<WorkerState>,
    /// What makes the devices of workers that are retired.
    makers: Mutex<Vec<Option<AnyMaker<D>>>>,
    /// How many devices have failed while they had jobs that others answer.
    failures: AtomicU64,
}

pub(crate) type AnyMaker<D> = Box<dyn FnMut() -> Result<Box<D>, String> + Send>;

/// One worker, as the timer sees it.
struct WorkerState {
    /// Whether it is told to retire.
    retires: Arc<AtomicBool>,
    now: Mutex<Doing>,
    /// The answers of its last pass, to be handed out once the device works on the next one. Kept
    /// here, so that they are not lost if the device hangs before that.
    finished: Mutex<Option<Box<dyn HandOut>>>,
}

#[derive(Default)]
struct Doing {
    /// What the worker does, and since when; `None` between slices.
    busy: Option<(&'static str, Instant)>,
    /// The jobs of the passes that it has begun.
    lent: Vec<Box<dyn Lent>>,
    /// Its device hangs: others have its jobs, or nobody does.
    is_given_up: bool,
}

impl<D: ?Sized> Core<D> {
    /// With a worker for each of these states.
    pub(crate) fn new(shared: Arc<Shared>, dispatch: Dispatch<D>, states: &[ReplicaState]) -> Self {
        let lanes = dispatch.shared_lanes();
        shared.start(lanes.clone(), states.len());
        let worker =
            |retires| WorkerState { retires, now: Mutex::default(), finished: Mutex::default() };
        let workers = shared.states.start(states).into_iter().map(worker).collect();
        let makers = Mutex::new(states.iter().map(|_| None).collect());
        Self {
            shared,
            lanes,
            dispatch: Mutex::new(dispatch),
            waits: AtomicBool::new(false),
            workers,
            makers,
            failures: AtomicU64::new(0),
        }
    }

    pub(crate) fn dispatch(&self) -> MutexGuard<'_, Dispatch<D>> {
        lock(&self.dispatch)
    }

    pub(crate) fn counters(&self, worker: usize) -> &DeviceCounters {
        &self.shared.devices.get().expect("set when the core was made")[worker]
    }

    /// Whether jobs have arrived that no worker has taken yet.
    pub(crate) fn has_arrived(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_filled())
    }

    /// Notes whether the lanes have jobs left and releases their lock. If they have, wakes another
    /// worker.
    pub(crate) fn update_waiting(&self, dispatch: MutexGuard<'_, Dispatch<D>>) {
        let waits = !dispatch.is_empty();
        self.waits.store(waits, Ordering::SeqCst);
        drop(dispatch);
        if waits {
            self.shared.parking.wake_one();
        }
    }

    /// Whether there is something for a worker that has no pass under way.
    pub(crate) fn has_work(&self) -> bool {
        self.waits.load(Ordering::SeqCst) || self.has_arrived()
    }

    pub(crate) fn retires(&self, worker: usize) -> bool {
        self.workers[worker].retires.load(Ordering::SeqCst)
    }

    pub(crate) fn retire(&self, worker: usize) -> bool {
        let is_told = self.shared.states.retire(worker);
        if is_told {
            self.shared.parking.wake_all();
        }
        is_told
    }

    /// Tells a worker not to retire. If it has retired, returns its maker: a thread must call it.
    pub(crate) fn start_again(&self, worker: usize) -> Option<AnyMaker<D>> {
        let was_retired = self.shared.states.start_again(worker);
        was_retired.then(|| lock(&self.makers)[worker].take()).flatten()
    }

    pub(crate) fn keep_maker(&self, worker: usize, make: AnyMaker<D>) {
        lock(&self.makers)[worker] = Some(make);
    }

    /// Keeps what a pass finished until it is handed out.
    pub(crate) fn keep(&self, worker: usize, finished: Box<dyn HandOut>) {
        *lock(&self.workers[worker].finished) = Some(finished);
    }

    pub(crate) fn hand_out(&self, worker: usize) {
        let finished = lock(&self.workers[worker].finished).take();
        if let Some(finished) = finished {
            finished.hand_out(&self.shared.statistics);
        }
    }

    /// Called before a worker does something that may take long. Until [`end`](Self::end),
    /// [`watch`](Self::watch) answers these callers when their deadlines pass.
    pub(crate) fn begin(
        &self,
        worker: usize,
        doing: &'static str,
        since: Instant,
        lent: Vec<Box<dyn Lent>>,
    ) {
        let mut now = lock(&self.workers[worker].now);
        now.busy = Some((doing, since));
        now.lent = lent;
    }

    /// Called after that work. Returns what was lent. `None` if the device was given up meanwhile.
    pub(crate) fn end(&self, worker: usize) -> Option<Vec<Box<dyn Lent>>> {
        let mut now = lock(&self.workers[worker].now);
        now.busy = None;
        let (lent, is_given_up) = (take(&mut now.lent), take(&mut now.is_given_up));
        drop(now);
        if is_given_up {
            self.end_jobs(lent);
            return None;
        }
        Some(lent)
    }

    /// Nobody will answer these jobs.
    fn end_jobs(&self, jobs: Vec<Box<dyn Lent>>) {
        let mut dispatch = self.dispatch();
        for jobs in jobs {
            dispatch.take_back(jobs, Back::Over(SubmitError::EngineGone));
        }
    }

    /// Answers callers whose deadline has passed, and gives up a device that hangs. `false` when
    /// there is nothing more to watch.
    pub(crate) fn watch(&self, now: Instant) -> bool {
        for index in 0..self.workers.len() {
            self.check_hang(index, now);
        }
        self.answer_expired(now);
        self.shared.state() != DeviceState::Lost && !self.shared.parking.are_callers_gone()
    }

    /// Gives up a device that hangs. While another works, its jobs are asked again; otherwise it is
    /// lost.
    pub(crate) fn check_hang(&self, worker: usize, now: Instant) {
        let mut state = lock(&self.workers[worker].now);
        let Some((doing, since)) = state.busy.filter(|_| !state.is_given_up) else { return };
        let took = now.saturating_duration_since(since);
        // Making a device may take longer, and keeps no callers waiting that others could answer.
        let Limits { hang_timeout, hang_timeout_beside_others, .. } = self.shared.limits;
        let limit = match state.lent.is_empty() {
            true => hang_timeout,
            false => hang_timeout_beside_others.min(hang_timeout),
        };
        if took < limit {
            return;
        }
        let hangs = EngineLost::Hangs { doing, milliseconds: limit.as_millis() };
        if !self.shared.states.hangs(worker) {
            drop(state);
            if took >= hang_timeout {
                self.lose(worker, hangs);
            }
            return;
        }
        state.is_given_up = true;
        let lent = take(&mut state.lent);
        drop(state);
        error!(replica = worker, "others answer in its place: {hangs}");
        self.hand_out(worker);
        self.ask_again(lent);
    }

    /// A device failed while it had these jobs: others answer those that it worked on, and begin
    /// the others again.
    pub(crate) fn ask_again(&self, jobs: Vec<Box<dyn Lent>>) {
        let failure = self.failures.fetch_add(1, Ordering::Relaxed);
        let mut dispatch = self.dispatch();
        // Under the lock: whoever loses the last device from now on finds these jobs in their
        // lanes.
        let is_lost = self.shared.state() == DeviceState::Lost;
        for jobs in jobs {
            let why = match jobs.is_on_device() {
                _ if is_lost => Back::Over(SubmitError::EngineGone),
                true => Back::Failed(failure),
                false => Back::Unfinished,
            };
            dispatch.take_back(jobs, why);
        }
        dispatch.drop_expired(Instant::now());
        self.update_waiting(dispatch);
    }

    pub(crate) fn answer_expired(&self, now: Instant) {
        for worker in &self.workers {
            for lent in &mut lock(&worker.now).lent {
                lent.answer_expired(now, &self.shared.statistics);
            }
        }
        self.dispatch().answer_expired(now);
    }

    /// Gives up a worker's device for good. If it was the last, all waiting jobs get an error.
    pub(crate) fn lose(&self, worker: usize, reason: EngineLost) {
        if !self.shared.states.set(worker, ReplicaState::Lost) {
            return;
        }
        let mut now = lock(&self.workers[worker].now);
        now.is_given_up = true;
        let lent = take(&mut now.lent);
        drop(now);
        self.end_jobs(lent);
        self.hand_out(worker);
        if self.shared.state() == DeviceState::Lost {
            self.dispatch().fail_all(SubmitError::EngineGone, true);
        }
        self.shared.note_lost(reason);
    }
}
