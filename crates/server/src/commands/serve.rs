use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model_store::{Engine, ModelError, ModelStore, Row};
use tokio::runtime;
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::CommandError;
use crate::cli::ServeFlags;
use crate::config::Config;
use crate::device::Device;
use crate::engines::EngineStartError;
use crate::http::threads::HttpThreads;
use crate::http::{AppState, Front, connections, listen};
use crate::queue::{EngineThread, Limits};
use crate::{default_model, engines, logging, queue};

/// How long the process goes on without an engine, for answers to go out.
const ANSWERS_GO_OUT: Duration = Duration::from_secs(1);

/// Serves a model until it is told to stop, then answers what is in flight and returns.
///
/// # Errors
/// If the settings, the model, the engine or the address can't be used; later, if the engine is lost.
pub fn serve(flags: &ServeFlags) -> Result<(), CommandError> {
    let config = Config::load(flags)?;
    let mut wanted = engines::Wanted {
        device: config.device,
        threads: config.threads,
        keep_tables: config.keep_tables,
    };
    serve_with(&config, move |model| {
        let engine = engines::make_checked(&model, wanted)?;
        // Whoever has had a GPU is not served a hundred times slower without being told: without it, there is no
        // engine, and the next start says so.
        if wanted.device == Device::Auto && engine.description().name == "cuda" {
            wanted.device = Device::Cuda(None);
        }
        Ok(engine)
    })
}

/// As [`serve`], with these settings and any engine. `make_engine` runs on the engine's thread, and again whenever
/// the engine failed. What it makes is used as it is: it should have had its [`engines::self_check`].
///
/// # Errors
/// As [`serve`].
pub fn serve_with<F>(config: &Config, mut make_engine: F) -> Result<(), CommandError>
where
    F: FnMut(Arc<ModelStore>) -> Result<Box<dyn Engine>, EngineStartError> + Send + 'static,
{
    logging::start(config)?;
    let started = Instant::now();
    let model = Arc::new(open_model(config)?);
    let opened = started.elapsed();
    info!(
        model = model.name(),
        rows = model.rows(),
        dim = model.dim(),
        milliseconds = opened.as_secs_f64() * 1e3,
        "the model is open"
    );

    let no_threads =
        |source| CommandError::System { doing: "can't start the HTTP threads", source };
    let threads = HttpThreads::start(config.http_threads).map_err(no_threads)?;
    // Lets connections in and hears signals; requests are the HTTP threads' affair.
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().map_err(no_threads)?;
    let limits = Limits {
        capacity_queries: config.queue_capacity_queries,
        max_batch_queries: config.max_batch_queries,
        engine_max_restarts: config.engine_max_restarts,
        engine_hang_timeout: Duration::from_millis(config.engine_hang_timeout_ms),
    };
    let engine_model = model.clone();
    let (queue, engine) =
        queue::start(limits, runtime.handle(), move || make_engine(engine_model.clone()))?;
    info!(
        engine = engine.description.name,
        detail = engine.description.detail,
        "the engine is ready"
    );

    let state = AppState::new(
        model,
        queue,
        engine.description.clone(),
        Duration::from_millis(config.request_timeout_ms),
        Duration::from_millis(config.readiness_timeout_ms),
    );
    let result = runtime.block_on(listen_and_drain(config, state, &engine, &threads));
    // What is left are connections past their time: they end with their threads.
    drop(threads);
    runtime.shutdown_background();
    result?;
    // Nobody waits for an answer now, but an engine that hangs would be waited for in vain.
    if !engine.join(Duration::from_millis(config.drain_timeout_ms)) {
        return Err(CommandError::DrainTimeout(config.drain_timeout_ms));
    }
    info!("stopped");
    Ok(())
}

fn open_model(config: &Config) -> Result<ModelStore, ModelError> {
    let model = if config.model.as_os_str().is_empty() {
        default_model::open(&config.cache_dir)?
    } else {
        ModelStore::open(&config.model)?
    };
    Ok(if config.name.is_empty() { model } else { model.named(&config.name) })
}

async fn listen_and_drain(
    config: &Config,
    state: Arc<AppState>,
    engine: &EngineThread,
    threads: &HttpThreads,
) -> Result<(), CommandError> {
    let can_not_listen = |source| CommandError::Listen { address: config.listen.clone(), source };
    let listener = listen::bind(&config.listen).await.map_err(can_not_listen)?;
    let address = listener.local_addr().map_err(can_not_listen)?;
    print_welcome(&state, engine, address);
    info!(%address, "listening");

    let (stop, mut stopped) = watch::channel(false);
    let draining = state.clone();
    let told = async move {
        told_to_stop().await;
        info!("told to stop: answering what is in flight");
        draining.start_draining();
        drop(draining);
        let _ = stop.send(true);
    };
    let front = Front::new(state);
    let listener = listen::without_delay(listener);
    let server = connections::serve(listener, threads, || front.service(), told);
    let drain_timeout = Duration::from_millis(config.drain_timeout_ms);
    let too_long = async {
        // An error means that the sender is gone: then the server is about to end by itself.
        if stopped.wait_for(|&stopped| stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::select! {
            () = tokio::time::sleep(drain_timeout) => {}
            () = told_to_stop() => warn!("told to stop again"),
        }
    };
    let lost = async {
        let lost = engine.lost().await;
        error!("{lost}");
        // Those who waited have just been told so: their answers are on their way.
        tokio::time::sleep(ANSWERS_GO_OUT).await;
        lost
    };
    tokio::select! {
        () = server => Ok(()),
        lost = lost => Err(CommandError::EngineLost(lost)),
        () = too_long => Err(CommandError::DrainTimeout(config.drain_timeout_ms)),
    }
}

/// Returns at the next Ctrl-C or SIGTERM.
pub(super) async fn told_to_stop() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(_) => {
                let _ = interrupt.await;
            }
        }
    }
    #[cfg(not(unix))]
    let _ = interrupt.await;
}

/// What is served, where, and what to type next.
fn print_welcome(state: &AppState, engine: &EngineThread, address: SocketAddr) {
    let model = state.model();
    let word = |preferred: &'static str, row: u32| {
        if model.words().row(preferred).is_some() {
            preferred.to_owned()
        } else {
            encoded(model.words().word(Row(row.min(model.rows() as u32 - 1))))
        }
    };
    say!(
        "Kindred {} serves {} ({} rows × {} dimensions) on the {} engine ({}).",
        env!("CARGO_PKG_VERSION"),
        model.name(),
        model.rows(),
        model.dim(),
        engine.description.name,
        engine.description.detail,
    );
    say!("Listening on http://{address}");
    say!();
    say!("Try:");
    say!("  curl 'http://{address}/nearest?word={}&k=5'", word("frog", 100));
    say!(
        "  curl 'http://{address}/analogy?expression={}+-+{}+%2B+{}'",
        word("king", 100),
        word("man", 101),
        word("woman", 102)
    );
    say!("  curl http://{address}/openapi.yaml");
    say!("Ctrl-C stops it.");
}

fn encoded(word: &str) -> String {
    percent_encoding::utf8_percent_encode(word, percent_encoding::NON_ALPHANUMERIC).to_string()
}
