//! The flags of `serve`: one for each setting.

use std::path::PathBuf;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::{HeadPrecision, LogFormat};
use kindred::device::Device;

/// Flags of `serve`. Settings without a flag come from the environment, the file or the defaults.
#[derive(Debug, Default, Clone, Args, Serialize)]
pub struct ServeFlags {
    /// Model folder written by `kindred prepare`. Repeat the flag to serve several; the first is
    /// the default model [default: the built-in model]
    #[arg(long, value_name = "[NAME=]DIR", value_parser = NonEmptyStringValueParser::new())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// Head folder, of a classifier or an expander, for the served model that it was made for.
    /// Repeat the flag to serve several [default: none]
    #[arg(long, value_name = "[NAME=]DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub head: Vec<String>,
    /// Name of the default model in answers [default: the name of its folder]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address and port to listen on; port 0 selects a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Devices to run searches on: auto (a GPU if there is one, else the CPU), cpu, cuda (the first
    /// GPU, an error without one), cuda:all, or some GPUs, as in cuda:1 or cuda:0,2 [default: auto]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// How models are placed on several GPUs: replicate (a copy on each, for throughput), shard (a
    /// part of the rows on each, for large tables and for latency), or auto (copies if they fit,
    /// else shards). Repeat the flag for models that differ [default: auto]
    #[arg(long, value_name = "[NAME=]HOW")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<String>,
    /// Number of CPU engine threads; 0 means one per core [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Cache the CPU engine's 8-bit copy of the vectors beside the model folder, for faster starts
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_tables: Option<bool>,
    /// Memory limit, in MB, of what is computed from a head; 0 means 2048, or half of what is free
    /// on a GPU [default: 0]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_memory_mb: Option<u64>,
    /// How what is computed from heads is kept [default: auto]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_precision: Option<HeadPrecision>,
    /// Number of HTTP threads; 0 means three for every four cores, at least two [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_threads: Option<usize>,
    /// Memory, in MB, that must stay free after a reload; otherwise it is refused [default: 64]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reserve_mb: Option<u64>,
    /// Memory limit, in MB, for the bodies and parsed data of all requests in progress [default:
    /// 1024]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_memory_mb: Option<u32>,
    /// Memory limit, in MB, of all responses not yet sent [default: 1024]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_memory_mb: Option<u32>,
    /// Maximum number of queries waiting or in progress; further queries get 429 [default: 8192]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_capacity_queries: Option<u32>,
    /// Maximum number of queries searched together, in one pass over the table [default: 1024]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_batch_queries: Option<usize>,
    /// Request timeout, in ms, answered with 504 [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout_ms: Option<u64>,
    /// Timeout, in ms, of the query that /health/ready sends [default: 5000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_timeout_ms: Option<u64>,
    /// Timeout, in ms, for reading a request's head; for the first request of a connection,
    /// includes the TLS handshake [default: 10000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_read_timeout_ms: Option<u64>,
    /// Timeout, in ms, for reading a request's body, answered with 408 [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_read_timeout_ms: Option<u64>,
    /// Time, in ms, after which an idle connection is closed [default: 60000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Time, in ms, after which a connection is closed if its client does not read the answer
    /// [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout_ms: Option<u64>,
    /// Maximum number of open connections; others wait until one closes [default: 10000]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<usize>,
    /// Size limit, in bytes, of path and query string; longer ones are refused with 414 [default:
    /// 32768]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uri_bytes: Option<usize>,
    /// Size limit, in bytes, of all header fields; larger ones are refused with 431 [default:
    /// 16384]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_header_bytes: Option<usize>,
    /// Minimum size, in bytes, of answers to compress; 0 disables compression [default: 16384]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_from_bytes: Option<u64>,
    /// Origins whose web pages may call the API, comma-separated; * allows all [default: none]
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cors_origins: Vec<String>,
    /// File of API keys, created with `kindred api-key`; every request then needs a key [default:
    /// none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_keys_file: Option<PathBuf>,
    /// Paths that need no API key, comma-separated; /x/* means everything below /x
    /// [default: /,/explorer/*,/docs,/docs/*,/openapi.yaml,/health/live,/health/ready,/metrics]
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub public_routes: Vec<String>,
    /// PEM file with the certificate chain, to serve HTTPS; needs --tls-private-key [default: none,
    /// plain HTTP]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with the certificate's private key [default: none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_private_key: Option<PathBuf>,
    /// Interval, in ms, at which the files of API keys and certificates are read, to put changed
    /// ones in force; 0 means only after a reload [default: 0]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_files_ms: Option<u64>,
    /// Drain delay, in ms: how long the service accepts requests after SIGTERM, while it already
    /// reports not ready [default: 0]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_delay_ms: Option<u64>,
    /// Drain timeout, in ms: how long requests in flight may take when the service stops [default:
    /// 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_timeout_ms: Option<u64>,
    /// Maximum engine restarts within a minute; after that the service exits with code 70 [default:
    /// 5]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_max_restarts: Option<u32>,
    /// Time limit, in ms, for one pass over the table or for restarting the engine; after that the
    /// service exits with code 70 [default: 120000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_hang_timeout_ms: Option<u64>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
    /// Log level: error, warn, info, debug, trace, off, or a filter per module, as in
    /// info,scheduler=debug [default: info]
    #[arg(long, value_name = "LEVEL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// Log format [default: text]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// Log one request in N, and all that fail with 5xx; 0 disables the access log [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log_one_in: Option<u64>,
    /// Include query strings, which show what people search for, in the access log [default: false]
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log_query: Option<bool>,
    /// OpenTelemetry collector to send traces to, as in http://127.0.0.1:4318; needs a program
    /// built with the feature traces [default: none]
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces_endpoint: Option<String>,
    /// Part of the requests that is traced, chosen at random, from 0 to 1 [default: 0.01]
    #[arg(long, value_name = "RATIO")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces_sample_ratio: Option<f64>,
    /// Maximum number of traces per second that callers may ask for with traceparent; 0 ignores
    /// that header [default: 100]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces_asked_per_second: Option<u32>,
    /// Settings file; config/kindred.toml lists every setting
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
}
