//! The parts that the requests to all models share: timeouts, counters, memory and threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use crate::observe::Observer;
use crate::traces::Traces;
use crate::workers::Workers;
use kindred::background::give_way_a_little;
use scheduler::account::Memory;

/// Time limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For the whole request, from its first byte to its answer.
    pub request: Duration,
    /// For its body to arrive.
    pub body_read: Duration,
    /// Time by which a table may be behind a system that it follows and still count as ready; `None`
    /// for any.
    pub lag: Option<Duration>,
}

/// The build of the program that serves: commit and features.
#[derive(Debug, Clone, Copy)]
pub struct BuildInfo {
    /// The commit that it was built from, or `unknown`.
    pub commit: &'static str,
    /// The Cargo features that it was built with.
    pub features: &'static [&'static str],
}

impl BuildInfo {
    /// For programs that do not know it.
    pub const UNKNOWN: Self = Self { commit: "unknown", features: &[] };
}

/// The parts that the requests to all models share: timeouts, counters, memory and threads.
pub struct Service {
    pub(crate) timeouts: Timeouts,
    pub(crate) observer: Arc<Observer>,
    pub(crate) traces: Traces,
    pub(crate) memory: Arc<Memory>,
    /// Threads for long work that needs no engine.
    pub(crate) workers: Workers,
    pub(crate) build: BuildInfo,
    /// Whether callers have API keys; without them, everybody may change rows.
    pub(crate) has_keys: bool,
    draining: AtomicBool,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.memory, self.workers)
    }
}

impl Service {
    /// Starts the threads for work that would delay other requests. `has_keys` says whether callers
    /// have API keys.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub fn new(
        timeouts: Timeouts,
        observer: Arc<Observer>,
        traces: Traces,
        memory: Arc<Memory>,
        build: BuildInfo,
        has_keys: bool,
    ) -> io::Result<Arc<Self>> {
        let workers = Workers::start(give_way_a_little)?;
        let draining = AtomicBool::new(false);
        Ok(Arc::new(Self {
            timeouts,
            observer,
            traces,
            memory,
            workers,
            build,
            has_keys,
            draining,
        }))
    }

    /// Sends the traces that wait, for at most this time. Later ones are lost.
    pub fn flush_traces(&self, within: Duration) {
        self.traces.flush(within);
    }

    /// From now on the service is not ready, because it is stopping.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether the service is stopping.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
