//! What runs passes: the trait of all devices, how one is described, and why a pass fails.

use std::error::Error;

/// Runs passes, and is owned by one thread: a GPU, or the CPU.
///
/// A pass answers requests of one kind of work. A device may be able to start a pass before the
/// last one is over. Whatever their kinds, started passes are finished in the order of their
/// starts; while there is one, no pass runs without being started. After an error none of them
/// needs to be finished.
pub trait Device {
    /// The device's name and details, for logs and clients.
    fn description(&self) -> EngineDescription;

    /// The device's counters since it started, as names and counts. Empty if there are none.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Whether passes can be started before the last one is over. If not, they only run.
    fn overlaps(&self) -> bool {
        false
    }

    /// Waits until the pass that was started first is almost over: when it is time to start
    /// another, so that the device does not have to wait.
    ///
    /// # Errors
    /// [`EngineError::Device`].
    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Name and details of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDescription {
    /// A short stable name, as in `--device`: `cpu`, `cuda`; `reference` for the oracle.
    pub name: &'static str,
    /// Hardware and method, for people.
    pub detail: String,
}

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A query was made for a table of a different shape.
    #[error("a query of this batch was made for a different table")]
    ForeignQuery,
    /// The engine has no full pass.
    #[error("the engine `{0}` can only search; full passes need another engine beside it")]
    SearchOnly(&'static str),
    /// The engine classifies no texts.
    #[error("the engine `{0}` classifies no texts")]
    NoHeads(&'static str),
    /// The engine expands no texts, or none of this expander.
    #[error("the engine can't expand this text: {0}")]
    NoExpander(#[source] Box<dyn Error + Send + Sync>),
    /// The device failed, temporarily or for good.
    #[error("the device failed: {0}")]
    Device(#[source] Box<dyn Error + Send + Sync>),
}

/// Errors with the same message are equal.
impl PartialEq for EngineError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
