//! `POST /rows` and `POST /rows/delete`: batches of rows that are put or deleted, each as a whole.
//!
//! A batch is checked and encoded where that delays nobody, waits for its turn, and is on disk and
//! visible before it is answered.

use std::sync::Arc;
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::HeaderMap;
use kindred::contract::RowSet;
use kindred::live::Live;
use kindred::live::changes::{
    BadRow, BatchBuilder, ChangeError, Committed, Counts, Durability, ReadyBatch,
};
use kindred::rows::Rows as _;
use scheduler::account::Pool;
use serde::Serialize;

use super::super::search::{Answering, Timed};
use super::super::{last_part, require_write};
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, stage};
use crate::http::parse::arrays::Array;
use crate::http::parse::body::Received;
use crate::http::parse::multipart::RowParts;
use crate::http::parse::negotiation;
use crate::http::parse::not_exactly_one;
use crate::http::parse::rows::{
    self as parse, ChangeOptions, DeleteBody, OnError, RowsBody, Which,
};
use crate::http::parse::sources;
use crate::http::render;
use crate::http::render::problem::NamedRow;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::models::{Call, Reloader, Write, WriteError, Writer};
use crate::workers::Cancellation;

/// The header that makes a request one that may be sent again: a batch with the same key is
/// committed once.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Memory for each row that a filter deletes, with a key of typical length, while the batch is made.
const BYTES_PER_DELETED: u64 = 160;

/// The answer to a change.
#[derive(Serialize)]
struct Changed<'a> {
    model: &'a str,
    version: &'a str,
    /// From here on its rows are visible.
    position: u64,
    inserted: usize,
    replaced: usize,
    deleted: usize,
    /// Keys to delete that the table did not have.
    missing: usize,
    /// Whether it is on disk.
    durable: bool,
    /// Whether an earlier request with the same idempotency key had done it.
    repeated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    /// Bad rows that were left out.
    skipped: Vec<NamedRow<'a>>,
}

/// A batch that waits for its turn.
struct Planned {
    /// `None` if nothing is left of it.
    write: Option<Write>,
    skipped: Vec<BadRow>,
    deadline: Instant,
    /// Of the sources that it forgets, reports are dropped.
    forgotten: Vec<String>,
}

/// `POST /rows`
pub(in crate::http) fn post(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        let (live, writer) = writable(&call, &request)?;
        let received = Received::receive(&call, request).await?;
        // An attribute may be called `timeout_ms`, so the body is parsed before its own is known.
        let (cost, latest, same) = (received.cost(), call.latest(), call.clone());
        let plan = move |cancellation: &Cancellation| {
            let received = received.whole()?;
            let planned = plan_put(&same, &live, &received, cancellation)?;
            negotiation::check(&received.headers, &negotiation::JSON)?;
            Ok((planned, received.into_room()))
        };
        let (planned, _room) = stage(&call, cost, latest, plan).await?;
        commit(&call, &writer, planned).await
    })
}

/// `POST /rows/delete`
pub(in crate::http) fn post_delete(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        let (live, writer) = writable(&call, &request)?;
        delete_those_of_body(&call, &live, &writer, request).await
    })
}

/// `DELETE /rows`: the row of the parameter `key`, or those of a body as that of
/// `POST /rows/delete`.
pub(in crate::http) fn delete(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        let (live, writer) = writable(&call, &request)?;
        match parse::key(request.uri().query().unwrap_or_default())? {
            Some(_) if !request.body().is_end_stream() => {
                Err(not_exactly_one("the parameter `key` and a body"))
            }
            Some(key) => delete_one(&call, &live, &writer, request, key).await,
            None => delete_those_of_body(&call, &live, &writer, request).await,
        }
    })
}

/// `DELETE /rows/{key}`
pub(in crate::http) fn delete_key(call: Call, request: Request, _: &Arc<Reloader>) -> Answering {
    Box::pin(async move {
        let (live, writer) = writable(&call, &request)?;
        crate::http::parse::query_string::nothing(request.uri().query().unwrap_or_default())?;
        let key = last_part(request.uri())?.into_owned();
        delete_one(&call, &live, &writer, request, key).await
    })
}

/// The table and its writer, if this caller may change it here.
pub(in super::super) fn writable(
    call: &Call,
    request: &Request,
) -> Result<(Arc<Live>, Arc<Writer>), ApiError> {
    require_write(call, request.extensions())?;
    let both = call.live.clone().zip(call.writer.clone());
    both.ok_or_else(|| ApiError::NotWritable { model: call.name().to_owned() })
}

fn plan_put(
    call: &Call,
    live: &Live,
    received: &Received,
    cancellation: &Cancellation,
) -> Result<Planned, ApiError> {
    let mut batch = live.batch();
    if let Some(RowParts { rows, vectors, delete: keys }) = received.row_parts()? {
        let options = parse::options(received.query())?;
        let rows = std::str::from_utf8(&rows);
        let rows = rows.map_err(|_| ApiError::NotUtf8 { what: "the part `rows`".to_owned() })?;
        put_with_vectors(&mut batch, parse::lines(rows)?, &vectors, call, cancellation)?;
        if let Some(keys) = keys {
            delete_keys(&mut batch, parse::part_of_keys(&keys)?, cancellation)?;
        }
        let deadline = call.deadline(options.timeout_ms)?;
        return planned(call, live, batch, &received.headers, options, deadline);
    }
    let options = match received.json_lines()? {
        Some(text) => {
            let options = parse::options(received.query())?;
            put(&mut batch, parse::lines(text)?.into_iter(), cancellation)?;
            options
        }
        None => {
            let is_of_source = !sources::positions(&received.headers)?.is_empty();
            let (rows, keys, options) = received.parse::<RowsBody<'_>>()?.check(is_of_source)?;
            put(&mut batch, rows.into_iter().map(|row| row.get()), cancellation)?;
            delete_keys(&mut batch, keys, cancellation)?;
            options
        }
    };
    let deadline = call.deadline(options.timeout_ms)?;
    planned(call, live, batch, &received.headers, options, deadline)
}

fn put<'a>(
    batch: &mut BatchBuilder<'_>,
    rows: impl Iterator<Item = &'a str>,
    cancellation: &Cancellation,
) -> Result<(), ApiError> {
    for row in rows {
        check_deadline(cancellation)?;
        batch.upsert_json(row);
    }
    Ok(())
}

fn delete_keys(
    batch: &mut BatchBuilder<'_>,
    mut keys: Vec<String>,
    cancellation: &Cancellation,
) -> Result<(), ApiError> {
    // A key may be there twice: its row is gone either way.
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        check_deadline(cancellation)?;
        batch.delete(&key);
    }
    Ok(())
}

/// Puts rows without vectors, and their vectors, which are an array.
fn put_with_vectors(
    batch: &mut BatchBuilder<'_>,
    rows: Vec<&str>,
    vectors: &[u8],
    call: &Call,
    cancellation: &Cancellation,
) -> Result<(), ApiError> {
    let vectors = Array::read(vectors)?;
    let vectors = vectors.vectors_up_to(call.model.dim(), parse::MAX_CHANGED_ROWS)?;
    if vectors.count != rows.len() {
        let (found, expected) = (vectors.count, rows.len());
        return Err(ApiError::invalid_request(format!(
            "`vectors` has {found} vectors and `rows` has {expected} rows; send one vector for each row"
        )));
    }
    batch.reserve(rows.len());
    for (row, vector) in rows.into_iter().zip(vectors.each()) {
        check_deadline(cancellation)?;
        batch.upsert_json_with(row, &vector);
    }
    Ok(())
}

fn planned(
    call: &Call,
    live: &Live,
    batch: BatchBuilder<'_>,
    headers: &HeaderMap,
    options: ChangeOptions,
    deadline: Instant,
) -> Result<Planned, ApiError> {
    let reached = sources::positions(headers)?;
    let forgotten = reached.forgotten().map(str::to_owned).collect();
    let batch = batch.with_sources(reached);
    let only_at = only_at(call, live, headers)?;
    let (batch, skipped) = batch.finish_without_bad();
    let batch = batch.map(|batch| batch.only_at(only_at));
    if !skipped.is_empty() && options.on_error == OnError::Refuse {
        return Err(ApiError::BadRows { rows: skipped.into() });
    }
    let rows = batch.as_ref().map_or(0, |batch| batch.upserts() + batch.deletes());
    call.log_queries(rows);
    let (key, durability) = (idempotency_key(headers)?, Durability::from(options.durability));
    let ready = batch.map(|batch| live.ready(batch, durability, key.as_deref()));
    let ready = ready.transpose().map_err(WriteError::Change)?;
    let write = ready.map(|ready| {
        Cost::of_batch(rows, ready.bytes()).count(call.service());
        Write::Ready(ready)
    });
    Ok(Planned { write, skipped, deadline, forgotten })
}

/// The position in the header `If-Position`, if there is one and the table has that version.
fn only_at(call: &Call, live: &Live, headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some((version, position)) = sources::only_at(headers)? else { return Ok(None) };
    match version == call.model.version() {
        true => Ok(Some(position)),
        false => Err(position_changed(call, live, format!("{version}/{position}"))),
    }
}

fn position_changed(call: &Call, live: &Live, wanted: String) -> ApiError {
    let found = format!("{}/{}", call.model.version(), live.now().position());
    ApiError::PositionChanged { found, wanted }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes());
    let what = || "the header Idempotency-Key".to_owned();
    text.map(|text| Some(text.to_owned())).map_err(|_| ApiError::NotUtf8 { what: what() })
}

async fn delete_one(
    call: &Call,
    live: &Live,
    writer: &Writer,
    request: Request,
    key: String,
) -> Timed {
    let (head, _) = request.into_parts();
    negotiation::check(&head.headers, &negotiation::JSON)?;
    let mut batch = live.batch();
    batch.delete(&key);
    let deadline = call.deadline(None)?;
    let options = ChangeOptions::default();
    commit(call, writer, planned(call, live, batch, &head.headers, options, deadline)?).await
}

async fn delete_those_of_body(
    call: &Call,
    live: &Arc<Live>,
    writer: &Writer,
    request: Request,
) -> Timed {
    let received = Received::receive(call, request).await?;
    let (cost, latest, same) = (received.cost(), received.latest(call), call.clone());
    let table = live.clone();
    let plan = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let planned = plan_delete(&same, &table, &received, cancellation)?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((planned, received.into_room()))
    };
    let (planned, _room) = stage(call, cost, latest, plan).await?;
    commit(call, writer, planned).await
}

fn plan_delete(
    call: &Call,
    live: &Arc<Live>,
    received: &Received,
    cancellation: &Cancellation,
) -> Result<Planned, ApiError> {
    let (which, options) = received.parse::<DeleteBody>()?.check()?;
    let deadline = call.deadline(options.timeout_ms)?;
    match which {
        Which::Keys(keys) => {
            let mut batch = live.batch();
            delete_keys(&mut batch, keys, cancellation)?;
            planned(call, live, batch, &received.headers, options, deadline)
        }
        Which::Filter(filter) => {
            if idempotency_key(&received.headers)?.is_some() {
                // The rows that meet it may be others when it is sent again.
                let reason = "a change by `filter` can't have an Idempotency-Key; send it without, or \
                              delete by `keys`";
                return Err(ApiError::invalid_request(reason));
            }
            let cancellation = cancellation.at_most(deadline);
            // The set of the base is made here, so that other batches do not wait for it.
            let is_wanted = || !cancellation.is_cancelled();
            let sets = call.sets.wanted_while(&is_wanted);
            let of_base = sets.of(&filter).map_err(kindred::Error::from)?;
            let durability = Durability::from(options.durability);
            let reached = sources::positions(&received.headers)?;
            let forgotten = reached.forgotten().map(str::to_owned).collect();
            let only_at = only_at(call, live, &received.headers)?;
            // The base of this table, whatever is folded meanwhile: the set is of its rows.
            let (same, live) = (call.clone(), live.clone());
            let make = move || {
                let now = live.now();
                let met = now.meeting(&filter, of_base).map_err(kindred::Error::from);
                let met = met.map_err(WriteError::Question)?;
                let bytes = met.len() as u64 * BYTES_PER_DELETED;
                let memory = &same.service().memory;
                let room = memory.take(&same.account, Pool::Requests, bytes);
                let _room = room.map_err(WriteError::Memory)?;
                let rows = met.len();
                let met = RowSet::of(met);
                let mut batch = live.batch().with_sources(reached);
                met.members(now.count()).for_each(|row| batch.delete(now.word(row)));
                let batch = batch.finish().map_err(WriteError::Bad)?;
                let batch = batch.map(|batch| batch.only_at(only_at));
                let ready = batch.map(|batch| live.ready(batch, durability, None));
                let ready = ready.transpose().map_err(WriteError::Change)?;
                let bytes = ready.as_ref().map_or(0, ReadyBatch::bytes);
                // Its keys are also collected, and each is looked at twice.
                let made = Cost::of_batch(2 * rows, bytes).and(Cost::of_filters(1, now.count()));
                made.count(same.service());
                Ok(ready)
            };
            let write = Some(Write::Made(Box::new(make)));
            Ok(Planned { write, skipped: Vec::new(), deadline, forgotten })
        }
    }
}

/// Commits a batch, and answers what it did.
async fn commit(call: &Call, writer: &Writer, planned: Planned) -> Timed {
    let Planned { write, skipped, deadline, forgotten } = planned;
    let size: Size =
        skipped.iter().map(|row| Size::of_text(row.key.len() + row.reason.len())).sum();
    let room = size.room(call)?;
    let committed = match write {
        Some(write) => match writer.write(&call.account, deadline, write).await {
            Err(WriteError::Change(ChangeError::OtherPosition { wanted })) => {
                let wanted = format!("{}/{wanted}", call.model.version());
                let live = call.live.as_ref().expect("a table that is changed");
                return Err(position_changed(call, live, wanted));
            }
            written => written?,
        },
        None => None,
    };
    writer.reports.forget(forgotten.iter().map(String::as_str));
    let nothing = || Committed {
        position: call.live.as_ref().map_or(0, |live| live.now().position()),
        counts: Counts::default(),
        is_durable: true,
        is_repeated: false,
    };
    let Committed { position, counts, is_durable, is_repeated } = committed.unwrap_or_else(nothing);
    let changed = Changed {
        model: call.name(),
        version: call.model.version(),
        position,
        inserted: counts.inserted,
        replaced: counts.replaced,
        deleted: counts.deleted,
        missing: counts.missing,
        durable: is_durable,
        repeated: is_repeated,
        skipped: skipped.iter().map(NamedRow::from).collect(),
    };
    Ok((render::json(&changed, room), Timing::default()))
}
