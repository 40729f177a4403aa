use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model_store::Words;
use tokio::sync::Semaphore;

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

/// What the requests to all models share.
#[derive(Debug)]
pub struct Service {
    pub(crate) timeouts: Timeouts,
    /// What is counted of connections and requests.
    pub(crate) observer: Arc<Observer>,
    /// Searches among words, for suggestions and lists, that may run at once.
    word_searches: Arc<Semaphore>,
    draining: AtomicBool,
}

impl Service {
    pub(super) fn new(timeouts: Timeouts, observer: Arc<Observer>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            timeouts,
            observer,
            word_searches: Arc::new(Semaphore::new(cores.div_ceil(2))),
            draining: AtomicBool::new(false),
        }
    }

    /// Searches among the words of a model, off the async threads, a bounded number at a time. `None` if the
    /// search panicked.
    pub(crate) async fn search_words<T: Send + 'static>(
        &self,
        model: Arc<ServedModel>,
        search: impl FnOnce(&Words) -> T + Send + 'static,
    ) -> Option<T> {
        // Closed never; so this waits for its turn.
        let turn = self.word_searches.clone().acquire_owned().await;
        let found = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            search(model.model.words())
        });
        found.await.ok()
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
