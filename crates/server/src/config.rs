//! Settings: flags over KINDRED_* environment over file over defaults. Each is described in
//! `config/kindred.toml`, which is compiled in as the defaults.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use config::{Environment, File, FileFormat};
use serde::{Deserialize, Serialize};

use crate::cli::ServeFlags;
use crate::device::Device;

/// The defaults, as a file for people.
pub const DEFAULTS: &str = include_str!("../../../config/kindred.toml");

/// All settings of the service. `config/kindred.toml` says what each means.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Model folder; empty for the built-in model.
    pub model: PathBuf,
    /// The model's name; empty for its folder's.
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
    /// Bound of the queue, in queries.
    pub queue_capacity_queries: u32,
    /// Bound of one pass, in queries.
    pub max_batch_queries: usize,
    /// Bound of a request's time.
    pub request_timeout_ms: u64,
    /// Bound of a readiness check's time.
    pub readiness_timeout_ms: u64,
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
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// Why the settings can't be used. Names the file or variable, the key and what is known.
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
    #[error("{origin}: unknown setting `{key}`; there are {}", known.join(", "))]
    UnknownKey {
        /// The file or the variable.
        origin: String,
        /// The key.
        key: String,
        /// All keys.
        known: Vec<String>,
    },
    /// A value of the wrong kind.
    #[error("settings: {0}")]
    Value(#[from] config::ConfigError),
    /// A value outside its range.
    #[error("setting `{key}`: {reason}")]
    OutOfRange {
        /// The key.
        key: &'static str,
        /// What it must be.
        reason: &'static str,
    },
}

const PREFIX: &str = "KINDRED_";

/// Names the settings file; not itself a setting.
const CONFIG_VARIABLE: &str = "KINDRED_CONFIG";

impl Config {
    /// The settings for these flags and this process's environment.
    ///
    /// # Errors
    /// Names the key and where it stands.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        Self::from_layers(
            flags,
            std::env::vars_os().filter_map(|(key, value)| {
                // What is not UTF-8 is none of our variables, or none of our values.
                Some((key.into_string().ok()?, value.into_string().ok()?))
            }),
        )
    }

    fn from_layers(
        flags: &ServeFlags,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let known: Vec<String> = toml::from_str::<toml::Table>(DEFAULTS)
            .expect("pinned by a test")
            .keys()
            .cloned()
            .collect();
        let ours: HashMap<String, String> = environment
            .filter(|(key, _)| key.starts_with(PREFIX) && !is_service_link(key))
            .collect();
        let file = flags.config.clone().or_else(|| ours.get(CONFIG_VARIABLE).map(PathBuf::from));
        let ours: HashMap<String, String> =
            ours.into_iter().filter(|(key, _)| key != CONFIG_VARIABLE).collect();
        for variable in ours.keys() {
            let key = variable[PREFIX.len()..].to_lowercase();
            check_known(&key, &known, || format!("environment variable {variable}"))?;
        }

        let mut layers =
            config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = file {
            layers =
                layers.add_source(File::from_str(&read_file(&path, &known)?, FileFormat::Toml));
        }
        let config: Self = layers
            .add_source(Environment::with_prefix("KINDRED").try_parsing(true).source(Some(ours)))
            .add_source(config::Config::try_from(flags)?)
            .build()?
            .try_deserialize()?;
        config.check()
    }

    fn check(self) -> Result<Self, ConfigError> {
        for (key, value) in [
            ("queue_capacity_queries", u64::from(self.queue_capacity_queries)),
            ("max_batch_queries", self.max_batch_queries as u64),
            ("request_timeout_ms", self.request_timeout_ms),
            ("readiness_timeout_ms", self.readiness_timeout_ms),
            ("engine_hang_timeout_ms", self.engine_hang_timeout_ms),
        ] {
            if value == 0 {
                return Err(ConfigError::OutOfRange { key, reason: "must be at least 1" });
            }
        }
        Ok(self)
    }
}

/// Kubernetes and Docker links describe a service called `kindred` in variables of this form.
fn is_service_link(variable: &str) -> bool {
    variable.starts_with("KINDRED_PORT") || variable.starts_with("KINDRED_SERVICE_")
}

fn read_file(path: &Path, known: &[String]) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let table: toml::Table = toml::from_str(&text)
        .map_err(|source| ConfigError::NotToml { path: path.to_owned(), source })?;
    for key in table.keys() {
        check_known(key, known, || path.display().to_string())?;
    }
    Ok(text)
}

fn check_known(
    key: &str,
    known: &[String],
    origin: impl FnOnce() -> String,
) -> Result<(), ConfigError> {
    if known.iter().any(|known| known == key) {
        return Ok(());
    }
    Err(ConfigError::UnknownKey { origin: origin(), key: key.to_owned(), known: known.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(flags: &ServeFlags, environment: &[(&str, &str)]) -> Result<Config, String> {
        let environment = environment.iter().map(|&(key, value)| (key.into(), value.into()));
        Config::from_layers(flags, environment).map_err(|e| e.to_string())
    }

    fn file(content: &str) -> (tempfile::NamedTempFile, ServeFlags) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let flags = ServeFlags { config: Some(file.path().into()), ..Default::default() };
        (file, flags)
    }

    #[test]
    fn the_compiled_in_file_gives_the_documented_defaults() {
        let config = load(&ServeFlags::default(), &[]).unwrap();
        assert_eq!(config.listen, "127.0.0.1:8080");
        assert_eq!((config.device, config.log_format), (Device::Auto, LogFormat::Text));
        assert_eq!((config.queue_capacity_queries, config.max_batch_queries), (8192, 1024));
        assert_eq!((config.request_timeout_ms, config.drain_timeout_ms), (30_000, 30_000));
        assert_eq!((config.engine_max_restarts, config.engine_hang_timeout_ms), (5, 120_000));
        assert_eq!((config.model, config.name), (PathBuf::new(), String::new()));
    }

    #[test]
    fn flags_win_over_environment_over_file_over_defaults() {
        let (_file, mut flags) = file("listen = '1.1.1.1:1'\nname = 'file'\nthreads = 1\n");
        let environment = [("KINDRED_NAME", "env"), ("KINDRED_THREADS", "2"), ("PATH", "/bin")];
        flags.threads = Some(3);
        let config = load(&flags, &environment).unwrap();
        assert_eq!((config.listen.as_str(), config.name.as_str()), ("1.1.1.1:1", "env"));
        assert_eq!((config.threads, config.max_batch_queries), (3, 1024));
    }

    #[test]
    fn the_environment_can_name_the_file() {
        let (file, _) = file("name = 'from the file'");
        let path = file.path().to_str().unwrap();
        let config = load(&ServeFlags::default(), &[("KINDRED_CONFIG", path)]).unwrap();
        assert_eq!(config.name, "from the file");
    }

    #[test]
    fn numbers_may_be_names() {
        let config = load(&ServeFlags::default(), &[("KINDRED_NAME", "300")]).unwrap();
        assert_eq!(config.name, "300");
    }

    #[test]
    fn unknown_keys_are_errors_that_name_them() {
        let (file, flags) = file("lisen = '1.1.1.1:1'");
        let said = load(&flags, &[]).unwrap_err();
        let path = file.path().to_str().unwrap();
        assert!(
            said.contains("`lisen`") && said.contains(path) && said.contains("listen"),
            "{said}"
        );
        let said = load(&ServeFlags::default(), &[("KINDRED_LISEN", "x")]).unwrap_err();
        assert!(said.contains("KINDRED_LISEN"), "{said}");
    }

    #[test]
    fn what_an_orchestrator_sets_for_a_service_of_our_name_is_none_of_our_settings() {
        let links = [("KINDRED_SERVICE_HOST", "10.0.0.1"), ("KINDRED_PORT_8080_TCP", "tcp://x")];
        load(&ServeFlags::default(), &links).unwrap();
    }

    #[test]
    fn bad_values_are_errors_that_name_the_key() {
        for (content, key) in [
            ("threads = 'many'", "threads"),
            ("device = 'tpu'", "device"),
            ("queue_capacity_queries = 0", "queue_capacity_queries"),
            ("request_timeout_ms = -5", "request_timeout_ms"),
        ] {
            let (_file, flags) = file(content);
            let said = load(&flags, &[]).unwrap_err();
            assert!(said.contains(key), "{content}: {said}");
        }
        let said = load(&ServeFlags::default(), &[("KINDRED_THREADS", "many")]).unwrap_err();
        assert!(said.contains("threads"), "{said}");
        let (_file, flags) = file("listen 5");
        assert!(load(&flags, &[]).unwrap_err().contains("is not TOML"));
        let flags = ServeFlags { config: Some("/no/such/file".into()), ..Default::default() };
        assert!(load(&flags, &[]).unwrap_err().contains("/no/such/file"));
    }
}
