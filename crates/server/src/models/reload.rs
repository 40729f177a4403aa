//! Reloading: reads settings, keys and certificates again, and loads new versions of models while
//! the service runs.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tracing::{error, info, warn};

use super::opened::Opened;
use super::verification::verify_in_background;
use super::{LoadError, Loader, ModelSet, Models, ServedModel, heads, opened, rolling, tables};
use crate::config::{Config, ConfigError, ModelSource};
use crate::observe::Reloadable;
use kindred::live::changes::Access;
use kindred::queue::{EngineLost, Until};

/// Reads the settings again on each call.
pub type ReadSettings = Box<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// Reads the files of keys and certificates again. Puts all of them in force, or none. Returns one
/// line for each file that says what is in force now.
pub type ReloadFiles = Box<dyn Fn() -> Result<Vec<String>, ConfigError> + Send + Sync>;

/// Reloads models while they are served.
pub struct Reloader {
    pub(super) models: Models,
    pub(super) loader: Loader,
    /// The settings that the service has started with.
    pub(super) started: Config,
    read_settings: ReadSettings,
    reload_files: ReloadFiles,
    /// Held during a reload, so that there is only one at a time.
    pub(super) turn: Arc<Mutex<()>>,
    /// Whether nothing is verified any more, because the service ends.
    stopped: Arc<AtomicBool>,
}

/// Why a reload did not load everything. Models that it did not load are served as before.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Another reload is in progress.
    #[error("another reload is in progress")]
    InProgress,
    /// The API keys or the certificates can't be used.
    #[error(transparent)]
    Files(ConfigError),
    /// The settings can't be used.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// The folder of tables can't be listed.
    #[error(transparent)]
    Tables(Box<LoadError>),
    /// A head fits none of the models in the settings, or that can't be known.
    #[error(transparent)]
    Head(Box<LoadError>),
    /// Some models can't be used.
    #[error("{}{}", and_why(failed), and_loaded(loaded))]
    Models {
        /// Their names, and why they can't be used.
        failed: Vec<(String, LoadError)>,
        /// Models that were loaded: their new versions are served now.
        loaded: Vec<String>,
    },
    /// The thread that loads did not start, or panicked.
    #[error("the models could not be loaded: {0}; see the log")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

fn and_why(failed: &[(String, LoadError)]) -> String {
    failed.iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; ")
}

fn and_loaded(loaded: &[String]) -> String {
    if loaded.is_empty() {
        return String::new();
    }
    format!("; loaded nevertheless: {}", loaded.join(", "))
}

/// The result of a reload.
#[derive(Debug, Clone, Serialize)]
pub struct Reloaded {
    /// The models in the settings, and those that are no longer served.
    pub models: Vec<ReloadedModel>,
    /// The keys and certificates in force now: a line for each file of keys or certificates.
    pub files: Vec<String>,
    /// Settings that have changed since the service started, and that a reload does not put in
    /// force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<&'static str>,
}

/// The result for one model.
#[derive(Debug, Clone, Serialize)]
pub struct ReloadedModel {
    /// Its name.
    pub name: String,
    /// The effect of the reload on it.
    pub outcome: Outcome,
    /// The version that is served now; `None` if the model is no longer served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The time that it took, in seconds.
    pub seconds: f64,
}

/// The effect of a reload on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Its folder has the served version.
    Unchanged,
    /// Another version replaced it, or it is new.
    Loaded,
    /// The settings no longer list it.
    Removed,
}

impl Outcome {
    /// Its name in the log, which is that of the answer.
    fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Loaded => "loaded",
            Self::Removed => "removed",
        }
    }
}

/// The settings that a reload puts in force.
const RELOADED: [&str; 6] =
    ["model", "head", "name", "placement", "cache_dir", "memory_reserve_mb"];

/// Time limit of a reload's wait for the memory of a version that it has replaced.
const FREES_MEMORY: Duration = Duration::from_secs(5);

impl Reloader {
    /// Reloads these models, which `loader` has loaded. A reload begins with `reload_files`; then
    /// `read_settings` returns which models to serve. `started` are the settings in force.
    pub fn new(
        models: Models,
        loader: Loader,
        started: Config,
        read_settings: ReadSettings,
        reload_files: ReloadFiles,
    ) -> Self {
        let (turn, stopped) = Default::default();
        Self { models, loader, started, read_settings, reload_files, turn, stopped }
    }

    /// The models.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// Verifies the current models at low priority, while they are served. One that is damaged is
    /// logged, and is not ready from then on.
    pub fn verify_in_background(&self) {
        verify_in_background(&self.models.current(), self.stopped.clone());
    }

    /// Waits until an engine is lost for good; returns why.
    pub async fn lost(&self) -> EngineLost {
        self.loader.lost().await
    }

    /// Drops the models and waits at most `timeout` for the threads of their engines. Returns
    /// whether all have ended.
    pub fn join(self, timeout: Duration) -> bool {
        let Self { models, loader, stopped, .. } = self;
        stopped.store(true, Ordering::Relaxed);
        drop(models);
        loader.join(timeout)
    }

    /// Reads keys, certificates and settings again, and loads what the settings name: new versions
    /// of served models, and new models. Requests that arrive meanwhile are answered by the
    /// previous models. Dropping this future does not stop the reload.
    ///
    /// # Errors
    /// Immediately if another reload is in progress; later if not everything could be loaded.
    pub async fn reload(self: &Arc<Self>) -> Result<Reloaded, ReloadError> {
        let turn = self.turn.clone().try_lock_owned().map_err(|_| ReloadError::InProgress)?;
        self.reload_in(turn).await
    }

    /// As [`reload`](Self::reload), but first waits for a reload that is in progress.
    ///
    /// # Errors
    /// If not everything could be loaded.
    pub async fn reload_next(self: &Arc<Self>) -> Result<Reloaded, ReloadError> {
        let turn = self.turn.clone().lock_owned().await;
        self.reload_in(turn).await
    }

    async fn reload_in(
        self: &Arc<Self>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<Reloaded, ReloadError> {
        let (report, reported) = oneshot::channel();
        let reloader = self.clone();
        let load = move || {
            let result = reloader.reload_now();
            match &result {
                Ok(Reloaded { models, .. }) => {
                    for one in models {
                        info!(
                            model = one.name,
                            version = one.version,
                            outcome = one.outcome.name(),
                            "reloaded"
                        );
                    }
                }
                Err(e) => {
                    reloader.count_failures(e);
                    error!("the reload failed; the old versions keep serving: {e}");
                }
            }
            // In this order, because the caller may start the next reload as soon as it has the
            // result of this one.
            drop((turn, reloader));
            let _ = report.send(result);
        };
        let thread = std::thread::Builder::new().name("kindred-load".into()).spawn(load);
        thread.map_err(|e| ReloadError::Broken(e.into()))?;
        reported.await.unwrap_or_else(|_| Err(ReloadError::Broken("it broke".into())))
    }

    /// Counts what a reload could not load, each once. Failures of keys and certificates are
    /// counted where they are read.
    fn count_failures(&self, error: &ReloadError) {
        let of = |why: &LoadError| match why {
            LoadError::Head(_) | LoadError::SeveralHeads(_) => Reloadable::Head,
            _ => Reloadable::Model,
        };
        let reloads = self.models.service().observer.reloads();
        match error {
            ReloadError::InProgress | ReloadError::Files(_) => {}
            ReloadError::Head(why) | ReloadError::Tables(why) => reloads.count_failure(of(why)),
            ReloadError::Models { failed, .. } => {
                failed.iter().for_each(|(_, why)| reloads.count_failure(of(why)));
            }
            // The models of the settings are not known then.
            ReloadError::Settings(_) | ReloadError::Broken(_) => {
                reloads.count_failure(Reloadable::Model);
            }
        }
    }

    fn reload_now(&self) -> Result<Reloaded, ReloadError> {
        // First, because a revoked key must stop working whatever else fails.
        let files = (self.reload_files)().map_err(ReloadError::Files)?;
        files.iter().for_each(|line| info!("reloaded: {line}"));
        let config = (self.read_settings)()?;
        let needs_restart = needing_restart(&self.started, &config);
        if !needs_restart.is_empty() {
            warn!("changed settings need a restart to take effect: {}", needs_restart.join(", "));
        }
        let sources = config.sources();
        let opened = open(&sources, self.models.current().models(), &config)?;
        let mut reloaded = Vec::new();
        let mut failed = Vec::new();
        let mut wanted: Vec<Arc<ServedModel>> = Vec::new();
        for (source, opened) in sources.iter().zip(opened) {
            let started = Instant::now();
            let result = opened.and_then(|opened| self.reload_one(source, opened, &config));
            match result {
                Ok((served, outcome)) => {
                    reloaded.push(ReloadedModel {
                        name: served.name().to_owned(),
                        outcome,
                        version: Some(served.model.version().to_owned()),
                        seconds: started.elapsed().as_secs_f64(),
                    });
                    wanted.push(served);
                }
                Err(why) => failed.push((source.expected_name(), why)),
            }
        }
        for (name, folder) in
            tables::found(&config).map_err(|why| ReloadError::Tables(why.into()))?
        {
            let started = Instant::now();
            let source = ModelSource { name: Some(name.clone()), folder: Some(folder) };
            let result = self.reload_table(&source, &config, &wanted);
            match result {
                Ok((served, outcome)) => {
                    reloaded.push(ReloadedModel {
                        name,
                        outcome,
                        version: Some(served.model.version().to_owned()),
                        seconds: started.elapsed().as_secs_f64(),
                    });
                    wanted.push(served);
                }
                Err(why) => failed.push((name, why)),
            }
        }
        if !failed.is_empty() {
            // No model is removed if another one could not be loaded.
            let loaded = reloaded.iter().filter(|one| one.outcome == Outcome::Loaded);
            let loaded = loaded.map(|one| one.name.clone()).collect();
            return Err(ReloadError::Models { failed, loaded });
        }
        for before in self.models.current().models() {
            if !wanted.iter().any(|served| served.name() == before.name()) {
                let (name, version) = (before.name().to_owned(), None);
                reloaded.push(ReloadedModel {
                    name,
                    outcome: Outcome::Removed,
                    version,
                    seconds: 0.0,
                });
            }
        }
        self.models.replace(ModelSet::new(wanted));
        Ok(Reloaded { models: reloaded, files, needs_restart })
    }

    /// A table of the folder of tables, which is served on if it is; otherwise it is opened.
    fn reload_table(
        &self,
        source: &ModelSource,
        config: &Config,
        others: &[Arc<ServedModel>],
    ) -> Result<(Arc<ServedModel>, Outcome), LoadError> {
        let (name, folder) = (source.expected_name(), source.folder.clone().unwrap_or_default());
        if others.iter().any(|other| other.name() == name) {
            return Err(LoadError::NameTaken { name, folder });
        }
        let current = self.models.current();
        if let Some(served) = current.named(&name).filter(|served| served.writer.is_some()) {
            return Ok((served.clone(), Outcome::Unchanged));
        }
        let opened = opened::open_table(&name, &folder, Access::Write)?;
        let started = self.loader.start_table(source, opened, config)?;
        Ok((self.loader.watched(started), Outcome::Loaded))
    }

    /// Loads a model and serves it immediately, so that the model it replaces can be freed.
    fn reload_one(
        &self,
        source: &ModelSource,
        opened: Opened,
        config: &Config,
    ) -> Result<(Arc<ServedModel>, Outcome), LoadError> {
        let current = self.models.current();
        let before = current.named(&source.expected_name());
        let served = before.map(|before| &**before);
        let Some(opened) = self.loader.verify_while_running(source, opened, config, served)? else {
            let unchanged = before.expect("only a model that is served can be unchanged").clone();
            return Ok((unchanged, Outcome::Unchanged));
        };
        let makers = self.loader.makers(&opened, config, served);
        let started = makers
            .and_then(|all| self.loader.start_beside(opened.clone(), config, all, Until::All));
        let served = match started {
            Ok(started) => self.loader.watched(started),
            Err(no_memory) if rolling::is_worth_trying(&no_memory, served) => {
                let served = rolling::swap(&self.loader, &self.models, current, opened, config)?;
                return Ok((served, Outcome::Loaded));
            }
            Err(why) => return Err(why),
        };
        self.models.replace(current.with(served.clone()));
        let on_gpus = before.filter(|before| before.placed.is_some());
        let ended = on_gpus.map(|before| before.replicas.clone());
        drop(current);
        // The next model is placed where memory is free by then.
        if ended.is_some_and(|replicas| !replicas.until_ended(FREES_MEMORY)) {
            warn!(model = served.name(), "the old version is still in use");
        }
        Ok((served, Outcome::Loaded))
    }
}

/// The settings that differ, but for those that a reload puts in force.
fn needing_restart(started: &Config, now: &Config) -> Vec<&'static str> {
    let mut names = started.differing(now);
    names.retain(|name| !RELOADED.contains(name));
    names
}

/// Opens models, and checks that each head of the settings was made for one of them: otherwise a
/// reload would drop it, and its callers would lose their answers. If a model can't be opened, that
/// is not known. Of those that are `served`, tables are served on.
fn open(
    sources: &[ModelSource],
    served: &[Arc<ServedModel>],
    config: &Config,
) -> Result<Vec<Result<Opened, LoadError>>, ReloadError> {
    let opened = sources.iter().map(|source| opened::open_with_changes(source, config));
    if config.head.is_empty() {
        return Ok(opened.collect());
    }
    let failed = |why: LoadError| ReloadError::Head(Box::new(why));
    let opened = opened.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let tables = served.iter().filter(|served| served.writer.is_some());
    let tables = tables.map(|served| &*served.model);
    let models = opened.iter().map(|opened| &*opened.model).chain(tables);
    heads::check_models(config, models).map_err(|why| failed(why.into()))?;
    Ok(opened.into_iter().map(Ok).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_a_reload_leaves_alone_are_named() {
        let started = Config::defaults();
        assert!(needing_restart(&started, &started).is_empty());
        let now = Config {
            model: vec![ModelSource::folder("m")],
            name: "n".to_owned(),
            memory_reserve_mb: 1,
            listen: "127.0.0.1:1".to_owned(),
            cors_origins: vec!["*".to_owned()],
            ..Config::defaults()
        };
        assert_eq!(needing_restart(&started, &now), ["listen", "cors_origins"]);
        let all = started.differing(&now);
        assert!(["model", "name", "memory_reserve_mb"].iter().all(|name| all.contains(name)));
    }

    #[test]
    fn the_log_and_the_answer_have_the_same_names_of_outcomes() {
        for outcome in [Outcome::Unchanged, Outcome::Loaded, Outcome::Removed] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }
}
