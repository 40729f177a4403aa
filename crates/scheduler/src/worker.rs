//! What a worker does with a device that works: collect, drop expired jobs, one slice of a pass, hand out.
//!
//! A pass of one slice answers its requests at once. Another is long, and between two of its slices other lanes have
//! their turn and expired jobs are dropped. Callers take turns by the device's time that they have taken, whatever they
//! ask for (`account/turns.rs`).

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
    /// Which of the workers.
    index: usize,
    /// For each lane the pass that is between two slices.
    under_way: Vec<Option<Box<dyn AnyPass<D>>>>,
    /// How many callers had hung up when those of the passes were last looked for.
    hung_up: u64,
}

/// Why there are no more passes with this device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every handle is gone and every job is answered.
    NobodyAsks,
    /// It failed, may be in any state and must not be used again.
    Failed(String),
    /// It was given up, while it worked.
    GivenUp,
}

impl<D: Device + ?Sized> Worker<D> {
    pub(crate) fn new(core: Arc<Core<D>>, index: usize) -> Self {
        let under_way = core.inboxes.iter().map(|_| None).collect();
        Self { core, index, under_way, hung_up: 0 }
    }

    /// Answers whatever is asked, with this device.
    pub(crate) fn run(&mut self, device: &mut D) -> End {
        loop {
            match self.next(device) {
                Some(turn) => {
                    if let Err(end) = self.slice(device, &turn) {
                        return end;
                    }
                }
                None => {
                    if !self.sleep(device) {
                        return End::NobodyAsks;
                    }
                }
            }
        }
    }

    /// What to do next, if anything waits.
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
        self.core.note_waiting(dispatch);
        turn
    }

    /// Until there is work. `false` when there will never be more.
    fn sleep(&mut self, device: &D) -> bool {
        self.core.hand_out(self.index);
        self.core.counters(self.index).note(device.counters());
        let core = &self.core;
        core.shared.parking.sleep(|| core.has_work())
    }

    /// One slice of a pass. Its answers, if it was the last, are handed out during the next slice.
    fn slice(&mut self, device: &mut D, turn: &Turn) -> Result<(), End> {
        let mut pass = self.under_way[turn.lane].take().expect("the turn is that of a pass");
        let (core, index) = (self.core.clone(), self.index);
        let began = Instant::now();
        // All whose passes have begun: one slice keeps the others waiting.
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
            // All of its callers have been told. Its slots are free again, for other workers.
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
                // Whoever hears that its pass failed must not be told a moment later that the service is ready.
                let state = DeviceState::Restarting { retry_after: Duration::ZERO };
                core.shared.set_state(index, state);
                pass.fail(SubmitError::EngineFailed);
                Err(End::Failed(reason))
            }
        }
    }

    /// The device is no more. What is between two slices begins again, with this worker's next device or with
    /// another's.
    pub(crate) fn put_back(&mut self) {
        let mut dispatch = self.core.dispatch();
        for (lane, pass) in self.under_way.iter_mut().enumerate() {
            if let Some(pass) = pass.take() {
                dispatch.put_back(lane, pass);
            }
        }
        dispatch.drop_expired(Instant::now());
        self.core.note_waiting(dispatch);
    }
}

/// Runs something of the device's. A panic is an error, with what it said.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("it panicked: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
