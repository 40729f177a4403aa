//! The whole service in this process, without a socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use kindred::ReferenceEngine;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::Service as _;

use super::ConsoleError;
use super::service::{Reply, Service, Times};
use crate::arguments::AnswerSource;
use server::assembly::{Assembly, AssemblyError, engines_of, wanted_engine};
use server::config::{Config, ServeFlags};
use server::models::{MakeEngines, OneModel, one_engine};

/// The client's address, as the service sees it.
const CALLER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Time limit of a question. It is long, because nobody else waits for this service.
const PATIENCE_MS: u64 = 3_600_000;

/// How long the engine may take to stop when the program ends.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The service, its model and its engine.
pub(super) struct InProcess {
    runtime: Runtime,
    /// `None` only while this is dropped.
    assembly: Option<Assembly>,
}

impl InProcess {
    /// A service with the model and the engine that `serve` would use.
    pub(super) fn with_engine(source: &AnswerSource) -> Result<Self, ConsoleError> {
        let config = settings(source)?;
        let wanted = wanted_engine(&config);
        Self::start(&config, engines_of(wanted))
    }

    /// A service with the same model and the plain reference.
    pub(super) fn with_reference(source: &AnswerSource) -> Result<Self, ConsoleError> {
        let make = one_engine(|model, _| Ok(Box::new(ReferenceEngine::new(model))));
        Self::start(&settings(source)?, make)
    }

    fn start(config: &Config, make: MakeEngines) -> Result<Self, ConsoleError> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(AssemblyError::Threads)?;
        let (same, timer) = (config.clone(), runtime.handle().clone());
        let assembly = Assembly::build(config, Box::new(move || Ok(same.clone())), make, timer)?;
        Ok(Self { runtime, assembly: Some(assembly) })
    }
}

/// The settings of model and engine, as `serve` would read them from flags, environment and file.
/// Network settings are left out.
fn settings(source: &AnswerSource) -> Result<Config, ConsoleError> {
    let flags = ServeFlags {
        model: source.model.iter().cloned().collect(),
        head: source.head.clone(),
        device: source.device.clone(),
        threads: source.threads,
        keep_tables: source.keep_tables,
        cache_dir: source.cache_dir.clone(),
        ..ServeFlags::default()
    };
    let loaded = OneModel::settings(&flags).map_err(AssemblyError::from)?;
    Ok(Config {
        name: loaded.name,
        head: loaded.head,
        model: loaded.model,
        device: loaded.device,
        placement: loaded.placement.into_iter().filter(|one| one.model.is_none()).collect(),
        threads: loaded.threads,
        keep_tables: loaded.keep_tables,
        head_memory_mb: loaded.head_memory_mb,
        head_precision: loaded.head_precision,
        cache_dir: loaded.cache_dir,
        request_timeout_ms: PATIENCE_MS,
        body_read_timeout_ms: PATIENCE_MS,
        engine_hang_timeout_ms: PATIENCE_MS,
        ..Config::defaults()
    })
}

impl Service for InProcess {
    fn ask(
        &self,
        path: &str,
        body: Option<&Value>,
        _: Option<Duration>,
    ) -> Result<Reply, ConsoleError> {
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))
            .expect("paths of ours are escaped");
        let front = &self.assembly.as_ref().expect("it is not ending").front;
        let asked = Instant::now();
        self.runtime.block_on(async {
            let Ok(response) = front.service(CALLER).call(request).await;
            let status = response.status().as_u16();
            let timing = response.headers().get("server-timing");
            let times = timing.and_then(|timing| Times::read(timing.to_str().ok()?));
            let body = to_bytes(response.into_body(), usize::MAX).await;
            let body = body.map_err(|e| ConsoleError::System {
                doing: "the answer was cut off",
                source: std::io::Error::other(e),
            })?;
            // Measured here, from the first byte of the question to the last byte of its answer.
            let total = asked.elapsed().as_secs_f64() * 1e3;
            let times = times.map(|times| Times { total, ..times });
            Ok(Reply { status, body: body.into(), times })
        })
    }

    fn name(&self) -> String {
        "the local model".to_owned()
    }
}

/// Stops the engine before the program ends, so that the device is released properly.
impl Drop for InProcess {
    fn drop(&mut self) {
        if let Some(assembly) = self.assembly.take() {
            assembly.join(STOP_TIMEOUT);
        }
    }
}
