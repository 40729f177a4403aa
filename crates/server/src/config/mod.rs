//! Settings: flags over KINDRED_* environment over file over defaults. Each is described in
//! `config/kindred.toml`, which is compiled in as the defaults.

mod error;
mod flags;
mod layers;
mod source;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

pub use error::ConfigError;
pub use flags::ServeFlags;
pub use source::ModelSource;

pub(crate) use layers::{API_KEY_VARIABLE, URL_VARIABLE, variable};

use kindred::device::Device;

/// The defaults, as a file for people.
pub const DEFAULTS: &str = include_str!("../../../../config/kindred.toml");

/// All settings of the service. `config/kindred.toml` says what each means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the models come from, the default one first; none for the built-in model.
    #[serde(deserialize_with = "sources")]
    pub model: Vec<ModelSource>,
    /// The default model's name; empty for its folder's.
    pub name: String,
    /// Address and port.
    pub listen: String,
    /// What searches.
    pub device: Device,
    /// Threads of the CPU engine; 0 for one a core.
    pub threads: usize,
    /// Whether derived tables are kept beside the model folder.
    pub keep_tables: bool,
    /// Threads that HTTP runs on; 0 for three in four cores.
    pub http_threads: usize,
    /// Memory that loading a model beside others must leave free.
    pub memory_reserve_mb: u64,
    /// Memory that requests may take together.
    pub body_memory_mb: u32,
    /// Memory that answers may take together.
    pub answer_memory_mb: u32,
    /// Bound of the queue, in queries.
    pub queue_capacity_queries: u32,
    /// Bound of one pass, in queries.
    pub max_batch_queries: usize,
    /// Bound of a request's time.
    pub request_timeout_ms: u64,
    /// Bound of a readiness check's time.
    pub readiness_timeout_ms: u64,
    /// Bound of the time for a request's head, and for the first one of a connection with its handshake.
    pub header_read_timeout_ms: u64,
    /// Bound of the time for a request's body.
    pub body_read_timeout_ms: u64,
    /// Bound of the time without a request.
    pub idle_timeout_ms: u64,
    /// Bound of the time that a client reads nothing of what is sent.
    pub write_timeout_ms: u64,
    /// Bound of the number of connections.
    pub max_connections: usize,
    /// Bound of a request's path and query string.
    pub max_uri_bytes: usize,
    /// Bound of a request's header fields.
    pub max_header_bytes: usize,
    /// From which size on answers are compressed; 0 for never.
    pub compress_from_bytes: u64,
    /// Origins whose pages may ask; `*` for all.
    pub cors_origins: Vec<String>,
    /// File of API keys; empty for none needed.
    pub api_keys_file: PathBuf,
    /// Paths that need no API key.
    pub public_routes: Vec<String>,
    /// Certificates in PEM; empty for plain HTTP.
    pub tls_certificate: PathBuf,
    /// Their key in PEM; empty for plain HTTP.
    pub tls_private_key: PathBuf,
    /// Bound of the time between being told to stop and stopping.
    pub drain_timeout_ms: u64,
    /// How often an engine that failed is made again within a minute.
    pub engine_max_restarts: u32,
    /// Bound of a pass's time, and of making the engine again.
    pub engine_hang_timeout_ms: u64,
    /// Where the built-in model is kept; empty for the user's cache folder.
    pub cache_dir: PathBuf,
    /// Filter of the log.
    pub log_level: String,
    /// Form of the log.
    pub log_format: LogFormat,
    /// One request in so many is logged; 0 for none.
    pub access_log_one_in: u64,
    /// Whether the log of requests has their query strings.
    pub access_log_query: bool,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain lines
    Text,
    /// One JSON object per line
    Json,
}

/// More than any machine has use for: a slip of the finger must not ask the system for a hundred thousand.
pub const MAX_THREADS: usize = 1024;

impl Config {
    /// The settings for these flags and this process's environment.
    ///
    /// # Errors
    /// Names the key and where it stands.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        Self::from_layers(flags, std::env::vars_os())
    }

    /// What the settings are if nobody says anything.
    pub fn defaults() -> Self {
        Self::from_layers(&ServeFlags::default(), std::iter::empty()).expect("pinned by a test")
    }

    /// Where the models come from, with their names as far as they are given: the default first, at least one.
    pub fn sources(&self) -> Vec<ModelSource> {
        let mut sources = self.model.clone();
        if sources.is_empty() {
            sources.push(ModelSource::BUILT_IN);
        }
        if !self.name.is_empty() {
            sources[0].name = Some(self.name.clone());
        }
        sources
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        let mut named: HashMap<String, ModelSource> = HashMap::new();
        for source in self.sources() {
            let name = source.expected_name();
            if let Some(first) = named.insert(name.clone(), source.clone()) {
                let (first, second) = (first.to_string(), source.to_string());
                return Err(ConfigError::SameName { name, first, second });
            }
        }
        Ok(())
    }

    fn check(mut self) -> Result<Self, ConfigError> {
        self.check_names()?;
        for list in [&mut self.cors_origins, &mut self.public_routes] {
            // An empty variable or flag is a list of nothing, not of one empty value.
            *list = list
                .iter()
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .collect();
        }
        let head_bytes = 256..=65_534;
        for (key, bytes) in
            [("max_uri_bytes", self.max_uri_bytes), ("max_header_bytes", self.max_header_bytes)]
        {
            if !head_bytes.contains(&bytes) {
                return Err(ConfigError::OutOfRange { key, reason: "must be from 256 to 65534" });
            }
        }
        for (key, threads) in [("threads", self.threads), ("http_threads", self.http_threads)] {
            if threads > MAX_THREADS {
                return Err(ConfigError::OutOfRange { key, reason: "must be from 0 to 1024" });
            }
        }
        for (key, value) in [
            ("queue_capacity_queries", u64::from(self.queue_capacity_queries)),
            ("max_batch_queries", self.max_batch_queries as u64),
            ("request_timeout_ms", self.request_timeout_ms),
            ("readiness_timeout_ms", self.readiness_timeout_ms),
            ("header_read_timeout_ms", self.header_read_timeout_ms),
            ("body_read_timeout_ms", self.body_read_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
            ("write_timeout_ms", self.write_timeout_ms),
            ("max_connections", self.max_connections as u64),
            ("body_memory_mb", u64::from(self.body_memory_mb)),
            ("answer_memory_mb", u64::from(self.answer_memory_mb)),
            ("engine_hang_timeout_ms", self.engine_hang_timeout_ms),
        ] {
            if value == 0 {
                return Err(ConfigError::OutOfRange { key, reason: "must be at least 1" });
            }
        }
        Ok(self)
    }
}

/// One source, a list of them, or several with commas between them, as an environment variable has them.
fn sources<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ModelSource>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let texts = match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) if text.is_empty() => Vec::new(),
        OneOrMany::One(text) => text.split(',').map(|one| one.trim().to_owned()).collect(),
        OneOrMany::Many(texts) => texts,
    };
    texts.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(D::Error::custom)
}
