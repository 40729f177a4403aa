//! Loads a model and starts its engine: when a service starts, or beside the models that it already
//! serves.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use kindred::contract::Engine;
use kindred::filter::FilterSets;
use kindred::{ModelError, ModelStore};
use tokio::runtime;
use tokio::sync::watch;
use tracing::{info, warn};

use super::readiness::NotReady;
use super::{ModelSet, ServedModel, heads, warm};
use crate::config::{Config, ConfigError, ModelSource};
use crate::system::available_memory;
use kindred::background::in_background;
use kindred::demo;
use kindred::device::Placement;
use kindred::engines::{EngineStartError, Maker, Makers};
use kindred::heads::HeadError;
use kindred::live::changes::ChangeError;
use kindred::placement::Placed;
use kindred::queue::{self, DeviceThreads, EngineLost, Limits, Until};
use kindred::warm_up::WarmUp;

/// Says how the engines of this model are made, placed like this on several GPUs: a maker for each
/// replica. It may replace a model that is on GPUs, and where.
pub type MakeEngines = Arc<
    dyn Fn(&Arc<ModelStore>, Placement, Option<&Placed>) -> Result<Makers, EngineStartError>
        + Send
        + Sync,
>;

/// One engine for each model.
pub fn one_engine(
    make: impl Fn(Arc<ModelStore>, WarmUp) -> Result<Box<dyn Engine>, EngineStartError>
    + Send
    + Sync
    + 'static,
) -> MakeEngines {
    let make = Arc::new(make);
    Arc::new(move |model, _, _| {
        let (make, model) = (make.clone(), model.clone());
        let each = vec![Box::new(move |warm| make(model.clone(), warm)) as Maker];
        Ok(Makers { each, placed: None })
    })
}

/// Time limit for a new engine to reach its full speed; after that, it serves anyway.
const WARM_UP: Duration = Duration::from_secs(600);

/// A pass that takes this long hangs, however short requests' deadlines are.
const SHORTEST_HANG: Duration = Duration::from_secs(5);

/// Why a model is not served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The settings, of a command that asks one model. Boxed, because it is the largest.
    #[error(transparent)]
    Settings(Box<ConfigError>),
    /// The model folder.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The changes of a model's rows.
    #[error(transparent)]
    Changes(#[from] ChangeError),
    /// A folder in the settings that does not exist, or is not a model's.
    #[error(transparent)]
    NoModel(ModelError),
    /// A head.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Several heads in the settings that could answer.
    #[error("the settings have several heads that could answer: {0}; choose one with --head DIR")]
    SeveralHeads(String),
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
    /// Its engines do not fit in memory beside those of the served version, and taking the devices
    /// one after another did not work either.
    #[error(
        "replica {replica} of {of} of the new version is not served, so the old one still is: \
         {source}"
    )]
    Rolling {
        /// The replica, from 1.
        replica: usize,
        /// The number of replicas.
        of: usize,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Its engine does not answer the trial query.
    #[error("the new engine failed its trial query: {0}")]
    Trial(#[from] NotReady),
    /// The thread that loads it did not start, or panicked.
    #[error("the model could not be loaded: {0}; see the log")]
    Broken(#[source] io::Error),
}

impl LoadError {
    /// Whether it is a mistake in the settings: they are invalid, or name a folder that does not
    /// exist or is not the right one. A damaged file is no such mistake.
    pub fn is_of_settings(&self) -> bool {
        use HeadError::{NotAHead, OtherModel};
        matches!(
            self,
            Self::Settings(_) | Self::NoModel(_) | Self::Head(NotAHead { .. } | OtherModel { .. })
        )
    }
}

impl From<ConfigError> for LoadError {
    fn from(error: ConfigError) -> Self {
        Self::Settings(Box::new(error))
    }
}

/// A model whose engines have been made, or at least the first.
pub(super) struct Started {
    pub(super) served: Arc<ServedModel>,
    /// For each engine, disconnected once it has reached its full speed.
    warm: Vec<mpsc::Receiver<Infallible>>,
    /// Ends when an engine is lost for good.
    lost: Pin<Box<dyn Future<Output = Option<EngineLost>> + Send>>,
}

impl Started {
    /// Waits until the engine of a replica has reached its full speed.
    pub(super) fn until_warm(&self, replica: usize) {
        // The sender is dropped then.
        if self.warm[replica].recv_timeout(WARM_UP) == Err(mpsc::RecvTimeoutError::Timeout) {
            warn!(
                model = self.served.name(),
                "the new engine is serving before its scan table is ready, so it is still slow"
            );
        }
    }
}

/// Loads models and starts their engines.
pub struct Loader {
    make_engines: MakeEngines,
    /// The runtime that watches deadlines.
    timer: runtime::Handle,
    /// The threads of all engines that may still run.
    engines: Mutex<Vec<DeviceThreads>>,
    /// Why the first engine was lost for good, if one was.
    lost: watch::Sender<Option<EngineLost>>,
}

impl Loader {
    /// A loader that makes engines with `make_engines`, and watches their jobs' deadlines on
    /// `timer`.
    pub fn new(make_engines: MakeEngines, timer: runtime::Handle) -> Self {
        Self { make_engines, timer, engines: Mutex::default(), lost: watch::channel(None).0 }
    }

    /// Loads the models of the settings while the service starts. Returns as soon as their engines
    /// can answer. Opens all of them before it makes an engine, which may take long.
    ///
    /// # Errors
    /// If a folder is not a valid model, an engine does not start, or a head of the settings
    /// belongs to none of these models.
    pub fn load(&self, config: &Config) -> Result<ModelSet, LoadError> {
        let mut models = Vec::new();
        for (source, model) in config.sources().iter().zip(open_all(config)?) {
            if let Err(why) = check_memory(&model, source, config) {
                warn!("{why}");
            }
            let makers = self.makers(&model, config, None)?;
            let started = self.start_engines(model, config, makers, false, Until::All)?;
            models.push(self.watched(started));
        }
        Ok(ModelSet::new(models))
    }

    /// Verifies an opened model while the service runs: every checksum matches, and there is enough
    /// memory. `None` if this version is already served, undamaged.
    ///
    /// # Errors
    /// If one of these checks fails.
    pub(super) fn verify_while_running(
        &self,
        source: &ModelSource,
        model: Arc<ModelStore>,
        config: &Config,
        served: Option<&ServedModel>,
    ) -> Result<Option<Arc<ModelStore>>, LoadError> {
        let is_unchanged = |served: &&ServedModel| {
            served.model.version() == model.version() && served.readiness.damaged_files() == 0
        };
        if let Some(served) = served.filter(is_unchanged) {
            let mut heads = heads::open(&served.model, config)?;
            in_background(|| heads::verify(&heads, || true)).map_err(LoadError::Broken)??;
            warm::reuse(&served.heads.load(), &mut heads);
            warm::warm(served, &heads);
            served.heads.store(Arc::new(heads));
            return Ok(None);
        }
        let heads = heads::open(&model, config)?;
        check_memory(&model, source, config)?;
        let verify = || model.verify(|_| ()).and_then(|()| heads::verify(&heads, || true));
        in_background(verify).map_err(LoadError::Broken)??;
        Ok(Some(model))
    }

    /// Starts a model's engines beside those that are served. Returns once those that `until` names
    /// have reached their full speed, and a probe was answered right. Each maker may wait for its
    /// turn.
    ///
    /// # Errors
    /// If one of these engines does not start, or the answer is wrong.
    pub(super) fn start_beside(
        &self,
        model: Arc<ModelStore>,
        config: &Config,
        makers: Makers,
        until: Until,
    ) -> Result<Started, LoadError> {
        let awaited = if until == Until::First { 1 } else { makers.each.len() };
        let started = self.start_engines(model, config, makers, true, until)?;
        (0..awaited).for_each(|replica| started.until_warm(replica));
        let served = &started.served;
        self.timer.block_on(served.readiness.check(&served.queue, &[]))?;
        Ok(started)
    }

    /// The makers of a model's engines. It replaces `before`, if that is there.
    pub(super) fn makers(
        &self,
        model: &Arc<ModelStore>,
        config: &Config,
        before: Option<&ServedModel>,
    ) -> Result<Makers, LoadError> {
        let placement = config.placement_of(model.name());
        let replaces = before.and_then(|before| before.placed.as_ref());
        Ok((self.make_engines)(model, placement, replaces)?)
    }

    fn start_engines(
        &self,
        model: Arc<ModelStore>,
        config: &Config,
        Makers { each: makers, placed }: Makers,
        beside_others: bool,
        until: Until,
    ) -> Result<Started, LoadError> {
        let hang_timeout = Duration::from_millis(config.engine_hang_timeout_ms);
        // So that who waits for a replica that hangs gets the answer of another before the
        // deadline.
        let part = Duration::from_millis(config.request_timeout_ms / 3);
        let limits = Limits {
            capacity_slots: config.queue_capacity_queries,
            max_restarts: config.engine_max_restarts,
            hang_timeout,
            hang_timeout_beside_others: part.max(SHORTEST_HANG).min(hang_timeout),
            // Threads of HTTP need the cores.
            linger: Duration::ZERO,
        };
        let mut all_warm = Vec::new();
        let maker = |mut make: Maker| {
            let (warm, is_warm) = WarmUp::new(beside_others);
            all_warm.push(is_warm);
            let mut warm = Some(warm);
            // Nobody waits for the warm-up of an engine that is made again.
            move || make(warm.take().unwrap_or_else(WarmUp::for_nobody))
        };
        let makers: Vec<_> = makers.into_iter().map(maker).collect();
        let replicas = makers.len();
        // No time limit while the service starts: a cold disk may be slow, and no request waits.
        let within = beside_others.then_some(hang_timeout);
        let max_batch = config.max_batch_queries;
        let (queue, workers) = queue::start(limits, max_batch, &self.timer, until, within, makers)
            .map_err(EngineStartError::from)?;
        info!(
            model = model.name(),
            engine = workers.description().name,
            detail = workers.description().detail,
            replicas,
            "the engine is ready"
        );
        let timeout = Duration::from_millis(config.readiness_timeout_ms);
        let own = heads::open(&model, config)?;
        let served = ServedModel::new(model, own, queue, &workers, placed, timeout);
        warm::warm(&served, &served.heads.load());
        let lost = Box::pin(workers.lost());
        let mut engines = self.engines.lock().expect("nothing panics while it holds this lock");
        engines.retain(|workers| !workers.is_finished());
        engines.push(workers);
        Ok(Started { served: Arc::new(served), warm: all_warm, lost })
    }

    /// From now on the process ends if the engines of this model are lost. Only now, because
    /// engines that fail their trial must not end the process.
    pub(super) fn watched(&self, Started { served, lost, .. }: Started) -> Arc<ServedModel> {
        let is_lost = self.lost.clone();
        self.timer.spawn(async move {
            if let Some(why) = lost.await {
                is_lost.send_if_modified(|first| first.is_none() && first.replace(why).is_none());
            }
        });
        served
    }

    /// Waits until an engine is lost for good; returns why.
    pub async fn lost(&self) -> EngineLost {
        let mut lost = self.lost.subscribe();
        match lost.wait_for(Option::is_some).await.map(|lost| lost.clone()) {
            Ok(Some(why)) => why,
            _ => std::future::pending().await,
        }
    }

    /// Waits at most `timeout` for the threads of all engines. They end once nobody can query the
    /// engines any more. Returns whether all have ended.
    pub fn join(self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let engines = self.engines.into_inner().expect("nothing panics while it holds this lock");
        let left = || until.saturating_duration_since(Instant::now());
        engines.into_iter().all(|engine| engine.join(left()))
    }
}

/// Opens the models and the heads of the settings, without an engine.
///
/// # Errors
/// If a folder is not a valid model or head, or a head belongs to none of these models.
pub fn check(config: &Config) -> Result<(), LoadError> {
    for model in open_all(config)? {
        heads::open(&model, config)?;
    }
    Ok(())
}

/// Opens the models of the settings, and checks that each head was made for one of them.
fn open_all(config: &Config) -> Result<Vec<Arc<ModelStore>>, LoadError> {
    let open_one = |source: &ModelSource| {
        let opened = open(source, config).map(Arc::new);
        opened.map_err(|why| match why {
            ModelError::NotAModel { ref path, .. } if source.folder.as_ref() == Some(path) => {
                LoadError::NoModel(why)
            }
            why => why.into(),
        })
    };
    let models = config.sources().iter().map(open_one).collect::<Result<Vec<_>, _>>()?;
    heads::check_models(config, models.iter().map(|model| &**model))?;
    Ok(models)
}

/// Opens a model, under its name.
pub(super) fn open(source: &ModelSource, config: &Config) -> Result<ModelStore, ModelError> {
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
        milliseconds = started.elapsed().as_micros() as f64 / 1e3,
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

/// Bytes of memory that another model needs: its files, which are mapped, the derived table of its
/// engine, with a byte for each component, or two of them with attributes, the indexes of its
/// attributes, and the sets of its filters.
fn needed_memory(model: &ModelStore) -> u64 {
    let (rows, dim) = (model.rows() as u64, model.dim() as u64);
    let (header, rounded_dim) = (model.header(), dim.next_multiple_of(64));
    let files = rows * (4 * dim + 16) + header.words_bytes + header.index_bytes;
    let attributes = model.attributes().map_or(0, |all| all.bytes() + all.all_index_bytes());
    let of_filters = FilterSets::most_bytes_for(model) as u64;
    let tables = if model.attributes().is_some() { 2 } else { 1 };
    files + attributes + tables * rows * (rounded_dim + 64) + of_filters
}
