//! Settings. Flags override the `KINDRED_*` environment, which overrides the file, which overrides
//! the defaults. `config/kindred.toml` describes each setting and is compiled in as the defaults.

mod error;
mod flags;
mod known;
mod layers;
mod levels;
mod source;
mod spelling;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

pub use error::ConfigError;
pub use flags::ServeFlags;
pub use source::{ModelPlacement, ModelSource};

pub use layers::{API_KEY_VARIABLE, URL_VARIABLE, check_variables, variable};
pub(crate) use levels::levels;

use kindred::device::{Device, Placement};

/// The defaults, with descriptions.
pub const DEFAULTS: &str = include_str!("../../../../config/kindred.toml");

/// All settings of the service. `config/kindred.toml` describes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Model sources, the default model first; empty for the built-in model.
    #[serde(deserialize_with = "listed")]
    pub model: Vec<ModelSource>,
    /// Folders of heads, each with its name if one is given.
    #[serde(deserialize_with = "listed")]
    pub head: Vec<ModelSource>,
    /// Name of the default model; empty for its folder's name.
    pub name: String,
    /// Address and port.
    pub listen: String,
    /// Devices that search.
    pub device: Device,
    /// How models are placed on several GPUs: the first entry for a model's name, or else without a
    /// name, holds.
    #[serde(deserialize_with = "listed")]
    pub placement: Vec<ModelPlacement>,
    /// Number of CPU engine threads; 0 for one per core.
    pub threads: usize,
    /// Whether derived tables are saved beside the model folder.
    pub keep_tables: bool,
    /// Memory limit of what is computed from a head; 0 for the default.
    pub head_memory_mb: u64,
    /// How what is computed from heads is kept.
    pub head_precision: HeadPrecision,
    /// Number of HTTP threads; 0 for three per four cores.
    pub http_threads: usize,
    /// Free memory that must remain after loading a model beside others.
    pub memory_reserve_mb: u64,
    /// Memory limit of all requests together.
    pub body_memory_mb: u32,
    /// Memory limit of all answers together.
    pub answer_memory_mb: u32,
    /// Queue capacity, in queries.
    pub queue_capacity_queries: u32,
    /// Maximum batch size, in queries.
    pub max_batch_queries: usize,
    /// Request timeout.
    pub request_timeout_ms: u64,
    /// Timeout of a readiness check.
    pub readiness_timeout_ms: u64,
    /// Timeout for reading a request's head; for the first of a connection, including the
    /// handshake.
    pub header_read_timeout_ms: u64,
    /// Timeout for reading a request's body.
    pub body_read_timeout_ms: u64,
    /// Timeout of idle connections.
    pub idle_timeout_ms: u64,
    /// Timeout for clients that do not read their answers.
    pub write_timeout_ms: u64,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Size limit of a request's path and query string.
    pub max_uri_bytes: usize,
    /// Size limit of a request's header fields.
    pub max_header_bytes: usize,
    /// Minimum size of answers to compress; 0 disables compression.
    pub compress_from_bytes: u64,
    /// Origins whose pages may call the API; `*` for all.
    pub cors_origins: Vec<String>,
    /// File of API keys; empty if none is needed.
    pub api_keys_file: PathBuf,
    /// Paths that need no API key.
    pub public_routes: Vec<String>,
    /// Certificate chain in PEM; empty for plain HTTP.
    pub tls_certificate: PathBuf,
    /// Private key in PEM; empty for plain HTTP.
    pub tls_private_key: PathBuf,
    /// How often files of keys and certificates are checked for changes; 0 for never.
    pub watch_files_ms: u64,
    /// How long requests are accepted after a stop signal.
    pub drain_delay_ms: u64,
    /// Drain timeout.
    pub drain_timeout_ms: u64,
    /// Maximum number of engine restarts within a minute.
    pub engine_max_restarts: u32,
    /// Time limit of a pass and of an engine restart.
    pub engine_hang_timeout_ms: u64,
    /// Folder of the prepared built-in model; empty for the user's cache folder.
    pub cache_dir: PathBuf,
    /// Log level or filter.
    pub log_level: String,
    /// Format of the log.
    pub log_format: LogFormat,
    /// The access log has one request in N; 0 disables it.
    pub access_log_one_in: u64,
    /// Whether the access log includes query strings.
    pub access_log_query: bool,
    /// Where traces are sent; empty for none.
    pub traces_endpoint: String,
    /// The part of requests that is traced at random.
    pub traces_sample_ratio: f64,
    /// Maximum number of traces per second that callers may ask for; 0 ignores their headers.
    pub traces_asked_per_second: u32,
}

/// How what is computed from heads is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum HeadPrecision {
    /// float16 on a GPU, float32 for the CPU engine
    Auto,
    /// Fast: class scores within 0.001 of the formula
    Float16,
    /// Twice the memory: class scores within 0.00001
    Float32,
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain lines
    Text,
    /// One JSON object per line
    Json,
}

/// Maximum number of threads that a setting may ask for: more than any machine can use. A typing
/// mistake must not start a hundred thousand threads.
pub const MAX_THREADS: usize = 1024;

/// Maximum of `traces_asked_per_second`: more than any service answers.
const MAX_TRACES_ASKED: u32 = 1_000_000;

impl Config {
    /// Loads the settings from these flags and this process's environment.
    ///
    /// # Errors
    /// If a setting is invalid. The error names its key and its source.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        Self::from_layers(flags, std::env::vars_os())
    }

    /// The default settings.
    pub fn defaults() -> Self {
        Self::from_layers(&ServeFlags::default(), std::iter::empty()).expect("pinned by a test")
    }

    /// The model sources, each with its name if one is set, the default model first. Never empty.
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

    /// How the model of this name is placed on several GPUs.
    pub fn placement_of(&self, name: &str) -> Placement {
        let find = |model: Option<&str>| {
            let found = self.placement.iter().find(|one| one.model.as_deref() == model);
            found.map(|one| one.placement)
        };
        find(Some(name)).or_else(|| find(None)).unwrap_or_default()
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        let own_name = self.model.first().and_then(|first| first.name.as_ref());
        if !self.name.is_empty() && own_name.is_some_and(|own| *own != self.name) {
            let reason = "names the first model, which `model` gives another name; leave out one";
            return Err(ConfigError::OutOfRange { key: "name", reason });
        }
        let names: Vec<String> = self.sources().iter().map(ModelSource::expected_name).collect();
        let is_served = |one: &ModelPlacement| one.model.iter().all(|name| names.contains(name));
        if !self.placement.iter().all(is_served) {
            let reason = "must name served models, as in glove=shard";
            return Err(ConfigError::OutOfRange { key: "placement", reason });
        }
        let mut named: HashMap<String, ModelSource> = HashMap::new();
        for source in self.sources() {
            let name = source.expected_name();
            if let Some(first) = named.insert(name.clone(), source.clone()) {
                let (first, second) = (first.to_string(), source.to_string());
                return Err(ConfigError::SameName { name, first, second });
            }
        }
        let mut named: HashMap<String, ModelSource> = HashMap::new();
        for source in &self.head {
            if source.folder.is_none() {
                let reason = "must be folders of heads, DIR or NAME=DIR";
                return Err(ConfigError::OutOfRange { key: "head", reason });
            }
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
        levels(&self.log_level)
            .map_err(|reason| ConfigError::Misspelt { key: "log_level", reason })?;
        for list in [&mut self.cors_origins, &mut self.public_routes] {
            // An empty variable or flag is an empty list, not a list of one empty value.
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
        if !(0.0..=1.0).contains(&self.traces_sample_ratio) {
            let reason = "must be from 0 to 1, such as 0.01 for one request in 100";
            return Err(ConfigError::OutOfRange { key: "traces_sample_ratio", reason });
        }
        if self.traces_asked_per_second > MAX_TRACES_ASKED {
            let reason = "must be from 0 to 1000000";
            return Err(ConfigError::OutOfRange { key: "traces_asked_per_second", reason });
        }
        if cfg!(not(feature = "traces")) && !self.traces_endpoint.is_empty() {
            let reason = "this program can't send traces; build one that can: \
                          cargo build --release --features traces";
            return Err(ConfigError::OutOfRange { key: "traces_endpoint", reason });
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

/// Reads one value, a list of values, or several separated by commas, as in an environment
/// variable.
fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String>,
{
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
