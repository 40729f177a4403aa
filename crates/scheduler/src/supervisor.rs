//! What a worker does when its device fails: it drops the device and makes another, with growing pauses, until one
//! works or the failures are too many.

use std::collections::VecDeque;
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use contract::Device;
use tracing::{debug, error, info, warn};

use crate::core::Core;
use crate::error::{StartError, SubmitError};
use crate::state::{DeviceState, EngineLost};
use crate::worker::{End, Worker, caught};

/// There may be at most `max_restarts` attempts within this time.
const WINDOW: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(crate) struct Supervisor<D: ?Sized, F> {
    make: F,
    core: Arc<Core<D>>,
    /// The worker's index.
    index: usize,
    max_restarts: u32,
    /// When the attempts within the [`WINDOW`] began.
    attempts: VecDeque<Instant>,
    /// How long it last took to make a device.
    making_took: Duration,
    device: PhantomData<fn() -> Box<D>>,
}

/// If the thread ends for any reason, waiting callers get an error.
impl<D: ?Sized, F> Drop for Supervisor<D, F> {
    fn drop(&mut self) {
        self.core.lose(self.index, EngineLost::ThreadEnded);
    }
}

impl<D, F, E> Supervisor<D, F>
where
    D: Device + ?Sized,
    F: FnMut() -> Result<Box<D>, E>,
    E: Display,
{
    pub(crate) fn new(make: F, core: Arc<Core<D>>, index: usize, max_restarts: u32) -> Self {
        let (attempts, making_took) = (VecDeque::new(), Duration::ZERO);
        Self { make, core, index, max_restarts, attempts, making_took, device: PhantomData }
    }

    /// Makes a device.
    ///
    /// # Errors
    /// The maker's error; [`StartError::Broken`] if it panics.
    pub(crate) fn make(&mut self) -> Result<Box<D>, StartError<E>> {
        let started = Instant::now();
        let made = match caught(&mut self.make) {
            Ok(made) => made.map_err(StartError::Device),
            Err(panic) => Err(StartError::Broken(panic)),
        };
        self.making_took = started.elapsed();
        made
    }

    /// Answers requests with this device and its successors, until all callers are gone or no device can be made.
    pub(crate) fn run(mut self, mut device: Box<D>) {
        let mut worker = Worker::new(self.core.clone(), self.index);
        loop {
            match worker.run(&mut device) {
                End::NobodyAsks => {
                    debug!("every handle is dropped and every job is answered");
                    log_counters(&*device);
                    return;
                }
                End::GivenUp => return,
                End::Failed(reason) => {
                    worker.put_back();
                    match self.replace(device, reason) {
                        Some(another) => device = another,
                        None => return,
                    }
                }
            }
        }
    }

    /// Replaces a device that failed. `None` if no other can be made, or no caller is left.
    fn replace(&mut self, device: Box<D>, failure: String) -> Option<Box<D>> {
        self.restarts_in(self.pause() + self.making_took);
        self.core.begin(self.index, "dropping the failed engine", Instant::now(), Vec::new());
        let dropped = caught(|| drop(device));
        self.core.end(self.index)?;
        if let Err(reason) = dropped {
            error!("dropping the failed engine failed: {reason}");
        }
        self.core.counters(self.index).device_is_dropped();
        let mut last = failure;
        loop {
            let now = Instant::now();
            self.attempts.retain(|&attempt| now.saturating_duration_since(attempt) < WINDOW);
            if self.attempts.len() >= self.max_restarts as usize {
                let most = self.max_restarts;
                self.core.lose(self.index, EngineLost::TooManyRestarts { most, last });
                return None;
            }
            let pause = self.pause();
            self.attempts.push_back(now);
            self.core.shared.parking.pause(pause);
            if self.core.shared.parking.are_callers_gone() {
                return None;
            }
            self.core.begin(self.index, "restarting the engine", Instant::now(), Vec::new());
            let made = self.make();
            self.core.end(self.index)?;
            match made {
                Ok(device) => {
                    self.core.shared.statistics.restarts.fetch_add(1, Relaxed);
                    info!("the engine is restarted");
                    let works = self.core.shared.set_state(self.index, DeviceState::Working);
                    return works.then_some(device);
                }
                Err(reason) => {
                    warn!("restarting the engine failed: {reason}");
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
        self.core.shared.set_state(self.index, DeviceState::Restarting { retry_after });
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
