//! A service behind a URL.

use std::error::Error;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, UnexpectedEof};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kindred::heads::HeadKind;
use kindred::options::DEFAULT_K;
use kindred::{ModelDescription, Options, Side, Target, Unknown};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio_rustls::rustls::{self, CertificateError};
use ureq::Agent;

use super::answer::{
    ModelAnswer, OddAnswer, PairScore, Problem, RankAnswer, SimilarityAnswer, TextAnswer,
};
use super::service::{ListedHead, MAX_OFFERED, Outcome, Reply, Service, Times, no_command};
use crate::error::CommandError;
use server::client;
use server::config::check_variables;
use server::http::MAX_LISTED;

/// Size limit of an answer, in bytes. A thousand neighbours with all their details are far smaller.
const MOST_BYTES: u64 = 256 << 20;

/// Time limit for finding the words to offer, because people who type do not wait.
const PATIENCE: Duration = Duration::from_millis(500);

/// Size limit of an escaped prefix. A longer one would not fit into a path, so it is taken to match
/// no word.
const MAX_PREFIX_BYTES: usize = 16 << 10;

/// An answer to `/words`: the fields that are used.
#[derive(Deserialize)]
struct Listed {
    words: Vec<ListedWord>,
}

#[derive(Deserialize)]
struct ListedWord {
    word: String,
}

/// An answer to `/heads`: the fields that are used.
#[derive(Deserialize)]
struct Heads {
    heads: Vec<ListedHead>,
}

/// The answer of a service, whatever its status.
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The delay before another request, if the service names one.
    pub(crate) retry_after: Option<Duration>,
    times: Option<Times>,
}

/// A running service, or one of its models.
pub(crate) struct Remote {
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
    Certificate(CertificateError),
    /// The server does not speak TLS, or speaks only TLS.
    Scheme,
    Other,
}

fn trouble(error: &ureq::Error) -> FailureKind {
    if let Some(error) = client::tls_error(error) {
        return match error {
            rustls::Error::InvalidCertificate(why) => FailureKind::Certificate(why.clone()),
            rustls::Error::InvalidMessage(_) => FailureKind::Scheme,
            _ => FailureKind::Other,
        };
    }
    match error {
        // A connection that does not speak HTTP ends with one of these errors.
        ureq::Error::Io(error)
            if matches!(error.kind(), UnexpectedEof | ConnectionReset | ConnectionAborted) =>
        {
            FailureKind::Scheme
        }
        ureq::Error::Protocol(_) => FailureKind::Scheme,
        _ => FailureKind::Other,
    }
}

/// The cure for the certificate of the service at this URL.
fn cure(why: &CertificateError, url: &str) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet,
        NotValidYetContext,
    };
    let url = url.parse::<ureq::http::Uri>().ok();
    let host = url.as_ref().and_then(|url| url.host()).unwrap_or("HOST");
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let kind = if host.parse::<IpAddr>().is_ok() { "IP" } else { "DNS" };
    let new_one = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 365 -keyout key.pem -out cert.pem \
         -subj /CN={host} -addext subjectAltName={kind}:{host}"
    );
    match why {
        NotValidForName | NotValidForNameContext { .. } => format!(
            "the certificate does not have the name {host}: give --url with a name that it has, or \
             the service a certificate with this name, as made by: {new_one}"
        ),
        Expired | ExpiredContext { .. } => {
            format!("give the service a new certificate, as made by: {new_one}")
        }
        NotValidYet | NotValidYetContext { .. } => {
            "compare the clocks of this machine and of the one that made the certificate".to_owned()
        }
        // webpki's error, which rustls does not name.
        other if format!("{other:?}").contains("UnsupportedCertVersion") => format!(
            "the certificate is of version 1: give the service one of version 3, as made by: \
             {new_one}"
        ),
        _ => "to trust this certificate, set SSL_CERT_FILE to a file with it or with its issuer's \
              certificate"
            .to_owned(),
    }
}

impl Remote {
    /// Sends no request yet. `api_key` overrides that of the environment.
    pub(crate) fn new(url: &str, api_key: Option<&str>) -> Result<Self, CommandError> {
        check_variables()?;
        let bad =
            |(url, reason): (String, &str)| CommandError::BadUrl { url, reason: reason.into() };
        let parsed = client::service_url(url).map_err(bad)?;
        let api_key = client::api_key(api_key)?;
        let agent = client::agent(&parsed, client::REQUEST)?;
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
    fn unreachable(&self, error: ureq::Error) -> CommandError {
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
            (_, FailureKind::Certificate(why), _) => cure(&why, &self.url),
            (_, FailureKind::Scheme, Some(("https", rest))) => {
                format!("it may not support HTTPS: try --url http://{rest}")
            }
            (_, FailureKind::Scheme, Some((_, rest))) => {
                format!("if it uses HTTPS, try --url https://{rest}")
            }
            _ => "is the service running there, and is --url correct?".to_owned(),
        };
        CommandError::NoAnswer { url: self.url.clone(), source: Box::new(error), cure }
    }

    /// Sends a POST with `body`, or a GET if there is no body, and reads the answer. Waits at most
    /// `timeout`, if it is given.
    fn exchange<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&Value>,
        timeout: Option<Duration>,
    ) -> Outcome<Reply<T>> {
        let received = self.send(path, body, timeout)?;
        Ok(Reply { answer: self.read(received.status, &received.body)?, times: received.times })
    }

    /// As `exchange`, but leaves the answer as it is.
    pub(crate) fn send(
        &self,
        path: &str,
        body: Option<&Value>,
        timeout: Option<Duration>,
    ) -> Outcome<Received> {
        let mut request = ureq::http::Request::builder().uri(format!("{}{path}", self.url));
        if let Some(key) = &self.api_key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let bad =
            |e: ureq::http::Error| CommandError::BadUrl { url: self.url.clone(), reason: e.into() };
        let within = Some(timeout.unwrap_or(client::REQUEST));
        let asked = Instant::now();
        let answer = match body {
            Some(body) => {
                let request = request.method("POST").header("Content-Type", "application/json");
                let request = request.body(body.to_string()).map_err(bad)?;
                let request = self.agent.configure_request(request);
                self.agent.run(request.timeout_global(within).build())
            }
            None => {
                let request = self.agent.configure_request(request.body(()).map_err(bad)?);
                self.agent.run(request.timeout_global(within).build())
            }
        };
        let mut response = answer.map_err(|e| self.unreachable(e))?;
        self.has_answered.store(true, Ordering::Relaxed);
        let status = response.status().as_u16();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (timing, retry_after) = (header("server-timing"), header("retry-after"));
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let body = body.map_err(|e| self.unreachable(e))?;
        let round_trip = asked.elapsed().as_secs_f64() * 1e3;
        let times = timing.and_then(|timing| read_times(&timing, round_trip));
        let retry_after = retry_after.and_then(|seconds| seconds.parse().ok());
        Ok(Received { status, body, retry_after: retry_after.map(Duration::from_secs), times })
    }

    /// The most frequent words with this prefix.
    fn words(&self, prefix: &str, limit: usize, timeout: Option<Duration>) -> Outcome<Vec<String>> {
        let prefix = utf8_percent_encode(prefix, NON_ALPHANUMERIC).to_string();
        if prefix.len() > MAX_PREFIX_BYTES {
            return Ok(Vec::new());
        }
        let path = format!("/words?prefix={prefix}&limit={limit}");
        let Listed { words } = self.exchange(&path, None, timeout)?.answer;
        Ok(words.into_iter().map(|listed| listed.word).collect())
    }

    /// The error of an answer that is none of Kindred's.
    pub(crate) fn strange(&self, reason: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        CommandError::NotKindred { url: self.url.clone(), reason: reason.into() }
    }

    /// Parses an answer, or returns the error that the service sent instead.
    pub(crate) fn read<T: DeserializeOwned>(&self, status: u16, body: &[u8]) -> Outcome<T> {
        let strange = |reason: Box<dyn Error + Send + Sync>| self.strange(reason);
        if status != 200 {
            return Err(match serde_json::from_slice::<Problem>(body) {
                Ok(problem) if status == 401 => CommandError::NoKey(problem.message()),
                Ok(problem) if problem.code == "no_such_route" => CommandError::Refused(format!(
                    "--url {}: {}; give it as http://HOST:PORT or http://HOST:PORT/models/NAME",
                    self.url,
                    problem.message()
                )),
                Ok(problem) => CommandError::Refused(problem.message()),
                Err(_) if status == 401 => {
                    CommandError::NoKey(format!("{} answers with status 401", self.url))
                }
                Err(_) => strange(format!("status {status}").into()),
            });
        }
        serde_json::from_slice(body).map_err(|e| strange(e.into()))
    }
}

/// Parses a `Server-Timing` header.
fn read_times(header: &str, round_trip: f64) -> Option<Times> {
    let of = |name: &str| {
        let mut metrics = header.split(',').map(|metric| metric.trim().split(';'));
        let mut fields = metrics.find_map(|mut m| (m.next() == Some(name)).then_some(m))?;
        fields.find_map(|field| field.trim().strip_prefix("dur=")?.parse().ok())
    };
    Some(Times {
        queue: of("queue")?,
        engine: of("engine")?,
        total: of("total")?,
        round_trip: Some(round_trip),
    })
}

/// The route that answers a question about words, and the body of the request.
fn request(target: &Target, options: &Options) -> (&'static str, Value) {
    let (path, options) = match target {
        Target::Words(_) => ("/analogy", options.clone()),
        _ => ("/nearest", Options { method: None, ..options.clone() }),
    };
    let mut body = options.to_json();
    put_target(&mut body, target);
    (path, body)
}

/// Adds the target to the body of a request.
fn put_target(body: &mut Value, target: &Target) {
    match target {
        Target::Words(words) => {
            // All words are in one list, so that they are summed in this order.
            let words = words.iter().map(|one| json!({"word": one.word, "weight": one.weight}));
            body["positive"] = words.collect();
        }
        Target::Word(word) => body["word"] = json!(word),
        Target::Text(text) => body["text"] = json!(text),
        _ => unreachable!("lines and arguments are words or texts"),
    }
}

/// An answer to `/similarity`: each pair has a score, or an error of its own.
#[derive(Deserialize)]
struct Compared {
    model: String,
    version: String,
    results: Vec<ComparedPair>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ComparedPair {
    Found(PairScore),
    Failed { error: Problem },
}

/// A body that says what becomes of unknown words, if anybody did.
fn with_unknown(mut body: Value, unknown: Option<Unknown>) -> Value {
    if let Some(unknown) = unknown {
        body["unknown"] = json!(unknown);
    }
    body
}

impl Service for Remote {
    fn ask(&self, target: &Target, options: &Options) -> Outcome<Reply<ModelAnswer<'_>>> {
        let (path, body) = request(target, options);
        self.exchange(path, Some(&body), None)
    }

    fn similarity(
        &self,
        sides: [Side; 2],
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<SimilarityAnswer<'_>>> {
        let sides = sides.map(|side| match side {
            Side::Word(word) => json!(word),
            Side::Set(words) => json!(words),
        });
        let body = with_unknown(json!({"pairs": [sides]}), unknown);
        let Reply { answer: Compared { model, version, results }, times } =
            self.exchange("/similarity", Some(&body), None)?;
        let results = results.into_iter().map(|pair| match pair {
            ComparedPair::Found(score) => Ok(score),
            ComparedPair::Failed { error } => Err(CommandError::Refused(error.message())),
        });
        let results = results.collect::<Result<_, _>>()?;
        let (model, version) = (model.into(), version.into());
        Ok(Reply { answer: SimilarityAnswer { model, version, results }, times })
    }

    fn odd_one_out(
        &self,
        words: Vec<String>,
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<OddAnswer<'_>>> {
        let body = with_unknown(json!({"words": words}), unknown);
        self.exchange("/odd-one-out", Some(&body), None)
    }

    fn rank(
        &self,
        words: Vec<String>,
        target: &Target,
        options: &Options,
    ) -> Outcome<Reply<RankAnswer<'_>>> {
        let mut body = options.to_json();
        body["words"] = json!(words);
        put_target(&mut body, target);
        self.exchange("/rank", Some(&body), None)
    }

    fn ask_head<'a>(
        &'a self,
        kind: HeadKind,
        head: Option<&str>,
        text: &'a str,
        options: &Options,
    ) -> Outcome<Reply<TextAnswer<'a>>> {
        let mut body = json!({"text": text});
        let path = match kind {
            HeadKind::Classifier => {
                body["explain"] = json!(options.explain == Some(true));
                "/classify"
            }
            HeadKind::Expander => {
                body["top"] = json!(options.k.unwrap_or(DEFAULT_K));
                body["explain"] = json!(true);
                if let Some(filter) = &options.filter {
                    body["filter"] = json!(filter);
                }
                "/expand"
            }
            _ => return Err(no_command(kind)),
        };
        if let Some(head) = head {
            body["head"] = json!(head);
        }
        self.exchange(path, Some(&body), None)
    }

    fn facts(&self) -> Outcome<ModelDescription<'_>> {
        Ok(self.exchange("/model", None, None)?.answer)
    }

    fn heads(&self) -> Outcome<Vec<ListedHead>> {
        let Heads { heads } = self.exchange("/heads", None, None)?.answer;
        Ok(heads)
    }

    fn words_with_prefix(&self, prefix: &str) -> Outcome<Vec<String>> {
        self.words(prefix, MAX_OFFERED, Some(PATIENCE))
    }

    fn has_word(&self, word: &str) -> Outcome<bool> {
        // A request for the word itself would also search for similar words whenever the model does
        // not have it.
        let listed = self.words(word, MAX_LISTED, None)?;
        if listed.iter().any(|listed| listed == word) || listed.len() < MAX_LISTED {
            return Ok(listed.iter().any(|listed| listed == word));
        }
        let path = format!("/words?word={}", utf8_percent_encode(word, NON_ALPHANUMERIC));
        match self.exchange::<IgnoredAny>(&path, None, None) {
            Err(CommandError::Refused(_)) => Ok(false),
            found => found.map(|_| true),
        }
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

    use kindred::Method;

    use super::*;

    #[test]
    fn times_are_read_as_the_service_writes_them() {
        let header = r#"queue;dur=0.010, engine;desc="cuda";dur=0.123, total;dur=12.5"#;
        let times = read_times(header, 13.0).unwrap();
        assert_eq!((times.queue, times.engine, times.total), (0.01, 0.123, 12.5));
        assert!((times.look_up() - 12.367).abs() < 1e-9);
        assert_eq!(read_times("total;dur=1", 13.0), None);
        assert_eq!(read_times("cache;desc=hit, total", 13.0), None);
    }

    #[test]
    fn only_what_was_said_is_sent() {
        let method = Options::new().method(Method::ThreeCosMul);
        let frog = Target::word("frog");
        assert_eq!(request(&frog, &method), ("/nearest", json!({"word": "frog"})));
        let options = method.k(3).excluding(["a"]).min_score(-0.5).explain(true);
        let asked = request(&Target::expression("a - b").unwrap(), &options);
        let words = json!([{"word": "a", "weight": 1.0}, {"word": "b", "weight": -1.0}]);
        let expected = json!({"positive": words, "k": 3, "exclude": ["a"], "min_score": -0.5,
            "explain": true, "method": "3cosmul"});
        assert_eq!(asked, ("/analogy", expected));
        let text = request(&Target::text("a b"), &Options::new().method(Method::ThreeCosMul));
        assert_eq!(text, ("/nearest", json!({"text": "a b"})));
    }

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
        let ask = |remote: &Remote| remote.exchange::<Value>("/model", None, None);
        let remote = Remote::new(&url, None).unwrap();
        assert_eq!(ask(&remote).unwrap().answer, json!({}));
        let said = ask(&remote).err().unwrap().to_string();
        assert!(said.contains("is the service running there"), "{said}");
        let said = ask(&Remote::new(&url, None).unwrap()).err().unwrap().to_string();
        assert!(said.contains("if it uses HTTPS"), "{said}");
        service.join().unwrap();
    }
}
