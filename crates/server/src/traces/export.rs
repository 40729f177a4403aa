//! Sends spans to a collector, in OTLP over HTTP: the SDK's batch processor, on a thread of its
//! own, behind a bound whose drops are counted, with the HTTP client that the program has anyway.

use std::env;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::{Key, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    Protocol, SpanExporter as OtlpExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor,
};
use tracing::{info, warn};
use ureq::Agent;

use super::TraceFigures;
use crate::client;
use crate::config::{self, ConfigError};

/// Spans that may wait; further traces are dropped. A trace has four spans or more.
const QUEUE: usize = 8192;
/// Spans of a message.
const BATCH: usize = 512;
/// Time limit for sending a batch. Meanwhile others wait.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Of a collector's answer, in bytes: it has a message of errors at most.
const MAX_ANSWER: u64 = 64 << 10;
/// Where OTLP over HTTP expects traces.
const PATH: &str = "/v1/traces";

pub(super) struct Exporter {
    processor: BatchSpanProcessor,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    exported: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    /// Why the last batch failed, in the client's words.
    reason: Mutex<String>,
}

impl Exporter {
    /// Starts the thread that sends spans to the collector with this URL.
    pub(super) fn start(endpoint: &str) -> Result<Self, ConfigError> {
        let url = traces_url(endpoint)?;
        let agent = client::agent(&url, TIMEOUT).map_err(|error| invalid(endpoint, error))?;
        let counts = Arc::<Counts>::default();
        let client = Client { agent, counts: counts.clone() };
        // Headers, which may have secrets, come from the environment: OTEL_EXPORTER_OTLP_HEADERS.
        let otlp = OtlpExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url.to_string())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| ConfigError::Exporter(error.into()))?;
        let (endpoint, is_failing) = (url.to_string(), AtomicBool::new(false));
        let counting = Counting { otlp, counts: counts.clone(), endpoint, is_failing };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .build();
        let mut processor = BatchSpanProcessor::new(counting, config);
        processor.set_resource(&resource());
        Ok(Self { processor, counts })
    }

    /// Leaves the spans of a trace to the exporter's thread, or drops them if too many wait.
    pub(super) fn send(&self, spans: Vec<SpanData>) {
        let counts = &self.counts;
        let number = spans.len();
        // Waiting spans are counted from here to the exporter, so the processor's own queue of the
        // same size never overflows.
        let room = |waiting: usize| Some(waiting + number).filter(|&all| all <= QUEUE);
        if counts.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            counts.dropped.fetch_add(number as u64, Ordering::Relaxed);
            return;
        }
        spans.into_iter().for_each(|span| self.processor.on_end(span));
    }

    pub(super) fn figures(&self) -> TraceFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counts { exported, failed, dropped, .. } = &*self.counts;
        let (exported, failed, dropped) = (read(exported), read(failed), read(dropped));
        TraceFigures { exported, failed, dropped, refused: 0 }
    }

    /// Sends what waits, for at most this time, and ends the thread.
    pub(super) fn shut_down(&self, within: Duration) {
        if self.processor.shutdown_with_timeout(within).is_err() {
            let left = self.counts.waiting.load(Ordering::Relaxed);
            warn!(spans = left, "the last traces could not be sent in time");
        }
    }
}

/// The address for traces: that of the collector with the path of OTLP, unless it has a path of its
/// own.
fn traces_url(endpoint: &str) -> Result<ureq::http::Uri, ConfigError> {
    let no_user = "it must have no user and password; the collector's key goes into the variable \
                   OTEL_EXPORTER_OTLP_HEADERS";
    let checked = client::url(endpoint, no_user).map_err(|(shown, reason)| {
        invalid(&shown, format_args!("{reason}, as in http://127.0.0.1:4318"))
    })?;
    if checked.path().trim_matches('/').is_empty() {
        let whole = format!("{}{PATH}", endpoint.trim_end_matches('/'));
        return Ok(whole.parse().expect("a URL with a path"));
    }
    Ok(checked)
}

/// An error of the setting, whose value is `shown` without a password.
fn invalid(shown: &str, reason: impl fmt::Display) -> ConfigError {
    config::invalid("traces_endpoint", format!("`{shown}`: {reason}"))
}

/// The description of this process in spans. The variables OTEL_SERVICE_NAME and
/// OTEL_RESOURCE_ATTRIBUTES come first.
fn resource() -> Resource {
    let given = Resource::builder().build();
    let is_named = env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || given
            .get(&Key::new("service.name"))
            .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let mut ours = vec![
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", format!("{:032x}", fastrand::u128(..))),
    ];
    if !is_named {
        ours.push(KeyValue::new("service.name", "kindred"));
    }
    ours.retain(|one| one.key.as_str() == "service.name" || given.get(&one.key).is_none());
    Resource::builder().with_attributes(ours).build()
}

/// The exporter of OTLP, whose batches are counted and whose failures are logged, the first of a
/// row.
#[derive(Debug)]
struct Counting {
    otlp: OtlpExporter,
    counts: Arc<Counts>,
    endpoint: String,
    is_failing: AtomicBool,
}

impl SpanExporter for Counting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let number = batch.len();
        self.counts.waiting.fetch_sub(number, Ordering::Relaxed);
        let result = self.otlp.export(batch).await;
        let counter = if result.is_ok() { &self.counts.exported } else { &self.counts.failed };
        counter.fetch_add(number as u64, Ordering::Relaxed);
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match (&result, was_failing) {
            (Err(error), false) => {
                let reason = self.counts.reason.lock().unwrap_or_else(PoisonError::into_inner);
                let reason = if reason.is_empty() { error.to_string() } else { reason.clone() };
                let endpoint = &self.endpoint;
                warn!(
                    endpoint,
                    "can't send traces, so they are dropped until it works again: {reason}"
                );
            }
            (Ok(()), true) => info!(endpoint = self.endpoint, "traces are sent again"),
            _ => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// The program's HTTP client, as the exporter wants it. It blocks, which only the exporter's thread
/// notices.
#[derive(Debug)]
struct Client {
    agent: Agent,
    counts: Arc<Counts>,
}

impl Client {
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (head, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(head, &body[..]))?;
        let (head, mut body) = answer.into_parts();
        let body = body.with_config().limit(MAX_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let answer = self.send(request);
        let reason = match &answer {
            Ok(answer) if answer.status().is_success() => String::new(),
            Ok(answer) => format!("the collector answered {}", answer.status()),
            Err(error) => error.to_string(),
        };
        *self.counts.reason.lock().unwrap_or_else(PoisonError::into_inner) = reason;
        Box::pin(async move { answer.map_err(Into::into) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(endpoint: &str) -> Result<String, String> {
        traces_url(endpoint).map(|url| url.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_path_of_otlp_is_added_where_there_is_none() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            (
                "https://collector.example/otlp/v1/traces",
                "https://collector.example/otlp/v1/traces",
            ),
        ] {
            assert_eq!(url(endpoint).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn a_wrong_address_is_an_error_that_names_the_setting_and_no_password() {
        for wrong in
            ["127.0.0.1:4318", "grpc://a:4317", "http://", "http://a:b", "http://a/?b", "x"]
        {
            let error = url(wrong).unwrap_err();
            assert!(error.contains("traces_endpoint") && error.contains(wrong), "{error}");
        }
        let error = url("http://user:secret@host:4318").unwrap_err();
        assert!(
            !error.contains("secret") && error.contains("OTEL_EXPORTER_OTLP_HEADERS"),
            "{error}"
        );
    }
}
