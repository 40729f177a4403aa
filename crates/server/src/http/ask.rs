//! The two routes that search, in both their forms: fields in, queries through the queue, JSON out.

use std::time::Instant;

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::value::RawValue;

use super::answer::{ItemAnswer, Until};
use super::aside::{Work, goes_on, stage};
use super::body::{JsonBody, Received};
use super::fields::{AnalogyBody, AtMost, MAX_QUERIES, NearestBody, Parts, invalid};
use super::request::{Common, Options, Prepared, check_size, check_work, not_exactly_one, prepare};
use super::search::{search, search_one};
use super::server_timing::Timing;
use super::size::Size;
use super::{ApiError, answer, body, caching, negotiation, query_string, suggestions};
use crate::models::Call;
use crate::workers::Patience;

type Asked = Result<(Response, Timing), ApiError>;
pub(super) type Answered = Result<Response, ApiError>;

/// `GET /nearest`
pub(super) async fn nearest(call: &Call, headers: &HeaderMap, uri: &Uri) -> Asked {
    get(call, headers, uri, query_string::nearest).await
}

/// `GET /analogy`
pub(super) async fn analogy(call: &Call, headers: &HeaderMap, uri: &Uri) -> Asked {
    get(call, headers, uri, query_string::analogy).await
}

async fn get(
    call: &Call,
    headers: &HeaderMap,
    uri: &Uri,
    parse: fn(&str) -> Result<Parts<'static>, ApiError>,
) -> Asked {
    /// Shorter ones take no time worth a look.
    const SHORT: usize = 512;
    let query = uri.query().unwrap_or_default();
    let work = || Work::of_text(std::iter::once(query.as_bytes()));
    let ready = if query.len() > SHORT && work().is_long() {
        let (same, query, headers) = (call.clone(), query.to_owned(), headers.clone());
        let prepare =
            move |_: &Patience| parse(&query).and_then(|p| prepare_one(&same, &headers, p));
        Box::pin(stage(call, work(), call.latest(), prepare)).await
    } else {
        parse(query).and_then(|parts| prepare_one(call, headers, parts))
    };
    answer_one(call, ready, Some(headers)).await
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
    let parse = |call: &Call, received: &Received, patience: &Patience| {
        plan(call, &received.headers, received.parse::<NearestBody<'_>>()?, patience)
    };
    post(&call, received, parse).await.map(with_timing)
}

/// `POST /analogy`
pub(super) async fn post_analogy(call: Call, received: Received) -> Answered {
    let parse = |call: &Call, received: &Received, patience: &Patience| {
        plan(call, &received.headers, received.parse::<AnalogyBody<'_>>()?, patience)
    };
    post(&call, received, parse).await.map(with_timing)
}

/// For [`server_timing::layer`](super::server_timing::layer).
pub(super) fn with_timing((mut response, timing): (Response, Timing)) -> Response {
    response.extensions_mut().insert(timing);
    response
}

/// A request whose words have been looked up.
enum Plan {
    One(Ready),
    Many(Batch),
}

/// A query that is ready to be asked.
struct Ready {
    prepared: Prepared,
    deadline: Instant,
    size: Size,
}

/// The items of a batch, each ready to be asked or with what is wrong with it.
struct Batch {
    items: Vec<Result<Prepared, ApiError>>,
    deadline: Instant,
    size: Size,
}

async fn post(
    call: &Call,
    received: Received,
    parse: impl FnOnce(&Call, &Received, &Patience) -> Result<Plan, ApiError> + Send + 'static,
) -> Asked {
    let (work, latest, same) = (received.work(), received.latest(call), call.clone());
    let planned = stage(call, work, latest, move |patience| {
        let received = received.whole()?;
        let plan = parse(&same, &received, patience);
        // What was made of it takes no more than what was counted for the body.
        plan.map(|plan| (plan, received.into_room()))
    });
    match planned.await {
        Ok((Plan::Many(batch), _room)) => answer_many(call, batch).await,
        Ok((Plan::One(ready), _room)) => answer_one(call, Ok(ready), None).await,
        Err(error) => answer_one(call, Err(error), None).await,
    }
}

/// Checks the fields of a body and looks its words up.
fn plan<'a, B>(
    call: &Call,
    headers: &HeaderMap,
    asked: B,
    patience: &Patience,
) -> Result<Plan, ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let mut parts: Parts<'a> = asked.into();
    match parts.queries.take() {
        None => prepare_one(call, headers, parts).map(Plan::One),
        Some(queries) => plan_many::<B>(call, headers, queries, parts, patience).map(Plan::Many),
    }
}

fn prepare_one(call: &Call, headers: &HeaderMap, parts: Parts<'_>) -> Result<Ready, ApiError> {
    let target = parts.target.resolve()?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let options = Options::new(&call.model, parts.options, &Common::none())?;
    check_size(std::iter::once(&options), call.model.dim())?;
    let prepared = prepare(&call.model, target, &options)?;
    check_work(std::iter::once((&prepared, &options)))?;
    negotiation::check(headers, &negotiation::JSON)?;
    let size = Size::of(call, &prepared, &options);
    Ok(Ready { prepared, deadline, size })
}

fn plan_many<'a, B>(
    call: &Call,
    headers: &HeaderMap,
    queries: AtMost<&'a RawValue, MAX_QUERIES>,
    parts: Parts<'a>,
    patience: &Patience,
) -> Result<Batch, ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    if parts.target.is_given() {
        return Err(not_exactly_one(parts.target.alternatives()));
    }
    let queries = queries.all().filter(|queries| !queries.is_empty());
    let queries = queries.ok_or_else(|| invalid("queries"))?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let patience = patience.at_most(deadline);
    let common = Common::new(&call.model, parts.options)?;
    let mut items = Vec::with_capacity(queries.len());
    for item in queries {
        goes_on(&patience)?;
        items.push(prepare_item::<B>(call, item, &common));
    }
    let asked = || items.iter().flatten().map(|(prepared, options)| (prepared, options));
    check_size(asked().map(|(_, options)| options), call.model.dim())?;
    check_work(asked())?;
    negotiation::check(headers, &negotiation::JSON)?;
    let size = |item: &Result<(Prepared, Options), ApiError>| match item {
        Ok((prepared, options)) => Size::of(call, prepared, options),
        Err(error) => Size::of_error(error),
    };
    let size = items.iter().map(size).sum();
    let items = items.into_iter().map(|item| item.map(|(prepared, _)| prepared)).collect();
    Ok(Batch { items, deadline, size })
}

/// One item of `queries`, with the options of all of them where it has none of its own.
fn prepare_item<'a, B>(
    call: &Call,
    item: &'a RawValue,
    common: &Common,
) -> Result<(Prepared, Options), ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let item: Parts<'_> = body::parse_item::<B>(item)?.into();
    if item.queries.is_some() {
        let reason = "`queries` can't be inside `queries`".to_owned();
        return Err(ApiError::InvalidRequest { reason });
    }
    if item.options.timeout_ms.is_some() {
        let reason = "`timeout_ms` is for the whole request; give it beside `queries`".to_owned();
        return Err(ApiError::InvalidRequest { reason });
    }
    let target = item.target.resolve()?;
    let options = Options::new(&call.model, item.options, common)?;
    Ok((prepare(&call.model, target, &options)?, options))
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
    let mut room = size.room(call)?;
    let (found, mut timing) = search_one(call, prepared, deadline, &mut room).await?;
    timing.encoding_since = Some(Instant::now());
    let response = if size.work().is_long() {
        let served = call.served().clone();
        let write = move |_: &Patience| Ok(answer::single(&found.neighbors(&served), room));
        let mut response = Box::pin(stage(call, size.work(), deadline, write)).await?;
        response.extensions_mut().insert(Until(deadline));
        response
    } else {
        if get.is_none() {
            size.work().count(call.service());
        }
        answer::single(&found.neighbors(call), room)
    };
    Ok((response, timing))
}

async fn answer_many(call: &Call, batch: Batch) -> Asked {
    let Batch { mut items, deadline, size } = batch;
    suggestions::fill_in(call, items.iter_mut().filter_map(|item| item.as_mut().err())).await;
    let mut room = size.room(call)?;
    let mut queries = Vec::with_capacity(items.len());
    let faults: Vec<Option<ApiError>> = items
        .into_iter()
        .map(|item| match item {
            Ok(prepared) => {
                queries.push(prepared);
                None
            }
            Err(error) => Some(error),
        })
        .collect();
    let (found, mut timing) = search(call, queries, deadline, &mut room).await?;
    timing.encoding_since = Some(Instant::now());
    let served = call.served().clone();
    let response = stage(call, size.work(), deadline, move |patience| {
        let mut found = found.iter();
        let results = faults.iter().map(|fault| match fault {
            // What was found stands in the order of those items that became queries.
            None => {
                let found = found.next().expect("one for each query");
                ItemAnswer::Found(found.neighbors(&served))
            }
            Some(error) => ItemAnswer::Failed(error),
        });
        answer::many(&served, results, size.bytes(), room, patience)
    });
    let mut response = response.await?;
    response.extensions_mut().insert(Until(deadline));
    Ok((response, timing))
}
