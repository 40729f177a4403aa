//! `kindred serve`: starts the service, accepts connections, handles signals, and stops in order.

use std::cell::Cell;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kindred::rows::Rows;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::net::TcpSocket;
use tokio::runtime::{self, Runtime};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use super::CommandError;
use super::service_manager::ServiceManager;
use super::system_signals::{Hangup, StopSignals};
use super::watch::watch_files;
use crate::version;
use server::assembly::{self, Assembly, engines_of, wanted_engine};
use server::config::{Config, ConfigError, LogFormat, ServeFlags};
use server::http::transport::{self, HttpThreads};
use server::logging;
use server::models::{MakeEngines, ModelSet, Reloader};

/// How long the process continues without an engine, so that answers can be sent.
const SEND_GRACE: Duration = Duration::from_secs(1);

/// How long sending the last traces may delay the end of the process.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves models until a stop signal, then answers the requests in flight and returns. With
/// `--check`, only checks the settings.
pub(super) fn serve(flags: &ServeFlags) -> Result<(), CommandError> {
    let (config, flags) = (Config::load(flags)?, flags.clone());
    if flags.check {
        return check(&config);
    }
    serve_with(&config, move || Config::load(&flags), engines_of(wanted_engine(&config)))
}

/// Checks all settings, and the files that they name, without serving.
fn check(config: &Config) -> Result<(), CommandError> {
    logging::start(config)?;
    let runtime = connection_runtime()?;
    match runtime.block_on(take_address(config)) {
        // The service that has these settings may be running.
        Err(CommandError::Listen { source, .. }) if source.kind() == ErrorKind::AddrInUse => {}
        taken => drop(taken?),
    }
    assembly::check(config)?;
    match config.log_format {
        LogFormat::Text => say!("The settings are valid."),
        LogFormat::Json => {
            info!("the settings are valid");
            Ok(())
        }
    }
}

/// The runtime that accepts connections and handles signals. The HTTP threads handle the requests.
fn connection_runtime() -> Result<Runtime, CommandError> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(no_threads)
}

fn no_threads(source: io::Error) -> CommandError {
    CommandError::System { doing: "can't start the HTTP threads", source }
}

/// The address of the settings, at which nobody is answered yet.
async fn take_address(config: &Config) -> Result<TcpSocket, CommandError> {
    transport::bind(&config.listen).await.map_err(|source| can_not_listen(config, source))
}

fn can_not_listen(config: &Config, source: io::Error) -> CommandError {
    CommandError::Listen { address: config.listen.clone(), source }
}

/// As `kindred serve`, with these settings and any engines. `read_settings` returns the settings for
/// a reload. The makers of `make_engines` run on the engines' threads, and again each time an engine
/// has failed. Engines are not checked here, so the makers should call
/// [`kindred::engines::self_check`].
///
/// # Errors
/// If the settings, the model, the engine or the address can't be used; later, if the engine is
/// lost.
pub fn serve_with(
    config: &Config,
    read_settings: impl Fn() -> Result<Config, ConfigError> + Send + Sync + 'static,
    make_engines: MakeEngines,
) -> Result<(), CommandError> {
    logging::start(config)?;
    logging::log_settings(config);
    transport::raise_file_limit(config.max_connections);
    let threads = HttpThreads::start(config.http_threads).map_err(no_threads)?;
    let runtime = connection_runtime()?;
    // Before the models are loaded, because that may take long.
    let socket = runtime.block_on(take_address(config))?;
    // Before the models are loaded, because a SIGHUP during loading must not end the process.
    let hangup = {
        let _within = runtime.enter();
        Hangup::handle()?
    };
    let timer = runtime.handle().clone();
    let assembly =
        Assembly::build(config, Box::new(read_settings), make_engines, timer, version::BUILD)?;
    let stopping = Cell::new(None);
    assembly.reloader.verify_in_background();
    let result =
        runtime.block_on(listen_and_drain(config, socket, &assembly, &threads, hangup, &stopping));
    // The connections that are left have exceeded the drain timeout. They end with their threads.
    drop(threads);
    runtime.shutdown_background();
    // In what is left of the time for draining.
    let drained = stopping.get().map_or(Duration::ZERO, |since: Instant| since.elapsed());
    let left = Duration::from_millis(config.drain_timeout_ms).saturating_sub(drained);
    assembly.reloader.models().service().flush_traces(left.min(FLUSH));
    result?;
    // No request is left, but an engine may hang.
    if !assembly.join(Duration::from_millis(config.drain_timeout_ms)) {
        return Err(CommandError::DrainTimeout(config.drain_timeout_ms));
    }
    info!("stopped");
    Ok(())
}

/// Serves until a stop signal, and drains; notes in `stopping` when the drain began.
async fn listen_and_drain(
    config: &Config,
    socket: TcpSocket,
    assembly: &Assembly,
    threads: &HttpThreads,
    hangup: Hangup,
    stopping: &Cell<Option<Instant>>,
) -> Result<(), CommandError> {
    let Assembly { edge, reloader, .. } = assembly;
    // Before the welcome, because a reader of the welcome may stop the service immediately.
    let mut stop_signals = StopSignals::handle()?;
    let listener = transport::start_listening(socket);
    let listener = listener.map_err(|source| can_not_listen(config, source))?;
    let address = listener.local_addr().map_err(|source| can_not_listen(config, source))?;
    // Where the log is in JSON, nothing else is written.
    if config.log_format == LogFormat::Text {
        // The service continues even if its welcome can't be written: the log has the address, too.
        let has_keys = !config.api_keys_file.as_os_str().is_empty();
        let models = reloader.models().current();
        let _ = print_welcome(&models, edge.transport().scheme(), address, has_keys);
    }
    info!(%address, scheme = edge.transport().scheme(), "listening");
    let manager = ServiceManager::of_environment();
    manager.ready();

    let (stop, told_to_stop) = oneshot::channel();
    let service = reloader.models().service().clone();
    let server = assembly.serve(listener, threads, told_to_stop);
    let not_drained = async {
        stop_signals.next().await;
        manager.stopping();
        service.start_draining();
        let drain = async {
            if config.drain_delay_ms > 0 {
                info!("stop signal received: not ready, and accepting requests for drain_delay_ms");
                tokio::time::sleep(Duration::from_millis(config.drain_delay_ms)).await;
            }
            info!("stop signal received: draining requests in flight");
            stopping.set(Some(Instant::now()));
            let _ = stop.send(());
            tokio::time::sleep(Duration::from_millis(config.drain_timeout_ms)).await;
        };
        tokio::select! {
            () = drain => CommandError::DrainTimeout(config.drain_timeout_ms),
            () = stop_signals.next() => {
                warn!("second stop signal received: stopping without draining");
                CommandError::NotDrained
            }
        }
    };
    let lost = async {
        let lost = reloader.lost().await;
        error!("{lost}");
        manager.stopping();
        // The waiting requests have just failed with this error. Their answers still have to be
        // sent.
        tokio::time::sleep(SEND_GRACE).await;
        lost
    };
    tokio::select! {
        () = server => Ok(()),
        never = reload_when_told(reloader, hangup, &manager) => match never {},
        never = watch_files(config, edge) => match never {},
        never = reloader.fold_when_due() => match never {},
        lost = lost => Err(CommandError::EngineLost(lost)),
        why = not_drained => Err(why),
    }
}

/// Reloads the models at each SIGHUP.
async fn reload_when_told(
    reloader: &Arc<Reloader>,
    mut hangup: Hangup,
    manager: &ServiceManager,
) -> Infallible {
    loop {
        hangup.next().await;
        info!("SIGHUP received: reloading the models");
        manager.reloading();
        // The outcome is in the log.
        let _ = reloader.reload_next().await;
        manager.ready();
    }
}

/// Prints what is served, at which address, and which commands to try.
fn print_welcome(
    models: &ModelSet,
    scheme: &str,
    address: SocketAddr,
    has_keys: bool,
) -> Result<(), CommandError> {
    let key = if has_keys { " -H \"Authorization: Bearer $KEY\"" } else { "" };
    let [served, others @ ..] = models.models() else {
        say!(
            "Kindred {} serves no table yet.\nListening on {scheme}://{address}\n\nMake one:",
            env!("CARGO_PKG_VERSION")
        )?;
        let json = "-H 'Content-Type: application/json' -d '{\"name\": \"products\", \"dim\": 3}'";
        say!("  curl{key} {scheme}://{address}/models {json}")?;
        return say!("Press Ctrl-C to stop.");
    };
    let (model, engine) = (&served.model, &served.engine);
    let now = served.live.as_ref().map(|live| live.now());
    let rows: &dyn Rows = now.as_deref().map_or(&**model as &dyn Rows, |now| now);
    let word = |preferred: &'static str, row: u32| {
        if rows.row_of(preferred).is_some() {
            preferred.to_owned()
        } else {
            // So that even a few rows give different words.
            let (count, live) = (rows.count() as u32, rows.live());
            let row = live.members(count as usize).nth((row % count.max(1)) as usize);
            let row = row.or_else(|| live.members(count as usize).next());
            let word = row.map_or("WORD", |row| rows.word(row));
            utf8_percent_encode(word, NON_ALPHANUMERIC).to_string()
        }
    };
    say!(
        "Kindred {} serves {} ({} rows × {} dimensions) on the {} engine ({}).",
        env!("CARGO_PKG_VERSION"),
        model.name(),
        served.rows(),
        model.dim(),
        engine.name,
        engine.detail,
    )?;
    for other in others {
        let model = &other.model;
        say!(
            "It also serves {} ({} rows × {} dimensions).",
            model.name(),
            other.rows(),
            model.dim()
        )?;
    }
    say!("Listening on {scheme}://{address}\n\nOpen this address in a browser, or try:")?;
    say!("  curl{key} '{scheme}://{address}/nearest?word={}&k=5'", word("frog", 100))?;
    say!(
        "  curl{key} '{scheme}://{address}/analogy?expression={}+-+{}+%2B+{}'",
        word("king", 100),
        word("man", 101),
        word("woman", 102)
    )?;
    say!("  curl {scheme}://{address}/openapi.yaml")?;
    say!("Press Ctrl-C to stop.")
}
