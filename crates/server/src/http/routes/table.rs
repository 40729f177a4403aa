//! The table of routes: each method of each path, once. From it are derived: the way to a request's
//! handler ([`find`](super::find)), the routes' labels in metrics and logs, which routes need an
//! admin's key, the text at `/`, and the tests that compare `openapi.yaml` and the default of
//! `public_routes` with the routes.

use std::sync::Arc;

use axum::extract::Request;

use super::heads::classify::Classify;
use super::heads::expand::Expand;
use super::search::Answering;
use super::{compare, docs, explorer, heads, info, operations, rank, search, words};
use crate::http::parse::body::Received;
use crate::http::render::server_timing::Timing;
use crate::models::{Call, Reloader};

use Method::{Get, Post};

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

/// All routes, in the order in which the text at `/` lists them. A path that has two methods has
/// two entries.
pub(super) const ROUTES: &[Route] = &[
    Route::new(Get, "/nearest", Way::Nearest).searches().line("/nearest?word=frog&k=5", ""),
    Route::new(Get, "/analogy", Way::Analogy)
        .searches()
        .line("/analogy?expression=king+-+man+%2B+woman", ""),
    Route::new(Post, "/nearest", post!(search::post_nearest)).searches().on_next_line(),
    Route::new(Post, "/analogy", post!(search::post_analogy))
        .searches()
        .line("/analogy", "the same as JSON, one query or a batch"),
    Route::new(Post, "/rank", post!(rank::post_rank)).searches().on_next_line(),
    Route::new(Post, "/similarity", post!(compare::post_similarity)).searches().on_next_line(),
    Route::new(Post, "/odd-one-out", post!(compare::post_odd_one_out))
        .searches()
        .line("/odd-one-out", ""),
    Route::new(Post, "/classify", post!(heads::answer::<Classify>))
        .searches()
        .line("/classify", "labels of texts, by a trained head"),
    Route::new(Post, "/expand", post!(heads::answer::<Expand>))
        .searches()
        .line("/expand", "terms that texts imply, with weights"),
    Route::new(Get, "/words", get!(words::get_words))
        .of_a_model()
        .line("/words?prefix=fro", "words of the model"),
    Route::new(Get, "/words/{word}", get!(words::get_word)).of_a_model(),
    Route::new(Get, "/models", get!(info::models)).on_next_line(),
    Route::new(Get, "/model", get!(info::model))
        .of_a_model()
        .line("/model", "models served; each has its own routes, such as /models/NAME/nearest"),
    Route::new(Get, "/heads", get!(info::heads))
        .of_a_model()
        .line("/heads", "heads of the model, which classify and expand texts"),
    Route::new(Get, "/health/live", get!(operations::live)).public().on_next_line(),
    Route::new(Get, "/health/ready", get!(operations::ready)).public().line("/health/ready", ""),
    Route::new(Get, "/metrics", get!(operations::get_metrics))
        .public()
        .line("/metrics", "metrics for Prometheus"),
    Route::new(Get, "/docs", get!(docs::page)).public().on_next_line(),
    Route::new(Get, "/openapi.yaml", get!(info::openapi)).public().line(
        "/openapi.yaml",
        "the whole API, as interactive documentation and as an OpenAPI file",
    ),
    Route::new(Get, "/docs/", get!(docs::redirect_to_page)).public(),
    Route::new(Get, "/docs/{file}", get!(docs::file)).public(),
    Route::new(Get, "/", get!(explorer::start)).public(),
    Route::new(Get, "/explorer/{file}", get!(explorer::file)).public(),
    Route::new(Post, "/admin/reload", Way::Boxed(operations::post_reload)).admin(),
];

/// The methods of routes. GET includes HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

impl Method {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

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

/// How the text at `/` mentions a route.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mention {
    /// Not at all.
    None,
    /// On the line of the next route, by its path.
    OnNextLine,
    /// At the end of a line: how to call it, and what the line's routes do.
    Line(&'static str, &'static str),
}

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(in crate::http) way: Way,
    /// Whether it queries one model, so that it also exists behind `/models/NAME`.
    pub(super) is_of_a_model: bool,
    pub(in crate::http) access: Access,
    /// Whether it asks the engine, so that its answers have `Server-Timing`. All methods of its
    /// path do.
    pub(super) searches: bool,
    pub(super) mention: Mention,
}

impl Route {
    const fn new(method: Method, path: &'static str, way: Way) -> Self {
        Self {
            method,
            path,
            way,
            is_of_a_model: false,
            access: Access::Key,
            searches: false,
            mention: Mention::None,
        }
    }

    const fn of_a_model(self) -> Self {
        Self { is_of_a_model: true, ..self }
    }

    const fn public(self) -> Self {
        Self { access: Access::Public, ..self }
    }

    const fn admin(self) -> Self {
        Self { access: Access::Admin, ..self }
    }

    const fn searches(self) -> Self {
        Self { searches: true, is_of_a_model: true, ..self }
    }

    const fn on_next_line(self) -> Self {
        Self { mention: Mention::OnNextLine, ..self }
    }

    const fn line(self, example: &'static str, about: &'static str) -> Self {
        Self { mention: Mention::Line(example, about), ..self }
    }
}
