//! Counts a connection and its requests.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Uri;
use axum::response::Response;

use super::Observer;
use super::access_log::LoggedRequest;
use super::labels::{method_index, status_index};
use super::thread_figures::{Stages, ThreadFigures};
use crate::traces::Trace;

/// A connection, open until this is dropped. One thread serves all its requests.
#[derive(Debug)]
pub(crate) struct Connection {
    observer: Arc<Observer>,
    client: SocketAddr,
    /// The figures of the thread that serves the connection, known from its first request on.
    figures: OnceLock<Arc<ThreadFigures>>,
}

impl Connection {
    /// Counts a client's connection from this address.
    pub(crate) fn new(observer: Arc<Observer>, client: SocketAddr) -> Self {
        observer.connections_opened.fetch_add(1, Ordering::Release);
        Self { observer, client, figures: OnceLock::new() }
    }

    /// The target of a request for this route as logs may show it: no query string and no word,
    /// unless the settings allow it.
    pub(crate) fn target<'a>(&self, uri: &'a Uri, route: usize) -> Cow<'a, str> {
        self.observer.access_log.target(uri, self.observer.routes[route])
    }

    /// Counts a request for this route. Must be called on the thread that answers it.
    #[inline]
    pub(crate) fn begin(&self, request: &Request, route: usize) -> Observed<'_> {
        let figures = self.figures.get_or_init(|| self.observer.thread_figures());
        figures.begun.add(1);
        Observed {
            figures,
            route,
            method: method_index(request.method()),
            is_answered: false,
            asked: LoggedRequest::note(&self.observer, request, route, self.client),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.observer.connections_closed.fetch_add(1, Ordering::Release);
    }
}

/// A request in progress. If it is dropped before its answer, its caller has hung up.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    figures: &'a ThreadFigures,
    route: usize,
    method: usize,
    is_answered: bool,
    /// The parts that the access log may show; `None` if there is no such log.
    asked: Option<Arc<LoggedRequest>>,
}

impl Observed<'_> {
    /// The entry for the access log, in which later parts are noted; `None` if there is no such
    /// log.
    #[inline]
    pub(crate) fn logged(&self) -> Option<&Arc<LoggedRequest>> {
        self.asked.as_ref()
    }

    /// Counts the answer, which was ready `took` after the request arrived. The access log names
    /// its trace, if it has one.
    #[inline]
    pub(crate) fn answered(
        mut self,
        response: &Response,
        took: Duration,
        stages: Option<Stages>,
        trace: Option<&Trace>,
    ) {
        self.is_answered = true;
        let status = response.status().as_u16();
        let bytes = response.body().size_hint().lower();
        let indices = (self.route, self.method, status_index(status));
        self.figures.answered(indices, took, stages, bytes);
        if let Some(asked) = self.asked.take() {
            asked.log(&self.figures.sampled, response, bytes, (took, stages), trace);
        }
    }
}

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.figures.abandoned.add(1);
        }
    }
}
