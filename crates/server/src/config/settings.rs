//! The declaration of all settings. The structures of the settings and of the flags, the defaults,
//! the checks of ranges and the help follow from it. Tests check against it what else names the
//! settings: `config/kindred.toml`, which describes each, and the schema of the Helm chart.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::source::{ModelPlacement, ModelSource, listed};
use kindred::device::Device;

/// Number format of the tables derived from heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase", try_from = "String")]
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
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum LogFormat {
    /// Plain lines
    Text,
    /// One JSON object per line
    Json,
}

impl TryFrom<String> for HeadPrecision {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        one_of(&text)
    }
}

impl TryFrom<String> for LogFormat {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        one_of(&text)
    }
}

/// The value of this name. The error lists the names.
fn one_of<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let values = T::value_variants().iter().filter_map(|value| value.to_possible_value());
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        format!("`{text}` is none of its values; use {}", names.join(" or "))
    })
}

/// Maximum number of threads that a setting may ask for: more than any machine can use. A typing
/// mistake must not start a hundred thousand threads.
pub const MAX_THREADS: usize = 1024;

/// A setting, without its type.
pub(super) struct Setting {
    pub(super) name: &'static str,
    /// The heading in `--help`.
    section: &'static str,
    /// As in TOML.
    default: &'static str,
    /// Said in `--help` instead of the default.
    words: Option<&'static str>,
}

/// Declares settings, each as `name: Type = DEFAULT or "DEFAULT IN WORDS" in RANGE => "EXAMPLE";`
/// with the default in TOML. A setting with several values that a flag may repeat has two types,
/// `name(TYPE, TYPE OF THE FLAG)`. The documentation is the help.
macro_rules! settings {
    (@optional) => { None };
    (@optional $given:literal) => { Some($given) };
    ($($section:literal { $(
        $(#[doc $($doc:tt)*])+
        $(#[serde $serde:tt])?
        $(#[arg $arg:tt])?
        $name:ident $(($many:ty, $texts:ty))? $(: $kind:ty)? = $default:tt $(or $words:literal)?
        $(in $range:expr $(=> $example:literal)?)?;
    )* })*) => {
        /// All settings of the service. `config/kindred.toml` describes each.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Config {
            $($(
                $(#[doc $($doc)*])+
                $(#[serde $serde])?
                pub $name: $($kind)? $($many)?,
            )*)*
        }

        /// Flags of `serve`, one for each setting. Settings without a flag come from the
        /// environment, the file or the defaults.
        #[derive(Debug, Default, Clone, Args, Serialize)]
        #[command(mut_args(described))]
        pub struct ServeFlags {
            $($(
                $(#[doc $($doc)*])+
                #[arg(long)]
                $(#[arg $arg])?
                #[serde(skip_serializing_if = "is_unset")]
                pub $name: $(Option<$kind>)? $($texts)?,
            )*)*
            /// Settings file; config/kindred.toml lists every setting
            #[arg(long, value_name = "FILE")]
            #[serde(skip)]
            pub config: Option<PathBuf>,
            /// Check all settings and the files that they name, say whether a service could start
            /// with them, and exit without serving
            #[arg(long)]
            #[serde(skip)]
            pub check: bool,
        }

        pub(super) const SETTINGS: &[Setting] = &[$($(Setting {
            name: stringify!($name),
            section: $section,
            default: stringify!($default),
            words: settings!(@optional $($words)?),
        },)*)*];

        /// The defaults, in TOML.
        pub(super) const DEFAULTS: &str =
            concat!($($(stringify!($name), " = ", stringify!($default), "\n",)*)*);

        impl Config {
            /// Checks that values are in their ranges.
            pub(super) fn check_ranges(&self) -> Result<(), ConfigError> {
                $($($(
                    let range = $range;
                    if !range.contains(&self.$name) {
                        let example: Option<&str> = settings!(@optional $($example)?);
                        return Err(out_of_range(stringify!($name), &range, example));
                    }
                )?)*)*
                Ok(())
            }

            /// The names of the settings that have other values in `other`.
            pub(crate) fn differing(&self, other: &Self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $($(
                    if self.$name != other.$name {
                        names.push(stringify!($name));
                    }
                )*)*
                names
            }
        }
    };
}

settings! {
    "Models" {
        /// Model folder written by `kindred prepare`. Repeat the flag to serve several; the first
        /// is the default model
        #[serde(with = "listed")]
        #[arg(value_name = "[NAME=]DIR", value_parser = NonEmptyStringValueParser::new())]
        model(Vec<ModelSource>, Vec<String>) = "" or "the built-in model";
        /// Folder of tables whose rows change: those that are there are served, and tables that are
        /// made while the service runs are kept there. The built-in model is then not served
        #[arg(value_name = "DIR")]
        models_dir: PathBuf = "";
        /// Fold the changes of a table into a new base when so many rows, of all, were put or
        /// deleted since the last one (and at least 1000); 0 never does
        #[arg(value_name = "RATIO")]
        fold_changed_ratio: f64 = 0.1 in 0.0..=10.0 => "0.1 for one row in 10";
        /// Fold changes of a table that are older than this, in s; 0 never does
        #[arg(value_name = "S")]
        fold_age_s: u64 = 0;
        /// Head folder, of a classifier or an expander, for the served model that it was made for.
        /// Repeat the flag to serve several
        #[serde(with = "listed")]
        #[arg(value_name = "[NAME=]DIR")]
        head(Vec<ModelSource>, Vec<String>) = "";
        /// Name of the default model in answers
        name: String = "" or "the name of its folder";
        /// Folder in which the prepared built-in model is stored
        #[arg(value_name = "DIR")]
        cache_dir: PathBuf = "" or "the user's cache folder";
        /// Memory, in MB, that must stay free after a reload; otherwise it is refused
        #[arg(value_name = "MB")]
        memory_reserve_mb: u64 = 64;
    }
    "Engines" {
        /// Devices to run searches on: auto (a GPU if there is one, else the CPU), cpu, cuda (the
        /// first GPU, an error without one), cuda:all, or some GPUs, as in cuda:1 or cuda:0,2
        device: Device = "auto";
        /// Placement of models on several GPUs: replicate (a copy on each, for throughput), shard
        /// (a part of the rows on each, for large tables and for latency), or auto (copies if they
        /// fit, else shards). Repeat the flag for models that differ
        #[serde(with = "listed")]
        #[arg(value_name = "[NAME=]HOW")]
        placement(Vec<ModelPlacement>, Vec<String>) = "auto";
        /// Number of CPU engine threads; 0 means one per core
        #[arg(value_name = "N")]
        threads: usize = 0 in 0..=MAX_THREADS;
        /// Cache the CPU engine's 8-bit copy of the vectors beside the model folder, for faster
        /// starts
        #[arg(value_name = "BOOL")]
        keep_tables: bool = true;
        /// Memory limit, in MB, of the tables derived from a head; 0 means 2048, or half of what is
        /// free on a GPU
        #[arg(value_name = "MB")]
        head_memory_mb: u64 = 0;
        /// Number format of the tables derived from heads
        head_precision: HeadPrecision = "auto";
        /// Maximum number of queries searched together, in one pass over the table
        #[arg(value_name = "N")]
        max_batch_queries: usize = 1024 in 1..;
        /// Maximum engine restarts within a minute; after that the service exits with code 70
        #[arg(value_name = "N")]
        engine_max_restarts: u32 = 5;
        /// Time limit, in ms, for one pass over the table or for restarting the engine; after that
        /// the service exits with code 70
        #[arg(value_name = "MS")]
        engine_hang_timeout_ms: u64 = 120000 in 1..;
    }
    "Requests" {
        /// Maximum number of queries waiting or in progress; further queries get 429
        #[arg(value_name = "N")]
        queue_capacity_queries: u32 = 8192 in 1..;
        /// Memory limit, in MB, for the bodies and parsed data of all requests in progress
        #[arg(value_name = "MB")]
        body_memory_mb: u32 = 1024 in 1..;
        /// Memory limit, in MB, of all responses not yet sent
        #[arg(value_name = "MB")]
        answer_memory_mb: u32 = 1024 in 1..;
        /// Request timeout, in ms, answered with 504
        #[arg(value_name = "MS")]
        request_timeout_ms: u64 = 30000 in 1..;
        /// Timeout, in ms, of the query that /health/ready sends
        #[arg(value_name = "MS")]
        readiness_timeout_ms: u64 = 5000 in 1..;
        /// Time, in s, by which a table may be behind a system that it follows, such as PostgreSQL,
        /// before /health/ready answers 503; 0 for any
        #[arg(value_name = "SECONDS")]
        max_lag_seconds: u64 = 0;
        /// Minimum size, in bytes, of answers to compress; 0 disables compression
        #[arg(value_name = "BYTES")]
        compress_from_bytes: u64 = 16384;
    }
    "Connections" {
        /// Address and port to listen on; port 0 selects a free port
        #[arg(value_name = "ADDR")]
        listen: String = "127.0.0.1:8080";
        /// Number of HTTP threads; 0 means three for every four cores, at least two
        #[arg(value_name = "N")]
        http_threads: usize = 0 in 0..=MAX_THREADS;
        /// Maximum number of open connections; others wait until one closes
        #[arg(value_name = "N")]
        max_connections: usize = 10000 in 1..;
        /// Timeout, in ms, for reading a request's head; for the first request of a connection,
        /// includes the TLS handshake
        #[arg(value_name = "MS")]
        header_read_timeout_ms: u64 = 10000 in 1..;
        /// Timeout, in ms, for reading a request's body, answered with 408
        #[arg(value_name = "MS")]
        body_read_timeout_ms: u64 = 30000 in 1..;
        /// Time, in ms, after which an idle connection is closed
        #[arg(value_name = "MS")]
        idle_timeout_ms: u64 = 60000 in 1..;
        /// Time, in ms, after which a connection is closed if its client does not read the answer
        #[arg(value_name = "MS")]
        write_timeout_ms: u64 = 30000 in 1..;
        /// Size limit, in bytes, of path and query string; longer ones are refused with 414
        #[arg(value_name = "BYTES")]
        max_uri_bytes: usize = 32768 in 256..=65_534;
        /// Size limit, in bytes, of all header fields; larger ones are refused with 431
        #[arg(value_name = "BYTES")]
        max_header_bytes: usize = 16384 in 256..=65_534;
        /// Drain delay, in ms: how long the service accepts requests after SIGTERM, while it
        /// already reports not ready
        #[arg(value_name = "MS")]
        drain_delay_ms: u64 = 0;
        /// Drain timeout, in ms: how long requests in flight may take when the service stops
        #[arg(value_name = "MS")]
        drain_timeout_ms: u64 = 30000;
    }
    "Access" {
        /// File of API keys, created with `kindred api-key`; every request then needs a key
        #[arg(value_name = "FILE")]
        api_keys_file: PathBuf = "";
        /// Let everybody who reaches the service change rows and tables: without API keys, and on an
        /// address that others reach, models_dir is refused otherwise
        #[arg(value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
        open_writes: bool = false;
        /// Paths that need no API key, comma-separated; /x/* means everything below /x
        #[arg(value_name = "PATH", value_delimiter = ',')]
        public_routes(Vec<String>, Vec<String>) = [
            "/", "/explorer/*", "/docs", "/docs/*", "/openapi.yaml", "/health/live",
            "/health/ready", "/metrics"
        ];
        /// Origins whose web pages may call the API, comma-separated; * allows all
        #[arg(value_name = "ORIGIN", value_delimiter = ',')]
        cors_origins(Vec<String>, Vec<String>) = [];
        /// PEM file with the certificate chain, to serve HTTPS; needs --tls-private-key
        #[arg(value_name = "FILE")]
        tls_certificate: PathBuf = "" or "none, plain HTTP";
        /// PEM file with the certificate's private key
        #[arg(value_name = "FILE")]
        tls_private_key: PathBuf = "";
        /// Interval, in ms, at which the files of API keys and certificates are read, to put
        /// changed ones in force; 0 means only after a reload
        #[arg(value_name = "MS")]
        watch_files_ms: u64 = 0;
    }
    "Log and traces" {
        /// Log level: error, warn, info, debug, trace, off, or a filter per module, as in
        /// info,scheduler=debug
        #[arg(value_name = "LEVEL")]
        log_level: String = "info";
        /// Log format
        log_format: LogFormat = "text";
        /// Log one request in N, and all that fail with 5xx; 0 disables the access log
        #[arg(value_name = "N")]
        access_log_one_in: u64 = 0;
        /// Include query strings, which show what people search for, in the access log
        #[arg(value_name = "BOOL")]
        access_log_query: bool = false;
        /// OpenTelemetry collector to send traces to, as in http://127.0.0.1:4318; needs a program
        /// built with the feature traces
        #[arg(value_name = "URL")]
        traces_endpoint: String = "";
        /// Part of the requests that is traced, chosen at random, from 0 to 1
        #[arg(value_name = "RATIO")]
        traces_sample_ratio: f64 = 0.01 in 0.0..=1.0 => "0.01 for one request in 100";
        /// Maximum number of traces per second that callers may ask for with traceparent; 0 ignores
        /// that header
        #[arg(value_name = "N")]
        traces_asked_per_second: u32 = 100 in 0..=1_000_000;
    }
}

/// The flag of a setting as `--help` shows it: under its heading, with its default.
fn described(flag: Arg) -> Arg {
    let Some(setting) = SETTINGS.iter().find(|one| one.name == flag.get_id().as_str()) else {
        return flag;
    };
    // Lists have commas between their values, as the flag takes them.
    let default = setting.default.replace(['[', ']', '"', ' ', '\n'], "");
    let default = match setting.words {
        Some(words) => words,
        None if default.is_empty() => "none",
        None => default.as_str(),
    };
    let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    flag.help(format!("{help} [default: {default}]")).help_heading(setting.section)
}

fn is_unset<T: Default + PartialEq>(flag: &T) -> bool {
    *flag == T::default()
}

fn out_of_range<T: Display>(
    key: &'static str,
    range: &impl RangeBounds<T>,
    example: Option<&str>,
) -> ConfigError {
    let reason = match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), Bound::Included(most)) => {
            format!("must be from {least} to {most}")
        }
        (Bound::Included(least), Bound::Unbounded) => format!("must be at least {least}"),
        _ => "is out of range".to_owned(),
    };
    let reason = match example {
        Some(example) => format!("{reason}, such as {example}"),
        None => reason,
    };
    ConfigError::Invalid { key, reason }
}
