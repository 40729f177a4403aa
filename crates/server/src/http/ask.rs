//! The two routes that search, in both their forms: fields in, queries through the queue, JSON out.

use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::answer::ItemAnswer;
use super::aside::{is_large, read_aside_if_large, work_aside_if_large};
use super::body::{JsonBody, Received};
use super::fields::{AnalogyBody, MAX_QUERIES, NearestBody, Parts, RawOptions, invalid};
use super::request::{Options, Prepared, check_size, check_work, not_exactly_one, prepare};
use super::search::{search, search_one};
use super::server_timing::Timing;
use super::{ApiError, answer, body, caching, negotiation, query_string, suggestions};
use crate::models::{Call, ServedModel};

type Asked = Result<(Response, Timing), ApiError>;
pub(super) type Answered = Result<Response, ApiError>;

/// `GET /nearest`
pub(super) async fn nearest(call: &Call, headers: &HeaderMap, uri: &Uri) -> Asked {
    let parts = query_string::nearest(uri.query().unwrap_or_default());
    answer_one(call, parts.and_then(|parts| prepare_one(call, headers, parts)), Some(headers)).await
}

/// `GET /analogy`
pub(super) async fn analogy(call: &Call, headers: &HeaderMap, uri: &Uri) -> Asked {
    let parts = query_string::analogy(uri.query().unwrap_or_default());
    answer_one(call, parts.and_then(|parts| prepare_one(call, headers, parts)), Some(headers)).await
}

/// `GET /nearest`, by the router
pub(super) async fn get_nearest(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    nearest(&call, &headers, &uri).await.map(with_timing)
}

/// `GET /analogy`, by the router
pub(super) async fn get_analogy(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    analogy(&call, &headers, &uri).await.map(with_timing)
}

/// `POST /nearest`
pub(super) async fn post_nearest(call: Call, received: Received) -> Answered {
    read_aside_if_large(received.len(), async move {
        ask(&call, &received.headers, received.parse::<NearestBody<'_>>()?).await.map(with_timing)
    })
    .await
}

/// `POST /analogy`
pub(super) async fn post_analogy(call: Call, received: Received) -> Answered {
    read_aside_if_large(received.len(), async move {
        ask(&call, &received.headers, received.parse::<AnalogyBody<'_>>()?).await.map(with_timing)
    })
    .await
}

/// For [`server_timing::layer`](super::server_timing::layer).
pub(super) fn with_timing((mut response, timing): (Response, Timing)) -> Response {
    response.extensions_mut().insert(timing);
    response
}

async fn ask<'a, B>(call: &Call, headers: &HeaderMap, asked: B) -> Asked
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let parts: Parts<'a> = asked.into();
    if parts.queries.is_some() {
        ask_many::<B>(call, headers, parts).await
    } else {
        answer_one(call, prepare_one(call, headers, parts), None).await
    }
}

/// A query that is ready to be asked.
struct Ready {
    prepared: Prepared,
    deadline: Instant,
    /// How large the answer will be, as [`size`] counts.
    size: usize,
}

fn prepare_one(call: &Call, headers: &HeaderMap, parts: Parts<'_>) -> Result<Ready, ApiError> {
    let target = parts.target.resolve()?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let options = Options::new(parts.options, &RawOptions::default())?;
    check_size(std::iter::once(&options), call.model.dim())?;
    let prepared = prepare(&call.model, target, &options)?;
    check_work(std::iter::once((&prepared, &options)))?;
    negotiation::check(headers, &negotiation::JSON)?;
    let size = size(call, std::iter::once((&prepared, &options)));
    Ok(Ready { prepared, deadline, size })
}

/// All of a request that waits. What is rare is boxed: it must not make every request's future larger,
/// which is copied a few times.
async fn answer_one(
    call: &Call,
    prepared: Result<Ready, ApiError>,
    get: Option<&HeaderMap>,
) -> Asked {
    let Ready { prepared, deadline, size } = match prepared {
        Ok(ready) => ready,
        Err(mut error) => {
            Box::pin(suggestions::fill_in(call, std::iter::once(&mut error))).await;
            return Err(error);
        }
    };
    if get.is_some_and(|headers| caching::is_known(headers, call)) {
        return Ok((caching::not_modified(call), Timing::default()));
    }
    let (found, mut timing) = search_one(call, prepared, deadline).await?;
    timing.encoding_since = Some(Instant::now());
    let write = move |served: &ServedModel| answer::single(&found.neighbors(served));
    let response = if is_large(size) {
        Box::pin(work_aside_if_large(call, size, write)).await?
    } else {
        write(call)
    };
    Ok((response, timing))
}

async fn ask_many<'a, B>(call: &Call, headers: &HeaderMap, parts: Parts<'a>) -> Asked
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let items = parts.queries.unwrap_or_default();
    if parts.target.is_given() {
        return Err(not_exactly_one(parts.target.alternatives()));
    }
    if items.is_empty() || items.len() > MAX_QUERIES {
        return Err(invalid("queries"));
    }
    let deadline = call.deadline(parts.options.timeout_ms)?;
    // The common options are part of the envelope: wrong ones fail all of it.
    Options::new(RawOptions::default(), &parts.options)?;

    let mut results: Vec<Result<(Prepared, Options), ApiError>> = items
        .into_iter()
        .map(|item| {
            let item: Parts<'_> = body::parse_item::<B>(item)?.into();
            if item.queries.is_some() {
                let reason = "`queries` can't be inside `queries`".to_owned();
                return Err(ApiError::InvalidRequest { reason });
            }
            if item.options.timeout_ms.is_some() {
                let reason =
                    "`timeout_ms` is for the whole request; give it beside `queries`".to_owned();
                return Err(ApiError::InvalidRequest { reason });
            }
            let target = item.target.resolve()?;
            let options = Options::new(item.options, &parts.options)?;
            Ok((prepare(&call.model, target, &options)?, options))
        })
        .collect();
    let asked = || results.iter().flatten().map(|(prepared, options)| (prepared, options));
    check_size(asked().map(|(_, options)| options), call.model.dim())?;
    check_work(asked())?;
    let size = size(call, asked());
    suggestions::fill_in(call, results.iter_mut().filter_map(|result| result.as_mut().err())).await;
    negotiation::check(headers, &negotiation::JSON)?;

    let mut queries = Vec::with_capacity(results.len());
    let faults: Vec<Option<ApiError>> = results
        .into_iter()
        .map(|result| match result {
            Ok((prepared, _)) => {
                queries.push(prepared);
                None
            }
            Err(error) => Some(error),
        })
        .collect();
    let (found, mut timing) = search(call, queries, deadline).await?;
    timing.encoding_since = Some(Instant::now());
    let response = work_aside_if_large(call, size, move |served| {
        let mut found = found.iter();
        let results = faults.iter().map(|fault| match fault {
            // What was found stands in the order of those items that became queries.
            None => {
                let found = found.next().expect("one for each query");
                ItemAnswer::Found(found.neighbors(served))
            }
            Some(error) => ItemAnswer::Failed(error),
        });
        answer::many(served, results)
    });
    Ok((response.await?, timing))
}

/// How many numbers the answers will have, more or less, and other work of the same size.
fn size<'a>(call: &ServedModel, asked: impl Iterator<Item = (&'a Prepared, &'a Options)>) -> usize {
    let dim = call.model.dim();
    let of_neighbor = |prepared: &Prepared| {
        let vector = if prepared.with_vectors { dim } else { 0 };
        // A term takes one dot product, of which a component is far less work than a number to write.
        let terms = prepared.explain.as_ref().map_or(0, |e| e.formula.number_of_words());
        1 + vector + terms * (4 + dim / 32)
    };
    asked.map(|(prepared, options)| options.k * of_neighbor(prepared)).sum()
}
