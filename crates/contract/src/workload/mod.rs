//! What a scheduler must know of a kind of work: its requests, how they batch, what they cost, how a device runs
//! them. [`Search`] and [`FullPass`] are the two kinds that every [`Engine`] runs.

mod full_pass;
mod search;

use crate::{Engine, EngineDescription, EngineError};

pub use full_pass::FullPass;
pub use search::{Found, Search};

/// What one thread owns and runs passes on: a GPU, or the CPU.
pub trait Device {
    /// Which device this is, for logs and clients.
    fn description(&self) -> EngineDescription;

    /// What it has counted since it started: name and count.
    fn counters(&self) -> Vec<(&'static str, u64)>;
}

impl Device for dyn Engine {
    fn description(&self) -> EngineDescription {
        Engine::description(self)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Engine::counters(self)
    }
}

/// A kind of work. Requests of one kind wait in one lane and run together, in passes.
///
/// A pass may be cut into slices. Between two slices the device may run other workloads, and requests that nobody
/// waits for any more leave the pass.
pub trait Workload: Send + Sync + 'static {
    /// What runs it.
    type Device: Device + ?Sized;
    /// What is asked.
    type Request: Send + 'static;
    /// What answers one request.
    type Response: Send + 'static;
    /// What requests of one pass share, while a pass is gathered.
    type Gathered: Default;
    /// What a pass keeps between two slices.
    type Pass: Default;

    /// What one pass of it is called in logs and errors, with its article: `a search`.
    fn name(&self) -> &'static str;

    /// Slots of the queue that a request takes until it is answered.
    fn slots(&self, request: &Self::Request) -> usize;

    /// What a request costs at most, in a unit of the workload's own: an estimate from its form, at least 1. Measured
    /// time is divided among requests in proportion to it.
    fn cost(&self, device: &Self::Device, request: &Self::Request) -> usize;

    /// How much cost the next pass should take while requests of cost `waiting` wait, at least 1. The largest pass,
    /// where `waiting` is [`usize::MAX`].
    fn room(&self, device: &Self::Device, waiting: usize) -> usize;

    /// How much of the largest pass one caller gets at most while others ask as well: a pass can't be stopped, so
    /// whoever comes meanwhile waits for it.
    fn most_of_one_caller(&self, largest: usize) -> usize {
        (largest / 8).max(8)
    }

    /// Gathers a request of this [`cost`](Self::cost) into a pass. What it adds beside those gathered so far: less
    /// than its cost where they share work. `None`: it does not fit into `left`, and is not gathered. A pass that is
    /// empty takes any request.
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

    /// Runs a slice of a pass of these requests. All of their responses, in order, if that was the last slice;
    /// `None` if there is more to do.
    ///
    /// # Errors
    /// [`PassError`]. The pass is over then.
    fn run(
        &self,
        device: &mut Self::Device,
        requests: &[&Self::Request],
        pass: &mut Self::Pass,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<Self::Response>>, PassError>;

    /// Between two slices: only the requests for which `stays` says so stay in the pass, by their index.
    fn retain(&self, pass: &mut Self::Pass, stays: &mut dyn FnMut(usize) -> bool) {
        let _ = (pass, stays);
    }
}

/// What a slice is given beside its requests.
pub struct Slice<'a> {
    /// Whether the slice should go on; asked between small pieces of work, perhaps from several threads.
    pub go_on: &'a (dyn Fn() -> bool + Sync),
    /// Work of the scheduler's own. To be called at least once: while the device works, if the host is free then;
    /// else at the beginning.
    pub meanwhile: &'a mut dyn FnMut(),
}

/// Why a pass has no responses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassError {
    /// What was asked: the device is fine.
    #[error("{0}")]
    Request(String),
    /// The device: it may be in any state and must not be used again.
    #[error("{0}")]
    Device(String),
}

impl From<EngineError> for PassError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::ForeignQuery | EngineError::SearchOnly(_) => {
                Self::Request(error.to_string())
            }
            EngineError::Device(_) => Self::Device(error.to_string()),
        }
    }
}
