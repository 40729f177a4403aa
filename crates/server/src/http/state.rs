use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model_store::{EngineDescription, ModelStore, Words};
use tokio::sync::Semaphore;

use super::ApiError;
use super::fields::MAX_QUERIES;
use super::health::Readiness;
use crate::observe::{EngineFigures, EngineRecord, Observer};
use crate::queue::{QueueHandle, SubmitError};

/// What all handlers share.
pub struct AppState {
    /// The model that is served.
    pub(super) model: Arc<ModelStore>,
    /// Where queries go.
    pub(super) queue: QueueHandle,
    /// What answers them.
    pub(super) engine: EngineDescription,
    /// How long a request may take.
    pub(super) request_timeout: Duration,
    /// The largest body there can be any use for.
    pub(super) body_limit: usize,
    pub(super) readiness: Readiness,
    /// Searches among the words, for suggestions and lists, that may run at once.
    word_searches: Arc<Semaphore>,
    draining: AtomicBool,
    /// What is counted of requests.
    pub(super) observer: Arc<Observer>,
    /// What is counted of the engine.
    record: Arc<EngineRecord>,
}

/// A component in JSON: sign, 17 digits, point, exponent, comma, space.
const BYTES_PER_COMPONENT: usize = 27;
/// Everything else in a body: words, options and excluded words.
const BYTES_BESIDES: usize = 4 << 20;

impl AppState {
    /// State for a model and the queue in front of its engine.
    pub fn new(
        model: Arc<ModelStore>,
        queue: QueueHandle,
        engine: EngineDescription,
        request_timeout: Duration,
        readiness_timeout: Duration,
        observer: Arc<Observer>,
        record: Arc<EngineRecord>,
    ) -> Arc<Self> {
        let body_limit = BYTES_BESIDES + model.dim() * MAX_QUERIES * BYTES_PER_COMPONENT;
        let readiness = Readiness::new(&model, readiness_timeout);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            model,
            queue,
            engine,
            request_timeout,
            body_limit,
            readiness,
            word_searches: Arc::new(Semaphore::new(cores.div_ceil(2))),
            draining: AtomicBool::new(false),
            observer,
            record,
        })
    }

    /// The model that is served.
    pub fn model(&self) -> &ModelStore {
        &self.model
    }

    /// What each model's queue and engine have counted.
    pub(super) fn engine_figures(&self) -> Vec<EngineFigures> {
        let (model, mut figures) = (&self.model, self.record.figures());
        let (taken, capacity) = self.queue.places();
        for (lane, taken) in figures.lanes.iter_mut().zip(taken) {
            lane.places_taken = u64::from(taken);
        }
        vec![EngineFigures {
            model: model.name().to_owned(),
            rows: model.rows(),
            dim: model.dim(),
            bytes: (size_of_val(model.table().components()) + size_of_val(model.table().norms()))
                as u64,
            queue_capacity: u64::from(capacity),
            hung_up: self.queue.hung_up(),
            ..figures
        }]
    }

    /// A job was not answered.
    pub(super) fn count(&self, error: &SubmitError) {
        match error {
            SubmitError::Full { .. } => self.record.refused(),
            SubmitError::DeadlinePassed => self.record.late(),
            SubmitError::EngineFailed | SubmitError::EngineGone => self.record.failed(),
        }
    }

    /// Searches among the words of the model, off the async threads, a bounded number at a time.
    pub(super) async fn search_words<T: Send + 'static>(
        self: &Arc<Self>,
        search: impl FnOnce(&Words) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        // Closed never; so this waits for its turn.
        let turn = self.word_searches.clone().acquire_owned().await;
        let state = self.clone();
        let found = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            search(state.model.words())
        });
        found.await.map_err(|_| ApiError::Internal)
    }

    /// From now on the service is not ready: it was told to stop.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
