//! What engine a model gets, and its bounds.

use std::time::Duration;

use crate::device::{Device, Placement};
use crate::engines::KeptHeads;
use crate::queue::Limits;

/// The engine that [`Kindred::start`](crate::Kindred::start) makes, and its bounds.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What searches: a GPU if there is one, else the CPU.
    pub device: Device,
    /// Placement of the model on several GPUs.
    pub placement: Placement,
    /// Threads of the CPU engine; 0 for one per core.
    pub threads: usize,
    /// Whether the CPU engine keeps its derived table beside the model folder, for the next start.
    pub keep_tables: bool,
    /// How the engine keeps classifiers.
    pub heads: KeptHeads,
    /// How long an answer may take, unless a question says otherwise.
    pub timeout: Duration,
    /// Queries that one search pass takes at most; the engine may prefer fewer.
    pub max_batch_queries: usize,
    /// Bounds of the queue and of its engine.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: Device::Auto,
            placement: Placement::Auto,
            threads: 0,
            keep_tables: true,
            heads: KeptHeads::default(),
            timeout: Duration::from_secs(30),
            max_batch_queries: 1024,
            limits: Limits {
                capacity_slots: 8192,
                max_restarts: 5,
                hang_timeout: Duration::from_secs(120),
                hang_timeout_beside_others: Duration::from_secs(10),
                // About as long as a caller takes to wake up with an answer and to ask again.
                linger: Duration::from_micros(50),
            },
        }
    }
}
