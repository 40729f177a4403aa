//! The log: to standard error, for people or for machines.

use tracing_subscriber::EnvFilter;

use crate::config::{Config, ConfigError, LogFormat};

/// Starts logging as the settings say. Once a process.
///
/// # Errors
/// If the level is none.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&config.log_level).map_err(|_| ConfigError::OutOfRange {
        key: "log_level",
        reason: "must be error, warn, info, debug, trace, or such per module: info,server::queue=debug",
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            log.with_ansi(colours).with_target(false).init();
        }
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}
