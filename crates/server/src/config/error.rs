//! What can be wrong with settings.

use std::path::PathBuf;

/// Why the settings are invalid. Names the file or variable, the key and the known keys.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The settings file can't be read.
    #[error("can't read the settings file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The settings file is not TOML.
    #[error("the settings file {} is not TOML: {source}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: toml::de::Error,
    },
    /// A key that does not exist.
    #[error("{origin}: unknown setting `{key}`; known settings: {}", known.join(", "))]
    UnknownKey {
        /// The file or the variable.
        origin: String,
        /// The key.
        key: String,
        /// All keys.
        known: Vec<String>,
    },
    /// An environment variable of ours that is not UTF-8. Never ignored: it may name the file of keys.
    #[error("environment variable {variable}: its {part} is not UTF-8; correct it, or unset it")]
    NotUtf8 {
        /// Its name, with what can't be read replaced.
        variable: String,
        /// `name` or `value`.
        part: &'static str,
    },
    /// A value of the wrong kind.
    #[error("settings: {0}")]
    Value(#[from] config::ConfigError),
    /// Two models of one name.
    #[error(
        "setting `model`: `{first}` and `{second}` would both have the name `{name}`; give one of them \
         another name: NAME=DIR"
    )]
    SameName {
        /// The name.
        name: String,
        /// One of them, as it is written.
        first: String,
        /// The other one.
        second: String,
    },
    /// A value outside its range.
    #[error("setting `{key}`: {reason}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What it must be.
        reason: &'static str,
    },
}
