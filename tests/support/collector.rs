//! A collector of traces: takes OTLP over HTTP, reads it, and keeps the spans.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Listens on a port of this machine until the test ends.
pub struct Collector {
    pub address: String,
    taken: Arc<Mutex<Taken>>,
}

/// What it has taken so far.
#[derive(Debug, Default, Clone)]
pub struct Taken {
    pub spans: Vec<Span>,
    /// The attributes of the processes that sent them.
    pub resources: Vec<Vec<KeyValue>>,
    /// The head of each message, in lower case.
    pub heads: Vec<String>,
}

impl Collector {
    /// Answers every message with this status line, and keeps those that it answers with 200.
    pub fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let taken = Arc::<Mutex<Taken>>::default();
        let keeps = taken.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let keeps = keeps.clone();
                thread::spawn(move || serve(connection, status, &keeps));
            }
        });
        Self { address, taken }
    }

    pub fn start() -> Self {
        Self::answering("200 OK")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn taken(&self) -> Taken {
        self.taken.lock().unwrap().clone()
    }

    /// Waits until the spans are as wanted.
    pub fn wait(&self, wanted: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let spans = self.taken().spans;
            if wanted(&spans) {
                return spans;
            }
            assert!(Instant::now() < deadline, "the spans never came; there are {spans:#?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until there is the request's span of this many traces, and returns all spans.
    pub fn wait_for_traces(&self, traces: usize) -> Vec<Span> {
        self.wait(|spans| requests(spans).count() >= traces)
    }
}

/// The spans of requests: those of the kind `server`.
pub fn requests(spans: &[Span]) -> impl Iterator<Item = &Span> {
    spans.iter().filter(|span| span.kind == 2)
}

/// The value of an attribute, as text.
pub fn attribute(of: &[KeyValue], key: &str) -> Option<String> {
    let found = of.iter().find(|one| one.key == key)?;
    match &found.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => Some(text.clone()),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => Some(number.to_string()),
        Some(AnyValue { value: Some(Value::DoubleValue(number)) }) => Some(number.to_string()),
        other => panic!("{key}: {other:?}"),
    }
}

/// An id in hexadecimal digits.
pub fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serve(connection: TcpStream, status: &str, keeps: &Mutex<Taken>) {
    let mut writer = connection.try_clone().expect("a second handle");
    let mut reader = BufReader::new(connection);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(reader.read_line(&mut head), Ok(1..)) {
                return;
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.expect("a length").trim().parse().expect("a number")];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let message = ExportTraceServiceRequest::decode(&body[..]).expect("OTLP");
        if status.starts_with("200") {
            let mut taken = keeps.lock().unwrap();
            for resource in message.resource_spans {
                taken.resources.push(resource.resource.unwrap_or_default().attributes);
                taken.spans.extend(resource.scope_spans.into_iter().flat_map(|one| one.spans));
            }
            taken.heads.push(head);
        }
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
        );
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
