//! The service that answers: HTTP requests in, HTTP answers out, with or without a network in
//! between.

use std::error::Error;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ConsoleError;
use super::answer::Problem;

/// Maximum number of words that one request lists.
const MAX_LISTED: usize = server::http::MAX_LISTED;

/// Size limit of an escaped prefix. A longer one would not fit into a path, so it is taken to match
/// no word.
const MAX_PREFIX_BYTES: usize = 16 << 10;

/// The part of an error that is for people who write URLs. It is removed here.
const FOR_URLS: &str = " in a URL a plus is written %2B, because + is a space there;";

/// The response to a request.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// `None` if nothing was searched.
    pub(super) times: Option<Times>,
}

/// Where a question's time went, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) queue: f64,
    pub(super) engine: f64,
    /// The total time in the service.
    pub(super) total: f64,
    /// The total time for the client, if there is a network in between.
    pub(super) round_trip: Option<f64>,
}

impl Times {
    /// Parses a `Server-Timing` header.
    pub(super) fn read(header: &str) -> Option<Self> {
        let of = |name: &str| {
            let mut metrics = header.split(',').map(|metric| metric.trim().split(';'));
            let mut fields = metrics.find_map(|mut m| (m.next() == Some(name)).then_some(m))?;
            fields.find_map(|field| field.trim().strip_prefix("dur=")?.parse().ok())
        };
        Some(Self {
            queue: of("queue")?,
            engine: of("engine")?,
            total: of("total")?,
            round_trip: None,
        })
    }

    /// The time that was neither waiting nor searching: looking up words and writing the answer. At
    /// least 0, because the times of parallel passes may add up to more than the total.
    pub(super) fn look_up(&self) -> f64 {
        (self.total - self.queue - self.engine).max(0.0)
    }
}

/// A service, wherever it is.
pub(super) trait Service {
    /// Sends a POST with `body`, or a GET if there is no body. Waits at most `timeout`, if it is
    /// given.
    fn ask(
        &self,
        path: &str,
        body: Option<&Value>,
        timeout: Option<Duration>,
    ) -> Result<Reply, ConsoleError>;

    /// Its name in messages.
    fn name(&self) -> String;
}

/// What is known about a model.
#[derive(Debug, Deserialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) rows: u64,
    pub(super) dim: u64,
    pub(super) metric: String,
    pub(super) engine: EngineFacts,
    pub(super) provenance: Provenance,
}

#[derive(Debug, Deserialize)]
pub(super) struct EngineFacts {
    pub(super) name: String,
    pub(super) detail: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Provenance {
    pub(super) source: String,
    pub(super) source_format: String,
    pub(super) prepared_by: String,
    pub(super) prepared_at: String,
}

#[derive(Deserialize)]
struct Listed {
    words: Vec<ListedWord>,
}

#[derive(Deserialize)]
struct ListedWord {
    word: String,
}

/// Parses an answer, or returns the error that the service sent instead.
pub(super) fn answered<T: DeserializeOwned>(
    service: &dyn Service,
    reply: &Reply,
) -> Result<T, ConsoleError> {
    let strange = |reason: Box<dyn Error + Send + Sync>| ConsoleError::NotKindred {
        url: service.name(),
        reason,
    };
    if reply.status != 200 {
        return Err(match serde_json::from_slice::<Problem>(&reply.body) {
            Ok(problem) if reply.status == 401 => ConsoleError::NoKey(problem.message()),
            Ok(problem) => ConsoleError::Refused(problem.message().replace(FOR_URLS, "")),
            Err(_) if reply.status == 401 => {
                ConsoleError::NoKey(format!("{} answers with status 401", service.name()))
            }
            Err(_) => strange(format!("status {}", reply.status).into()),
        });
    }
    serde_json::from_slice(&reply.body).map_err(|e| strange(e.into()))
}

/// What is known about the model, parsed and as the service's JSON.
pub(super) fn facts(service: &dyn Service) -> Result<(Facts, Vec<u8>), ConsoleError> {
    let reply = service.ask("/model", None, None)?;
    Ok((answered(service, &reply)?, reply.body))
}

/// The most frequent words with this prefix.
pub(super) fn words_with_prefix(
    service: &dyn Service,
    prefix: &str,
    limit: usize,
    timeout: Option<Duration>,
) -> Result<Vec<String>, ConsoleError> {
    let prefix = utf8_percent_encode(prefix, NON_ALPHANUMERIC).to_string();
    if prefix.len() > MAX_PREFIX_BYTES {
        return Ok(Vec::new());
    }
    let path = format!("/words?prefix={prefix}&limit={limit}");
    let listed: Listed = answered(service, &service.ask(&path, None, timeout)?)?;
    Ok(listed.words.into_iter().map(|listed| listed.word).collect())
}

/// Whether the model has this word, by its exact bytes.
pub(super) fn has_word(service: &dyn Service, word: &str) -> Result<bool, ConsoleError> {
    // A request for the word itself would also search for similar words whenever the model does not
    // have it.
    let listed = words_with_prefix(service, word, MAX_LISTED, None)?;
    if listed.iter().any(|listed| listed == word) || listed.len() < MAX_LISTED {
        return Ok(listed.iter().any(|listed| listed == word));
    }
    let path = format!("/words?word={}", utf8_percent_encode(word, NON_ALPHANUMERIC));
    Ok(service.ask(&path, None, None)?.status == 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_the_service_writes_them() {
        let header = r#"queue;dur=0.010, engine;desc="cuda";dur=0.123, total;dur=12.5"#;
        let times = Times::read(header).unwrap();
        assert_eq!((times.queue, times.engine, times.total), (0.01, 0.123, 12.5));
        assert!((times.look_up() - 12.367).abs() < 1e-9);
        assert_eq!(Times::read("total;dur=1"), None);
        assert_eq!(Times::read("cache;desc=hit, total"), None);
    }
}
