//! What a scheduler must know about a kind of work: its requests, how they batch, what they cost,
//! how a device runs them. [`Search`], [`FullPass`], [`Classify`] and [`Expand`] are the kinds that
//! an [`Engine`](crate::Engine) runs.

mod classify;
mod costs;
mod expand;
mod full_pass;
mod search;

use std::error::Error;

use crate::{Device, EngineError};

pub use classify::Classify;
pub use costs::Costs;
pub use expand::{Expand, PartOfText, TermsOfText};
pub use full_pass::FullPass;
pub use search::{Search, SearchResponse};

/// A kind of work. Requests of one kind wait in one lane and run together, in passes.
///
/// A pass may be cut into slices. Between two slices the device may run other workloads, and
/// requests that nobody waits for any more leave the pass.
///
/// # Errors
/// After a [`PassError`] the pass is over.
pub trait Workload: Send + Sync + 'static {
    /// The device that runs it.
    type Device: Device + ?Sized;
    /// One request. It is cloned only if a device hangs that has it, so that another device can
    /// answer it.
    type Request: Clone + Send + Sync + 'static;
    /// The answer to one request.
    type Response: Send + 'static;
    /// What the requests of a pass share, while it is being gathered.
    type Gathered: Default;
    /// What a pass keeps between two slices.
    type Pass: Default;

    /// The name of a pass in logs and errors, with its article: `a search`.
    fn name(&self) -> &'static str;

    /// Slots of the queue that a request takes until it is answered: its usual cost, in plain
    /// queries.
    fn slots(&self, request: &Self::Request) -> usize;

    /// The maximum cost of a request, in the workload's own unit: an estimate from its form, at
    /// least 1. Measured time is divided among requests in proportion to it.
    fn cost(&self, device: &Self::Device, request: &Self::Request) -> usize;

    /// The cost that the next pass should have while requests of total cost `waiting` wait; at
    /// least 1. If `waiting` is [`usize::MAX`], the cost of the largest pass.
    fn room(&self, device: &Self::Device, waiting: usize) -> usize;

    /// The maximum part of the largest pass that one caller gets while others ask too: a pass can't
    /// be stopped, so requests that arrive meanwhile wait for it.
    fn max_room_per_caller(&self, largest: usize) -> usize {
        (largest / 8).max(8)
    }

    /// Gathers a request of this [`cost`](Self::cost) into a pass. Returns the cost that it adds to
    /// the requests gathered so far, which is less than its own if they share work. Returns `None`
    /// if it does not fit into `left`; then it is not gathered. An empty pass takes any request.
    fn gather(
        &self,
        gathered: &mut Self::Gathered,
        request: &Self::Request,
        cost: usize,
        left: usize,
    ) -> Option<usize> {
        let _ = (gathered, request);
        Some(cost).filter(|&cost| cost <= left)
    }

    /// Runs a slice of a pass of these requests. Returns all of their responses, in order, if it
    /// was the last slice; `None` if there is more to do.
    fn run(
        &self,
        device: &mut Self::Device,
        requests: &[&Self::Request],
        pass: &mut Self::Pass,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<Self::Response>>, PassError>;

    /// Starts a pass of these requests and returns while the device works on it, after passes that
    /// were started before. Returns `false`, and starts nothing, if the pass must [run](Self::run)
    /// instead: a long one, if it is `beside_others`, requests of other workloads that wait.
    fn start(
        &self,
        device: &mut Self::Device,
        requests: &[&Self::Request],
        beside_others: bool,
    ) -> Result<bool, PassError> {
        let _ = (device, requests, beside_others);
        Ok(false)
    }

    /// Waits for the pass that was started first, which was of these requests. Returns their
    /// responses, in order.
    fn finish(
        &self,
        device: &mut Self::Device,
        requests: &[&Self::Request],
    ) -> Result<Vec<Self::Response>, PassError> {
        let _ = (device, requests);
        Err(PassError::Device(format!("{} was not started", self.name()).into()))
    }

    /// Called between two slices. Keeps only the requests for whose index `stays` returns true.
    fn retain(&self, pass: &mut Self::Pass, stays: &mut dyn FnMut(usize) -> bool) {
        let _ = (pass, stays);
    }
}

/// Keeps only the items for whose index `stays` returns true.
fn retain<T>(items: &mut Vec<T>, stays: &mut dyn FnMut(usize) -> bool) {
    let mut indices = 0_usize..;
    items.retain(|_| indices.next().is_some_and(&mut *stays));
}

/// What a slice gets besides its requests.
pub struct Slice<'a> {
    /// Whether the slice should go on; asked between small pieces of work, perhaps from several
    /// threads.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// The scheduler's own work. Must be called at least once: while the device works, if the host
    /// is free then; otherwise at the beginning.
    pub meanwhile: &'a mut dyn FnMut(),
}

/// Why a pass has no responses.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The request is at fault; the device is fine.
    #[error(transparent)]
    Request(Box<dyn Error + Send + Sync>),
    /// The device is at fault: it may be in any state and must not be used again.
    #[error(transparent)]
    Device(Box<dyn Error + Send + Sync>),
}

impl From<EngineError> for PassError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::ForeignQuery
            | EngineError::SearchOnly(_)
            | EngineError::NoHeads(_)
            | EngineError::NoExpander(_) => Self::Request(error.into()),
            EngineError::Device(_) => Self::Device(error.into()),
        }
    }
}
