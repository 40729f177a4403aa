//! What the requests to all models share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use crate::observe::Observer;
use crate::workers::Workers;
use kindred::background::give_way_a_little;
use scheduler::account::Memory;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// A request, from its first byte to its answer.
    pub request: Duration,
    /// The body of one, to arrive.
    pub body_read: Duration,
}

/// What the requests to all models share.
pub struct Service {
    pub(crate) timeouts: Timeouts,
    /// What is counted of connections and requests.
    pub(crate) observer: Arc<Observer>,
    /// For requests and answers.
    pub(crate) memory: Arc<Memory>,
    /// For long work that needs no engine.
    pub(crate) workers: Workers,
    draining: AtomicBool,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.memory, self.workers)
    }
}

impl Service {
    /// Starts the threads for work that would delay other requests.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub fn new(
        timeouts: Timeouts,
        observer: Arc<Observer>,
        memory: Arc<Memory>,
    ) -> io::Result<Arc<Self>> {
        let workers = Workers::start(give_way_a_little)?;
        let draining = AtomicBool::new(false);
        Ok(Arc::new(Self { timeouts, observer, memory, workers, draining }))
    }

    /// From now on the service is not ready: it was told to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
