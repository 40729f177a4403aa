//! What a worker does when its device fails: it drops the device and makes another, with growing
//! pauses, until one works or the failures are too many.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use contract::Device;
use tracing::{debug, error, info, warn};

use crate::core::Core;
use crate::error::{StartError, SubmitError};
use crate::state::{DeviceState, EngineLost, ReplicaState};
use crate::worker::{End, Worker, caught};

/// There may be at most `max_restarts` attempts within this time.
const WINDOW: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(crate) struct Supervisor<D: ?Sized, F> {
    /// `None` once the worker is retired: then the core has it.
    make: Option<F>,
    core: Arc<Core<D>>,
    index: usize,
    /// When the attempts within the [`WINDOW`] began.
    attempts: VecDeque<Instant>,
    /// How long it last took to make a device.
    making_took: Duration,
}

/// If the thread ends for any reason but that it was told to retire, waiting callers get an error.
impl<D: ?Sized, F> Drop for Supervisor<D, F> {
    fn drop(&mut self) {
        if self.make.is_some() {
            self.core.lose(self.index, EngineLost::ThreadEnded);
        }
    }
}

impl<D, F, E> Supervisor<D, F>
where
    D: Device + ?Sized,
    F: FnMut() -> Result<Box<D>, E> + Send + 'static,
    E: Display,
{
    pub(crate) fn new(make: F, core: Arc<Core<D>>, index: usize) -> Self {
        let (attempts, making_took) = (VecDeque::new(), Duration::ZERO);
        Self { make: Some(make), core, index, attempts, making_took }
    }

    /// Makes a device.
    ///
    /// # Errors
    /// The maker's error; [`StartError::Broken`] if it panics.
    pub(crate) fn make(&mut self) -> Result<Box<D>, StartError<E>> {
        let started = Instant::now();
        let make = self.make.as_mut().expect("the worker is not retired");
        let made = match caught(make) {
            Ok(made) => made.map_err(StartError::Device),
            Err(panic) => Err(StartError::Broken(panic)),
        };
        self.making_took = started.elapsed();
        made
    }

    /// Makes the first device and answers requests with it. If it can't be made, it is like a
    /// device that failed.
    pub(crate) fn make_and_run(mut self) {
        let device = match self.make() {
            Ok(device) => Some(device),
            Err(reason) => {
                warn!(replica = self.index, "starting the engine failed: {reason}");
                self.replace(None, reason.to_string())
            }
        };
        if let Some(device) = device {
            self.core.shared.states.set(self.index, ReplicaState::Working);
            self.run(device);
        }
    }

    /// Answers requests with this device and its successors, until all callers are gone, no device
    /// can be made, or the worker is told to retire.
    pub(crate) fn run(mut self, mut device: Box<D>) {
        let mut worker = Worker::new(self.core.clone(), self.index);
        loop {
            let failure = match worker.run(&mut device) {
                End::NobodyAsks => {
                    debug!("every handle is dropped and every job is answered");
                    log_counters(&*device);
                    return;
                }
                End::Retired => {
                    if self.drop_device(device, "dropping the retired engine") && !self.retires() {
                        // It was told to start again meanwhile.
                        if let Some(another) = self.replace(None, "it was retired".into()) {
                            device = another;
                            continue;
                        }
                    }
                    return;
                }
                End::GivenUp if self.core.shared.states.is_lost(self.index) => return,
                End::GivenUp => "it hung".into(),
                End::Failed(reason) => {
                    worker.put_back();
                    reason
                }
            };
            match self.replace(Some(device), failure) {
                Some(another) => device = another,
                None => return,
            }
        }
    }

    /// Drops a device, watched. `false` if it was given up meanwhile as the last.
    fn drop_device(&mut self, device: Box<D>, doing: &'static str) -> bool {
        self.core.begin(self.index, doing, Instant::now(), Vec::new());
        let dropped = caught(|| drop(device));
        if self.is_given_up() {
            return false;
        }
        if let Err(reason) = dropped {
            error!(replica = self.index, "{doing} failed: {reason}");
        }
        self.core.counters(self.index).device_is_dropped();
        true
    }

    /// Called after what the timer watches. Whether the device was given up for good meanwhile. If
    /// it only hung for a while, others have answered in its place, and it goes on.
    fn is_given_up(&self) -> bool {
        self.core.end(self.index).is_none() && self.core.shared.states.is_lost(self.index)
    }

    /// If the worker is told to retire, leaves its maker with the core. There is no device.
    fn retires(&mut self) -> bool {
        let core = self.core.clone();
        let is_retired = core.shared.states.retires_now(self.index, || {
            if let Some(mut make) = self.make.take() {
                let make = move || make().map_err(|e| e.to_string());
                core.keep_maker(self.index, Box::new(make));
            }
        });
        if is_retired {
            info!(replica = self.index, "the engine is retired");
        }
        is_retired
    }

    /// Replaces a device that failed. `None` if no other can be made, no caller is left, or the
    /// worker retires.
    fn replace(&mut self, device: Option<Box<D>>, failure: String) -> Option<Box<D>> {
        self.restarts_in(self.pause() + self.making_took);
        if let Some(device) = device
            && !self.drop_device(device, "dropping the failed engine")
        {
            return None;
        }
        let mut last = failure;
        loop {
            let now = Instant::now();
            self.attempts.retain(|&attempt| now.saturating_duration_since(attempt) < WINDOW);
            let mut pause = self.pause();
            let most = self.core.shared.limits.max_restarts;
            if self.attempts.len() >= most as usize {
                if !self.core.shared.states.may_go_on(self.index) {
                    self.core.lose(self.index, EngineLost::TooManyRestarts { most, last });
                    return None;
                }
                pause = LONGEST_PAUSE;
            }
            self.attempts.push_back(now);
            self.restarts_in(pause + self.making_took);
            self.core.shared.parking.pause(pause, || self.core.retires(self.index));
            if self.core.shared.parking.are_callers_gone() || self.retires() {
                return None;
            }
            self.core.begin(self.index, "restarting the engine", Instant::now(), Vec::new());
            let made = self.make();
            if self.is_given_up() {
                return None;
            }
            match made {
                Ok(device) => {
                    self.core.shared.statistics.restarts.fetch_add(1, Relaxed);
                    info!(replica = self.index, "the engine is restarted");
                    let works = self.core.shared.states.set(self.index, ReplicaState::Working);
                    return works.then_some(device);
                }
                Err(reason) => {
                    warn!(replica = self.index, "restarting the engine failed: {reason}");
                    last = reason.to_string();
                    let retry_after = self.pause() + self.making_took;
                    self.restarts_in(retry_after);
                    // Other devices may still answer the waiting jobs.
                    if self.core.shared.state() != DeviceState::Working {
                        let error = SubmitError::EngineRestarting { retry_after };
                        self.core.dispatch().fail_all(error, false);
                    }
                }
            }
        }
    }

    fn restarts_in(&self, retry_after: Duration) {
        self.core.shared.states.set(self.index, ReplicaState::Restarting { retry_after });
    }

    /// How long to wait before the next attempt.
    fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.attempts.len().min(16));
        doubled.min(LONGEST_PAUSE)
    }
}

fn log_counters<D: Device + ?Sized>(device: &D) {
    let counters = device.counters();
    if !counters.is_empty() {
        let counted: Vec<String> =
            counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
        info!("counts of the engine: {}", counted.join(", "));
    }
}
