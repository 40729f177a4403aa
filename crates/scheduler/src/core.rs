//! What the workers of one scheduler share, and what the timer watches: callers that wait too long, devices that hang.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::dispatch::Dispatch;
use crate::error::SubmitError;
use crate::hand_out::HandOut;
use crate::lane_state::Filled;
use crate::pass::Lent;
use crate::shared::Shared;
use crate::state::{DeviceState, EngineLost};
use crate::statistics::DeviceCounters;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, lock};

pub(crate) struct Core<D: ?Sized> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inboxes: Vec<Arc<dyn Filled>>,
    dispatch: Mutex<Dispatch<D>>,
    /// Whether the lanes have jobs that no pass has taken. Written under the lock of `dispatch`.
    waits: AtomicBool,
    workers: Vec<WorkerState>,
    hang_timeout: Duration,
}

/// One worker, as the timer sees it.
#[derive(Default)]
struct WorkerState {
    now: Mutex<Doing>,
    /// The answers of its last pass, to be handed out once the device works on the next one. Kept here, so that they
    /// are not lost if the device hangs before that.
    finished: Mutex<Option<Box<dyn HandOut>>>,
}

#[derive(Default)]
struct Doing {
    /// What the worker does, and since when; `None` between slices.
    busy: Option<(&'static str, Instant)>,
    /// The callers of the passes that it has begun.
    lent: Vec<Box<dyn Lent>>,
    is_given_up: bool,
}

impl<D: ?Sized> Core<D> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        dispatch: Dispatch<D>,
        workers: usize,
        hang_timeout: Duration,
    ) -> Self {
        let inboxes = dispatch.inboxes();
        shared.start(dispatch.shared_lanes(), workers);
        let workers = (0..workers).map(|_| WorkerState::default()).collect();
        Self {
            shared,
            inboxes,
            dispatch: Mutex::new(dispatch),
            waits: AtomicBool::new(false),
            workers,
            hang_timeout,
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
        self.inboxes.iter().any(|inbox| inbox.is_filled())
    }

    /// Notes whether the lanes have jobs left and releases their lock. If they have, wakes another worker.
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

    /// Keeps what a pass finished until it is handed out.
    pub(crate) fn keep(&self, worker: usize, finished: Box<dyn HandOut>) {
        *lock(&self.workers[worker].finished) = Some(finished);
    }

    /// Hands out what the worker's last pass finished.
    pub(crate) fn hand_out(&self, worker: usize) {
        let finished = lock(&self.workers[worker].finished).take();
        if let Some(finished) = finished {
            finished.hand_out(&self.shared.statistics);
        }
    }

    /// Called before a worker does something that may take long. Until [`end`](Self::end), [`watch`](Self::watch)
    /// answers these callers when their deadlines pass.
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

    /// Called after that work. Returns what was lent. `None` if the worker was given up meanwhile.
    pub(crate) fn end(&self, worker: usize) -> Option<Vec<Box<dyn Lent>>> {
        let mut now = lock(&self.workers[worker].now);
        now.busy = None;
        let lent = std::mem::take(&mut now.lent);
        (!now.is_given_up).then_some(lent)
    }

    /// Answers callers whose deadline has passed, and gives up a device that hangs. `false` when there is nothing more
    /// to watch.
    pub(crate) fn watch(&self, now: Instant) -> bool {
        for (index, worker) in self.workers.iter().enumerate() {
            let busy = lock(&worker.now).busy;
            if let Some((doing, since)) = busy
                && now.saturating_duration_since(since) >= self.hang_timeout
            {
                let milliseconds = self.hang_timeout.as_millis();
                self.lose(index, EngineLost::Hangs { doing, milliseconds });
            }
        }
        self.answer_expired(now);
        self.shared.state() != DeviceState::Lost && !self.shared.parking.are_callers_gone()
    }

    /// Answers callers whose deadline has passed.
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
        if !self.shared.set_state(worker, DeviceState::Lost) {
            return;
        }
        {
            let mut now = lock(&self.workers[worker].now);
            now.is_given_up = true;
            for lent in &mut now.lent {
                lent.tell_all(SubmitError::EngineGone, &self.shared.statistics);
            }
        }
        self.hand_out(worker);
        if self.shared.state() == DeviceState::Lost {
            self.dispatch().fail_all(SubmitError::EngineGone, true);
        }
        self.shared.note_lost(reason);
    }
}
