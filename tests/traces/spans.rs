//! What the spans of a request say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;

use super::{CALLER, TRACE, attributes, start, traceparent};
use crate::supervision;
use crate::support::collector::{Collector, attribute, hexadecimal, requests};
use crate::support::{Service, kindred};

/// The only span of this name.
fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let first = found.next().unwrap_or_else(|| panic!("no span `{name}`: {spans:#?}"));
    assert!(found.next().is_none(), "several spans `{name}`: {spans:#?}");
    first
}

fn is_error(span: &Span) -> bool {
    span.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32)
}

#[test]
fn a_request_is_a_span_in_its_callers_trace_with_its_stages_below_it() {
    let collector = Collector::start();
    let traced = start(&collector.url(), &["--traces-sample-ratio", "0"]);
    let headers = [
        ("traceparent", &traceparent("01")[..]),
        ("tracestate", "vendor=opaque,other=1"),
        ("X-Request-Id", "my-own-id"),
        ("User-Agent", "a test"),
    ];
    let reply = traced.service.send("GET", b"/nearest?word=east&k=2", &headers, b"");
    assert_eq!(reply.status, 200);
    let spans = collector.wait_for_traces(1);
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let request = only(&spans, "GET /nearest");
    let (queue, pass) = (only(&spans, "queue"), only(&spans, "pass"));
    let encode = only(&spans, "encode");

    // One trace, and the right parents.
    assert!(spans.iter().all(|span| hexadecimal(&span.trace_id) == TRACE));
    assert!(spans.iter().all(|span| span.trace_state == "vendor=opaque,other=1"));
    assert_eq!(hexadecimal(&request.parent_span_id), CALLER);
    for child in [queue, pass, encode] {
        assert_eq!(child.parent_span_id, request.span_id, "{}", child.name);
        assert!(!is_error(child));
    }
    let ids: BTreeSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), 4);

    // Times are nested, and are those of now.
    let times = |span: &Span| (span.start_time_unix_nano, span.end_time_unix_nano);
    let order = [
        times(request).0,
        times(queue).0,
        times(queue).1,
        times(pass).0,
        times(pass).1,
        times(encode).0,
        times(encode).1,
        times(request).1,
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(times(pass).0 < times(pass).1);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    assert!(now - times(request).0 < 120_000_000_000, "{now} {order:?}");

    // What they say.
    let expected = [
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("http.route", "/nearest"),
        ("kindred.model", "tiny"),
        ("kindred.request_id", "my-own-id"),
        ("network.protocol.version", "1.1"),
        ("url.path", "/nearest"),
        ("url.scheme", "http"),
        ("user_agent.original", "a test"),
    ];
    let mut found = attributes(request);
    assert_eq!(found.remove("kindred.model.version").as_deref(), reply.json()["version"].as_str());
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let found = attributes(pass);
    for (key, value) in [
        ("kindred.workload", "search"),
        ("kindred.engine", "cpu"),
        ("kindred.pass.batch_size", "1"),
        ("kindred.pass.slices", "1"),
        ("kindred.pass.replica", "0"),
        ("kindred.job.queries", "1"),
    ] {
        assert_eq!(found.get(key).map(String::as_str), Some(value), "{key} in {found:?}");
    }
    let device: f64 = found["kindred.pass.device_seconds"].parse().unwrap();
    let whole = (times(pass).1 - times(pass).0) as f64 / 1e9;
    assert!(device > 0.0 && device <= whole, "{device} of {whole}");

    // The client learns the ids, and the collector which process it was.
    let told = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("server-timing"));
    let told: Vec<&str> = told.map(|(_, value)| &value[..]).collect();
    let span = hexadecimal(&request.span_id);
    assert!(told[0].starts_with("queue;dur="), "{told:?}");
    assert_eq!(told[1..], [format!("traceparent;desc=\"00-{TRACE}-{span}-01\"")]);
    let taken = collector.taken();
    let resource = &taken.resources[0];
    assert_eq!(attribute(resource, "service.name").as_deref(), Some("kindred"));
    assert_eq!(attribute(resource, "service.version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(attribute(resource, "service.instance.id").map(|id| id.len()), Some(32));
    assert!(taken.heads[0].starts_with("post /v1/traces http/1.1\r\n"), "{:?}", taken.heads);
    assert!(taken.heads[0].contains("\r\ncontent-type: application/x-protobuf\r\n"));
}

#[test]
fn what_a_head_answers_and_ranks_have_the_same_stages() {
    let collector = Collector::start();
    let endpoint = collector.url();
    let flags = ["--device", "cpu", "--traces-endpoint", &endpoint, "--traces-sample-ratio", "1"];
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(flags).env("KINDRED_LOG_LEVEL", "off").env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let service = Service::spawn(command);
    let asked = [
        ("/classify", json!({"text": "a moving and funny film"}), "classification"),
        ("/classify", json!({"texts": ["good", "bad film", "zzqqx"]}), "classification"),
        ("/expand", json!({"text": "cheap flights"}), "expansion"),
        ("/rank", json!({"word": "frog", "words": ["toad"]}), "full pass"),
    ];
    for (path, body, _) in &asked {
        let reply = service.post(path, body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
    let spans = collector.wait_for_traces(asked.len());
    let mut found: Vec<&Span> = requests(&spans).collect();
    found.sort_by_key(|span| span.start_time_unix_nano);
    for (request, (path, _, workload)) in found.into_iter().zip(&asked) {
        assert_eq!(request.name, format!("POST {path}"));
        let below: Vec<&Span> =
            spans.iter().filter(|span| span.parent_span_id == request.span_id).collect();
        let named = |name: &str| -> Vec<&Span> {
            below.iter().filter(|span| span.name == name).copied().collect()
        };
        let (encode, passes) = (named("encode"), named("pass"));
        assert_eq!(encode.len(), 1, "{path}: {below:#?}");
        let (began, ended) = (encode[0].start_time_unix_nano, encode[0].end_time_unix_nano);
        assert!(began < ended && ended <= request.end_time_unix_nano, "{path}");
        // After all passes, the first of which follows the queue.
        assert!(!named("queue").is_empty() && !passes.is_empty(), "{path}: {below:#?}");
        assert!(passes.iter().all(|pass| pass.end_time_unix_nano <= began), "{path}");
        assert!(passes.iter().all(|pass| attributes(pass)["kindred.workload"] == *workload));
    }

    // Nothing is asked of the engine, and the refusal is all of the answer.
    let reply = service.post("/classify", &json!({"text": "zzqqx"}));
    assert_eq!(reply.status, 404, "{}", reply.text());
    let spans = collector.wait_for_traces(asked.len() + 1);
    let refused = requests(&spans).max_by_key(|span| span.start_time_unix_nano).unwrap();
    assert!(!spans.iter().any(|span| span.parent_span_id == refused.span_id));
}

#[test]
fn a_request_of_several_jobs_shows_each_and_what_shared_its_pass() {
    let collector = Collector::start();
    let endpoint = collector.url();
    // The first request occupies the engine, and those that wait meanwhile share a pass.
    let faulty = supervision::start(
        &["--pass-microseconds", "300000"],
        &[
            ("KINDRED_TRACES_ENDPOINT", &endpoint),
            ("KINDRED_TRACES_SAMPLE_RATIO", "1"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ],
    );
    let service = &faulty.service;
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(service.get("/nearest?word=east").status, 200));
        std::thread::sleep(Duration::from_millis(100));
        for _ in 0..3 {
            scope.spawn(|| {
                let queries = json!({"queries": [{"word": "east"}, {"word": "north"}]});
                assert_eq!(service.post("/nearest", &queries).status, 200);
            });
        }
    });
    let explained = service.get("/nearest?word=east&explain=true");
    assert_eq!(explained.status, 200, "{}", explained.text());
    let rank = service.post("/rank", &json!({"word": "east", "words": ["north"]}));
    assert_eq!(rank.status, 200);
    let spans = collector.wait_for_traces(6);
    let below = |request: &Span, name: &str| -> Vec<BTreeMap<String, String>> {
        let is_below = |span: &&Span| span.parent_span_id == request.span_id && span.name == name;
        spans.iter().filter(is_below).map(attributes).collect()
    };
    let batches = requests(&spans).filter(|span| span.name == "POST /nearest");
    for request in batches {
        let passes = below(request, "pass");
        assert_eq!(passes.len(), 1, "{passes:?}");
        assert_eq!(passes[0]["kindred.job.queries"], "2");
        assert_eq!(passes[0]["kindred.pass.batch_size"], "6", "of three callers");
        // They waited for the pass before.
        assert_eq!(below(request, "queue").len(), 1);
    }
    let waited = spans.iter().filter(|span| span.name == "queue");
    let longest = waited.map(|span| span.end_time_unix_nano - span.start_time_unix_nano).max();
    assert!(longest.unwrap() > 50_000_000, "{longest:?} ns");
    let rank = requests(&spans).find(|span| span.name == "POST /rank").unwrap();
    assert_eq!(below(rank, "pass")[0]["kindred.workload"], "full pass");
    let explained = requests(&spans)
        .filter(|span| span.name == "GET /nearest")
        .max_by_key(|span| span.start_time_unix_nano);
    let passes = below(explained.unwrap(), "pass");
    assert_eq!(passes.len(), below(explained.unwrap(), "queue").len());
    assert!(!passes.is_empty());
}

#[test]
fn refusals_and_errors_have_their_status_and_only_the_services_own_are_errors() {
    let collector = Collector::start();
    let endpoint = collector.url();
    let faulty = supervision::start(
        &["--pass-microseconds", "400000"],
        &[
            ("KINDRED_TRACES_ENDPOINT", &endpoint),
            ("KINDRED_TRACES_SAMPLE_RATIO", "1"),
            ("KINDRED_QUEUE_CAPACITY_QUERIES", "1"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ],
    );
    let service = &faulty.service;
    let statuses = std::thread::scope(|scope| {
        let late = || {
            let timeout = [("Request-Timeout-Ms", "150")];
            service.send("GET", b"/nearest?word=east", &timeout, b"").status
        };
        let late = scope.spawn(late);
        std::thread::sleep(Duration::from_millis(50));
        let refused = service.get("/nearest?word=east").status;
        [late.join().unwrap(), refused, service.get("/nearest?word=nowhere").status]
    });
    assert_eq!(statuses, [504, 429, 404]);
    service.send("BREW", b"/made/up", &[], b"");
    let spans = collector.wait_for_traces(4);
    let with = |status: &str| {
        let has = |span: &&Span| {
            attribute(&span.attributes, "http.response.status_code").as_deref() == Some(status)
        };
        requests(&spans).find(has).unwrap_or_else(|| panic!("{status}: {spans:#?}"))
    };
    let late = with("504");
    assert!(is_error(late));
    assert_eq!(attribute(&late.attributes, "error.type").as_deref(), Some("504"));
    let queue = spans.iter().find(|span| span.parent_span_id == late.span_id).unwrap();
    assert!(queue.name == "queue" && is_error(queue), "{queue:?}");
    for status in ["429", "404"] {
        assert!(!is_error(with(status)), "{status}");
        assert_eq!(attribute(&with(status).attributes, "error.type"), None);
    }
    let brewed = requests(&spans).find(|span| span.name == "HTTP").expect("no route, no method");
    assert_eq!(attribute(&brewed.attributes, "http.request.method").as_deref(), Some("_OTHER"));
    assert_eq!(
        attribute(&brewed.attributes, "http.request.method_original").as_deref(),
        Some("BREW")
    );
}

#[test]
fn a_client_that_hangs_up_leaves_its_trace() {
    let collector = Collector::start();
    let endpoint = collector.url();
    let faulty = supervision::start(
        &["--pass-microseconds", "500000"],
        &[
            ("KINDRED_TRACES_ENDPOINT", &endpoint),
            ("KINDRED_TRACES_SAMPLE_RATIO", "1"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ],
    );
    let mut connection = faulty.service.connect();
    connection.write_all(b"GET /nearest?word=east HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(connection);
    let spans = collector.wait_for_traces(1);
    let request = requests(&spans).next().unwrap();
    assert!(is_error(request));
    let error = attribute(&request.attributes, "error.type");
    assert_eq!(error.as_deref(), Some("client_disconnected"));
}
