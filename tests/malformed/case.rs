//! One wrong request and what must come back.

use std::io::Write;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Reply, Service, read_reply};

/// Longer than any answer takes, shorter than a developer's patience.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What a body may have for a model of two dimensions: 4 MiB, and 27 bytes for each component of
/// 1,024 vectors.
pub(crate) const BODY_LIMIT: usize = (4 << 20) + 2 * 1024 * 27;

/// How the bytes of a request go out.
#[derive(Clone, Copy)]
pub(crate) enum Transfer {
    /// With their length declared, if there are any.
    Whole,
    /// As one chunk that no end follows: the answer must not wait for it.
    ChunkWithoutEnd,
    /// Only declared, as a client does that waits for leave to send them.
    Withheld,
}

/// One request and what must come back.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) target: Vec<u8>,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Vec<u8>,
    pub(crate) transfer: Transfer,
    pub(crate) expected: Problem,
    pub(crate) allow: Option<&'static [&'static str]>,
}

/// What a problem document must say.
pub(crate) struct Problem {
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) detail: Vec<&'static str>,
    pub(crate) extras: Vec<(&'static str, Value)>,
}

impl Problem {
    pub(crate) fn new(status: u16, code: &'static str) -> Self {
        Self { status, code, detail: Vec::new(), extras: Vec::new() }
    }

    /// Compares with what came; what differs is the error.
    pub(crate) fn check(&self, found: &Value) -> Result<(), String> {
        let expect = |what: &str, is_right: bool| {
            if is_right { Ok(()) } else { Err(format!("{what} in {}", shortened(found))) }
        };
        expect(&format!("expected code {}", self.code), found["code"] == self.code)?;
        expect(&format!("expected status {}", self.status), found["status"] == self.status)?;
        let kind = format!("urn:kindred:problem:{}", self.code);
        expect(&format!("expected type {kind}"), found["type"] == *kind)?;
        for text in ["title", "detail"] {
            let is_text = found[text].as_str().is_some_and(|text| !text.is_empty());
            expect(&format!("expected a {text}"), is_text)?;
        }
        let detail = found["detail"].as_str().unwrap_or_default();
        for part in &self.detail {
            expect(&format!("expected {part:?} in the detail"), detail.contains(part))?;
        }
        for (name, value) in &self.extras {
            let what = format!("expected {name} = {}", shortened(value));
            expect(&what, found.get(*name) == Some(value))?;
        }
        Ok(())
    }
}

/// Enough of a value for a message.
pub(crate) fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 600 {
        return text;
    }
    text.chars().take(600).chain("…".chars()).collect()
}

/// `POST` of a body that is declared as JSON.
pub(crate) fn post(
    name: &'static str,
    target: &str,
    body: impl AsRef<[u8]>,
    status: u16,
    code: &'static str,
) -> Case {
    Case {
        body: body.as_ref().to_vec(),
        ..request(name, "POST", target, status, code).header("Content-Type", "application/json")
    }
}

pub(crate) fn get(
    name: &'static str,
    target: impl AsRef<[u8]>,
    status: u16,
    code: &'static str,
) -> Case {
    request(name, "GET", target, status, code)
}

pub(crate) fn request(
    name: &'static str,
    method: &'static str,
    target: impl AsRef<[u8]>,
    status: u16,
    code: &'static str,
) -> Case {
    Case {
        name,
        method,
        target: target.as_ref().to_vec(),
        headers: Vec::new(),
        body: Vec::new(),
        transfer: Transfer::Whole,
        expected: Problem::new(status, code),
        allow: None,
    }
}

impl Case {
    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same as a `POST` of a body.
    pub(crate) fn posting(mut self, body: &str) -> Self {
        (self.method, self.body) = ("POST", body.as_bytes().to_vec());
        self.header("Content-Type", "application/json")
    }

    /// Declares the body as something else, or as nothing.
    pub(crate) fn declared_as(mut self, media_type: &'static str) -> Self {
        self.headers.retain(|(name, _)| *name != "Content-Type");
        self.header("Content-Type", media_type)
    }

    pub(crate) fn transferred(mut self, transfer: Transfer) -> Self {
        self.transfer = transfer;
        self
    }

    pub(crate) fn detail(mut self, part: &'static str) -> Self {
        self.expected.detail.push(part);
        self
    }

    pub(crate) fn extra(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.expected.extras.push((name, value.into()));
        self
    }

    pub(crate) fn allow(mut self, methods: &'static [&'static str]) -> Self {
        self.allow = Some(methods);
        self
    }

    pub(crate) fn send(&self, service: &Service) -> Reply {
        match self.transfer {
            // What is large may be answered before all of it is sent, which `send` does not bear.
            Transfer::Whole if self.body.len() < 1 << 20 => {
                service.send(self.method, &self.target, &self.headers, &self.body)
            }
            Transfer::Whole => {
                let length = format!("Content-Length: {}\r\n\r\n", self.body.len());
                self.send_bytes(service, &[length.as_bytes(), &self.body].concat())
            }
            Transfer::ChunkWithoutEnd => {
                let size = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", self.body.len());
                self.send_bytes(service, &[size.as_bytes(), &self.body].concat())
            }
            Transfer::Withheld => {
                let length = self.body.len();
                let end = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n");
                self.send_bytes(service, end.as_bytes())
            }
        }
    }

    /// `end` holds the last headers, the empty line, and the body.
    pub(crate) fn send_bytes(&self, service: &Service, end: &[u8]) -> Reply {
        let mut bytes = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\n"].concat();
        bytes.extend(b"Host: localhost\r\nConnection: close\r\n");
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(end);
        let mut connection = impatient(service);
        // Whoever is refused early can't send all; the answer says why.
        let _ = connection.write_all(&bytes);
        read_reply(&mut connection)
    }

    pub(crate) fn check(&self, service: &Service) -> Result<(), String> {
        let reply = catch_unwind(AssertUnwindSafe(|| self.send(service)))
            .map_err(|_| "no answer".to_owned())?;
        let body = String::from_utf8_lossy(&reply.body);
        if reply.status != self.expected.status {
            return Err(format!(
                "expected status {}, got {} with {}",
                self.expected.status,
                reply.status,
                shortened(&json!(body))
            ));
        }
        if reply.header("content-type") != Some("application/problem+json") {
            return Err(format!("it is declared as {:?}", reply.header("content-type")));
        }
        let problem: Value =
            serde_json::from_str(&body).map_err(|e| format!("no JSON ({e}): {body}"))?;
        self.expected.check(&problem)?;
        let path = self.target.split(|byte| *byte == b'?').next().unwrap_or_default();
        if [&b"/nearest"[..], b"/analogy", b"/rank", b"/similarity", b"/odd-one-out"]
            .contains(&path)
        {
            has_server_timing(&reply)?;
        }
        if let Some(methods) = self.allow {
            let allow = reply.header("allow").unwrap_or_default();
            let mut found: Vec<_> = allow.split(',').map(str::trim).collect();
            found.sort_unstable();
            if found != methods {
                return Err(format!("Allow is {allow:?}"));
            }
        }
        Ok(())
    }
}

pub(crate) fn has_server_timing(reply: &Reply) -> Result<(), String> {
    let timing = reply.header("server-timing").ok_or("it has no Server-Timing")?;
    let is_whole = ["queue;dur=", "engine;desc=\"cpu\";dur=", "total;dur="]
        .iter()
        .all(|part| timing.contains(part));
    if is_whole { Ok(()) } else { Err(format!("Server-Timing is {timing}")) }
}

pub(crate) fn impatient(service: &Service) -> TcpStream {
    let connection = service.connect();
    connection.set_read_timeout(Some(PATIENCE)).expect("a time-out is set");
    connection
}
