//! What a worker does with a device that works: collects jobs, drops expired ones, runs a slice of a pass, hands
//! answers out.
//!
//! A short pass has one slice. Between two slices of a long pass, other lanes have their turns and expired jobs are
//! dropped. Callers take turns by the device time that they have used, whatever they ask for (`account/turns.rs`).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Device;
use contract::workload::{PassError, Slice};
use tracing::{debug, error};

use crate::core::Core;
use crate::dispatch::{LONGEST_SLICE, Turn};
use crate::error::SubmitError;
use crate::pass::AnyPass;
use crate::state::DeviceState;

/// One of the threads that own a device each.
pub(crate) struct Worker<D: ?Sized> {
    core: Arc<Core<D>>,
    /// The worker's index.
    index: usize,
    /// For each lane, its pass that is between two slices.
    under_way: Vec<Option<Box<dyn AnyPass<D>>>>,
    /// How many callers had hung up when the passes were last checked for them.
    hung_up: u64,
}

/// Why a worker stops using its device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every handle is gone and every job is answered.
    NobodyAsks,
    /// It failed, may be in any state and must not be used again.
    Failed(String),
    /// It was given up while it worked.
    GivenUp,
}

impl<D: Device + ?Sized> Worker<D> {
    pub(crate) fn new(core: Arc<Core<D>>, index: usize) -> Self {
        let under_way = core.inboxes.iter().map(|_| None).collect();
        Self { core, index, under_way, hung_up: 0 }
    }

    /// Runs passes on this device. Returns why it stopped.
    pub(crate) fn run(&mut self, device: &mut D) -> End {
        loop {
            match self.next(device) {
                Some(turn) => {
                    if let Err(end) = self.slice(device, &turn) {
                        return end;
                    }
                }
                None => {
                    // No slice follows during which these answers would be handed out.
                    self.core.hand_out(self.index);
                    if !self.sleep(device) {
                        return End::NobodyAsks;
                    }
                }
            }
        }
    }

    /// Collects jobs and chooses what to do next, if anything waits.
    fn next(&mut self, device: &D) -> Option<Turn> {
        let (now, hung_up) = (Instant::now(), self.core.shared.hung_up());
        let mut dispatch = self.core.dispatch();
        dispatch.collect(device, now, hung_up);
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        for pass in &mut self.under_way {
            if pass.as_mut().is_some_and(|pass| pass.drop_expired(now, somebody_hung_up)) {
                *pass = None;
            }
        }
        let turn = dispatch.next(device, &mut self.under_way, now);
        self.core.update_waiting(dispatch);
        turn
    }

    /// Sleeps until there is work. `false` when there will never be more.
    fn sleep(&mut self, device: &D) -> bool {
        self.core.counters(self.index).note(device.counters());
        let core = &self.core;
        core.shared.parking.sleep(|| core.has_work())
    }

    /// Runs one slice of a pass. If it was the last, its answers are handed out during the next slice, or before the
    /// worker sleeps.
    fn slice(&mut self, device: &mut D, turn: &Turn) -> Result<(), End> {
        let mut pass = self.under_way[turn.lane].take().expect("the turn is that of a pass");
        let (core, index) = (self.core.clone(), self.index);
        let began = Instant::now();
        // The callers of all begun passes: during one slice the others wait too.
        let mut lent = vec![pass.lend()];
        lent.extend(self.under_way.iter_mut().flatten().map(|pass| pass.lend()));
        core.begin(index, pass.name(), began, lent);
        let go_on = || {
            let took = began.elapsed();
            took < turn.slice || (took < LONGEST_SLICE && !core.has_arrived())
        };
        let mut hand_out = || core.hand_out(index);
        let slice = Slice { go_on: &go_on, meanwhile: &mut hand_out };
        let result = caught(|| pass.run(device, slice));
        let took = began.elapsed();
        core.hand_out(index);
        let Some(lent) = core.end(index) else {
            // `lose` has told all callers. Free the slots of all passes for the other workers.
            for pass in self.under_way.iter_mut().filter_map(Option::take).chain([pass]) {
                pass.fail(SubmitError::EngineGone);
            }
            return Err(End::GivenUp);
        };
        let passes = [&mut pass].into_iter().chain(self.under_way.iter_mut().flatten());
        passes.zip(lent).for_each(|(pass, lent)| pass.take_back(lent));
        pass.note_slice(took);
        let result = result.unwrap_or_else(|panic| Err(PassError::Device(panic)));
        if result.is_ok() {
            core.dispatch().note_slice(turn, &*pass, took);
        }
        match result {
            Ok(false) => {
                self.under_way[turn.lane] = Some(pass);
                Ok(())
            }
            Ok(true) => {
                let (size, microseconds) = (pass.len(), pass.took().as_micros() as u64);
                debug!(requests = size, microseconds, "{}", pass.name());
                core.counters(index).refresh(began, || device.counters());
                core.keep(index, pass.finish());
                Ok(())
            }
            Err(PassError::Request(reason)) => {
                error!("{} of {} requests failed: {reason}", pass.name(), pass.len());
                pass.fail(SubmitError::EngineFailed);
                Ok(())
            }
            Err(PassError::Device(reason)) => {
                error!(
                    "the engine failed in {} of {} requests and will be replaced: {reason}",
                    pass.name(),
                    pass.len()
                );
                // A caller whose pass failed must not see a ready service a moment later.
                let state = DeviceState::Restarting { retry_after: Duration::ZERO };
                core.shared.set_state(index, state);
                pass.fail(SubmitError::EngineFailed);
                Err(End::Failed(reason))
            }
        }
    }

    /// The device is gone. Passes between two slices begin again, on this worker's next device or on another's.
    pub(crate) fn put_back(&mut self) {
        let mut dispatch = self.core.dispatch();
        for (lane, pass) in self.under_way.iter_mut().enumerate() {
            if let Some(pass) = pass.take() {
                dispatch.put_back(lane, pass);
            }
        }
        dispatch.drop_expired(Instant::now());
        self.core.update_waiting(dispatch);
    }
}

/// Runs code of the device. A panic becomes an error with its message.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("it panicked: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
