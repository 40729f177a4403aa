//! Traces, with the feature `traces`: what a collector gets, whom the service traces, and that a
//! collector which is not there costs no request anything.

mod callers;
mod exporting;
mod spans;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

use crate::support::collector::attribute;
use crate::support::{Reply, Service, TINY, kindred, prepared, read_reply};
use opentelemetry_proto::tonic::trace::v1::Span;

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
