//! What reaches a collector, and that one which is not there costs no request anything.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{TRACE, ask_all, command, metric, start, traceparent};
use crate::support::collector::{Collector, attribute, requests};
use crate::support::{Service, TINY, kindred, prepared, read_reply};

const GUIDE: &str = include_str!("../../docs/tracing.md");

/// Tells it to stop. Returns how long that took.
fn stop(service: &mut Service) -> Duration {
    let since = Instant::now();
    assert!(Command::new("kill").arg(service.child.id().to_string()).status().unwrap().success());
    assert!(service.child.wait().unwrap().success());
    since.elapsed()
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
