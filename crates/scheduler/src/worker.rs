//! What a worker does with a device that works: collects jobs, drops expired ones, runs a slice of
//! a pass, hands answers out.
//!
//! # Algorithm
//!
//! ```text
//! turn, again and again:
//!     if a pass is started on the device:
//!         hand out the answers that are kept; wait until the pass is almost over
//!     collect jobs from the inboxes; drop those that are late or whose callers hung up
//!     next ← the lane whose callers have used the least time    dispatch.rs
//!            if it has no pass under way, begin one with the requests that it chooses
//!     if the device overlaps, and that pass has not begun and need not be alone:
//!         start it behind the started one
//!     finish the pass that was started before; keep its answers
//!     if the pass of `next` is not started: run one slice of it
//!         the slice goes on for its time, and then until a job arrives, 10 ms at most
//!         it hands out the kept answers while the device works
//!     if there was nothing to do: hand out, then retire or sleep until a job arrives
//! ```
//!
//! A short pass has one slice. Between two slices of a long one, other lanes have their turns, and
//! expired jobs are dropped. Callers take turns by the device time that they have used, whatever
//! they ask for (`account/turns.rs`).
//!
//! # Why no job is lost or answered twice
//!
//! A job is in one place: its lane, one pass of one worker, or the answers that are kept. While the
//! device works, the jobs of all passes of the worker are lent to the core, so that the timer can
//! answer callers that are late. The worker takes them back afterwards; if the timer has given it
//! up meanwhile, they are gone, and it drops its passes without a word. If the device fails, `fail`
//! asks the jobs that were on it again where another device works, or fails those of the pass, and
//! `put_back` returns the others to their lanes.
//!
//! # Cost
//!
//! The lock of the dispatch is taken once before and once after each slice; callers never take it.
//! A slice lasts 10 ms at most, if the device looks at `go_on` between small pieces of work.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use contract::Device;
use contract::workload::{PassError, Slice};
use tracing::{debug, error};

use crate::core::Core;
use crate::dispatch::{LONGEST_SLICE, Turn};
use crate::error::SubmitError;
use crate::lane_state::Back;
use crate::pass::AnyPass;
use crate::sync::is_soon;

/// One of the threads that own a device each.
pub(crate) struct Worker<D: ?Sized> {
    core: Arc<Core<D>>,
    index: usize,
    /// For each lane, its pass that is between two slices.
    under_way: Vec<Option<Box<dyn AnyPass<D>>>>,
    /// The pass that was started and that the device works on.
    started: Option<Started<D>>,
    /// When the device finished the last started pass.
    finished: Instant,
    /// How many callers had hung up when the passes were last checked for them.
    hung_up: u64,
}

/// A pass that a device works on while the worker does other things.
struct Started<D: ?Sized> {
    turn: Turn,
    pass: Box<dyn AnyPass<D>>,
    began: Instant,
}

/// Why a worker stops using its device.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every handle is gone and every job is answered.
    NobodyAsks,
    /// It failed, may be in any state and must not be used again.
    Failed(String),
    /// It was given up while it worked: others have its jobs, or nobody does.
    GivenUp,
    /// The worker was told to retire, and has nothing left.
    Retired,
}

impl<D: Device + ?Sized> Worker<D> {
    pub(crate) fn new(core: Arc<Core<D>>, index: usize) -> Self {
        let under_way = core.lanes.iter().map(|_| None).collect();
        let (started, finished) = (None, Instant::now());
        Self { core, index, under_way, started, finished, hung_up: 0 }
    }

    /// Runs passes on this device. Returns why it stopped.
    pub(crate) fn run(&mut self, device: &mut D) -> End {
        loop {
            match self.turn(device) {
                Ok(true) => {}
                Ok(false) => return End::NobodyAsks,
                Err(end) => return end,
            }
        }
    }

    /// One pass, or a slice of one. `false` when there will never be more.
    ///
    /// If the device can, the next pass is started before the last one is over. So a started pass
    /// is finished one turn later; in between, the last answers are handed out, and jobs gather.
    fn turn(&mut self, device: &mut D) -> Result<bool, End> {
        if self.started.is_some() {
            self.core.hand_out(self.index);
            self.wait_until_almost_over(device)?;
        }
        let turn = self.next(device);
        let was_busy = self.started.is_some();
        let started = match &turn {
            Some(turn) => self.start(device, turn.clone())?,
            None => None,
        };
        self.finish(device, started)?;
        match turn {
            Some(turn) if self.under_way[turn.lane].is_some() => self.slice(device, &turn)?,
            None if !was_busy => {
                // No pass follows during which these answers would be handed out.
                self.core.hand_out(self.index);
                if self.core.retires(self.index) {
                    return Err(End::Retired);
                }
                return Ok(self.sleep(device));
            }
            _ => {}
        }
        Ok(true)
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
        let may_begin = !self.core.retires(self.index);
        let turn = dispatch.next(device, &mut self.under_way, may_begin, now);
        self.core.update_waiting(dispatch);
        turn
    }

    /// Sleeps until there is work. `false` when there will never be more.
    fn sleep(&mut self, device: &D) -> bool {
        self.core.counters(self.index).note(device.counters());
        let (core, index) = (&self.core, self.index);
        let has_work = || core.has_work() || core.retires(index);
        is_soon(core.shared.limits.linger, has_work) || core.shared.parking.sleep(has_work)
    }

    /// Starts the pass of this turn, if it has not begun, need not be alone on the device, and the
    /// device can. Otherwise the pass stays where it is.
    fn start(&mut self, device: &mut D, turn: Turn) -> Result<Option<Started<D>>, End> {
        let begins = |pass: &mut Box<dyn AnyPass<D>>| {
            device.overlaps() && !pass.has_begun() && !pass.is_apart()
        };
        let Some(mut pass) = self.under_way[turn.lane].take_if(begins) else { return Ok(None) };
        let began = Instant::now();
        let beside_others = turn.beside_others;
        match self.watched(&mut pass, began, |pass| pass.start(device, beside_others))? {
            Ok(true) => Ok(Some(Started { turn, pass, began })),
            Ok(false) => {
                self.under_way[turn.lane] = Some(pass);
                Ok(None)
            }
            Err(error) => self.fail(pass, error).map(|()| None),
        }
    }

    fn wait_until_almost_over(&mut self, device: &mut D) -> Result<(), End> {
        let Some(Started { turn, mut pass, began }) = self.started.take() else { return Ok(()) };
        match self.watched(&mut pass, began, |_| Ok(device.wait_until_almost_over()?))? {
            Ok(()) => {
                self.started = Some(Started { turn, pass, began });
                Ok(())
            }
            Err(error) => self.fail(pass, error),
        }
    }

    /// Finishes the started pass, if there is one, after `next` was started.
    fn finish(&mut self, device: &mut D, next: Option<Started<D>>) -> Result<(), End> {
        let before = std::mem::replace(&mut self.started, next);
        let Some(Started { turn, mut pass, began }) = before else { return Ok(()) };
        // Until then the device worked on the pass before.
        let began = began.max(self.finished);
        let result = self.watched(&mut pass, began, |pass| pass.complete(device))?;
        self.finished = Instant::now();
        let took = self.finished - began;
        match result {
            Ok(()) => {
                pass.note_slice(took);
                self.core.dispatch().note_slice(&turn, &*pass, took);
                self.keep(device, pass, began);
                Ok(())
            }
            Err(error) => self.fail(pass, error),
        }
    }

    /// Runs one slice of a pass. If it was the last, its answers are handed out during the next
    /// slice, or before the worker sleeps.
    fn slice(&mut self, device: &mut D, turn: &Turn) -> Result<(), End> {
        let mut pass = self.under_way[turn.lane].take().expect("the turn is that of a pass");
        let (core, index) = (self.core.clone(), self.index);
        let began = Instant::now();
        let go_on = || {
            let took = began.elapsed();
            took < turn.slice || (took < LONGEST_SLICE && !core.has_arrived())
        };
        let mut hand_out = || core.hand_out(index);
        let slice = Slice { go_on: &go_on, meanwhile: &mut hand_out };
        let result = self.watched(&mut pass, began, |pass| pass.run(device, slice))?;
        let took = began.elapsed();
        core.hand_out(index);
        pass.note_slice(took);
        if result.is_ok() {
            core.dispatch().note_slice(turn, &*pass, took);
        }
        match result {
            Ok(false) => {
                self.under_way[turn.lane] = Some(pass);
                Ok(())
            }
            Ok(true) => {
                self.keep(device, pass, began);
                Ok(())
            }
            Err(error) => self.fail(pass, error),
        }
    }

    /// Lets the device do what may take long, while the timer watches it and answers callers that
    /// are late: those of this pass and of all others of this worker, because they wait too.
    ///
    /// # Errors
    /// [`End::GivenUp`]. The jobs of all of these passes are gone: others have them, or all callers
    /// were told. The last answers are handed out, and all passes but this one are dropped.
    fn watched<T>(
        &mut self,
        pass: &mut Box<dyn AnyPass<D>>,
        since: Instant,
        work: impl FnOnce(&mut dyn AnyPass<D>) -> Result<T, PassError>,
    ) -> Result<Result<T, PassError>, End> {
        let mut lent = vec![pass.lend(true)];
        lent.extend(self.started.iter_mut().map(|started| started.pass.lend(true)));
        lent.extend(self.under_way.iter_mut().flatten().map(|pass| pass.lend(false)));
        self.core.begin(self.index, pass.name(), since, lent);
        let result = caught(|| work(&mut **pass));
        let Some(lent) = self.core.end(self.index) else {
            self.core.hand_out(self.index);
            self.started = None;
            self.under_way.iter_mut().for_each(|pass| *pass = None);
            return Err(End::GivenUp);
        };
        let started = self.started.iter_mut().map(|started| &mut started.pass);
        let others = started.chain(self.under_way.iter_mut().flatten());
        [pass].into_iter().chain(others).zip(lent).for_each(|(pass, lent)| pass.take_back(lent));
        Ok(result.unwrap_or_else(|panic| Err(PassError::Device(panic.into()))))
    }

    /// Keeps the answers of a pass that is over until they are handed out.
    fn keep(&self, device: &D, pass: Box<dyn AnyPass<D>>, began: Instant) {
        let (size, microseconds) = (pass.len(), pass.took().as_micros() as u64);
        debug!(requests = size, microseconds, "{}", pass.name());
        self.core.counters(self.index).refresh(began, || device.counters());
        self.core.keep(self.index, pass.finish(self.index));
    }

    /// A pass failed. If the device is at fault and another works, the jobs of all passes that were
    /// on the device are asked again: any of them may be the reason. Otherwise the jobs of this
    /// pass fail.
    ///
    /// # Errors
    /// [`End::Failed`] if the device is at fault.
    fn fail(&mut self, pass: Box<dyn AnyPass<D>>, error: PassError) -> Result<(), End> {
        let (name, requests) = (pass.name(), pass.len());
        match error {
            PassError::Request(reason) => {
                error!("{name} of {requests} requests failed: {reason}");
                pass.fail(SubmitError::EngineFailed);
                Ok(())
            }
            PassError::Device(reason) => {
                error!(
                    replica = self.index,
                    "the engine failed in {name} of {requests} requests and will be replaced: {reason}"
                );
                // First: a caller whose pass failed must not see a ready service a moment later.
                if self.core.shared.states.fails(self.index) {
                    let started = self.started.take().map(|started| started.pass.give_up(true));
                    let jobs = [pass.give_up(true)].into_iter().chain(started);
                    self.core.ask_again(jobs.collect());
                } else {
                    pass.fail(SubmitError::EngineFailed);
                }
                Err(End::Failed(reason.to_string()))
            }
        }
    }

    /// The device is gone. Started passes, and those between two slices, begin again, on this
    /// worker's next device or on another's. Answers that were not handed out are handed out now.
    pub(crate) fn put_back(&mut self) {
        self.core.hand_out(self.index);
        let mut dispatch = self.core.dispatch();
        let started = self.started.take().map(|started| started.pass);
        for pass in started.into_iter().chain(self.under_way.iter_mut().filter_map(Option::take)) {
            dispatch.take_back(pass.give_up(false), Back::Unfinished);
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
