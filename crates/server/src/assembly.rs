//! The one place where a service is put together: settings and a function that makes engines become
//! routes over loaded models. `kindred serve`, the examples and the fuzz targets all start here.

use std::io;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use scheduler::account::Memory;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::oneshot;

use crate::config::{Config, ConfigError, HeadPrecision, invalid};
use crate::http::edge::Edge;
use crate::http::transport::{self, HttpThreads};
use crate::http::{Front, ROUTE_LABELS, check_public_routes};
use crate::models::{
    self, BuildInfo, LoadError, Loader, MakeEngines, Models, ReadSettings, Reloader, Service,
    Timeouts,
};
use crate::observe::{AccessLog, Observer};
use crate::traces::Traces;
use kindred::device::{Device, Placement};
use kindred::engines::{self, HadGpu, KeptHeads, Precision, Wanted};

/// A service that is ready for connections, or for requests within the process.
pub struct Assembly {
    /// Answers requests.
    pub front: Front,
    /// The work before and after the routes, and the settings of connections.
    pub edge: Arc<Edge>,
    /// The models that are served, and what reloads them.
    pub reloader: Arc<Reloader>,
}

/// Why the service can't be put together.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// API keys, certificates, CORS origins, or the collector of traces.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A model or its engine.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The system has no threads left.
    #[error("can't start the worker threads: {0}")]
    Threads(#[source] io::Error),
}

impl AssemblyError {
    /// Whether it is a mistake in the settings, or in a file that they name: trying again with the
    /// same settings does not help.
    pub fn is_of_settings(&self) -> bool {
        match self {
            Self::Config(_) => true,
            Self::Load(why) => why.is_of_settings(),
            Self::Threads(_) => false,
        }
    }
}

/// Checks the settings as a start does, and reads all files that they name: API keys, certificates,
/// models and heads. Makes no engine, so whether a GPU is there is not checked.
///
/// # Errors
/// If keys, certificates, the collector's address, a model or a head can't be used.
pub fn check(config: &Config) -> Result<(), AssemblyError> {
    let _started = start_without_models(config)?;
    Ok(models::check(config)?)
}

/// Checks and applies all settings but those of models and engines.
fn start_without_models(config: &Config) -> Result<(Arc<Edge>, Traces), ConfigError> {
    check_device(&config.device)?;
    let edge = Edge::new(config)?;
    check_public_routes(&config.public_routes)?;
    Ok((edge, Traces::start(config)?))
}

/// Checks that this program can have an engine on this device.
fn check_device(device: &Device) -> Result<(), ConfigError> {
    if cfg!(feature = "cuda") || !matches!(device, Device::Cuda(_)) {
        return Ok(());
    }
    let reason = format!(
        "--device {device}: this kindred was built without its CUDA engine; build it with --features \
         cuda, or use --device cpu"
    );
    Err(invalid("device", reason))
}

impl Assembly {
    /// Loads the models of the settings and starts their engines. `make_engines` returns a maker
    /// for each replica of a model; it runs on the engine's thread, and again each time the engine
    /// has failed. `read_settings` returns the settings for a reload. `timer` is the runtime that
    /// watches deadlines. `GET /version` says `build`.
    ///
    /// # Errors
    /// If keys, certificates, the collector's address, a model or an engine can't be used.
    pub fn build(
        config: &Config,
        read_settings: ReadSettings,
        make_engines: MakeEngines,
        timer: runtime::Handle,
        build: BuildInfo,
    ) -> Result<Self, AssemblyError> {
        let (edge, traces) = start_without_models(config)?;
        let loader = Loader::new(make_engines, timer);
        let models = loader.load(config)?;
        let timeouts = Timeouts {
            request: Duration::from_millis(config.request_timeout_ms),
            body_read: Duration::from_millis(config.body_read_timeout_ms),
            lag: NonZeroU64::new(config.max_lag_seconds)
                .map(|seconds| Duration::from_secs(seconds.get())),
        };
        let access_log = AccessLog {
            one_in: NonZeroU64::new(config.access_log_one_in),
            query: config.access_log_query,
        };
        let observer = Observer::new(access_log, &ROUTE_LABELS, edge.reloads().clone());
        let memory = Memory::new(config.body_memory_mb, config.answer_memory_mb);
        let has_keys = !config.api_keys_file.as_os_str().is_empty();
        let service = Service::new(timeouts, observer, traces, memory, build, has_keys)
            .map_err(AssemblyError::Threads)?;
        let models = Models::new(models, service);
        let files = edge.clone();
        let reload_files = Box::new(move || files.reload());
        let reloader = Reloader::new(models, loader, config.clone(), read_settings, reload_files);
        let reloader = Arc::new(reloader);
        let front = Front { edge: edge.clone(), reloader: reloader.clone() };
        Ok(Self { front, edge, reloader })
    }

    /// Serves the connections of a listener on `threads`, until `told_to_stop` has a message or is
    /// dropped; then answers the requests in progress, closes the connections, and returns.
    ///
    /// The future is boxed, so that the code of all requests is compiled here once, and not again
    /// in each program that waits for it.
    pub fn serve<'a>(
        &'a self,
        listener: TcpListener,
        threads: &'a HttpThreads,
        told_to_stop: oneshot::Receiver<()>,
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        let told_to_stop = async {
            let _ = told_to_stop.await;
        };
        let make_service = |client| self.front.service(client);
        let listener = transport::without_delay(listener);
        let transport = self.edge.transport();
        Box::pin(transport::serve(listener, threads, transport, make_service, told_to_stop))
    }

    /// Stops the engines and waits at most `timeout` for their threads. Returns whether all have
    /// ended. Does not wait, and returns true, if a reload that nobody waits for still holds the
    /// models.
    pub fn join(self, timeout: Duration) -> bool {
        let Self { front, reloader, .. } = self;
        drop(front);
        Arc::into_inner(reloader).is_none_or(|reloader| reloader.join(timeout))
    }
}

/// The engine that the settings ask for.
pub fn wanted_engine(config: &Config) -> Wanted {
    const MEGABYTE: u64 = 1 << 20;
    let memory =
        (config.head_memory_mb > 0).then(|| config.head_memory_mb.saturating_mul(MEGABYTE));
    let precision = match config.head_precision {
        HeadPrecision::Auto => None,
        HeadPrecision::Float16 => Some(Precision::Float16),
        HeadPrecision::Float32 => Some(Precision::Float32),
    };
    Wanted {
        device: config.device.clone(),
        // Models may have their own.
        placement: Placement::Auto,
        threads: config.threads,
        keep_tables: config.keep_tables,
        heads: KeptHeads { memory, precision },
        had_gpu: HadGpu::default(),
        staging: None,
        // Tables that change have it.
        room: 0,
    }
}

/// Makes the engines that were asked for, each checked. A service that started on a GPU does not
/// load a model on the CPU later.
pub fn engines_of(wanted: Wanted) -> MakeEngines {
    Arc::new(move |model, placement, room, replaces| {
        engines::makers(model, &Wanted { placement, room, ..wanted.clone() }, replaces)
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::ops::ControlFlow;

    use axum::body::{Body, to_bytes};
    use axum::http::{Request, StatusCode, header};
    use kindred::ReferenceEngine;
    use kindred::prepare::{Input, PrepareOptions, prepare_folder};
    use scheduler::account::{Account, Pool};
    use serde_json::{Value, json};
    use tower::Service as _;

    use super::*;
    use crate::config::ModelSource;
    use crate::models::one_engine;

    #[tokio::test]
    async fn a_problem_that_there_is_no_memory_for_is_a_429_with_retry_after() {
        let scratch = tempfile::tempdir().unwrap();
        let (text, folder) = (scratch.path().join("tiny.txt"), scratch.path().join("tiny"));
        std::fs::write(&text, "a 1 0\nb 0 1\n").unwrap();
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(&text), &folder, &PrepareOptions::default(), go_on).unwrap();
        let config = Config { model: vec![ModelSource::folder(folder)], ..Config::defaults() };
        let same = config.clone();
        let assembly = Assembly::build(
            &config,
            Box::new(move || Ok(same.clone())),
            one_engine(|model, _| Ok(Box::new(ReferenceEngine::new(model)))),
            runtime::Handle::current(),
            BuildInfo::UNKNOWN,
        )
        .unwrap();
        // Another caller holds all memory for answers.
        let memory = &assembly.reloader.models().service().memory;
        let _held = memory.charge(&Account::new(), Pool::Answers, memory.capacity(Pool::Answers));
        let words: Vec<String> = (0..1000).map(|n| format!("nowhere-{n}")).collect();
        let request = Request::post("/rank")
            .header(header::HOST, "here")
            .body(Body::from(json!({"word": "a", "words": words}).to_string()));
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let Ok(response) = assembly.front.service(client).call(request.unwrap()).await;
        let (head, body) = response.into_parts();
        let problem: Value =
            serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap();
        assert_eq!((&problem["code"], &problem["retry_after"]), (&json!("over_limit"), &json!(1)));
        assert_eq!(head.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(head.headers.get(header::RETRY_AFTER).unwrap(), "1");
        assert_eq!(head.headers[header::CONTENT_TYPE], "application/problem+json");
    }
}
