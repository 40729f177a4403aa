//! The trace of a request, from its head to its answer.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{Version, header};
use axum::response::Response;

use super::Connection;
use crate::http::edge::request_id::RequestId;
use crate::http::render::server_timing;
use crate::http::routes;
use crate::models::Call;
use crate::traces::{Model, Trace, TracedRequest, Traces};

/// The trace of a request, if it is traced. If it is dropped before the answer, its caller has hung
/// up.
pub(super) struct Traced<'a> {
    pub(super) trace: Option<Arc<Trace>>,
    traces: &'a Traces,
}

impl Connection {
    /// Decides whether a request is traced.
    #[inline]
    pub(super) fn traced(
        &self,
        request: &Request,
        route: usize,
        id: &RequestId,
        arrived: Instant,
    ) -> Traced<'_> {
        let asked = || self.asked(request, route, id);
        Traced { trace: self.traces.begin(request.headers(), arrived, asked), traces: &self.traces }
    }

    /// What the trace shows of a request: no query string and no word, unless the access log may
    /// show them.
    #[cold]
    fn asked(&self, request: &Request, route: usize, id: &RequestId) -> TracedRequest {
        let user_agent = request.headers().get(header::USER_AGENT);
        let protocol = match request.version() {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        };
        TracedRequest {
            route: routes::LABELS[..routes::LABELS.len() - 1].get(route).copied(),
            method: short(request.method().as_str()),
            target: short(&self.observed.target(request.uri(), route)),
            scheme: self.front.edge.transport().scheme(),
            protocol,
            user_agent: user_agent.map(|name| short(&String::from_utf8_lossy(name.as_bytes()))),
            request_id: id.as_str().to_owned(),
        }
    }
}

/// The beginning of a text. Thousands of spans may wait, and a client may send tens of kilobytes in
/// a head.
fn short(text: &str) -> String {
    const LONGEST: usize = 500;
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

impl Traced<'_> {
    /// Ends the trace, if there is one, and tells the client its id. `encoded` is when writing the
    /// answer began and ended.
    #[inline]
    pub(super) fn answered(mut self, response: &mut Response, encoded: Option<(Instant, Instant)>) {
        if let Some(trace) = self.trace.take() {
            response.headers_mut().append(server_timing::NAME, trace.response_header());
            let status = Some(response.status().as_u16());
            self.traces.end(&trace, status, encoded);
        }
    }
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        if let Some(trace) = self.trace.take() {
            self.traces.end(&trace, None, None);
        }
    }
}

/// The model that answers a call.
#[cold]
pub(super) fn model(call: &Call) -> Model {
    let name = call.name().to_owned();
    Model { name, version: call.model.version().to_string(), engine: call.engine.name }
}
