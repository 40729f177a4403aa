use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model_store::Words;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ServedModel;
use crate::observe::Observer;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// A request, from its first byte to its answer.
    pub request: Duration,
    /// The body of one, to arrive.
    pub body_read: Duration,
}

/// Why words were not searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordsNotSearched {
    /// It was not their turn before the deadline.
    Late,
    /// The search panicked.
    Broken,
}

/// Bodies of more bytes than this need room in memory, and are read aside. Smaller ones are no more than a
/// connection's own buffers.
pub(crate) const LARGE_BODY: usize = 32 << 10;
const KIB: u64 = 1 << 10;

/// What the requests to all models share.
#[derive(Debug)]
pub struct Service {
    pub(crate) timeouts: Timeouts,
    /// What is counted of connections and requests.
    pub(crate) observer: Arc<Observer>,
    /// Searches among words, for suggestions and lists, that may run at once.
    word_searches: Arc<Semaphore>,
    /// Memory for bodies, in KiB.
    bodies: Arc<Semaphore>,
    bodies_kib: u32,
    draining: AtomicBool,
}

impl Service {
    pub(super) fn new(timeouts: Timeouts, observer: Arc<Observer>, body_memory_mb: u32) -> Self {
        let bodies_kib = body_memory_mb.saturating_mul(1_000_000 / KIB as u32);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            timeouts,
            observer,
            word_searches: Arc::new(Semaphore::new(cores.div_ceil(2))),
            bodies: Arc::new(Semaphore::new(bodies_kib as usize)),
            bodies_kib,
            draining: AtomicBool::new(false),
        }
    }

    /// Waits until there is room for a body of this many bytes: as many as it says that it has, or the most that it
    /// may. Small ones need none. One that is larger than all of the room takes all of it.
    pub(crate) fn room_for_body(
        &self,
        declared: Option<u64>,
        most: usize,
    ) -> impl Future<Output = Option<OwnedSemaphorePermit>> + Send + use<> {
        let bytes = declared.unwrap_or(most as u64);
        let kib = bytes.div_ceil(KIB).min(u64::from(self.bodies_kib)) as u32;
        let bodies = (bytes > LARGE_BODY as u64).then(|| self.bodies.clone());
        // Closed never; so this waits for its turn.
        async move { bodies?.acquire_many_owned(kib).await.ok() }
    }

    /// Searches among the words of a model, off the async threads, a bounded number at a time.
    ///
    /// # Errors
    /// If its turn does not come in time, or the search panics.
    pub(crate) async fn search_words<T: Send + 'static>(
        &self,
        model: Arc<ServedModel>,
        deadline: Instant,
        search: impl FnOnce(&Words) -> T + Send + 'static,
    ) -> Result<T, WordsNotSearched> {
        // Closed never; so this waits for its turn.
        let turn = self.word_searches.clone().acquire_owned();
        let turn = tokio::time::timeout_at(deadline.into(), turn);
        let turn = turn.await.map_err(|_| WordsNotSearched::Late)?;
        let found = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            search(model.model.words())
        });
        found.await.map_err(|_| WordsNotSearched::Broken)
    }

    /// From now on the service is not ready: it was told to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether it was.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
