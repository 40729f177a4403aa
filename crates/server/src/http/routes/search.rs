//! `/nearest` and `/analogy`, by GET and POST: fields or vectors in, queries through the queue,
//! JSON or an array out.

use std::pin::Pin;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::asking::Times;
use kindred::filters::{self, MAX_TESTS};
use kindred::question::Prepared;
use kindred::search::{Search, SearchResult};
use scheduler::SubmitError;
use scheduler::account::Reservation;

use super::plan::{Plan, Ready, plan, plan_array, prepare_one};
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, stage};
use crate::http::parse::bodies::{AnalogyBody, NearestBody, Parts};
use crate::http::parse::body::Received;
use crate::http::parse::negotiation::{self, Format};
use crate::http::render::Until;
use crate::http::render::caching;
use crate::http::render::neighbors;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::http::render::table::Table;
use crate::models::Call;
use crate::workers::Cancellation;

/// An answer, and where its time went.
pub(in crate::http) type Timed = Result<(Response, Timing), ApiError>;
pub(super) type Answered = Result<Response, ApiError>;
/// A request that is being answered.
pub(in crate::http) type Answering = Pin<Box<dyn Future<Output = Timed> + Send>>;

/// `GET /nearest` and `GET /analogy`, which differ in how `parse` reads their parameters.
pub(in crate::http) async fn get(
    call: &Call,
    headers: &HeaderMap,
    uri: &Uri,
    parse: fn(&str) -> Result<Parts<'static>, ApiError>,
) -> Timed {
    /// Shorter query strings are never long work.
    const SHORT: usize = 512;
    let query = uri.query().unwrap_or_default();
    let cost = || {
        let of_words = Cost(query.len() as u64 * Cost::of_encoder(call));
        Cost::of_text(std::iter::once(query.as_bytes())).and(of_words)
    };
    let ready = if query.len() > SHORT && cost().is_long() {
        let (same, query, headers) = (call.clone(), query.to_owned(), headers.clone());
        let prepare = move |cancellation: &Cancellation| {
            prepare_one(&same, &headers, parse(&query)?, cancellation)
        };
        Box::pin(stage(call, cost(), call.latest(), prepare)).await.map_err(NotReady::Failed)
    } else {
        parse(query).map_err(NotReady::Failed).and_then(|parts| prepare_here(call, headers, parts))
    };
    answer_one(call, ready, Some(headers)).await
}

/// Why a query is not ready.
enum NotReady {
    Failed(ApiError),
    /// Making the set of its filter would delay other connections.
    Later(Box<Parts<'static>>),
}

/// Prepares the query of a GET on this thread, unless its filter has to be made and takes long.
#[inline]
fn prepare_here(
    call: &Call,
    headers: &HeaderMap,
    parts: Parts<'static>,
) -> Result<Ready, NotReady> {
    match &parts.options.filter {
        Some(filter) if of_filter(call, filter).is_long() => Err(NotReady::Later(parts.into())),
        _ => {
            let cancellation = Cancellation::until(call.latest());
            prepare_one(call, headers, parts, &cancellation).map_err(NotReady::Failed)
        }
    }
}

/// Prepares a query on another thread, if it has to be prepared there; or fills in what its error
/// suggests.
async fn in_the_end(
    call: &Call,
    get: Option<&HeaderMap>,
    not_ready: NotReady,
) -> Result<Ready, ApiError> {
    let done = match not_ready {
        NotReady::Failed(error) => Err(error),
        NotReady::Later(parts) => {
            let cost = of_filter(call, parts.options.filter.as_deref().unwrap_or_default());
            let (same, headers) = (call.clone(), get.cloned().unwrap_or_default());
            let deadline = call.deadline(parts.options.timeout_ms)?;
            let prepare = move |cancellation: &Cancellation| {
                prepare_one(&same, &headers, *parts, cancellation)
            };
            stage(call, cost, deadline, prepare).await
        }
    };
    suggestions::with(call, done).await
}

/// The cost of making the set of a filter: nothing if it is there.
pub(super) fn of_filter(call: &Call, filter: &str) -> Cost {
    let rows = call.rows().count();
    // Even with as many tests as it may have, it would be short.
    if !Cost::of_filters(MAX_TESTS, rows).is_long() || call.sets.kept(filter).is_some() {
        return Cost::default();
    }
    // One that can't be read fails soon.
    let tests = filters::parse(filter).map_or(0, |filter| filter.tests());
    Cost::of_filters(tests, rows)
}

/// `POST /nearest`
pub(in crate::http) async fn post_nearest(call: Call, received: Received) -> Timed {
    let parse = |call: &Call, received: &mut Received, cancellation: &Cancellation| {
        if received.is_array {
            return plan_array(call, received, cancellation);
        }
        let body = received.parse::<NearestBody<'_>>()?;
        plan(call, &received.headers, body, negotiation::json_or_npy, cancellation)
    };
    post(&call, received, parse).await
}

/// `POST /analogy`
pub(in crate::http) async fn post_analogy(call: Call, received: Received) -> Timed {
    let parse = |call: &Call, received: &mut Received, cancellation: &Cancellation| {
        let body = received.parse::<AnalogyBody<'_>>()?;
        plan(call, &received.headers, body, negotiation::json, cancellation)
    };
    post(&call, received, parse).await
}

async fn post<F>(call: &Call, received: Received, parse: F) -> Timed
where
    F: FnOnce(&Call, &mut Received, &Cancellation) -> Result<Plan, ApiError> + Send + 'static,
{
    let (cost, latest, same) = (received.cost(), received.latest(call), call.clone());
    let planned = stage(call, cost, latest, move |cancellation| {
        let mut received = received.whole()?;
        let plan = parse(&same, &mut received, cancellation);
        // What was made from the body takes no more memory than was counted for it.
        plan.map(|plan| (plan, received.into_room()))
    });
    match planned.await {
        Ok((Plan::Many { items, deadline, size, sets: _sets }, _room)) => {
            answer_many(call, items, deadline, size).await
        }
        Ok((Plan::Array { queries, table, deadline, sets: _sets }, _room)) => {
            Box::pin(answer_array(call, queries, table, deadline)).await
        }
        Ok((Plan::One(ready), _room)) => answer_one(call, Ok(ready), None).await,
        Err(error) => answer_one(call, Err(NotReady::Failed(error)), None).await,
    }
}

/// The part of a request that waits. Rare parts are boxed, because they must not enlarge every
/// request's future, which is copied a few times.
async fn answer_one(
    call: &Call,
    prepared: Result<Ready, NotReady>,
    get: Option<&HeaderMap>,
) -> Timed {
    call.log_queries(1);
    let Ready { prepared, deadline, size } = match prepared {
        Ok(ready) => ready,
        Err(not_ready) => Box::pin(in_the_end(call, get, not_ready)).await?,
    };
    if let Some(known) =
        get.and_then(|headers| caching::not_modified(headers, call.pinned(), Format::Json))
    {
        return Ok((known, Timing::default()));
    }
    let mut room = size.room(call)?;
    // Not a function of its own: its future would hold the query once more.
    let Prepared { query, included, notes, pick, explanation, ranks } = prepared;
    let (found, mut timing) = if pick.is_none() && explanation.is_none() {
        let asking = call.asking(deadline);
        let mut answer = answered(call, asking.search(vec![query]).await)?;
        let hits = answer.responses.pop().expect("the engine answers every query");
        let times = Timing { queue: answer.queued, engine: answer.device, ..Timing::default() };
        (SearchResult { hits, included, notes, explanation }, times)
    } else {
        let prepared = Prepared { query, included, notes, pick, explanation, ranks };
        let search = search(call, vec![prepared], deadline, &mut room);
        let (mut found, times) = Box::pin(search).await?;
        (found.pop().expect("one for each query"), times)
    };
    timing.encoding_since = Some(Instant::now());
    let response = if size.cost().is_long() {
        let same = call.clone();
        let write = move |_: &Cancellation| Ok(neighbors::single(same.pinned(), &found, room));
        let mut response = Box::pin(stage(call, size.cost(), deadline, write)).await?;
        response.extensions_mut().insert(Until(deadline));
        response
    } else {
        if get.is_none() {
            size.cost().count(call.service());
        }
        neighbors::single(call.pinned(), &found, room)
    };
    Ok((response, timing))
}

async fn answer_many(
    call: &Call,
    mut items: Vec<Result<Prepared, ApiError>>,
    deadline: Instant,
    size: Size,
) -> Timed {
    call.log_queries(items.len());
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
    let same = call.clone();
    let response = stage(call, size.cost(), deadline, move |cancellation| {
        let mut found = found.iter();
        let results = faults.iter().map(|fault| match fault {
            // The results are in the order of the items that became queries.
            None => Ok(found.next().expect("one for each query")),
            Some(error) => Err(error),
        });
        neighbors::many(same.pinned(), results, size.bytes, room, cancellation)
    });
    let mut response = response.await?;
    response.extensions_mut().insert(Until(deadline));
    Ok((response, timing))
}

/// As [`answer_many`], by one array.
async fn answer_array(
    call: &Call,
    queries: Vec<Prepared>,
    table: Table,
    deadline: Instant,
) -> Timed {
    call.log_queries(queries.len());
    let rows = call.rows().count();
    let size = table.size(queries.iter().map(|prepared| prepared.query.k.min(rows)).sum());
    let mut room = size.room(call)?;
    let (found, mut timing) = search(call, queries, deadline, &mut room).await?;
    timing.encoding_since = Some(Instant::now());
    let same = call.clone();
    let response = stage(call, size.cost(), deadline, move |cancellation| {
        let found = found.iter().map(|found| &found.hits[..]);
        table.write(same.pinned(), found, room, cancellation)
    });
    let mut response = response.await?;
    response.extensions_mut().insert(Until(deadline));
    Ok((response, timing))
}

/// Runs several queries together. Returns what was found for each, in their order, and how long it
/// took. Neighbours are picked on a thread where this delays no other connection.
async fn search(
    call: &Call,
    prepared: Vec<Prepared>,
    deadline: Instant,
    room: &mut Option<Reservation>,
) -> Result<(Vec<SearchResult>, Timing), ApiError> {
    let mut search = Search::new(prepared);
    let asking = call.asking(deadline);
    while let Some(to_pick) = answered_in_time(call, search.round(asking).await, deadline).await? {
        let hits = to_pick.hits();
        if let Some(room) = room {
            // Later rounds ask for more hits than were counted at first.
            room.set(room.bytes().max((hits * size_of::<kindred::contract::Hit>()) as u64));
        }
        let same = call.clone();
        let pick = move |cancellation: &Cancellation| {
            to_pick.pick(same.rows(), || check_deadline(cancellation))
        };
        // For each hit, a word may be converted to lower case and looked up twice.
        search.take(stage(call, Cost::of_writing(4 * hits), deadline, pick).await?);
    }
    let (found, Times { queue, engine }) = search.done();
    Ok((found, Timing { queue, engine, ..Timing::default() }))
}

/// The times of an answer that is written from now on.
pub(super) fn encoding(queue: Duration, engine: Duration) -> Timing {
    Timing { queue, engine, encoding_since: Some(Instant::now()) }
}

/// The queue's answer, with its error converted.
fn answered<T>(call: &Call, answer: Result<T, SubmitError>) -> Result<T, ApiError> {
    answer.map_err(|why| match why {
        SubmitError::EngineGone if call.service().is_draining() => ApiError::Draining,
        why => why.into(),
    })
}

/// How much later a caller hears that it already has what it may have of the queue.
const REFUSED_LATER: Duration = Duration::from_millis(20);

/// As [`answered`], for requests that may be large. A caller that is refused because it has others
/// in the queue hears so a little later: if it repeats the request at once, over many streams,
/// reading it again and again would take more processor time than all that is answered.
pub(super) async fn answered_in_time<T>(
    call: &Call,
    answer: Result<T, SubmitError>,
    deadline: Instant,
) -> Result<T, ApiError> {
    if matches!(answer, Err(SubmitError::Full { held: 1.., .. })) {
        let later = deadline.min(Instant::now() + REFUSED_LATER);
        tokio::time::sleep_until(later.into()).await;
    }
    answered(call, answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse::query_string;

    /// A request's future is copied a few times, so each byte of it costs every request. Rare parts
    /// are boxed.
    #[test]
    fn the_future_of_a_plain_get_stays_small() {
        fn size<F: Future>(
            _: impl Fn(&'static Call, &'static HeaderMap, &'static Uri) -> F,
        ) -> usize {
            size_of::<F>()
        }
        let size = size(|call, headers, uri| get(call, headers, uri, query_string::nearest));
        assert!(size <= 1392, "{size} bytes");
    }
}
