//! The table of routes: each path once, with its methods. From it are derived: the way to a
//! request's handler ([`find`](super::find)), the routes' labels in metrics and logs, which routes
//! need an admin's key, and the tests that compare `openapi.yaml`, the text at `/` and the default
//! of `public_routes` with the routes.

use std::sync::Arc;

use axum::extract::Request;

use super::heads::classify::Classify;
use super::heads::expand::Expand;
use super::search::Answering;
use super::{compare, docs, explorer, heads, info, operations, rank, search, words};
use crate::http::parse::body::Received;
use crate::http::render::server_timing::Timing;
use crate::models::{Call, Reloader};

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Way {
    /// `GET /nearest`, the most frequent: `front` has its future within its own.
    Nearest,
    /// `GET /analogy`, likewise.
    Analogy,
    /// By this handler. A box costs an allocation.
    Boxed(fn(Call, Request, &Arc<Reloader>) -> Answering),
}

/// The way to the handler of a GET. It gets the call, the headers and the URI.
macro_rules! get {
    ($handler:path) => {
        Way::Boxed(|call, request, _| {
            let (head, _) = request.into_parts();
            Box::pin(async move {
                let answered = $handler(call, head.headers, head.uri).await;
                answered.map(|response| (response, Timing::default()))
            })
        })
    };
}

/// The way to the handler of a POST. It gets the call and the body.
macro_rules! post {
    ($handler:path) => {
        Way::Boxed(|call, request, _| {
            Box::pin(async move {
                match Received::receive(&call, request).await {
                    Ok(received) => $handler(call, received).await,
                    Err(error) => Err(error),
                }
            })
        })
    };
}

/// All routes, the most frequent first.
pub(super) const ROUTES: &[Route] = &[
    Route::new("/nearest").searches().get(Way::Nearest).post(post!(search::post_nearest)),
    Route::new("/analogy").searches().get(Way::Analogy).post(post!(search::post_analogy)),
    Route::new("/rank").searches().post(post!(rank::post_rank)),
    Route::new("/similarity").searches().post(post!(compare::post_similarity)),
    Route::new("/odd-one-out").searches().post(post!(compare::post_odd_one_out)),
    Route::new("/classify").searches().post(post!(heads::answer::<Classify>)),
    Route::new("/expand").searches().post(post!(heads::answer::<Expand>)),
    Route::new("/words").of_a_model().get(get!(words::get_words)),
    Route::new("/words/{word}").of_a_model().get(get!(words::get_word)),
    Route::new("/models").get(get!(info::models)),
    Route::new("/model").of_a_model().get(get!(info::model)),
    Route::new("/heads").of_a_model().get(get!(info::heads)),
    Route::new("/health/live").public().get(get!(operations::live)),
    Route::new("/health/ready").public().get(get!(operations::ready)),
    Route::new("/metrics").public().get(get!(operations::get_metrics)),
    Route::new("/docs").public().get(get!(docs::page)),
    Route::new("/openapi.yaml").public().get(get!(info::openapi)),
    Route::new("/docs/").public().get(get!(docs::redirect_to_page)),
    Route::new("/docs/{file}").public().get(get!(docs::file)),
    Route::new("/").public().get(get!(explorer::start)),
    Route::new("/explorer/{file}").public().get(get!(explorer::file)),
    Route::new("/admin/reload").admin().post(Way::Boxed(operations::post_reload)),
];

/// Who may call a route, if the service has API keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Access {
    /// Anyone, by default: the setting `public_routes` decides.
    Public,
    /// Anyone with a key.
    Key,
    /// Anyone with an admin's key; nobody if there are no keys. These requests have no deadline.
    Admin,
}

/// A path, and how its methods are answered.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Route {
    pub(super) path: &'static str,
    /// Also of HEAD.
    pub(super) get: Option<Way>,
    pub(super) post: Option<Way>,
    /// Whether it queries one model, so that it also exists behind `/models/NAME`.
    pub(super) is_of_a_model: bool,
    pub(in crate::http) access: Access,
    /// Whether it asks the engine, so that its answers have `Server-Timing`.
    pub(super) searches: bool,
}

impl Route {
    const fn new(path: &'static str) -> Self {
        let access = Access::Key;
        Self { path, get: None, post: None, is_of_a_model: false, access, searches: false }
    }

    const fn get(self, way: Way) -> Self {
        Self { get: Some(way), ..self }
    }

    const fn post(self, way: Way) -> Self {
        Self { post: Some(way), ..self }
    }

    const fn of_a_model(self) -> Self {
        Self { is_of_a_model: true, ..self }
    }

    const fn searches(self) -> Self {
        Self { searches: true, is_of_a_model: true, ..self }
    }

    const fn public(self) -> Self {
        Self { access: Access::Public, ..self }
    }

    const fn admin(self) -> Self {
        Self { access: Access::Admin, ..self }
    }
}
