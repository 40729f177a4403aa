//! What every request meets first: its id, the model that it speaks to, its span in the log and the guard
//! against panics. Behind them is the router, and a way past it for those requests that come by the hundred
//! thousand.

use std::any::Any;
use std::borrow::Cow;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use tower::{Layer, Service, service_fn};
use tower_http::cors::CorsLayer;
use tracing::field::Empty;
use tracing::{Instrument, debug_span, error};

use super::body::{BYTES_PER_BYTE, UNCOUNTED_BODY};
use super::edge::OnBehalf;
use super::edge::sending::kept_with;
use super::render::size::UNCOUNTED_ANSWER;
use super::render::{IsCounted, Until, counted};
use super::request_id::{self, RequestId};
use super::routes::{Routes, search};
use super::server_timing::{self, Timing};
use super::{ApiError, caching};
use crate::models::{Call, Reloader, View, split_named_path};
use crate::observe;
use scheduler::account::{Account, Full, Held, Pool};

/// The header that lowers the time that a request may take.
pub(super) const TIMEOUT: HeaderName = HeaderName::from_static("request-timeout-ms");

/// All of the service over some models.
#[derive(Clone)]
pub struct Front {
    reloader: Arc<Reloader>,
    routes: Routes,
}

/// What is known of a request's time, and how long it took in all.
type Noted = (Timing, Duration);

/// What became known of a request on its way.
#[derive(Default)]
struct Seen {
    noted: Option<Noted>,
    /// Of its API key, if it came with one.
    account: Option<Arc<Account>>,
    /// Until when its answer is of use, as far as its head says.
    latest: Option<Instant>,
}

/// A connection's share of it.
struct Connection {
    front: Front,
    observed: observe::Connection,
    /// What requests without an API key hold.
    account: Arc<Account>,
    /// Of the thread that the connection stays on.
    view: OnceLock<Arc<View>>,
}

impl Front {
    /// The service over the models that this loads, behind its edge.
    pub fn new(reloader: Arc<Reloader>) -> Self {
        Self { routes: Routes::new(reloader.clone()), reloader }
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
        let observer = self.reloader.models().service().observer.clone();
        let observed = observe::Connection::new(observer, client);
        let (account, view) = (Account::new(), OnceLock::new());
        let connection = Arc::new(Connection { front: self.clone(), observed, account, view });
        service_fn(move |request: Request| {
            let connection = connection.clone();
            let id = RequestId::of(request.headers());
            let span = debug_span!(
                "request",
                id = id.as_str(),
                method = request.method().as_str(),
                path = &*connection.observed.target(request.uri()),
                caller = Empty
            );
            async move { Ok(connection.observed(request, id).await) }.instrument(span)
        })
    }
}

impl Connection {
    /// The answer, counted.
    async fn observed(&self, request: Request, id: RequestId) -> Response {
        let (observed, arrived) = (self.observed.begin(&request), Instant::now());
        let mut seen = Seen::default();
        let response = self.answer(request, id, arrived, &mut seen).await;
        // Nothing was noted by a handler that panicked, nor where no handler was asked.
        let (timing, took) = seen.noted.unwrap_or_else(|| (Timing::default(), arrived.elapsed()));
        observed.answered(&response, took, timing.stages(arrived + took));
        response
    }

    /// All of the edge around [`respond`](Self::respond). What few requests need is boxed: the future of a request is
    /// copied a few times, and each byte in it costs all of them.
    async fn answer(
        &self,
        request: Request,
        id: RequestId,
        arrived: Instant,
        seen: &mut Seen,
    ) -> Response {
        let edge = self.front.reloader.edge();
        let is_head = request.method() == Method::HEAD;
        let accepted = edge.accepted(request.headers());
        let mut response = match edge.cors(&request) {
            None => guarded(pin!(self.respond(request, arrived, seen)), &id).await,
            Some(cors) => {
                let respond = self.respond_across_origins(cors, request, arrived, seen);
                guarded(Box::pin(respond).as_mut(), &id).await
            }
        };
        let account = seen.account.as_ref().unwrap_or(&self.account);
        self.complete(&mut response, account, &id, is_head);
        if edge.finish(&mut response, is_head) {
            let service = self.front.reloader.models().service();
            let known = response.extensions_mut().remove::<Until>().map(|Until(deadline)| deadline);
            let deadline = known.or(seen.latest).unwrap_or(arrived + service.timeouts.request);
            let on_behalf = OnBehalf { service, account, deadline };
            let compress = Box::pin(edge.compress(response, accepted, on_behalf, is_head));
            response = match compress.await {
                Ok(compressed) => compressed,
                Err(error) => {
                    let mut response = error.into_response();
                    self.complete(&mut response, account, &id, is_head);
                    edge.finish(&mut response, is_head);
                    response
                }
            };
        }
        response.headers_mut().insert(request_id::NAME, id.into_value());
        response
    }

    /// What all answers have: their problem document, if they are one, and headers.
    fn complete(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            self.write_problem(response, error, account, id, is_head);
        } else {
            self.count(response, account, id, is_head);
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(const { caching::ASK_AGAIN });
    }

    /// Counts the memory of a large answer that its handler did not count. It is there, but goes at once if it may not
    /// be kept until its client takes it.
    fn count(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        let bytes = response.body().size_hint().lower();
        if bytes <= UNCOUNTED_ANSWER || response.extensions_mut().remove::<IsCounted>().is_some() {
            return;
        }
        let memory = &self.front.reloader.models().service().memory;
        match memory.take(account, Pool::Answers, bytes) {
            Ok(room) => {
                let body = std::mem::take(response.body_mut());
                *response.body_mut() = kept_with(body, Arc::new(room));
            }
            Err(full) => {
                let full = ApiError::from(full);
                *response = full.clone().into_response();
                response.extensions_mut().remove::<ApiError>();
                self.write_problem(response, full, account, id, is_head);
            }
        }
    }

    /// Puts the problem document into its answer, in place of the router's, which saw an empty one.
    fn write_problem(
        &self,
        response: &mut Response,
        error: ApiError,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        let mut document = error.document(id.as_str());
        let mut room = None;
        // It may repeat words as long as the request's body.
        if document.len() as u64 > UNCOUNTED_ANSWER {
            let memory = &self.front.reloader.models().service().memory;
            match memory.take(account, Pool::Answers, document.len() as u64) {
                Ok(held) => room = Some(held),
                Err(full) => {
                    let full = ApiError::from(full);
                    document = full.document(id.as_str());
                    *response.status_mut() = full.status();
                }
            }
        }
        response.headers_mut().insert(header::CONTENT_LENGTH, document.len().into());
        if !is_head {
            *response.body_mut() = match room {
                Some(room) => counted(document, room).into(),
                None => document.into(),
            };
        }
    }

    /// Memory for what a long path and query string are taken apart into.
    fn room_for_head(&self, uri: &Uri, account: &Arc<Account>) -> Result<Option<Held>, Full> {
        let bytes = uri.path_and_query().map_or(0, |target| target.as_str().len());
        if bytes <= UNCOUNTED_BODY {
            return Ok(None);
        }
        let memory = &self.front.reloader.models().service().memory;
        memory.take(account, Pool::Requests, bytes as u64 * BYTES_PER_BYTE).map(Some)
    }

    async fn respond_across_origins(
        &self,
        cors: &CorsLayer,
        request: Request,
        arrived: Instant,
        seen: &mut Seen,
    ) -> Response {
        // Its one request gets here once, but the layer's type does not say so.
        let inner = Mutex::new(Seen::default());
        let respond = async |request| {
            let mut seen = Seen::default();
            let response = self.respond(request, arrived, &mut seen).await;
            *inner.lock().expect("nothing panics while it holds this lock") = seen;
            Ok::<_, Infallible>(response)
        };
        let response = cors.layer(service_fn(respond)).call(request).await;
        *seen = inner.into_inner().expect("nothing panics while it holds this lock");
        response.unwrap_or_else(|never| match never {})
    }

    /// Notes what is known of the request's time, and how long it took in all.
    async fn respond(&self, mut request: Request, arrived: Instant, seen: &mut Seen) -> Response {
        let account = match self.front.reloader.edge().admit(&mut request) {
            Ok(of_key) => {
                seen.account = of_key;
                seen.account.as_ref().unwrap_or(&self.account).clone()
            }
            Err(refused) => return refused.into_response(),
        };
        let _room = match self.room_for_head(request.uri(), &account) {
            Ok(room) => room,
            Err(full) => return ApiError::from(full).into_response(),
        };
        let held = self.view.get_or_init(|| self.front.reloader.models().view()).hold();
        let (headers, uri) = (request.headers(), request.uri());
        let (name, path) = match named_model(uri.path()) {
            Some(Ok((name, path))) => (Some(name), path),
            Some(Err(error)) => return error.into_response(),
            None => (None, uri.path()),
        };
        let place = match name.as_deref().map(|name| held.set().place(name)) {
            None => 0,
            Some(Some(place)) => place,
            Some(None) => {
                let known = held.set().models().iter().map(|model| model.name().to_owned());
                let name = name.unwrap_or_default().into_owned();
                return ApiError::NoSuchModel { name, known: known.collect() }.into_response();
            }
        };
        let allowed = headers.get(TIMEOUT).map(HeaderValue::as_bytes);
        let call = Call::new(held, place, account, arrived, allowed);
        seen.latest = Some(call.latest());
        // The router knows these two as well, and the answers are the same. It and its layers box
        // and copy about as much as all the rest of a request's way.
        let plain_get =
            request.method() == Method::GET && !headers.contains_key(header::CONTENT_LENGTH);
        let asked = match path {
            "/nearest" if plain_get => search::nearest(&call, headers, uri).await,
            "/analogy" if plain_get => search::analogy(&call, headers, uri).await,
            _ => {
                let of_model = name.is_some();
                let deadline = call.deadline(None).ok().filter(|_| path != "/admin/reload");
                if of_model {
                    *request.uri_mut() = with_end_of_path(uri, path.len());
                }
                request.extensions_mut().insert(call.clone());
                let answered = self.front.routes.answer(of_model, request);
                let response = match deadline {
                    None => answered.await,
                    Some(deadline) => in_time(answered, &call, deadline).await,
                };
                let timing = response.extensions().get::<Timing>().copied();
                seen.noted = Some((timing.unwrap_or_default(), arrived.elapsed()));
                return response;
            }
        };
        let (mut response, timing) =
            asked.unwrap_or_else(|error| (error.into_response(), Timing::default()));
        let took = arrived.elapsed();
        seen.noted = Some((timing, took));
        server_timing::write(&mut response, call.engine(), timing, took);
        response
    }
}

/// How much later than the deadline a request is given up here that nothing else has given up: the queue, and whatever
/// else waits, knows more about why.
const GRACE: Duration = Duration::from_millis(100);

/// The answer, or that it was not there in time.
async fn in_time(
    answered: impl Future<Output = Response>,
    call: &Call,
    deadline: Instant,
) -> Response {
    let answered = tokio::time::timeout_at((deadline + GRACE).into(), answered);
    answered.await.unwrap_or_else(|_| {
        let mut response = ApiError::DeadlinePassed.into_response();
        let took = call.arrived().elapsed();
        server_timing::write(&mut response, call.engine(), Timing::default(), took);
        response
    })
}

/// The name of a path `/models/NAME/REST`, and how much of its end is `/REST`.
fn named_model(path: &str) -> Option<Result<(Cow<'_, str>, &str), ApiError>> {
    let (name, rest) = split_named_path(path)?;
    // Not form-encoded as parameters are: here a plus is a plus.
    let name = percent_decode_str(name).decode_utf8();
    let not_utf8 = |_| ApiError::NotUtf8 { place: "the path".to_owned() };
    Some(name.map(|name| (name, rest)).map_err(not_utf8))
}

/// A URI with only the last so many bytes of its path, and its query.
fn with_end_of_path(uri: &Uri, bytes: usize) -> Uri {
    let path = uri.path();
    let end = &path[path.len() - bytes..];
    let end = if end.is_empty() { "/" } else { end };
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    let rest = format!("{end}{query}").parse();
    parts.path_and_query = Some(rest.expect("a part of a path is one, behind a slash"));
    Uri::from_parts(parts).expect("only the path is another")
}

/// A fault of ours must not take the connection, let alone the process.
async fn guarded(
    mut response: Pin<&mut impl Future<Output = Response>>,
    id: &RequestId,
) -> Response {
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| response.as_mut().poll(context));
        catch_unwind(poll).unwrap_or_else(|panic| Poll::Ready(panicked(&*panic, id)))
    })
    .await
}

fn panicked(panic: &(dyn Any + Send), id: &RequestId) -> Response {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    error!(id = id.as_str(), "a handler panicked: {}", said.unwrap_or("without a word"));
    ApiError::Internal.into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_problem_document() {
        let id = RequestId::of(&HeaderMap::new());
        for words in ["as ordered", ""] {
            let broken = async { if words.is_empty() { panic!() } else { panic!("{words}") } };
            assert_eq!(guarded(pin!(broken), &id).await.status(), 500);
        }
    }

    #[test]
    fn names_of_models_are_taken_out_of_paths() {
        let of = |path: &'static str| {
            let (name, rest) = named_model(path)?.ok()?;
            Some((name.into_owned(), rest.to_owned()))
        };
        let expected = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
        assert_eq!(of("/models/en/nearest"), expected("en", "/nearest"));
        assert_eq!(of("/models/a%2Fb+c/words/x"), expected("a/b+c", "/words/x"));
        assert_eq!((of("/models/en"), of("/models//x")), (expected("en", ""), expected("", "/x")));
        assert_eq!((of("/models"), of("/modelsen/x"), of("/models/%ff/x")), (None, None, None));

        for (uri, path, left) in [
            ("/models/en/nearest?word=a%20b", "/nearest", "/nearest?word=a%20b"),
            ("http://host:1/models/en?k=1", "", "http://host:1/?k=1"),
            ("/models/en/words/x", "/words/x", "/words/x"),
        ] {
            assert_eq!(with_end_of_path(&uri.parse().unwrap(), path.len()), left);
        }
    }
}
