//! Traces, with the feature `traces`: what a collector gets, whom the service traces, and that a collector which is not
//! there costs no request anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::supervision;
use crate::support::collector::{Collector, attribute, hexadecimal, requests};
use crate::support::{Reply, Service, TINY, kindred, prepared, read_reply};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::json;

const GUIDE: &str = include_str!("../docs/tracing.md");

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// A service over a small model that sends its traces here, soon.
struct Traced {
    service: Service,
    _scratch: tempfile::TempDir,
}

fn command(endpoint: &str, arguments: &[&str]) -> (tempfile::TempDir, Command) {
    let (scratch, model) = prepared(TINY);
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cpu"]);
    command.arg("--model").arg(model).args(["--traces-endpoint", endpoint]).args(arguments);
    command.env("KINDRED_LOG_LEVEL", "off").env("OTEL_BSP_SCHEDULE_DELAY", "50");
    (scratch, command)
}

fn start(endpoint: &str, arguments: &[&str]) -> Traced {
    let (_scratch, command) = command(endpoint, arguments);
    Traced { service: Service::spawn(command), _scratch }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let all = span.attributes.iter();
    all.map(|one| (one.key.clone(), attribute(&span.attributes, &one.key).unwrap())).collect()
}

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

/// Sends requests one after the other on one connection, each with these headers.
fn ask_all(service: &Service, target: &str, headers: &[String]) -> Vec<Reply> {
    let mut connection = service.connect();
    let ask = |headers: &String| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        read_reply(&mut connection)
    };
    headers.iter().map(ask).collect()
}

fn metric(service: &Service, name: &str) -> f64 {
    let reply = service.get("/metrics");
    let found = reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// Tells it to stop. Returns how long that took.
fn stop(service: &mut Service) -> Duration {
    let since = Instant::now();
    assert!(Command::new("kill").arg(service.child.id().to_string()).status().unwrap().success());
    assert!(service.child.wait().unwrap().success());
    since.elapsed()
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
fn the_standard_variables_name_the_service_and_add_headers() {
    let collector = Collector::start();
    let (_place, mut command) = command(&collector.url(), &["--traces-sample-ratio", "1"]);
    command
        .env("OTEL_SERVICE_NAME", "words")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.instance.id=one")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20secret");
    let service = Service::spawn(command);
    service.get("/nearest?word=east");
    collector.wait_for_traces(1);
    let taken = collector.taken();
    for (key, value) in [
        ("service.name", "words"),
        ("deployment.environment.name", "test"),
        ("service.instance.id", "one"),
    ] {
        assert_eq!(attribute(&taken.resources[0], key).as_deref(), Some(value));
    }
    assert!(taken.heads[0].contains("\r\nx-key: a secret\r\n"), "{}", taken.heads[0]);
}

#[test]
fn neither_a_word_nor_a_query_is_in_a_trace_unless_the_access_log_may_have_it() {
    for (shown, path, query) in [
        ("false", "/words/{word}", None),
        ("true", "/words/private", Some("lang=secret".to_owned())),
    ] {
        let collector = Collector::start();
        let all = ["--traces-sample-ratio", "1", "--access-log-query", shown];
        let traced = start(&collector.url(), &all);
        traced.service.get("/words/private?lang=secret");
        let spans = collector.wait_for_traces(1);
        let request = requests(&spans).next().unwrap();
        assert_eq!(request.name, "GET /words/{word}");
        assert_eq!(attribute(&request.attributes, "url.path").as_deref(), Some(path));
        assert_eq!(attribute(&request.attributes, "url.query"), query);
        let said = format!("{spans:?}");
        assert_eq!(said.contains("private") || said.contains("secret"), shown == "true", "{said}");
    }
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
fn the_ratio_is_that_of_the_traces_and_callers_decide_for_theirs() {
    let collector = Collector::start();
    let traced = start(&collector.url(), &["--traces-sample-ratio", "0.25"]);
    const ASKED: usize = 4000;
    let replies = ask_all(&traced.service, "/nearest?word=east", &vec![String::new(); ASKED]);
    assert!(replies.iter().all(|reply| reply.status == 200));
    let is_traced = |reply: &&Reply| format!("{:?}", reply.headers).contains("traceparent");
    let expected = replies.iter().filter(is_traced).count();
    // Six standard deviations of the binomial distribution.
    assert!(expected.abs_diff(ASKED / 4) < 165, "{expected} of {ASKED}");
    let spans = collector.wait_for_traces(expected);
    assert_eq!(requests(&spans).count(), expected);
    let ids: BTreeSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(ids.len(), expected);
    assert!(requests(&spans).all(|span| span.parent_span_id.is_empty()));

    // A caller that does not trace its request is not traced here.
    let unsampled = format!("traceparent: {}\r\n", traceparent("00"));
    let replies = ask_all(&traced.service, "/nearest?word=east", &vec![unsampled; 200]);
    assert!(!replies.iter().any(|reply| is_traced(&reply)));
}

#[test]
fn a_client_that_asks_for_a_trace_each_time_gets_so_many_a_second() {
    let collector = Collector::start();
    let limits = ["--traces-sample-ratio", "0", "--traces-asked-per-second", "5"];
    let traced = start(&collector.url(), &limits);
    let since = Instant::now();
    let sampled = format!("traceparent: {}\r\n", traceparent("01"));
    ask_all(&traced.service, "/nearest?word=east", &vec![sampled; 300]);
    // The seconds that these requests touched.
    let at_most = 5 * (since.elapsed().as_secs() as usize + 2);
    let refused = metric(&traced.service, "kindred_traces_refused_total") as usize;
    let given = 300 - refused;
    assert!((5..=at_most).contains(&given), "{given}, at most {at_most}");
    assert_eq!(requests(&collector.wait_for_traces(given)).count(), given);

    // Without trust in callers their header is not even read.
    let distrusts = ["--traces-sample-ratio", "1", "--traces-asked-per-second", "0"];
    let traced = start(&collector.url(), &distrusts);
    traced.service.send("GET", b"/nearest?word=east", &[("traceparent", &traceparent("00"))], b"");
    let spans = collector.wait_for_traces(given + 1);
    let last = requests(&spans).find(|span| hexadecimal(&span.trace_id) != TRACE).unwrap();
    assert!(last.parent_span_id.is_empty());
}

#[test]
fn hostile_headers_are_no_parents_and_change_no_answer() {
    let collector = Collector::start();
    let traced = start(&collector.url(), &["--traces-sample-ratio", "0"]);
    let plain = traced.service.get("/nearest?word=east");
    let good = traceparent("01");
    let (zero, no_span) =
        (good.replace(TRACE, &"0".repeat(32)), good.replace(CALLER, &"0".repeat(16)));
    let hostile = [
        "",
        "00",
        "-",
        &good[..54],
        &format!("{good}-00"),
        &format!("ff{}", &good[2..]),
        &good.to_uppercase(),
        &zero,
        &no_span,
        &good.replace('-', " "),
        &good.replace("4b", "\u{e4}"),
        &"a".repeat(8000),
        &"00-".repeat(2000),
        &format!("{good}\r\ntraceparent: {good}"),
        &format!("{good}, {good}"),
    ];
    let headers = hostile.map(|value| format!("traceparent: {value}\r\ntracestate: {value}\r\n"));
    // A state without a parent, and one that is no state.
    let states =
        ["tracestate: a=b\r\n".to_owned(), format!("tracestate: {}\r\n", "=,".repeat(3000))];
    for reply in ask_all(&traced.service, "/nearest?word=east", &[&headers[..], &states].concat()) {
        assert_eq!((reply.status, &reply.body), (200, &plain.body));
    }
    // Now a good one with a bad state: it is the only trace.
    let state = format!(
        "traceparent: {good}\r\ntracestate: {}\r\n",
        "\u{e4}=\u{1}".repeat(10).replace('\u{1}', "\t")
    );
    ask_all(&traced.service, "/nearest?word=east", &[state]);
    let spans = collector.wait_for_traces(1);
    assert_eq!(requests(&spans).count(), 1);
    assert_eq!(metric(&traced.service, "kindred_trace_spans_total{outcome=\"exported\"}"), 4.0);
    assert_eq!(metric(&traced.service, "kindred_traces_refused_total"), 0.0);
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

#[test]
fn the_last_traces_are_sent_before_the_service_ends() {
    let collector = Collector::start();
    let (_place, mut command) = command(&collector.url(), &["--traces-sample-ratio", "1"]);
    // Longer than this test.
    command.env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    let mut service = Service::spawn(command);
    for _ in 0..10 {
        service.get("/nearest?word=east");
    }
    assert!(collector.taken().spans.is_empty());
    assert!(stop(&mut service) < Duration::from_secs(20));
    assert_eq!(requests(&collector.taken().spans).count(), 10);
}

#[test]
fn a_collector_that_is_not_there_slows_no_request_and_drops_are_counted() {
    // A port where nobody listens, one where nobody answers, and a collector that refuses.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let refuses = Collector::answering("503 Service Unavailable");
    for (address, outcome) in [
        (closed, "failed"),
        (silent.local_addr().unwrap().to_string(), "dropped"),
        (refuses.address, "failed"),
    ] {
        let mut traced = start(&format!("http://{address}"), &["--traces-sample-ratio", "1"]);
        let since = Instant::now();
        // More spans than may wait.
        let asked = 3000;
        let replies = ask_all(&traced.service, "/nearest?word=east", &vec![String::new(); asked]);
        assert!(replies.iter().all(|reply| reply.status == 200));
        // Each batch of spans would take ten seconds.
        assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
        let name = |outcome| format!("kindred_trace_spans_total{{outcome=\"{outcome}\"}}");
        let deadline = Instant::now() + Duration::from_secs(30);
        while metric(&traced.service, &name(outcome)) < 500.0 {
            assert!(Instant::now() < deadline, "{}", traced.service.get("/metrics").text());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(metric(&traced.service, &name("exported")), 0.0);
        assert!(stop(&mut traced.service) < Duration::from_secs(20), "{address}");
    }
}

#[test]
fn the_access_log_has_the_traces_id_and_a_failing_collector_is_said_once() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_place, mut command) =
        command(&format!("http://{closed}"), &["--traces-sample-ratio", "0"]);
    command.args(["--log-format", "json", "--access-log-one-in", "1", "--log-level", "info"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = child.stderr.take().unwrap();
    let mut log = String::new();
    let mut buffer = [0; 4096];
    let mut read_until = |part: &str| {
        while !log.contains(part) {
            let read = errors.read(&mut buffer).unwrap();
            assert!(read > 0, "{log}");
            log.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        log.clone()
    };
    let address = read_until("\"listening\"");
    let address = address.split("\"address\":\"").nth(1).unwrap().split('"').next().unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    for header in [format!("traceparent: {}\r\n", traceparent("01")), String::new()] {
        for _ in 0..2 {
            let request = format!("GET /nearest?word=east HTTP/1.1\r\nHost: x\r\n{header}\r\n");
            connection.write_all(request.as_bytes()).unwrap();
            assert_eq!(read_reply(&mut connection).status, 200);
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    let log = read_until("can't send traces");
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let log = log + &rest;
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let lines: Vec<_> = lines.filter(|line| line["target"] == "access").collect();
    let ids: Vec<_> = lines.iter().map(|line| line["trace_id"].as_str()).collect();
    assert_eq!(ids, [Some(TRACE), Some(TRACE), None, None]);
    assert_eq!(log.matches("can't send traces").count(), 1, "{log}");
}

#[test]
fn a_wrong_setting_is_refused_at_the_start_with_its_cure() {
    let refused = |arguments: &[&str]| {
        let (_place, model) = prepared(TINY);
        let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--model"]);
        let output = command.arg(model).args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (arguments, part) in [
        (["--traces-endpoint", "127.0.0.1:4318"], "traces_endpoint"),
        (["--traces-endpoint", "http://me:secret@h:1"], "OTEL_EXPORTER_OTLP_HEADERS"),
        (["--traces-sample-ratio", "1.5"], "from 0 to 1"),
        (["--traces-sample-ratio", "NaN"], "from 0 to 1"),
        (["--traces-asked-per-second", "4000000000"], "from 0 to 1000000"),
    ] {
        let said = refused(&arguments);
        assert!(said.contains(part) && !said.contains("secret"), "{arguments:?}: {said}");
    }
}

#[test]
fn without_a_collector_nothing_is_traced_and_with_one_every_metric_is_documented() {
    let (_place, model) = prepared(TINY);
    let service = Service::start(&["--device", "cpu", "--model", model.to_str().unwrap()]);
    let headers = [("traceparent", &traceparent("01")[..])];
    let reply = service.send("GET", b"/nearest?word=east", &headers, b"");
    assert!(!format!("{:?}", reply.headers).contains("traceparent"));
    assert!(!service.get("/metrics").text().contains("kindred_trace"));

    let traced = start("http://127.0.0.1:9", &[]);
    let text = traced.service.get("/metrics").text().to_owned();
    let names: BTreeSet<&str> = text
        .lines()
        .filter(|line| line.starts_with("kindred_trace"))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        assert!(GUIDE.contains(&format!("`{name}`")), "{name}");
    }
}
