//! Settings. Flags override the `KINDRED_*` environment, which overrides the file, which overrides the defaults.
//! `config/kindred.toml` describes each setting and is compiled in as the defaults.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use config::{Environment, File, FileFormat};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::cli::ServeFlags;
use crate::device::Device;
use crate::models::ModelSource;

/// The defaults, with descriptions.
pub const DEFAULTS: &str = include_str!("../../../config/kindred.toml");

/// All settings of the service. `config/kindred.toml` describes each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Model sources, the default model first; empty for the built-in model.
    #[serde(deserialize_with = "sources")]
    pub model: Vec<ModelSource>,
    /// Name of the default model; empty for its folder's name.
    pub name: String,
    /// Address and port.
    pub listen: String,
    /// Device that searches.
    pub device: Device,
    /// Number of CPU engine threads; 0 for one per core.
    pub threads: usize,
    /// Whether derived tables are saved beside the model folder.
    pub keep_tables: bool,
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
    /// Timeout for reading a request's head; for the first of a connection, including the handshake.
    pub header_read_timeout_ms: u64,
    /// Timeout for reading a request's body.
    pub body_read_timeout_ms: u64,
    /// Timeout of idle connections.
    pub idle_timeout_ms: u64,
    /// Timeout of clients that do not read.
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
    /// Form of the log.
    pub log_format: LogFormat,
    /// One request in N is logged; 0 for none.
    pub access_log_one_in: u64,
    /// Whether the access log includes query strings.
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

const PREFIX: &str = "KINDRED_";

/// More than any machine can use. A typing mistake must not start a hundred thousand threads.
pub const MAX_THREADS: usize = 1024;

/// Settings with several values, comma-separated in the environment.
const LISTS: [&str; 2] = ["cors_origins", "public_routes"];

/// Names the settings file; not itself a setting.
const CONFIG_VARIABLE: &str = "KINDRED_CONFIG";

/// API key with which commands query a service; not a setting of the service.
pub(crate) const API_KEY_VARIABLE: &str = "KINDRED_API_KEY";
/// Address of the service for `kindred health`; not a setting of the service.
pub(crate) const URL_VARIABLE: &str = "KINDRED_URL";
/// Variables that are not settings.
const NO_SETTINGS: [&str; 3] = [CONFIG_VARIABLE, API_KEY_VARIABLE, URL_VARIABLE];

impl Config {
    /// Loads the settings from these flags and this process's environment.
    ///
    /// # Errors
    /// Names the key and its source.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        Self::from_layers(flags, std::env::vars_os())
    }

    /// The default settings.
    pub fn defaults() -> Self {
        Self::from_layers(&ServeFlags::default(), std::iter::empty()).expect("pinned by a test")
    }

    fn from_layers(
        flags: &ServeFlags,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let known: Vec<String> = toml::from_str::<toml::Table>(DEFAULTS)
            .expect("pinned by a test")
            .keys()
            .cloned()
            .collect();
        let ours = ours(environment)?;
        let file = flags.config.clone().or_else(|| ours.get(CONFIG_VARIABLE).map(PathBuf::from));
        let ours: HashMap<String, String> =
            ours.into_iter().filter(|(key, _)| !NO_SETTINGS.contains(&key.as_str())).collect();
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
        let mut environment =
            Environment::with_prefix("KINDRED").try_parsing(true).list_separator(",");
        for key in LISTS {
            environment = environment.with_list_parse_key(key);
        }
        let config: Self = layers
            .add_source(environment.source(Some(ours)))
            .add_source(config::Config::try_from(flags)?)
            .build()?
            .try_deserialize()?;
        config.check()
    }

    /// The model sources, with any given names, the default model first; at least one.
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

/// One source, a list of them, or several separated by commas, as in an environment variable.
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

/// The variables that begin with our prefix, without service links.
fn ours(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<HashMap<String, String>, ConfigError> {
    let mut ours = HashMap::new();
    for (name, value) in environment {
        let shown = name.to_string_lossy().into_owned();
        if !shown.starts_with(PREFIX) || is_service_link(&shown) {
            continue;
        }
        let not_utf8 = |part| ConfigError::NotUtf8 { variable: shown.clone(), part };
        let name = name.into_string().map_err(|_| not_utf8("name"))?;
        ours.insert(name, value.into_string().map_err(|_| not_utf8("value"))?);
    }
    Ok(ours)
}

/// The value of one of our variables that is not a setting; `None` if it is empty.
pub(crate) fn variable(name: &str) -> Result<Option<String>, ConfigError> {
    match std::env::var_os(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
        Some(Err(_)) => Err(ConfigError::NotUtf8 { variable: name.to_owned(), part: "value" }),
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
        assert_eq!((config.sources(), config.name), (vec![ModelSource::BUILT_IN], String::new()));
        assert_eq!((config.engine_max_restarts, config.engine_hang_timeout_ms), (5, 120_000));
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
    fn lists_are_arrays_in_the_file_and_have_commas_elsewhere() {
        let lists = |config: Config| (config.cors_origins, config.public_routes);
        let of = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let public = [
            "/",
            "/explorer/*",
            "/docs",
            "/docs/*",
            "/openapi.yaml",
            "/health/live",
            "/health/ready",
            "/metrics",
        ];
        let defaults = load(&ServeFlags::default(), &[]).unwrap();
        assert_eq!(lists(defaults), (vec![], of(&public)));
        let (_file, mut flags) =
            file("cors_origins = ['https://a', 'https://b']\npublic_routes = []");
        assert_eq!(lists(load(&flags, &[]).unwrap()), (of(&["https://a", "https://b"]), vec![]));
        let environment =
            [("KINDRED_CORS_ORIGINS", "https://c, https://d"), ("KINDRED_PUBLIC_ROUTES", "/1")];
        let found = lists(load(&flags, &environment).unwrap());
        assert_eq!(found, (of(&["https://c", "https://d"]), of(&["/1"])));
        let found = lists(load(&flags, &[("KINDRED_CORS_ORIGINS", "")]).unwrap());
        assert_eq!(found, (vec![], vec![]));
        flags.cors_origins = of(&["https://e"]);
        let config = load(&flags, &environment).unwrap();
        assert_eq!((config.cors_origins, config.name), (of(&["https://e"]), String::new()));
    }

    #[test]
    fn models_are_one_or_several_of_different_names() {
        let models = |flags: &ServeFlags, environment: &[(&str, &str)]| {
            let config = load(flags, environment)?;
            Ok::<_, String>(config.sources().iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let (_file, flags) = file("model = ['/m/a', 'b=/m/x']\nname = 'first'");
        assert_eq!(models(&flags, &[]).unwrap(), ["first=/m/a", "b=/m/x"]);
        let one = [("KINDRED_MODEL", "/m/c")];
        assert_eq!(models(&ServeFlags::default(), &one).unwrap(), ["/m/c"]);
        let two = [("KINDRED_MODEL", "/m/c, d=/m/d")];
        assert_eq!(models(&flags, &two).unwrap(), ["first=/m/c", "d=/m/d"]);
        let flags = ServeFlags { model: vec!["e=".into()], ..Default::default() };
        assert!(models(&flags, &[]).unwrap_err().contains("NAME=DIR"));
        let flags = ServeFlags { model: vec!["/m/a".into(), "a=/n".into()], ..Default::default() };
        let said = models(&flags, &[]).unwrap_err();
        assert!(said.contains("`/m/a` and `a=/n`") && said.contains("`a`;"), "{said}");
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

    #[cfg(unix)]
    #[test]
    fn what_is_not_utf8_is_an_error_if_it_is_ours() {
        use std::os::unix::ffi::OsStringExt;
        let load = |name: &[u8], value: &[u8]| {
            let variable = [name, value].map(|bytes| OsString::from_vec(bytes.to_vec()));
            let environment = std::iter::once(variable.into());
            Config::from_layers(&ServeFlags::default(), environment).map_err(|e| e.to_string())
        };
        for (name, value, said) in [
            (&b"KINDRED_API_KEYS_FILE"[..], &b"/k\xff"[..], "KINDRED_API_KEYS_FILE: its value"),
            (b"KINDRED_CONFIG", b"\xff", "KINDRED_CONFIG: its value"),
            (b"KINDRED_API_KEYS_FIL\xff", b"/keys", "KINDRED_API_KEYS_FIL\u{fffd}: its name"),
        ] {
            let error = load(name, value).unwrap_err();
            assert!(error.contains(said) && error.contains("UTF-8"), "{error}");
        }
        for name in
            [&b"PATH"[..], b"\xffKINDRED_NAME", b"KINDRED_PORT\xff", b"KINDRED_SERVICE_HOST"]
        {
            assert!(load(name, b"\xff").is_ok(), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn what_commands_ask_with_is_none_of_our_settings() {
        load(&ServeFlags::default(), &[("KINDRED_API_KEY", "x"), ("KINDRED_URL", "x")]).unwrap();
    }

    #[test]
    fn bad_values_are_errors_that_name_the_key() {
        for (content, key) in [
            ("threads = 'many'", "threads"),
            ("device = 'tpu'", "device"),
            ("queue_capacity_queries = 0", "queue_capacity_queries"),
            ("request_timeout_ms = -5", "request_timeout_ms"),
            ("idle_timeout_ms = 0", "idle_timeout_ms"),
            ("max_uri_bytes = 100000", "max_uri_bytes"),
            ("threads = 1025", "`threads`"),
            ("http_threads = 99999", "http_threads"),
            ("cors_origins = 5", "cors_origins"),
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
