//! A service behind a URL.

use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, UnexpectedEof};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_rustls::rustls;
use ureq::Agent;

use super::ConsoleError;
use super::service::{Reply, Service, Times};
use crate::arguments::AnswerSource;
use server::client;
use server::config::check_variables;

/// Size limit of an answer, in bytes. A thousand neighbours with all their details are far smaller.
const MOST_BYTES: u64 = 256 << 20;

/// A running service, or one of its models.
pub(super) struct Remote {
    agent: Agent,
    /// Without a slash at its end.
    url: String,
    api_key: Option<String>,
    /// The proxy that requests go through.
    proxy: Option<String>,
    /// Whether it answered before: then the URL's scheme is right.
    has_answered: AtomicBool,
}

/// The kinds of failures, by their cure.
enum FailureKind {
    Certificate,
    /// The server does not speak TLS, or speaks only TLS.
    Scheme,
    Other,
}

fn trouble(error: &ureq::Error) -> FailureKind {
    let of_tls = |error: &rustls::Error| match error {
        rustls::Error::InvalidCertificate(_) => FailureKind::Certificate,
        rustls::Error::InvalidMessage(_) => FailureKind::Scheme,
        _ => FailureKind::Other,
    };
    match error {
        ureq::Error::Rustls(error) => of_tls(error),
        ureq::Error::Io(error) => match error.get_ref().and_then(|e| e.downcast_ref()) {
            Some(error) => of_tls(error),
            // A connection that does not speak HTTP ends with one of these errors.
            None if matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted) => {
                FailureKind::Scheme
            }
            None => FailureKind::Other,
        },
        ureq::Error::Protocol(_) => FailureKind::Scheme,
        _ => FailureKind::Other,
    }
}

impl Remote {
    /// Sends no request yet.
    pub(super) fn new(url: &str, source: &AnswerSource) -> Result<Self, ConsoleError> {
        check_variables()?;
        let bad =
            |(url, reason): (String, &str)| ConsoleError::BadUrl { url, reason: reason.into() };
        let parsed = client::service_url(url).map_err(bad)?;
        let api_key = client::api_key(source.api_key.as_deref())?;
        let agent = client::agent(&parsed)?;
        let proxy = client::proxy_name(&parsed);
        Ok(Self {
            agent,
            url: url.trim_end_matches('/').to_owned(),
            api_key,
            proxy,
            has_answered: AtomicBool::new(false),
        })
    }

    /// The error that no answer was received, with what may help.
    fn unreachable(&self, error: ureq::Error) -> ConsoleError {
        let kind = match trouble(&error) {
            // A service that stops while it is asked.
            FailureKind::Scheme if self.has_answered.load(Ordering::Relaxed) => FailureKind::Other,
            kind => kind,
        };
        let cure = match (&self.proxy, kind, self.url.split_once("://")) {
            (Some(proxy), ..) => format!(
                "the request went through the proxy {proxy} from the environment: is the proxy running? To \
                 bypass it, add the host to NO_PROXY"
            ),
            (_, FailureKind::Certificate, _) => {
                "to trust this certificate, set SSL_CERT_FILE to a file with it or with its issuer's \
                 certificate"
                    .to_owned()
            }
            (_, FailureKind::Scheme, Some(("https", rest))) => {
                format!("it may not support HTTPS: try --url http://{rest}")
            }
            (_, FailureKind::Scheme, Some((_, rest))) => {
                format!("if it uses HTTPS, try --url https://{rest}")
            }
            _ => "is the service running there, and is --url correct?".to_owned(),
        };
        ConsoleError::Unreachable { url: self.url.clone(), source: Box::new(error), cure }
    }
}

impl Service for Remote {
    fn ask(
        &self,
        path: &str,
        body: Option<&Value>,
        timeout: Option<Duration>,
    ) -> Result<Reply, ConsoleError> {
        let mut request = ureq::http::Request::builder().uri(format!("{}{path}", self.url));
        if let Some(key) = &self.api_key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let bad =
            |e: ureq::http::Error| ConsoleError::BadUrl { url: self.url.clone(), reason: e.into() };
        let in_time = |bound: Option<Duration>| bound.or(Some(client::REQUEST));
        let asked = Instant::now();
        let answer = match body {
            Some(body) => {
                let request = request.method("POST").header("Content-Type", "application/json");
                let request = request.body(body.to_string()).map_err(bad)?;
                let request = self.agent.configure_request(request);
                self.agent.run(request.timeout_global(in_time(timeout)).build())
            }
            None => {
                let request = self.agent.configure_request(request.body(()).map_err(bad)?);
                self.agent.run(request.timeout_global(in_time(timeout)).build())
            }
        };
        let mut response = answer.map_err(|e| self.unreachable(e))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let status = response.status().as_u16();
        let timing = response.headers().get("server-timing").cloned();
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let body = body.map_err(|e| self.unreachable(e))?;
        let round_trip = Some(asked.elapsed().as_secs_f64() * 1e3);
        let times = timing.and_then(|timing| Times::read(timing.to_str().ok()?));
        let times = times.map(|times| Times { round_trip, ..times });
        Ok(Reply { status, body, times })
    }

    fn name(&self) -> String {
        self.url.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_service_that_stops_while_it_is_asked_is_not_taken_for_one_with_another_scheme() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = thread::spawn(move || {
            for answers in [1, 0] {
                let (mut stream, _) = listener.accept().unwrap();
                for _ in 0..answers {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        head.push(byte[0]);
                    }
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
                }
                // It closes with a request unread, so the client sees a reset.
                stream.peek(&mut [0]).unwrap();
            }
        });
        let ask = |remote: &Remote| remote.ask("/model", None, None).map(|reply| reply.status);
        let source = AnswerSource::default();
        let remote = Remote::new(&url, &source).unwrap();
        assert_eq!(ask(&remote).unwrap(), 200);
        let said = ask(&remote).unwrap_err().to_string();
        assert!(said.contains("is the service running there"), "{said}");
        let said = ask(&Remote::new(&url, &source).unwrap()).unwrap_err().to_string();
        assert!(said.contains("if it uses HTTPS"), "{said}");
        service.join().unwrap();
    }
}
