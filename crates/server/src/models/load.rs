//! Loads a model and starts its engine: when a service starts, or beside the models that it already serves.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use contract::Engine;
use model_store::{ModelError, ModelStore};
use tokio::runtime;
use tokio::sync::watch;
use tracing::{info, warn};

use super::readiness::NotReady;
use super::{ServedModel, heads};
use crate::config::{Config, ModelSource};
use kindred::background::in_background;
use kindred::demo;
use kindred::engines::EngineStartError;
use kindred::heads::HeadError;
use kindred::queue::{self, DeviceThreads, EngineLost, Limits};
use kindred::warm_up::WarmUp;

/// Makes the engine for a model, on the thread that will own it.
pub type MakeEngine =
    Arc<dyn Fn(Arc<ModelStore>, WarmUp) -> Result<Box<dyn Engine>, EngineStartError> + Send + Sync>;

/// How long a new engine may take to reach its full speed; after that, it serves anyway.
const WARM_UP: Duration = Duration::from_secs(600);

/// Why a model is not served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The model folder.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A head.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineStartError),
    /// There is not enough memory for it beside the served models.
    #[error(
        "{source_name} needs {needed_mb} MB of memory; {available_mb} MB are available, but memory_reserve_mb \
         keeps {reserve_mb} MB free; free some memory, or restart the service with the new model"
    )]
    NoMemory {
        /// Its folder, or that it is the built-in model.
        source_name: String,
        /// In MB.
        needed_mb: u64,
        /// In MB.
        available_mb: u64,
        /// In MB.
        reserve_mb: u64,
    },
    /// Its engine does not answer the trial query.
    #[error("the new engine failed its trial query: {0}")]
    Trial(String),
    /// The thread that loads it did not start, or panicked.
    #[error("the model could not be loaded: {0}; see the log")]
    Broken(String),
}

impl From<NotReady> for LoadError {
    fn from(why: NotReady) -> Self {
        Self::Trial(why.to_string())
    }
}

/// Ends when an engine is lost for good.
type UntilLost = Pin<Box<dyn Future<Output = Option<EngineLost>> + Send>>;

/// A model whose engine has been made.
struct Started {
    served: ServedModel,
    /// Disconnected once the engine has reached its full speed.
    warm: mpsc::Receiver<Infallible>,
    lost: UntilLost,
}

/// Loads models and starts their engines.
pub struct Loader {
    make_engine: MakeEngine,
    /// The runtime that watches deadlines.
    timer: runtime::Handle,
    /// The threads of all engines that may still run.
    engines: Mutex<Vec<DeviceThreads>>,
    /// Why the first engine was lost for good, if one was.
    lost: watch::Sender<Option<EngineLost>>,
}

impl Loader {
    /// A loader that makes engines with `make_engine`, and watches their jobs' deadlines on `timer`.
    pub fn new(make_engine: MakeEngine, timer: runtime::Handle) -> Self {
        Self { make_engine, timer, engines: Mutex::default(), lost: watch::channel(None).0 }
    }

    /// Loads a model while the service starts. Returns as soon as its engine can answer.
    ///
    /// # Errors
    /// If the folder is not a valid model, or its engine does not start.
    pub fn load(&self, source: &ModelSource, config: &Config) -> Result<ServedModel, LoadError> {
        let model = open(source, config)?;
        if let Err(why) = check_memory(&model, source, config) {
            warn!("{why}");
        }
        let Started { served, lost, .. } = self.start_engine(Arc::new(model), config, false)?;
        self.watch(lost);
        Ok(served)
    }

    /// Checks that each head of the settings belongs to one of these models.
    ///
    /// # Errors
    /// If one does not.
    pub fn check_heads(config: &Config, models: &[Arc<ServedModel>]) -> Result<(), LoadError> {
        Ok(heads::check_models(config, models.iter().map(|served| served.model()))?)
    }

    /// Loads a model while the service runs. Returns once every checksum matches, there is enough memory for the model,
    /// and its engine has reached its full speed and given the right answer to a probe. `None` if this version is
    /// already served.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if one of these checks fails.
    pub(super) fn load_while_running(
        &self,
        source: &ModelSource,
        config: &Config,
        served: Option<&ServedModel>,
    ) -> Result<Option<ServedModel>, LoadError> {
        let model = Arc::new(open(source, config)?);
        if let Some(served) = served.filter(|served| served.model.version() == model.version()) {
            served.heads.store(Arc::new(heads::open(&served.model, config)?));
            return Ok(None);
        }
        heads::open(&model, config)?;
        check_memory(&model, source, config)?;
        in_background(|| model.verify(|_| ())).map_err(|e| LoadError::Broken(e.to_string()))??;
        let Started { served, warm, lost } = self.start_engine(model, config, true)?;
        // The sender is dropped when the engine has reached its full speed.
        if warm.recv_timeout(WARM_UP) == Err(mpsc::RecvTimeoutError::Timeout) {
            warn!(
                model = served.name(),
                "the new engine is serving before its scan table is ready, so it is \
                 still slow"
            );
        }
        self.timer.block_on(served.readiness.check(&served.queue, &[]))?;
        // Only now, because an engine that fails its trial must not end the process.
        self.watch(lost);
        Ok(Some(served))
    }

    fn start_engine(
        &self,
        model: Arc<ModelStore>,
        config: &Config,
        beside_others: bool,
    ) -> Result<Started, LoadError> {
        let limits = Limits {
            capacity_queries: config.queue_capacity_queries,
            max_batch_queries: config.max_batch_queries,
            engine_max_restarts: config.engine_max_restarts,
            engine_hang_timeout: Duration::from_millis(config.engine_hang_timeout_ms),
        };
        let (make_engine, for_engine) = (self.make_engine.clone(), model.clone());
        let (warm, is_warm) = WarmUp::new(beside_others);
        let mut warm = Some(warm);
        let make = move || {
            // Nobody waits for the warm-up of an engine that is made again.
            let warm = warm.take().unwrap_or_else(WarmUp::for_nobody);
            make_engine(for_engine.clone(), warm)
        };
        // No time limit while the service starts: a cold disk may be slow, and no request waits.
        let within = beside_others.then_some(limits.engine_hang_timeout);
        let (queue, workers) =
            queue::start(limits, &self.timer, within, make).map_err(EngineStartError::from)?;
        info!(
            model = model.name(),
            engine = workers.description().name,
            detail = workers.description().detail,
            "the engine is ready"
        );
        let timeout = Duration::from_millis(config.readiness_timeout_ms);
        let own = heads::open(&model, config)?;
        let description = workers.description().clone();
        let served = ServedModel::new(model, queue, description, timeout).with_heads(own);
        let lost = Box::pin(workers.lost());
        let mut engines = self.engines.lock().expect("nothing panics while it holds this lock");
        engines.retain(|workers| !workers.is_finished());
        engines.push(workers);
        Ok(Started { served, warm: is_warm, lost })
    }

    /// From now on the process ends if this engine is lost.
    fn watch(&self, lost: UntilLost) {
        let is_lost = self.lost.clone();
        self.timer.spawn(async move {
            if let Some(why) = lost.await {
                is_lost.send_if_modified(|first| first.is_none() && first.replace(why).is_none());
            }
        });
    }

    /// Waits until an engine is lost for good; returns why.
    pub async fn lost(&self) -> EngineLost {
        let mut lost = self.lost.subscribe();
        match lost.wait_for(Option::is_some).await.map(|lost| lost.clone()) {
            Ok(Some(why)) => why,
            _ => std::future::pending().await,
        }
    }

    /// Waits at most `timeout` for the threads of all engines. They end once nobody can query the engines any more.
    /// Returns whether all have ended.
    pub fn join(self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let engines = self.engines.into_inner().expect("nothing panics while it holds this lock");
        let left = || until.saturating_duration_since(Instant::now());
        engines.into_iter().all(|engine| engine.join(left()))
    }
}

fn open(source: &ModelSource, config: &Config) -> Result<ModelStore, ModelError> {
    let started = Instant::now();
    let model = match &source.folder {
        Some(folder) => ModelStore::open(folder)?,
        None => demo::open(&config.cache_dir)?,
    };
    let model = match &source.name {
        Some(name) => model.named(name),
        None => model,
    };
    info!(
        model = model.name(),
        version = model.version(),
        rows = model.rows(),
        dim = model.dim(),
        milliseconds = started.elapsed().as_secs_f64() * 1e3,
        "opened the model"
    );
    Ok(model)
}

fn check_memory(
    model: &ModelStore,
    source: &ModelSource,
    config: &Config,
) -> Result<(), LoadError> {
    const MB: u64 = 1_000_000;
    let Some(available) = available_memory() else {
        return Ok(());
    };
    let (needed, reserve) = (needed_memory(model), config.memory_reserve_mb.saturating_mul(MB));
    if needed.saturating_add(reserve) <= available {
        return Ok(());
    }
    Err(LoadError::NoMemory {
        source_name: source
            .folder
            .as_ref()
            .map_or_else(|| "the built-in model".to_owned(), |folder| folder.display().to_string()),
        needed_mb: needed.div_ceil(MB),
        available_mb: available / MB,
        reserve_mb: config.memory_reserve_mb,
    })
}

/// Bytes of available memory, as reported by the system, within the limits of the container if there is one. `None` if
/// the system does not report it.
fn available_memory() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let of_machine = system.available_memory();
    let of_container = system.cgroup_limits().map(|limits| limits.free_memory);
    let available = of_container.map_or(of_machine, |container| container.min(of_machine));
    (system.total_memory() > 0).then_some(available)
}

/// Bytes of memory that another model needs: its files, which are mapped, and the derived table of its engine, with a
/// byte for each component.
fn needed_memory(model: &ModelStore) -> u64 {
    let (rows, dim) = (model.rows() as u64, model.dim() as u64);
    let (header, rounded_dim) = (model.header(), dim.next_multiple_of(64));
    let files = rows * (4 * dim + 16) + header.words_bytes + header.index_bytes;
    files + rows * (rounded_dim + 64)
}
