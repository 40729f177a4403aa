//! The flags of `serve`: every setting once more, as the command line has it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::LogFormat;
use kindred::device::Device;

/// What `serve` can be told. What is not said comes from the environment, the file or the defaults.
#[derive(Debug, Default, Clone, Args, Serialize)]
pub struct ServeFlags {
    /// Model folder, as `kindred prepare` writes it; with several of them the first is the default one
    /// [default: the built-in model]
    #[arg(long, value_name = "[NAME=]DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub model: Vec<String>,
    /// The default model's name in answers [default: its folder's name]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// What searches: auto (a GPU if there is one), cpu, cuda, or cuda:N for one of several GPUs
    /// [default: auto]
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// Threads of the CPU engine; 0 is one for each core [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Whether the CPU engine keeps the table that it derives beside the model folder, for the next start
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_tables: Option<bool>,
    /// Threads that HTTP runs on; 0 is three for every four cores, at least two [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_threads: Option<usize>,
    /// Megabytes of memory that loading a model beside others must leave free [default: 64]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_reserve_mb: Option<u64>,
    /// Megabytes that requests may take together: bodies and what is made of them [default: 1024]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_memory_mb: Option<u32>,
    /// Megabytes that answers may take together until they are sent [default: 1024]
    #[arg(long, value_name = "MB")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_memory_mb: Option<u32>,
    /// Queries that may wait or be in work; more are answered 429 [default: 8192]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_capacity_queries: Option<u32>,
    /// Queries that one pass over the table takes at most [default: 1024]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_batch_queries: Option<usize>,
    /// Milliseconds that a request may take before it is answered 504 [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout_ms: Option<u64>,
    /// Milliseconds that /health/ready waits for its query [default: 5000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_timeout_ms: Option<u64>,
    /// Milliseconds that the head of a request may take, the first one with its handshake [default: 10000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_read_timeout_ms: Option<u64>,
    /// Milliseconds that the body of a request may take before it is answered 408 [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_read_timeout_ms: Option<u64>,
    /// Milliseconds that a connection may be without a request before it is closed [default: 60000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Milliseconds that a client may read nothing of its answer before it is given up [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout_ms: Option<u64>,
    /// Connections that are let in; others wait until one closes [default: 10000]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<usize>,
    /// Bytes that path and query string may have; more are answered 414 [default: 32768]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uri_bytes: Option<usize>,
    /// Bytes that the header fields may have; more are answered 431 [default: 16384]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_header_bytes: Option<usize>,
    /// From how many bytes on answers are compressed for whoever takes it; 0 is never [default: 16384]
    #[arg(long, value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress_from_bytes: Option<u64>,
    /// Origins whose pages may ask from a browser, with commas between several; * is all [default: none]
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cors_origins: Vec<String>,
    /// File of API keys, of which every request then needs one; `kindred api-key` makes its lines
    /// [default: none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_keys_file: Option<PathBuf>,
    /// Paths that need no API key, with commas between several; /x/* is all below /x
    /// [default: /,/explorer/*,/docs,/docs/*,/openapi.yaml,/health/live,/health/ready,/metrics]
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub public_routes: Vec<String>,
    /// File of certificates in PEM: serves HTTPS; needs --tls-private-key [default: none, plain HTTP]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// File of the first certificate's key in PEM [default: none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_private_key: Option<PathBuf>,
    /// Milliseconds that requests in flight may take when the service stops [default: 30000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_timeout_ms: Option<u64>,
    /// How often an engine that failed is made again within a minute before the program ends with exit code
    /// 70 [default: 5]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_max_restarts: Option<u32>,
    /// Milliseconds that a pass may take before the engine counts as hanging and the program ends with
    /// exit code 70 [default: 120000]
    #[arg(long, value_name = "MS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_hang_timeout_ms: Option<u64>,
    /// Where the built-in model is kept once prepared [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
    /// What is logged: error, warn, info, debug, trace, or per module [default: info]
    #[arg(long, value_name = "LEVEL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// How it is logged [default: text]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// Log one request in so many, and every one that the service fails; 0 is none [default: 0]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log_one_in: Option<u64>,
    /// Whether the query string is part of that: what people look for [default: false]
    #[arg(long, value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log_query: Option<bool>,
    /// File of settings; config/kindred.toml shows them all
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
}
