//! What every request meets first: its span in the log and the guard against panics. Behind them is the
//! router, and a way past it for those requests that come by the hundred thousand.

use std::any::Any;
use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service, service_fn};
use tower_http::cors::CorsLayer;
use tracing::field::Empty;
use tracing::{Instrument, debug_span, error};

use super::edge::Edge;
use super::server_timing::{self, Timing};
use super::state::AppState;
use super::{ApiError, ask, routes};

/// All of the service over a state.
#[derive(Clone)]
pub struct Front {
    state: Arc<AppState>,
    edge: Arc<Edge>,
    router: Router,
}

impl Front {
    /// The service over this state, behind this edge.
    pub fn new(state: Arc<AppState>, edge: Arc<Edge>) -> Self {
        Self { router: routes::router(state.clone()), edge, state }
    }

    /// For one connection.
    pub fn service(
        &self,
    ) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<> {
        let front = Arc::new(self.clone());
        service_fn(move |request: Request| {
            let front = front.clone();
            let span = debug_span!("request", method = %request.method(), uri = %request.uri(), caller = Empty);
            async move { Ok(guarded(pin!(front.answer(request))).await) }.instrument(span)
        })
    }

    /// All of the edge around [`respond`](Self::respond). What few requests need is boxed: the future of a request is
    /// copied a few times, and each byte in it costs all of them.
    async fn answer(&self, request: Request) -> Response {
        let accepted = self.edge.accepted(request.headers());
        let mut response = match self.edge.cors(&request) {
            None => self.respond(request).await,
            Some(cors) => Box::pin(self.respond_across_origins(cors, request)).await,
        };
        if self.edge.finish(&mut response) {
            return Box::pin(self.edge.compress(response, accepted)).await;
        }
        response
    }

    async fn respond_across_origins(&self, cors: &CorsLayer, request: Request) -> Response {
        let respond = async |request| Ok::<_, Infallible>(self.respond(request).await);
        cors.layer(service_fn(respond)).call(request).await.unwrap_or_else(|never| match never {})
    }

    async fn respond(&self, mut request: Request) -> Response {
        if let Err(refused) = self.edge.admit(&mut request) {
            return refused.into_response();
        }
        // The router knows these two as well, and the answers are the same. It and its layers box
        // and copy about as much as all the rest of a request's way.
        let plain_get = request.method() == Method::GET
            && !request.headers().contains_key(header::CONTENT_LENGTH);
        let started = Instant::now();
        let (headers, uri) = (request.headers(), request.uri());
        let asked = match uri.path() {
            "/nearest" if plain_get => ask::nearest(&self.state, headers, uri).await,
            "/analogy" if plain_get => ask::analogy(&self.state, headers, uri).await,
            _ => match self.router.clone().call(request).await {
                Ok(response) => return response,
            },
        };
        let (mut response, timing) =
            asked.unwrap_or_else(|error| (error.into_response(), Timing::default()));
        let value = server_timing::value(&self.state.engine, timing, started.elapsed());
        response.headers_mut().insert(server_timing::NAME, value);
        response
    }
}

/// A fault of ours must not take the connection, let alone the process.
async fn guarded(mut response: Pin<&mut impl Future<Output = Response>>) -> Response {
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
            assert_eq!(guarded(pin!(broken)).await.status(), 500);
        }
    }
}
