//! The two routes that search, in both their forms: fields in, queries through the queue, JSON out.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use model_store::{Hit, Query};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::answer::{ItemAnswer, Neighbors};
use super::fields::{AnalogyBody, MAX_QUERIES, NearestBody, Parts, RawOptions, invalid};
use super::request::{Options, check_size, not_exactly_one, query};
use super::server_timing::Timing;
use super::state::AppState;
use super::{ApiError, answer, body, negotiation, query_string, suggestions};
use crate::queue::{Answer, SubmitError};

type Shared = State<Arc<AppState>>;
type Body = Result<Bytes, BytesRejection>;
type Asked = Result<(Response, Timing), ApiError>;
type Answered = Result<Response, ApiError>;

/// Bodies of more bytes than this are read on a thread that may take its time.
const LARGE_BODY: usize = 32 << 10;

/// Answers with more numbers than this are written on a thread that may take its time.
const LARGE_ANSWER: usize = 20_000;

/// `GET /nearest`
pub(super) async fn nearest(state: &Arc<AppState>, headers: &HeaderMap, uri: &Uri) -> Asked {
    let parts = query_string::nearest(uri.query().unwrap_or_default())?;
    ask_one(state, headers, parts).await
}

/// `GET /analogy`
pub(super) async fn analogy(state: &Arc<AppState>, headers: &HeaderMap, uri: &Uri) -> Asked {
    let parts = query_string::analogy(uri.query().unwrap_or_default())?;
    ask_one(state, headers, parts).await
}

/// `GET /nearest`, by the router
pub(super) async fn get_nearest(state: Shared, headers: HeaderMap, uri: Uri) -> Answered {
    nearest(&state, &headers, &uri).await.map(with_timing)
}

/// `GET /analogy`, by the router
pub(super) async fn get_analogy(state: Shared, headers: HeaderMap, uri: Uri) -> Answered {
    analogy(&state, &headers, &uri).await.map(with_timing)
}

/// `POST /nearest`
pub(super) async fn post_nearest(
    state: Shared,
    headers: HeaderMap,
    uri: Uri,
    body: Body,
) -> Answered {
    query_string::check_encoding(uri.query().unwrap_or_default())?;
    let body = body::received(body, state.body_limit)?;
    aside_if_large(body.len(), async move {
        let parts = body::parse::<NearestBody<'_>>(&headers, &body)?;
        ask::<NearestBody<'_>>(&state, &headers, &uri, parts).await.map(with_timing)
    })
    .await
}

/// `POST /analogy`
pub(super) async fn post_analogy(
    state: Shared,
    headers: HeaderMap,
    uri: Uri,
    body: Body,
) -> Answered {
    query_string::check_encoding(uri.query().unwrap_or_default())?;
    let body = body::received(body, state.body_limit)?;
    aside_if_large(body.len(), async move {
        let parts = body::parse::<AnalogyBody<'_>>(&headers, &body)?;
        ask::<AnalogyBody<'_>>(&state, &headers, &uri, parts).await.map(with_timing)
    })
    .await
}

/// Reading a large body and looking its words up takes milliseconds, in which no other connection of this
/// thread would be served: so it happens on another one, until there is an answer or the caller has gone.
async fn aside_if_large(
    bytes: usize,
    answered: impl Future<Output = Answered> + Send + 'static,
) -> Answered {
    if bytes <= LARGE_BODY {
        return answered.await;
    }
    let runtime = Handle::current();
    let (_until_gone, gone) = oneshot::channel::<Infallible>();
    let answered_or_gone = async {
        tokio::select! {
            answered = answered => answered,
            _ = gone => Err(ApiError::Internal),
        }
    };
    let aside = tokio::task::spawn_blocking(move || runtime.block_on(answered_or_gone));
    aside.await.unwrap_or(Err(ApiError::Internal))
}

/// For [`server_timing::layer`](super::server_timing::layer).
fn with_timing((mut response, timing): (Response, Timing)) -> Response {
    response.extensions_mut().insert(timing);
    response
}

async fn ask<'a, B>(
    state: &Arc<AppState>,
    headers: &HeaderMap,
    uri: &Uri,
    parts: Parts<'a>,
) -> Asked
where
    B: Deserialize<'a> + Into<Parts<'a>>,
{
    query_string::nothing(uri.query().unwrap_or_default())?;
    if parts.queries.is_some() {
        ask_many::<B>(state, headers, parts).await
    } else {
        ask_one(state, headers, parts).await
    }
}

async fn ask_one(state: &Arc<AppState>, headers: &HeaderMap, parts: Parts<'_>) -> Asked {
    let target = parts.target.resolve()?;
    let options = Options::new(parts.options, &RawOptions::default())?;
    check_size(std::iter::once(&options), state.model.dim())?;
    let query = match query(&state.model, target, &options) {
        Ok(query) => query,
        Err(mut error) => {
            suggestions::fill_in(state, std::iter::once(&mut error)).await;
            return Err(error);
        }
    };
    negotiation::check(headers, &negotiation::JSON)?;
    let answer = submit(state, vec![query]).await?;
    let timing = timing(&answer);
    let with_vectors = options.with_vectors;
    respond(state, timing, options.k, with_vectors, move |state| {
        let hits = &answer.hits[0];
        let neighbors = Neighbors { store: &state.model, hits, with_vectors };
        answer::single(state.model.name(), &neighbors)
    })
    .await
}

async fn ask_many<'a, B>(state: &Arc<AppState>, headers: &HeaderMap, parts: Parts<'a>) -> Asked
where
    B: Deserialize<'a> + Into<Parts<'a>>,
{
    let items = parts.queries.unwrap_or_default();
    if parts.target.is_given() {
        return Err(not_exactly_one(parts.target.alternatives()));
    }
    if items.is_empty() || items.len() > MAX_QUERIES {
        return Err(invalid("queries"));
    }
    // The common options are part of the envelope: wrong ones fail all of it.
    Options::new(RawOptions::default(), &parts.options)?;

    let mut results: Vec<Result<(Query, Options), ApiError>> = items
        .into_iter()
        .map(|item| {
            let item = body::parse_item::<B>(item)?;
            if item.queries.is_some() {
                let reason = "`queries` can't be inside `queries`".to_owned();
                return Err(ApiError::InvalidRequest { reason });
            }
            let target = item.target.resolve()?;
            let options = Options::new(item.options, &parts.options)?;
            Ok((query(&state.model, target, &options)?, options))
        })
        .collect();
    let asked = || results.iter().flatten().map(|(_, options)| options);
    check_size(asked(), state.model.dim())?;
    let number_of_results = asked().map(|options| options.k).sum();
    let any_vectors = asked().any(|options| options.with_vectors);
    suggestions::fill_in(state, results.iter_mut().filter_map(|result| result.as_mut().err()))
        .await;
    negotiation::check(headers, &negotiation::JSON)?;

    let mut queries = Vec::with_capacity(results.len());
    let items: Vec<Result<bool, ApiError>> = results
        .into_iter()
        .map(|result| {
            let (query, options) = result?;
            queries.push(query);
            Ok(options.with_vectors)
        })
        .collect();
    let answer = submit(state, queries).await?;
    let timing = timing(&answer);
    respond(state, timing, number_of_results, any_vectors, move |state| {
        let mut found = answer.hits.iter();
        let results = items.iter().map(|item| item_answer(state, item, &mut found));
        answer::many(state.model.name(), results)
    })
    .await
}

/// Answers come for those items that became queries, in order.
fn item_answer<'a>(
    state: &'a AppState,
    item: &'a Result<bool, ApiError>,
    found: &mut impl Iterator<Item = &'a Vec<Hit>>,
) -> ItemAnswer<'a> {
    match item {
        Ok(with_vectors) => {
            let hits = found.next().expect("the engine answers every query");
            let (store, with_vectors) = (&*state.model, *with_vectors);
            ItemAnswer::Found(Neighbors { store, hits, with_vectors })
        }
        Err(error) => ItemAnswer::Failed(error),
    }
}

async fn submit(state: &AppState, queries: Vec<Query>) -> Result<Answer, ApiError> {
    let deadline = Instant::now() + state.request_timeout;
    state.queue.submit(queries, deadline).await.map_err(|e| match e {
        SubmitError::Full { retry_after } => ApiError::QueueFull {
            // Whole seconds, rounded up, and not so many that a client gives up.
            retry_after_seconds: (retry_after.as_secs() + 1).min(60),
        },
        SubmitError::DeadlinePassed => ApiError::DeadlinePassed,
        SubmitError::EngineFailed => ApiError::EngineFailed,
        SubmitError::EngineGone if state.is_draining() => ApiError::Draining,
        SubmitError::EngineGone => ApiError::EngineGone,
    })
}

fn timing(answer: &Answer) -> Timing {
    Timing { queue: answer.queued, engine: answer.engine }
}

/// Writes an answer, a large one where it keeps nobody else waiting.
async fn respond(
    state: &Arc<AppState>,
    timing: Timing,
    results: usize,
    with_vectors: bool,
    write: impl FnOnce(&AppState) -> Response + Send + 'static,
) -> Asked {
    let numbers = results * if with_vectors { state.model.dim() } else { 1 };
    let response = if numbers > LARGE_ANSWER {
        let state = state.clone();
        tokio::task::spawn_blocking(move || write(&state)).await.map_err(|_| ApiError::Internal)?
    } else {
        write(state)
    };
    Ok((response, timing))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_large_request_ends_when_its_caller_goes() {
        for bytes in [LARGE_BODY, LARGE_BODY + 1] {
            let (alive, mut ended) = oneshot::channel::<Infallible>();
            let never = async move {
                let _alive = alive;
                std::future::pending().await
            };
            let caller = tokio::spawn(aside_if_large(bytes, never));
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(ended.try_recv() == Err(oneshot::error::TryRecvError::Empty), "it waits");
            caller.abort();
            let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
            assert!(ended.expect("it ends").is_err());
        }
    }
}
