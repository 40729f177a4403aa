//! What every request passes through: its id, the edge around its answer, the choice of its model,
//! its span in the log and the guard against panics. Behind them are the handlers of routes.

mod guard;
mod min_position;
mod traced;

use std::convert::Infallible;
use std::mem::take;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use axum::response::{IntoResponse, Response};
use tower::{Layer, Service, service_fn};
use tower_http::cors::CorsLayer;
use tracing::field::Empty;
use tracing::{Instrument, debug_span};

use self::guard::guarded;
use super::ApiError;
use super::edge::keys::{Caller, require_admin};
use super::edge::request_id::{self, RequestId};
use super::edge::{Edge, compression};
use super::parse::body::{BYTES_PER_BYTE, UNCOUNTED_BODY};
use super::parse::query_string;
use super::render::problem::ErrorForm;
use super::render::server_timing::{self, Timing};
use super::render::size::UNCOUNTED_ANSWER;
use super::render::{self, IsCounted, Until, caching, counted};
use super::routes::search::{self, Answering, Timed};
use super::routes::{self, Kind, Way};
use crate::models::{Call, Reloader, View};
use crate::observe::{self, LoggedRequest};
use crate::traces::{Trace, Traces};
use scheduler::account::{Account, Full, Pool, Reservation};

/// The header with which a client shortens the timeout of a request.
const TIMEOUT: HeaderName = HeaderName::from_static("request-timeout-ms");

/// The header with which a client asks for the rows at a position, or at a later one.
const MIN_POSITION: HeaderName = HeaderName::from_static("min-position");

/// The whole service over some models.
#[derive(Clone)]
pub struct Front {
    /// What is around its answers.
    pub(crate) edge: Arc<Edge>,
    /// Holds its models.
    pub(crate) reloader: Arc<Reloader>,
}

/// The timing of a request, and how long it took in total.
type Noted = (Timing, Duration);

/// What became known about a request while it was answered.
#[derive(Default)]
struct Seen {
    /// `None` if no handler was called, or it panicked.
    noted: Option<Noted>,
    /// The account of its API key, if it has one.
    account: Option<Arc<Account>>,
    /// The time until which its answer is of use, as far as its head says.
    latest: Option<Instant>,
}

/// The body of an answer within the edge, and what became known about its request. CORS makes an
/// empty one of its own.
#[derive(Default)]
struct Answer {
    body: Body,
    seen: Seen,
}

impl Seen {
    /// The same beside the body of an answer.
    #[inline]
    fn beside(self, response: Response) -> Response<Answer> {
        response.map(|body| Answer { body, seen: self })
    }
}

/// What the requests of one connection share.
struct Connection {
    front: Front,
    observed: observe::Connection,
    /// The account of requests without an API key.
    account: Arc<Account>,
    /// The models, as the thread of the connection holds them.
    view: OnceLock<Arc<View>>,
    traces: Traces,
}

impl Front {
    /// The service for one connection, from this client.
    pub fn service(
        &self,
        client: SocketAddr,
    ) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<> {
        let service = self.reloader.models().service();
        let observed = observe::Connection::new(service.observer.clone(), client);
        let (account, view, traces) = (Account::new(), OnceLock::new(), service.traces.clone());
        let connection =
            Arc::new(Connection { front: self.clone(), observed, account, view, traces });
        service_fn(move |mut request: Request| {
            let (connection, id) = (connection.clone(), RequestId::of(request.headers()));
            let route = routes::index(request.uri().path());
            let span = debug_span!(
                "request",
                id = id.as_str(),
                method = request.method().as_str(),
                path = &*connection.observed.target(request.uri(), route),
                caller = Empty
            );
            async move { Ok(connection.observed(&mut request, id, route).await) }.instrument(span)
        })
    }
}

impl Connection {
    /// Answers a request for this route, and counts it.
    async fn observed(&self, request: &mut Request, id: RequestId, route: usize) -> Response {
        let (observed, arrived) = (self.observed.begin(request, route), Instant::now());
        let traced = self.traced(request, route, &id, arrived);
        let (mut response, noted) = self
            .answer(request, id, route, arrived, traced.trace.as_ref(), observed.logged())
            .await;
        let (timing, took) = noted.unwrap_or_else(|| (Timing::default(), arrived.elapsed()));
        let ended = arrived + took;
        observed.answered(&response, took, timing.stages(ended), traced.trace.as_deref());
        traced.answered(&mut response, timing.encoding_since.map(|since| (since, ended)));
        response
    }

    /// Answers a request, with the edge around [`respond`](Self::respond). Rare parts are boxed,
    /// and only the outermost future has the request itself: the future is copied a few times, so
    /// each byte in it costs every request.
    async fn answer(
        &self,
        request: &mut Request,
        id: RequestId,
        route: usize,
        arrived: Instant,
        trace: Option<&Arc<Trace>>,
        log: Option<&Arc<LoggedRequest>>,
    ) -> (Response, Option<Noted>) {
        let edge = &self.front.edge;
        let (is_head, version) = (request.method() == Method::HEAD, request.version());
        let accepted = request.headers().get(header::ACCEPT_ENCODING).cloned();
        let cors = edge.cors(request);
        let response = match cors {
            None => guarded(pin!(self.respond(request, route, arrived, trace, log)), &id).await,
            Some(cors) => {
                let respond =
                    self.respond_across_origins(cors, request, route, arrived, trace, log);
                guarded(Box::pin(respond).as_mut(), &id).await
            }
        };
        let (head, Answer { body, seen }) = response.into_parts();
        let mut response = Response::from_parts(head, body);
        let (account, form) =
            (seen.account.as_ref().unwrap_or(&self.account), routes::error_form(route));
        self.complete(&mut response, account, &id, is_head, form);
        if edge.finish(&mut response, is_head) {
            let service = self.front.reloader.models().service();
            let known = response.extensions_mut().remove::<Until>().map(|Until(deadline)| deadline);
            let deadline = known.or(seen.latest).unwrap_or(arrived + service.timeouts.request);
            let compress =
                compression::compress(response, accepted, service, account, deadline, is_head);
            response = match Box::pin(compress).await {
                Ok(compressed) => compressed,
                Err(error) => {
                    let mut response = error.into_response();
                    self.complete(&mut response, account, &id, is_head, form);
                    edge.finish(&mut response, is_head);
                    response
                }
            };
        }
        response.headers_mut().insert(request_id::NAME, id.into_value());
        // HTTP/2 has no such header: its connections end without losing a request (GOAWAY).
        if version < Version::HTTP_2 && self.front.reloader.models().service().is_draining() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        (response, seen.noted)
    }

    /// Adds what all answers have: headers, and the problem document of an error.
    #[inline]
    fn complete(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
        form: ErrorForm,
    ) {
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            self.write_problem(response, error, account, id, is_head, form);
        } else {
            self.count(response, account, id, is_head, form);
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(const { caching::REVALIDATE });
    }

    /// Counts the memory of a large answer that its handler did not count, because it expected a
    /// small one: it may repeat words of the request, which may be long. If the caller may not hold
    /// that much, the answer is dropped immediately, and a problem document takes its place.
    #[inline]
    fn count(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
        form: ErrorForm,
    ) {
        let bytes = response.body().size_hint().lower();
        if bytes <= UNCOUNTED_ANSWER || response.extensions_mut().remove::<IsCounted>().is_some() {
            return;
        }
        let memory = &self.front.reloader.models().service().memory;
        match memory.take(account, Pool::Answers, bytes) {
            Ok(room) => render::count(response, room),
            Err(full) => {
                let full = ApiError::from(full);
                *response = full.clone().into_response();
                response.extensions_mut().remove::<ApiError>();
                self.write_problem(response, full, account, id, is_head, form);
            }
        }
    }

    /// Puts the problem document into its answer; that of a HEAD has only its length.
    fn write_problem(
        &self,
        response: &mut Response,
        error: ApiError,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
        form: ErrorForm,
    ) {
        let form = response.extensions_mut().remove::<ErrorForm>().unwrap_or(form);
        if form != ErrorForm::Problem {
            *response.status_mut() = form.status(&error);
            response.headers_mut().insert(header::CONTENT_TYPE, form.media_type());
        }
        let mut document = form.document(&error, id.as_str());
        let mut room = None;
        // It may repeat words, which may be as long as the request's body.
        if document.len() as u64 > UNCOUNTED_ANSWER {
            let memory = &self.front.reloader.models().service().memory;
            match memory.take(account, Pool::Answers, document.len() as u64) {
                Ok(held) => room = Some(held),
                Err(full) => {
                    let full = ApiError::from(full);
                    document = form.document(&full, id.as_str());
                    *response.status_mut() = form.status(&full);
                    if let Some(seconds) = full.retry_after_seconds() {
                        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                    }
                }
            }
        }
        // An answer that could not be kept may have been tagged.
        response.headers_mut().remove(header::ETAG);
        response.headers_mut().insert(header::CONTENT_LENGTH, document.len().into());
        if !is_head {
            *response.body_mut() = match room {
                Some(room) => counted(document, room).into(),
                None => document.into(),
            };
        }
    }

    /// Memory for the parsed parts of a long path and query string.
    fn room_for_head(
        &self,
        uri: &Uri,
        account: &Arc<Account>,
    ) -> Result<Option<Reservation>, Full> {
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
        request: &mut Request,
        route: usize,
        arrived: Instant,
        trace: Option<&Arc<Trace>>,
        log: Option<&Arc<LoggedRequest>>,
    ) -> Response<Answer> {
        let respond = async |mut request: Request| {
            Ok::<_, Infallible>(self.respond(&mut request, route, arrived, trace, log).await)
        };
        let response = cors.layer(service_fn(respond)).call(take(request)).await;
        response.unwrap_or_else(|never| match never {})
    }

    /// Answers a request within the edge. Handlers in boxes take the request.
    async fn respond(
        &self,
        request: &mut Request,
        route: usize,
        arrived: Instant,
        trace: Option<&Arc<Trace>>,
        log: Option<&Arc<LoggedRequest>>,
    ) -> Response<Answer> {
        let mut seen = Seen::default();
        match self.front.edge.admit(request) {
            Ok(of_key) => seen.account = of_key,
            Err(refused) => return seen.beside(refused.into_response()),
        }
        if let Some(log) = log
            && let Some(caller) = request.extensions().get::<Caller>()
        {
            log.key.get_or_init(|| caller.name.clone());
        }
        let account = seen.account.as_ref().unwrap_or(&self.account);
        let (mut call, is_named, _room) = match self.call(request, account, arrived) {
            Ok(found) => found,
            Err(error) => return seen.beside(error.into_response()),
        };
        if let Some(log) = log {
            call = call.logged_in(log.clone());
        }
        if let Some(trace) = trace {
            if call.has_model() {
                trace.of_model(traced::model(&call));
            }
            call = call.noted_in(trace.timeline().clone());
        }
        seen.latest = Some(call.latest());
        let (method, headers, uri) = (request.method(), request.headers(), request.uri());
        let is_head = *method == Method::HEAD;
        let has_timing = routes::searches(route, method);
        let answered = match routes::find(route, is_named, method, uri) {
            Err(error) => Err(error),
            Ok((found, way)) => {
                if found.is_of_a_model() {
                    if !call.has_model() {
                        return seen.beside(ApiError::NoModels.into_response());
                    }
                    call.log_model();
                    if let Some(wanted) = headers.get(MIN_POSITION) {
                        match Box::pin(min_position::reached(call, wanted)).await {
                            Ok(reached) => call = reached,
                            Err(error) => return seen.beside(error.into_response()),
                        }
                    }
                }
                match way {
                    Way::Nearest => search::get(&call, headers, uri, query_string::nearest).await,
                    Way::Analogy => search::get(&call, headers, uri, query_string::analogy).await,
                    Way::Boxed(answer) if found.kind == Kind::Admin => {
                        let answered = match require_admin(request.extensions()) {
                            // Without a deadline, and without holding its models.
                            Ok(()) => answer(call, take(request), &self.front.reloader).await,
                            Err(error) => Err(error),
                        };
                        return seen
                            .beside(answered.map_or_else(IntoResponse::into_response, |(a, _)| a));
                    }
                    Way::Boxed(answer) => {
                        let request = take(request);
                        let answering = answer(call.clone(), request, &self.front.reloader);
                        in_time(answering, call.latest()).await
                    }
                }
            }
        };
        let (mut response, timing) =
            answered.unwrap_or_else(|error| (error.into_response(), Timing::default()));
        if is_head {
            leave_out_body(&mut response);
        }
        let took = arrived.elapsed();
        seen.noted = Some((timing, took));
        if has_timing && call.has_model() {
            server_timing::write(&mut response, &call.engine, timing, took);
        }
        seen.beside(response)
    }

    /// The call of a request, whether a model's name is before the path of its route, and memory
    /// for the parsed parts of its head.
    #[inline]
    fn call(
        &self,
        request: &Request,
        account: &Arc<Account>,
        arrived: Instant,
    ) -> Result<(Call, bool, Option<Reservation>), ApiError> {
        let room = self.room_for_head(request.uri(), account)?;
        let held = self.view.get_or_init(|| self.front.reloader.models().view()).hold();
        let name = routes::model_name(request.uri().path()).transpose()?;
        let model = match &name {
            None => 0,
            Some(name) => held.set.position(name).ok_or_else(|| {
                let known = held.set.models().iter().map(|model| model.name().to_owned());
                ApiError::NoSuchModel { name: name.to_string(), known: known.collect() }
            })?,
        };
        let allowed = request.headers().get(TIMEOUT).map(HeaderValue::as_bytes);
        let call = Call::new(held, model, account.clone(), arrived, allowed);
        Ok((call, name.is_some(), room))
    }
}

/// How long after its deadline a request is abandoned here. The queue and other stages that wait
/// should abandon it first, because they can say more about why.
const GRACE: Duration = Duration::from_millis(100);

/// The answer, or 504 if it is not ready in time.
async fn in_time(answering: Answering, deadline: Instant) -> Timed {
    let answered = tokio::time::timeout_at((deadline + GRACE).into(), answering);
    answered.await.unwrap_or(Err(ApiError::DeadlinePassed))
}

/// Leaves the head of the answer that a GET would have.
fn leave_out_body(response: &mut Response) {
    let body = take(response.body_mut());
    if response.status() != StatusCode::NOT_MODIFIED
        && let Some(length) = body.size_hint().exact()
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
}
