//! The spans of a traced request: the request itself, and below it its waits in the queue, its
//! passes, and the writing of its answer. They are made after the answer, of times that were noted
//! anyway.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use axum::http::{HeaderMap, HeaderValue};
use kindred::queue::{JobTimes, PassTimes, Timeline};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::SpanData;

use super::export::Exporter;
use super::sampler::{Sampled, Sampler};
use super::{Model, TraceFigures, TracedRequest};
use crate::config::{Config, ConfigError};

/// Methods that the semantic conventions know. Others are `_OTHER`.
const METHODS: [&str; 9] =
    ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"];

/// Traces requests, if the settings name a collector. Clones share it.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Tracer>>);

struct Tracer {
    sampler: Sampler,
    exporter: Exporter,
    scope: InstrumentationScope,
}

/// A request that is traced.
#[derive(Debug)]
pub struct Trace {
    sampled: Sampled,
    /// The id of the request's span.
    span: u64,
    /// The caller's `tracestate`, which its spans keep.
    state: TraceState,
    arrived: Instant,
    asked: TracedRequest,
    model: OnceLock<Model>,
    timeline: Arc<Timeline>,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "traces" } else { "no traces" })
    }
}

impl Traces {
    /// Starts the exporter, if the settings name a collector. It need not be there yet.
    ///
    /// # Errors
    /// If the collector's address, or the environment that the exporter reads, is invalid.
    pub fn start(config: &Config) -> Result<Self, ConfigError> {
        if config.traces_endpoint.is_empty() {
            return Ok(Self(None));
        }
        let sampler = Sampler::new(config.traces_sample_ratio, config.traces_asked_per_second);
        let exporter = Exporter::start(&config.traces_endpoint)?;
        let scope =
            InstrumentationScope::builder("kindred").with_version(env!("CARGO_PKG_VERSION"));
        Ok(Self(Some(Arc::new(Tracer { sampler, exporter, scope: scope.build() }))))
    }

    /// The trace of a request that has just arrived, if it is traced. Only then `asked` is called.
    #[inline]
    pub(crate) fn begin(
        &self,
        headers: &HeaderMap,
        arrived: Instant,
        asked: impl FnOnce() -> TracedRequest,
    ) -> Option<Arc<Trace>> {
        let sampled = self.0.as_ref()?.sampler.sample(headers, arrived)?;
        let state = sampled.parent.and_then(|_| state(headers)).unwrap_or_default();
        let (span, timeline) = (fresh_id(), Arc::default());
        let (model, asked) = (OnceLock::new(), asked());
        Some(Arc::new(Trace { sampled, span, state, arrived, asked, model, timeline }))
    }

    /// Sends the spans of a request that is over. `status` is `None` if its client hung up before;
    /// `encoded` is when writing the answer began and ended, if that was measured.
    #[cold]
    pub(crate) fn end(
        &self,
        trace: &Trace,
        status: Option<u16>,
        encoded: Option<(Instant, Instant)>,
    ) {
        if let Some(tracer) = &self.0 {
            tracer.exporter.send(trace.spans(status, encoded, &tracer.scope));
        }
    }

    /// The counts of spans so far. `None` if nothing is traced.
    pub(crate) fn figures(&self) -> Option<TraceFigures> {
        let tracer = self.0.as_ref()?;
        let figures = tracer.exporter.figures();
        Some(TraceFigures { refused: tracer.sampler.refused(), ..figures })
    }

    /// Sends what waits, for at most this time, and ends the exporter.
    pub fn flush(&self, within: Duration) {
        if let Some(tracer) = &self.0 {
            tracer.exporter.shut_down(within);
        }
    }
}

/// The state that a caller's tracing systems pass on. A longer one, or several headers, may be
/// dropped, and are.
fn state(headers: &HeaderMap) -> Option<TraceState> {
    const LONGEST: usize = 512;
    let mut sent = headers.get_all("tracestate").iter();
    let (only, None) = (sent.next()?, sent.next()) else { return None };
    only.to_str().ok().filter(|state| state.len() <= LONGEST)?.parse().ok()
}

/// The id of a span. Zero is invalid.
fn fresh_id() -> u64 {
    fastrand::u64(1..)
}

impl Trace {
    /// The trace's id, as in `traceparent`.
    pub(crate) fn id(&self) -> String {
        format!("{:032x}", self.sampled.trace)
    }

    /// Where the request's jobs note their times.
    pub(crate) fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Notes which model answers.
    pub(crate) fn of_model(&self, model: Model) {
        let _ = self.model.set(model);
    }

    /// A metric for `Server-Timing` that tells the client the ids of the request's span.
    pub(crate) fn response_header(&self) -> HeaderValue {
        let (trace, span) = (self.sampled.trace, self.span);
        HeaderValue::try_from(format!("traceparent;desc=\"00-{trace:032x}-{span:016x}-01\""))
            .expect("hexadecimal digits")
    }

    fn spans(
        &self,
        status: Option<u16>,
        encoded: Option<(Instant, Instant)>,
        scope: &InstrumentationScope,
    ) -> Vec<SpanData> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let at = |instant: Instant| wall - now.saturating_duration_since(instant);
        let child = |name: &'static str, from: Instant, to: Instant, attributes| SpanData {
            parent_span_id: SpanId::from_bytes(self.span.to_be_bytes()),
            ..self.span_data(fresh_id(), name, (at(from), at(to)), attributes, scope)
        };
        let mut spans = Vec::with_capacity(4);
        for job in self.timeline.jobs() {
            let passes = job.passes();
            let waited_until = passes.iter().map(|pass| pass.started).min();
            let mut queue = child("queue", job.entered, waited_until.unwrap_or(now), of_job(&job));
            if waited_until.is_none() {
                queue.status = Status::error("the job was not answered");
            }
            spans.push(queue);
            let pass = |pass: &PassTimes| {
                let mut attributes = of_job(&job);
                attributes.extend(of_pass(pass));
                let engine = self.model.get().map(|model| model.engine);
                attributes.extend(engine.map(|name| KeyValue::new("kindred.engine", name)));
                child("pass", pass.started, pass.ended, attributes)
            };
            spans.extend(passes.iter().map(pass));
        }
        spans.extend(encoded.map(|(from, to)| child("encode", from, to, Vec::new())));
        spans.push(self.request(status, (at(self.arrived), wall), scope));
        spans
    }

    /// The span of the request, by the semantic conventions for HTTP servers.
    fn request(
        &self,
        code: Option<u16>,
        times: (SystemTime, SystemTime),
        scope: &InstrumentationScope,
    ) -> SpanData {
        let TracedRequest { route, method, target, scheme, protocol, user_agent, request_id } =
            &self.asked;
        let is_known = METHODS.contains(&method.as_str());
        let (path, query) = target
            .split_once('?')
            .map_or((&target[..], None), |(path, query)| (path, Some(query.to_owned())));
        let mut attributes = vec![
            KeyValue::new(
                "http.request.method",
                if is_known { method.clone() } else { "_OTHER".into() },
            ),
            KeyValue::new("url.scheme", *scheme),
            KeyValue::new("url.path", path.to_owned()),
            KeyValue::new("network.protocol.version", *protocol),
            KeyValue::new("kindred.request_id", request_id.clone()),
        ];
        let mut add = |key: &'static str, value: Option<String>| {
            attributes.extend(value.map(|value| KeyValue::new(key, value)));
        };
        add("http.request.method_original", (!is_known).then(|| method.clone()));
        add("http.route", route.map(str::to_owned));
        add("url.query", query);
        add("user_agent.original", user_agent.clone());
        add("kindred.model", self.model.get().map(|model| model.name.clone()));
        add("kindred.model.version", self.model.get().map(|model| model.version.clone()));
        let status = code.map(i64::from);
        attributes.extend(status.map(|code| KeyValue::new("http.response.status_code", code)));
        // A refusal, such as 429, is no error of the server, and its status code says what it is.
        let error = match code {
            None => Some("client_disconnected".to_owned()),
            Some(code) => (code >= 500).then(|| code.to_string()),
        };
        let status = if error.is_some() { Status::error("") } else { Status::Unset };
        attributes.extend(error.map(|error| KeyValue::new("error.type", error)));
        let method = if is_known { method } else { "HTTP" };
        let name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}"));
        SpanData {
            parent_span_id: self.sampled.parent.map_or(SpanId::INVALID, id),
            parent_span_is_remote: self.sampled.parent.is_some(),
            span_kind: SpanKind::Server,
            status,
            name: name.into(),
            ..self.span_data(self.span, "", times, attributes, scope)
        }
    }

    fn span_data(
        &self,
        span: u64,
        name: &'static str,
        (start_time, end_time): (SystemTime, SystemTime),
        attributes: Vec<KeyValue>,
        scope: &InstrumentationScope,
    ) -> SpanData {
        let trace = TraceId::from_bytes(self.sampled.trace.to_be_bytes());
        let (flags, state) = (TraceFlags::SAMPLED, self.state.clone());
        SpanData {
            span_context: SpanContext::new(trace, id(span), flags, false, state),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time,
            end_time,
            attributes,
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: Status::Unset,
            instrumentation_scope: scope.clone(),
        }
    }
}

fn id(span: u64) -> SpanId {
    SpanId::from_bytes(span.to_be_bytes())
}

/// A number as OpenTelemetry has them.
fn number(key: &'static str, number: usize) -> KeyValue {
    KeyValue::new(key, i64::try_from(number).unwrap_or(i64::MAX))
}

fn of_job(job: &JobTimes) -> Vec<KeyValue> {
    // Their names have an article: `a search`.
    let workload = job.workload.split_once(' ').map_or(job.workload, |(_, name)| name);
    vec![KeyValue::new("kindred.workload", workload), number("kindred.job.queries", job.requests)]
}

fn of_pass(pass: &PassTimes) -> [KeyValue; 4] {
    [
        number("kindred.pass.batch_size", pass.batch),
        number("kindred.pass.slices", pass.slices),
        number("kindred.pass.replica", pass.replica),
        KeyValue::new("kindred.pass.device_seconds", pass.device.as_secs_f64()),
    ]
}
