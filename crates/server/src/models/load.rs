//! Loads a model and starts its engine: when a service starts, or beside the models that it already
//! serves.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use kindred::ModelStore;
use kindred::contract::Engine;
use tokio::runtime;
use tokio::sync::watch;
use tracing::{info, warn};

use super::opened::{Opened, check_memory, open_all};
use super::{LoadError, ModelSet, ServedModel, heads, tables, warm};
use crate::config::{Config, ModelSource};
use kindred::background::in_background;
use kindred::device::Placement;
use kindred::engines::{EngineStartError, Maker, Makers};
use kindred::live::changes::Access;
use kindred::placement::Placed;
use kindred::queue::{self, DeviceThreads, EngineLost, Limits, Until};
use kindred::warm_up::WarmUp;

/// Says how the engines of this model are made, placed like this on several GPUs, with room for so
/// many more rows: a maker for each replica. It may replace a model that is on GPUs, and where.
pub type MakeEngines = Arc<
    dyn Fn(&Arc<ModelStore>, Placement, usize, Option<&Placed>) -> Result<Makers, EngineStartError>
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
    Arc::new(move |model, _, _, _| {
        let (make, model) = (make.clone(), model.clone());
        let each = vec![Box::new(move |warm| make(model.clone(), warm)) as Maker];
        Ok(Makers { each, placed: None })
    })
}

/// Time limit for a new engine to reach its full speed; after that, it serves anyway.
const WARM_UP: Duration = Duration::from_secs(600);

/// A pass that takes this long hangs, however short requests' deadlines are.
const SHORTEST_HANG: Duration = Duration::from_secs(5);

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
        tables::remove_deleted(&config.models_dir);
        let mut models = Vec::new();
        for (source, opened) in open_all(config, Access::Write)? {
            if let Err(why) = check_memory(&opened, &source, config) {
                warn!("{why}");
            }
            let makers = self.makers(&opened, config, None)?;
            let started = self.start_engines(opened, config, makers, false, Until::All)?;
            models.push(self.watched(started));
        }
        Ok(ModelSet::new(models))
    }

    /// Starts the engines of a table beside the models that are served.
    ///
    /// # Errors
    /// If there is not enough memory, or an engine does not start.
    pub(super) fn start_table(
        &self,
        source: &ModelSource,
        opened: Opened,
        config: &Config,
    ) -> Result<Started, LoadError> {
        check_memory(&opened, source, config)?;
        let makers = self.makers(&opened, config, None)?;
        self.start_beside(opened, config, makers, Until::All)
    }

    /// Verifies an opened model while the service runs: every checksum matches, and there is enough
    /// memory. `None` if this version is already served, undamaged.
    ///
    /// # Errors
    /// If one of these checks fails.
    pub(super) fn verify_while_running(
        &self,
        source: &ModelSource,
        opened: Opened,
        config: &Config,
        served: Option<&ServedModel>,
    ) -> Result<Option<Opened>, LoadError> {
        let is_unchanged =
            |served: &&ServedModel| served.is_of(&opened) && served.readiness.damaged_files() == 0;
        if let Some(served) = served.filter(is_unchanged) {
            let mut heads = heads::open(&served.model, config)?;
            in_background(|| heads::verify(&heads, || true)).map_err(LoadError::Broken)??;
            warm::reuse(&served.heads.load(), &mut heads);
            warm::warm(served, &heads);
            served.heads.store(Arc::new(heads));
            return Ok(None);
        }
        let model = &opened.model;
        let heads = heads::open(model, config)?;
        check_memory(&opened, source, config)?;
        let verify = || model.verify(|_| ()).and_then(|()| heads::verify(&heads, || true));
        in_background(verify).map_err(LoadError::Broken)??;
        Ok(Some(opened))
    }

    /// Starts a model's engines beside those that are served. Returns once those that `until` names
    /// have reached their full speed, and a probe was answered right. Each maker may wait for its
    /// turn.
    ///
    /// # Errors
    /// If one of these engines does not start, or the answer is wrong.
    pub(super) fn start_beside(
        &self,
        opened: Opened,
        config: &Config,
        makers: Makers,
        until: Until,
    ) -> Result<Started, LoadError> {
        let awaited = if until == Until::First { 1 } else { makers.each.len() };
        let started = self.start_engines(opened, config, makers, true, until)?;
        (0..awaited).for_each(|replica| started.until_warm(replica));
        let served = &started.served;
        self.timer.block_on(served.readiness.check(&served.queue, &[]))?;
        Ok(started)
    }

    /// The makers of a model's engines. It replaces `before`, if that is there.
    pub(super) fn makers(
        &self,
        opened: &Opened,
        config: &Config,
        before: Option<&ServedModel>,
    ) -> Result<Makers, LoadError> {
        let placement = config.placement_of(opened.model.name());
        let replaces = before.and_then(|before| before.placed.as_ref());
        let room = opened.live.as_ref().map_or(0, |live| live.room());
        let makers = (self.make_engines)(&opened.model, placement, room, replaces)?;
        Ok(match &opened.live {
            Some(live) => live.makers(makers, config.threads),
            None => makers,
        })
    }

    fn start_engines(
        &self,
        opened: Opened,
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
            model = opened.model.name(),
            engine = workers.description().name,
            detail = workers.description().detail,
            replicas,
            "the engine is ready"
        );
        let timeout = Duration::from_millis(config.readiness_timeout_ms);
        let own = heads::open(&opened.model, config)?;
        let served = ServedModel::new(opened, own, queue, &workers, placed, timeout);
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
