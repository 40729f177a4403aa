//! `kindred serve`: starts the service, lets connections in, hears signals, and stops in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contract::{Engine, Row};
use model_store::ModelStore;
use tokio::runtime;
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::CommandError;
use crate::assembly::Assembly;
use crate::config::{Config, ConfigError, ServeFlags};
use crate::http::transport::{self, HttpThreads};
use crate::logging;
use crate::models::{ModelSet, Reloader};
use kindred::device::Device;
use kindred::engines;
use kindred::engines::EngineStartError;
use kindred::warm_up::WarmUp;

/// How long the process goes on without an engine, for answers to go out.
const ANSWERS_GO_OUT: Duration = Duration::from_secs(1);

/// Serves models until it is told to stop, then answers what is in flight and returns.
///
/// # Errors
/// If the settings, the model, the engine or the address can't be used; later, if the engine is lost.
pub fn serve(flags: &ServeFlags) -> Result<(), CommandError> {
    let config = Config::load(flags)?;
    let wanted = engines::Wanted {
        device: config.device,
        threads: config.threads,
        keep_tables: config.keep_tables,
    };
    let flags = flags.clone();
    let read_again = move || Config::load(&flags);
    let had_gpu = AtomicBool::new(false);
    serve_with(&config, read_again, move |model, warm| {
        // A service that started on a GPU must not continue on the CPU unnoticed. Without the GPU it has no engine, and
        // the next start says why.
        let insist = wanted.device == Device::Auto && had_gpu.load(Ordering::Relaxed);
        let device = if insist { Device::Cuda(None) } else { wanted.device };
        let engine = engines::make_checked(&model, engines::Wanted { device, ..wanted }, warm)?;
        had_gpu.fetch_or(engine.description().name == "cuda", Ordering::Relaxed);
        Ok(engine)
    })
}

/// As [`serve`], with these settings and any engine. `read_again` gives the settings when the models are loaded
/// again. `make_engine` runs on the engine's thread, and again whenever the engine failed. What it makes is used as it
/// is: it should have had its [`engines::self_check`].
///
/// # Errors
/// As [`serve`].
pub fn serve_with<R, F>(config: &Config, read_again: R, make_engine: F) -> Result<(), CommandError>
where
    R: Fn() -> Result<Config, ConfigError> + Send + Sync + 'static,
    F: Fn(Arc<ModelStore>, WarmUp) -> Result<Box<dyn Engine>, EngineStartError>
        + Send
        + Sync
        + 'static,
{
    logging::start(config)?;
    logging::say_settings(config);
    transport::make_room(config.max_connections);
    let no_threads =
        |source| CommandError::System { doing: "can't start the HTTP threads", source };
    let threads = HttpThreads::start(config.http_threads).map_err(no_threads)?;
    // Lets connections in and hears signals; requests are the HTTP threads' affair.
    let runtime =
        runtime::Builder::new_current_thread().enable_all().build().map_err(no_threads)?;
    // From here on the signal does not end the process, as it otherwise would while models are loaded.
    let hangup = Hangup::new(&runtime);
    let timer = runtime.handle().clone();
    let assembly = Assembly::build(config, Box::new(read_again), Arc::new(make_engine), timer)?;
    let result = runtime.block_on(listen_and_drain(config, &assembly, &threads, hangup));
    // What is left are connections past their time: they end with their threads.
    drop(threads);
    runtime.shutdown_background();
    result?;
    // No request is left, but an engine may hang.
    if !assembly.join(Duration::from_millis(config.drain_timeout_ms)) {
        return Err(CommandError::DrainTimeout(config.drain_timeout_ms));
    }
    info!("stopped");
    Ok(())
}

async fn listen_and_drain(
    config: &Config,
    assembly: &Assembly,
    threads: &HttpThreads,
    hangup: Hangup,
) -> Result<(), CommandError> {
    let Assembly { front, edge, reloader } = assembly;
    let can_not_listen = |source| CommandError::Listen { address: config.listen.clone(), source };
    let listener = transport::bind(&config.listen).await.map_err(can_not_listen)?;
    let address = listener.local_addr().map_err(can_not_listen)?;
    // The service goes on even if its welcome can't be written; the log has the address, too.
    let _ = print_welcome(&reloader.models().current(), edge.transport().scheme(), address);
    info!(%address, "listening");

    let (stop, mut stopped) = watch::channel(false);
    let service = reloader.models().service().clone();
    let told = async move {
        told_to_stop().await;
        info!("stop signal received: draining requests in flight");
        service.start_draining();
        let _ = stop.send(true);
    };
    let listener = transport::without_delay(listener);
    let server =
        transport::serve(listener, threads, edge.transport(), |client| front.service(client), told);
    let drain_timeout = Duration::from_millis(config.drain_timeout_ms);
    let too_long = async {
        // An error means that the sender is gone: then the server is about to end by itself.
        if stopped.wait_for(|&stopped| stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::select! {
            () = tokio::time::sleep(drain_timeout) => {}
            () = told_to_stop() => warn!("second stop signal received: stopping without draining"),
        }
    };
    let lost = async {
        let lost = reloader.lost().await;
        error!("{lost}");
        // Those who waited have just been told so: their answers are on their way.
        tokio::time::sleep(ANSWERS_GO_OUT).await;
        lost
    };
    tokio::select! {
        () = server => Ok(()),
        never = reload_when_told(reloader, hangup) => match never {},
        lost = lost => Err(CommandError::EngineLost(lost)),
        () = too_long => Err(CommandError::DrainTimeout(config.drain_timeout_ms)),
    }
}

/// Hears SIGHUP, where there is such a signal.
struct Hangup(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

impl Hangup {
    fn new(runtime: &runtime::Runtime) -> Self {
        let _within = runtime.enter();
        Self(
            #[cfg(unix)]
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
                .inspect_err(|e| warn!("can't handle SIGHUP: {e}"))
                .ok(),
        )
    }

    /// Returns at the next one.
    async fn heard(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.0
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Loads the models again at each SIGHUP. What became of it is in the log.
async fn reload_when_told(reloader: &Arc<Reloader>, mut hangup: Hangup) -> Infallible {
    loop {
        hangup.heard().await;
        info!("SIGHUP received: reloading the models");
        // The log says what became of it.
        let _ = reloader.reload_next().await;
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
fn print_welcome(models: &ModelSet, scheme: &str, address: SocketAddr) -> Result<(), CommandError> {
    let [served, others @ ..] = models.models() else { return Ok(()) };
    let (model, engine) = (served.model(), served.engine());
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
        engine.name,
        engine.detail,
    )?;
    for other in others {
        let model = other.model();
        say!(
            "It also serves {} ({} rows × {} dimensions).",
            model.name(),
            model.rows(),
            model.dim()
        )?;
    }
    say!("Listening on {scheme}://{address}\n\nOpen this address in a browser, or try:")?;
    say!("  curl '{scheme}://{address}/nearest?word={}&k=5'", word("frog", 100))?;
    say!(
        "  curl '{scheme}://{address}/analogy?expression={}+-+{}+%2B+{}'",
        word("king", 100),
        word("man", 101),
        word("woman", 102)
    )?;
    say!("  curl {scheme}://{address}/openapi.yaml")?;
    say!("Press Ctrl-C to stop.")
}

fn encoded(word: &str) -> String {
    percent_encoding::utf8_percent_encode(word, percent_encoding::NON_ALPHANUMERIC).to_string()
}
