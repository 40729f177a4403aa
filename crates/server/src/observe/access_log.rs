//! A line for a request, or for one in so many.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::response::Response;
use tracing::info;

use super::counter::Counter;
use super::route::{place_of_route, route_name};
use super::thread_figures::Stages;

/// The route whose path ends with a word.
const OF_WORD: &str = "/words/{word}";

/// Which requests are logged, and what of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct AccessLog {
    /// One in so many; none at all without it. Requests that the service itself fails (5xx) are always
    /// logged then.
    pub one_in: Option<NonZeroU64>,
    /// Whether the query string is part of the path, and the word of `/words/WORD`: what people look for may be nobody's business.
    pub query: bool,
}

impl AccessLog {
    /// What logs say of a request's target.
    pub(super) fn target<'a>(&self, uri: &'a Uri) -> Cow<'a, str> {
        match uri.path_and_query() {
            Some(whole) if self.query => whole.as_str().into(),
            _ => without_word(uri.path()),
        }
    }
}

/// What a request said, kept until it is answered.
#[derive(Debug)]
pub(super) struct Asked {
    settings: AccessLog,
    one_in: NonZeroU64,
    client: SocketAddr,
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
}

impl Asked {
    #[inline]
    pub(super) fn note(
        settings: &AccessLog,
        request: &Request,
        client: SocketAddr,
    ) -> Option<Box<Self>> {
        let one_in = settings.one_in?;
        Some(Box::new(Self {
            settings: *settings,
            one_in,
            client,
            method: request.method().clone(),
            uri: request.uri().clone(),
            user_agent: request.headers().get(header::USER_AGENT).cloned(),
        }))
    }

    /// Writes the line, if it is this one's turn.
    pub(super) fn log(
        self: Box<Self>,
        counted: &Counter,
        response: &Response,
        bytes: u64,
        took: Duration,
        stages: Option<Stages>,
    ) {
        let status = response.status();
        let is_next = counted.get().is_multiple_of(self.one_in.get());
        counted.add(1);
        if !is_next && !status.is_server_error() {
            return;
        }
        let path = &*self.settings.target(&self.uri);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let milliseconds = |took: Duration| took.as_micros() as f64 / 1e3;
        info!(
            target: "access",
            id = response.headers().get("x-request-id").map(text),
            client = %self.client.ip(),
            method = self.method.as_str(),
            path,
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

/// A path without the word in it, which is what somebody looks for as a query string is.
fn without_word(path: &str) -> Cow<'_, str> {
    let is_of_word = route_name(place_of_route(path)) == OF_WORD;
    match path.rsplit_once('/') {
        Some((before, _)) if is_of_word => format!("{before}/{{word}}").into(),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_a_path_is_not_logged() {
        for (path, logged) in [
            ("/words/frog", "/words/{word}"),
            ("/models/en/words/a%2Fb", "/models/en/words/{word}"),
            ("/words", "/words"),
            ("/nearest", "/nearest"),
            ("/nowhere/x", "/nowhere/x"),
        ] {
            assert_eq!(without_word(path), logged);
        }
    }
}
