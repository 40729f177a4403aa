//! What every request meets first: its span in the log and the guard against panics. Behind them is the
//! router, and a way past it for those requests that come by the hundred thousand.

use std::any::Any;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use tower::{Service, service_fn};
use tracing::{Instrument, debug_span, error};

use super::server_timing::{self, Timing};
use super::state::AppState;
use super::{ApiError, ask, routes};
use crate::observe::Connection;

/// All of the service over a state.
#[derive(Clone)]
pub struct Front {
    state: Arc<AppState>,
    router: Router,
}

impl Front {
    /// The service over this state.
    pub fn new(state: Arc<AppState>) -> Self {
        Self { router: routes::router(state.clone()), state }
    }

    /// For one connection, which is from there.
    pub fn service(
        &self,
        client: SocketAddr,
    ) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<> {
        let connection = Connection::new(self.state.observer.clone(), client);
        let front = Arc::new((self.clone(), connection));
        service_fn(move |request: Request| {
            let front = front.clone();
            let span = debug_span!("request", method = %request.method(), uri = %request.uri());
            async move { Ok(front.0.observed(&front.1, request).await) }.instrument(span)
        })
    }

    /// The answer, counted.
    async fn observed(&self, connection: &Connection, request: Request) -> Response {
        let (observed, started) = (connection.begin(&request), Instant::now());
        let mut noted = None;
        let response = guarded(self.respond(request, started, &mut noted)).await;
        // Nothing was noted by a handler that panicked.
        let (timing, took) = noted.unwrap_or_else(|| (Timing::default(), started.elapsed()));
        observed.answered(&response, took, timing.stages(started + took));
        response
    }

    /// Notes what is known of the request's time, and how long it took in all.
    async fn respond(
        &self,
        request: Request,
        started: Instant,
        noted: &mut Option<(Timing, Duration)>,
    ) -> Response {
        // The router knows these two as well, and the answers are the same. It and its layers box
        // and copy about as much as all the rest of a request's way.
        let plain_get = request.method() == Method::GET
            && !request.headers().contains_key(header::CONTENT_LENGTH);
        let (headers, uri) = (request.headers(), request.uri());
        let asked = match uri.path() {
            "/nearest" if plain_get => ask::nearest(&self.state, headers, uri).await,
            "/analogy" if plain_get => ask::analogy(&self.state, headers, uri).await,
            _ => match self.router.clone().call(request).await {
                Ok(response) => {
                    let timing = response.extensions().get::<Timing>().copied();
                    *noted = Some((timing.unwrap_or_default(), started.elapsed()));
                    return response;
                }
            },
        };
        let (mut response, timing) =
            asked.unwrap_or_else(|error| (error.into_response(), Timing::default()));
        let took = started.elapsed();
        *noted = Some((timing, took));
        let value = server_timing::value(&self.state.engine, timing, took);
        response.headers_mut().insert(server_timing::NAME, value);
        response
    }
}

/// A fault of ours must not take the connection, let alone the process.
async fn guarded(response: impl Future<Output = Response>) -> Response {
    let mut response = pin!(response);
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| response.as_mut().poll(context));
        catch_unwind(poll).unwrap_or_else(|panic| Poll::Ready(panicked(&*panic)))
    })
    .await
}

fn panicked(panic: &(dyn Any + Send)) -> Response {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    error!("a handler panicked: {}", said.unwrap_or("without a word"));
    ApiError::Internal.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_problem_document() {
        for words in ["as ordered", ""] {
            let broken = async { if words.is_empty() { panic!() } else { panic!("{words}") } };
            assert_eq!(guarded(broken).await.status(), 500);
        }
    }
}
