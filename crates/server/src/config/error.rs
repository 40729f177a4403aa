//! Errors of settings.

use std::error::Error;
use std::path::PathBuf;

/// Why the settings, or the files that they name, are invalid. Names the file or variable, the key
/// and the known keys.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file can't be read.
    #[error("can't read the settings file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The settings file is not TOML.
    #[error("the settings file {} is not TOML: {}", path.display(), source.to_string().trim_end())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where the error is, and why.
        source: toml::de::Error,
    },
    /// A file that a setting names can't be read.
    #[error("can't read {}, which the setting `{setting}` names: {source}", path.display())]
    UnreadableFile {
        /// The key.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that a setting names can't be used.
    #[error("{file}: {reason}")]
    BadFile {
        /// The file, and the line, or the setting that names it.
        file: String,
        /// The fault, and the cure.
        reason: String,
        /// The error that says so, if there is one.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// A certificate without its key, or the other way round.
    #[error("setting `{has}` is given without `{lacks}`: TLS takes both, plain HTTP neither")]
    Half {
        /// The setting that is given.
        has: &'static str,
        /// The setting that is missing.
        lacks: &'static str,
    },
    /// The exporter of traces refuses its environment.
    #[error("can't export traces: {0}; correct or unset the OTEL_EXPORTER_OTLP_ variable")]
    Exporter(#[source] Box<dyn Error + Send + Sync>),
    /// A key that does not exist.
    #[error("{origin}: unknown setting {key}; known settings: {}", known.join(", "))]
    UnknownKey {
        /// The file or the variable.
        origin: String,
        /// The key, and which one may be meant.
        key: String,
        /// All keys.
        known: Vec<String>,
    },
    /// A `KINDRED_*` environment variable that is not UTF-8. Never ignored, because it may name the
    /// keys file.
    #[error("environment variable {variable}: its {part} is not UTF-8; correct it, or unset it")]
    NotUtf8 {
        /// Its name, with invalid bytes replaced.
        variable: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// A value of another kind, such as a fraction for a number of threads.
    #[error("{setting} is {found}; it must be {expected}")]
    Kind {
        /// The file or the variable, and the key.
        setting: String,
        /// The value, as it is written.
        found: String,
        /// The kind that it must be.
        expected: &'static str,
    },
    /// A value that can't be read.
    #[error("settings: {0}")]
    Value(#[from] config::ConfigError),
    /// A value outside its range, a misspelt name, or the same name twice.
    #[error("setting `{key}`: {reason}")]
    Invalid {
        /// The key.
        key: &'static str,
        /// The valid values.
        reason: String,
    },
}
