//! The access log: a line for one request in n.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::response::Response;
use tracing::info;

use super::Observer;
use super::counter::Counter;
use super::thread_figures::Stages;
use crate::traces::Trace;

/// The end of a route's label if its path ends with a word.
const WORD: &str = "/{word}";

/// Which requests are logged, and what is logged of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessLog {
    /// Logs one request in n, and every request that fails with 5xx. `None` logs nothing at all.
    pub one_in: Option<NonZeroU64>,
    /// Whether query strings and the word of `/words/WORD` are logged. What people look for may be
    /// private.
    pub query: bool,
}

impl AccessLog {
    /// A request's target as logs show it. `route` is the label of its route.
    pub(super) fn target<'a>(&self, uri: &'a Uri, route: &str) -> Cow<'a, str> {
        match uri.path_and_query() {
            Some(whole) if self.query => whole.as_str().into(),
            _ => without_word(uri.path(), route),
        }
    }
}

/// The parts of a request for the log, kept until it is answered. Those in a `OnceLock` become
/// known later, and are noted once each.
#[derive(Debug)]
pub(crate) struct LoggedRequest {
    settings: AccessLog,
    one_in: NonZeroU64,
    route: &'static str,
    client: SocketAddr,
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
    /// The name of its API key's owner.
    pub(crate) key: OnceLock<Arc<str>>,
    /// The model that it queries.
    pub(crate) model: OnceLock<String>,
    /// The head that it queries.
    pub(crate) head: OnceLock<String>,
    /// The number of queries, texts or pairs in it.
    pub(crate) queries: OnceLock<usize>,
}

impl LoggedRequest {
    #[inline]
    pub(super) fn note(
        observer: &Observer,
        request: &Request,
        route: usize,
        client: SocketAddr,
    ) -> Option<Arc<Self>> {
        let settings = observer.access_log;
        let one_in = settings.one_in?;
        let (key, model, head, queries) = Default::default();
        Some(Arc::new(Self {
            settings,
            one_in,
            route: observer.routes[route],
            client,
            method: request.method().clone(),
            uri: request.uri().clone(),
            user_agent: request.headers().get(header::USER_AGENT).cloned(),
            key,
            model,
            head,
            queries,
        }))
    }

    /// Writes the line, if this request is logged.
    pub(super) fn log(
        &self,
        counted: &Counter,
        response: &Response,
        bytes: u64,
        (took, stages): (Duration, Option<Stages>),
        trace: Option<&Trace>,
    ) {
        let status = response.status();
        let is_next = counted.get().is_multiple_of(self.one_in.get());
        counted.add(1);
        if !is_next && !status.is_server_error() {
            return;
        }
        let path = &*self.settings.target(&self.uri, self.route);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let milliseconds = |took: Duration| took.as_micros() as f64 / 1e3;
        let Self { key, model, head, queries, .. } = self;
        info!(
            target: "access",
            id = response.headers().get("x-request-id").map(text),
            trace_id = trace.map(Trace::id),
            client = %self.client.ip(),
            key = key.get().map(|key| &**key),
            method = self.method.as_str(),
            path,
            model = model.get().map(String::as_str),
            head = head.get().map(String::as_str),
            queries = queries.get().copied(),
            status = status.as_u16(),
            bytes,
            milliseconds = milliseconds(took),
            queue_milliseconds = stages.map(|stages| milliseconds(stages.queue)),
            engine_milliseconds = stages.map(|stages| milliseconds(stages.engine)),
            user_agent = self.user_agent.as_ref().map(text),
            "answered"
        );
    }
}

/// The path without its word; words are as private as query strings.
fn without_word<'a>(path: &'a str, route: &str) -> Cow<'a, str> {
    match path.rsplit_once('/') {
        Some((before, _)) if route.ends_with(WORD) => format!("{before}{WORD}").into(),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_a_path_is_not_logged() {
        for (path, route, logged) in [
            ("/words/frog", "/words/{word}", "/words/{word}"),
            ("/models/en/words/a%2Fb", "/words/{word}", "/models/en/words/{word}"),
            ("/words", "/words", "/words"),
            ("/nearest", "/nearest", "/nearest"),
            ("/nowhere/x", "other", "/nowhere/x"),
        ] {
            assert_eq!(without_word(path, route), logged);
        }
    }
}
