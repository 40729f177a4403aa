//! The table of routes: each path once, with its methods. From it are derived: the way to a
//! request's handler ([`find`](super::find)), the routes' labels in metrics and logs, which routes
//! need an admin's key, and the tests that compare `openapi.yaml`, the text at `/` and the default
//! of `public_routes` with the routes.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Method;

use super::heads::classify::Classify;
use super::heads::expand::Expand;
use super::search::Answering;
use super::{
    compare, count, docs, embed, explorer, heads, info, operations, rank, rows, search, sources,
    tables, words,
};
use crate::http::parse::body::Received;
use crate::http::render::problem::ErrorForm;
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

/// The way to the handler of a GET that asks the engine. It gets the call, the headers and the URI.
macro_rules! get_timed {
    ($handler:path) => {
        Way::Boxed(|call, request, _| {
            let (head, _) = request.into_parts();
            Box::pin($handler(call, head.headers, head.uri))
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
    Route::new("/nearest", Kind::Search).get(Way::Nearest).post(post!(search::post_nearest)),
    Route::new("/analogy", Kind::Search).get(Way::Analogy).post(post!(search::post_analogy)),
    Route::new("/rank", Kind::Search).post(post!(rank::post_rank)),
    Route::new("/count", Kind::Search)
        .get(get_timed!(count::get_count))
        .post(post!(count::post_count)),
    Route::new("/similarity", Kind::Search).post(post!(compare::post_similarity)),
    Route::new("/odd-one-out", Kind::Search).post(post!(compare::post_odd_one_out)),
    Route::new("/embed", Kind::Search).post(post!(embed::post_embed)),
    Route::new("/v1/embeddings", Kind::Search)
        .post(post!(embed::post_open_ai))
        .with_errors(ErrorForm::OpenAi),
    Route::new("/classify", Kind::Search)
        .get(get_timed!(heads::get::<Classify>))
        .post(post!(heads::answer::<Classify>)),
    Route::new("/expand", Kind::Search)
        .get(get_timed!(heads::get::<Expand>))
        .post(post!(heads::answer::<Expand>)),
    Route::new("/words", Kind::Model).get(get!(words::get_words)),
    Route::new("/words/{word}", Kind::Model).get(get!(words::get_word)),
    Route::new("/rows", Kind::Model)
        .get(get!(rows::read::get))
        .post(Way::Boxed(rows::write::post))
        .delete(Way::Boxed(rows::write::delete)),
    // The key of a row may be `delete`.
    Route::new("/rows/delete", Kind::Model)
        .post(Way::Boxed(rows::write::post_delete))
        .or("/rows/{key}"),
    Route::new("/rows/{key}", Kind::Model)
        .get(get!(rows::read::get_key))
        .delete(Way::Boxed(rows::write::delete_key)),
    Route::new("/sources", Kind::Model).get(get!(sources::get)).post(Way::Boxed(sources::post)),
    Route::new("/fold", Kind::Model).post(Way::Boxed(tables::fold)),
    Route::new("/models", Kind::Service).get(get!(info::models)).post(Way::Boxed(tables::post)),
    // Deleted by its name alone: `DELETE /models/NAME`.
    Route::new("/model", Kind::Model).get(get!(info::model)).delete(Way::Boxed(tables::delete)),
    Route::new("/info", Kind::Model).get(get!(info::info)),
    Route::new("/heads", Kind::Model).get(get!(info::heads)),
    Route::new("/version", Kind::Service).get(get!(info::version)),
    Route::new("/health/live", Kind::Public).get(get!(operations::live)),
    Route::new("/health/ready", Kind::Public).get(get!(operations::ready)),
    Route::new("/metrics", Kind::Public).get(get!(operations::get_metrics)),
    Route::new("/docs", Kind::Public).get(get!(docs::page)),
    Route::new("/openapi.yaml", Kind::Public).get(get!(info::openapi)),
    Route::new("/docs/", Kind::Public).get(get!(docs::redirect_to_page)),
    Route::new("/docs/{file}", Kind::Public).get(get!(docs::file)),
    Route::new("/", Kind::Public).get(get!(explorer::start)).post(Way::Boxed(embed::post_start)),
    Route::new("/explorer/{file}", Kind::Public).get(get!(explorer::file)),
    Route::new("/admin/reload", Kind::Admin).post(Way::Boxed(operations::post_reload)),
];

/// What a route is about, and who may call it if the service has API keys: anyone with a key, where
/// nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Kind {
    /// Asks the engine about one model, so that its answers have `Server-Timing`. Like every route
    /// of a model, it also exists behind `/models/NAME`.
    Search,
    /// About one model.
    Model,
    /// About the whole service.
    Service,
    /// For anyone, by default: the setting `public_routes` decides.
    Public,
    /// For anyone with an admin's key; for nobody if there are no keys. These requests have no
    /// deadline.
    Admin,
}

/// A path, and how its methods are answered.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Route {
    pub(super) path: &'static str,
    pub(in crate::http) kind: Kind,
    /// Also of HEAD.
    pub(super) get: Option<Way>,
    pub(super) post: Option<Way>,
    pub(super) delete: Option<Way>,
    /// The path of the route that has the methods that this one lacks, if it matches, too.
    pub(super) or: Option<&'static str>,
    /// The form of its errors.
    pub(super) errors: ErrorForm,
}

impl Route {
    const fn new(path: &'static str, kind: Kind) -> Self {
        let errors = ErrorForm::Problem;
        Self { path, kind, get: None, post: None, delete: None, or: None, errors }
    }

    const fn get(self, way: Way) -> Self {
        Self { get: Some(way), ..self }
    }

    const fn post(self, way: Way) -> Self {
        Self { post: Some(way), ..self }
    }

    const fn delete(self, way: Way) -> Self {
        Self { delete: Some(way), ..self }
    }

    const fn or(self, path: &'static str) -> Self {
        Self { or: Some(path), ..self }
    }

    const fn with_errors(self, errors: ErrorForm) -> Self {
        Self { errors, ..self }
    }

    /// The way for a method.
    pub(super) fn way(&self, method: &Method) -> Option<Way> {
        match *method {
            Method::GET | Method::HEAD => self.get,
            Method::POST => self.post,
            Method::DELETE => self.delete,
            _ => None,
        }
    }

    /// The methods that it has, as the header `Allow` has them.
    pub(super) fn allowed(&self) -> &'static str {
        match (self.get.is_some(), self.post.is_some(), self.delete.is_some()) {
            (true, true, true) => "GET,HEAD,POST,DELETE",
            (true, true, false) => "GET,HEAD,POST",
            (true, false, true) => "GET,HEAD,DELETE",
            (true, false, false) => "GET,HEAD",
            (false, true, true) => "POST,DELETE",
            (false, true, false) => "POST",
            (false, false, _) => "DELETE",
        }
    }

    /// Whether it queries one model, so that it also exists behind `/models/NAME`.
    pub(in crate::http) fn is_of_a_model(&self) -> bool {
        matches!(self.kind, Kind::Search | Kind::Model)
    }
}
