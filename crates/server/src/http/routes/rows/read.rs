//! `GET /rows`: a row by its key, or all rows, page by page, as they are at one position.

use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use kindred::contract::{Row, RowSet};
use kindred::question::{Included, meeting};
use kindred::rows::write_row;
use scheduler::account::Reservation;

use super::super::last_part;
use super::super::search::{Answered, of_filter};
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, offloaded};
use crate::http::parse::negotiation::{self, Format};
use crate::http::parse::query_string;
use crate::http::parse::rows::{self as parse, After, RowsRequest};
use crate::http::render::caching;
use crate::http::render::size::{BYTES_PER_NEIGHBOR, room_for, size_of_parts};
use crate::models::Call;
use crate::workers::Cancellation;

/// `GET /rows`
pub(in crate::http) async fn get(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    match parse::rows(uri.query().unwrap_or_default())? {
        RowsRequest::Key(key) => one(&call, &headers, &key),
        RowsRequest::List { filter, after, limit, with_vectors } => {
            list(call, &headers, filter, after, limit, with_vectors).await
        }
    }
}

/// `GET /rows/{key}`
pub(in crate::http) async fn get_key(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    one(&call, &headers, &last_part(&uri)?)
}

fn one(call: &Call, headers: &HeaderMap, key: &str) -> Answered {
    let Some(row) = call.rows().row_of(key) else {
        return Err(ApiError::NoSuchRow { key: key.to_owned() });
    };
    negotiation::check(headers, &negotiation::JSON)?;
    if let Some(known) = caching::not_modified(headers, call.pinned(), Format::Json) {
        return Ok(known);
    }
    let bytes = bytes_per_row(call, true);
    let room = room_for(call, bytes as u64)?;
    let mut body = call.pinned().begin(bytes);
    let object = body.len();
    append(&mut body, call, row, true);
    // The row's fields belong to the object that is open already.
    body.remove(object);
    Ok(caching::tagged(call.pinned(), Format::Json, body, room))
}

fn append(body: &mut Vec<u8>, call: &Call, row: Row, with_vector: bool) {
    write_row(body, call.rows(), row, with_vector).expect("memory can be written to");
}

/// About how many bytes a row has in an answer.
fn bytes_per_row(call: &Call, with_vector: bool) -> usize {
    let attributes = Some((0..call.rows().columns().len()).collect());
    let parts = Included { vectors: with_vector, attributes, ..Included::default() };
    BYTES_PER_NEIGHBOR + size_of_parts(call.pinned(), &parts).1
}

async fn list(
    call: Call,
    headers: &HeaderMap,
    filter: Option<String>,
    after: Option<After>,
    limit: usize,
    with_vectors: bool,
) -> Answered {
    negotiation::check(headers, &negotiation::JSON)?;
    let call = match after {
        Some(After { position, .. }) => at(call, position)?,
        None => call,
    };
    if let Some(known) = caching::not_modified(headers, call.pinned(), Format::Json) {
        return Ok(known);
    }
    let bytes = limit.min(call.rows().count()) * bytes_per_row(&call, with_vectors);
    let room = room_for(&call, bytes as u64)?;
    let from = after.map_or(0, |after| after.row.saturating_add(1));
    let numbers = limit * (4 + if with_vectors { call.model.dim() } else { 0 });
    let cost = Cost::of_writing(numbers).and(Cost::of_filters(1, call.rows().count()));
    let cost = filter.as_ref().map_or(cost, |filter| cost.and(of_filter(&call, filter)));
    let same = call.clone();
    let page = move |cancellation: &Cancellation| {
        let page = Page { filter, from, limit, with_vectors, bytes };
        write_page(&same, &page, room, cancellation)
    };
    offloaded(&call, cost, call.latest(), page).await
}

/// The same call, about the rows at this position.
fn at(call: Call, position: u64) -> Result<Call, ApiError> {
    if call.pinned().position().unwrap_or(0) == position {
        return Ok(call);
    }
    let kept = call.pins.find(position);
    kept.map(|at| call.at(at)).ok_or(ApiError::PositionGone { position })
}

struct Page {
    filter: Option<String>,
    /// The number of its first row, or a lower one.
    from: u32,
    limit: usize,
    with_vectors: bool,
    /// About its size.
    bytes: usize,
}

fn write_page(
    call: &Call,
    page: &Page,
    room: Option<Reservation>,
    cancellation: &Cancellation,
) -> Result<Response, ApiError> {
    let rows = call.rows();
    let set = match &page.filter {
        None => rows.live(),
        Some(filter) => {
            let is_wanted = || !cancellation.is_cancelled();
            RowSet::of(meeting(rows, call.sets.wanted_while(&is_wanted), filter)?)
        }
    };
    let from = rows.row_from(page.from);
    let mut members = set.members_in(from.index()..rows.count());
    let mut body = call.pinned().begin(page.bytes);
    body.extend_from_slice(b"\"rows\":[");
    let mut last = None;
    for row in members.by_ref().take(page.limit) {
        check_deadline(cancellation)?;
        if last.is_some() {
            body.push(b',');
        }
        append(&mut body, call, row, page.with_vectors);
        last = Some(row);
    }
    body.push(b']');
    if let Some(last) = last.filter(|_| members.next().is_some()) {
        // A number, which a fold keeps.
        let last = rows.number(last);
        let position = call.pinned().position().unwrap_or(0);
        body.extend_from_slice(format!(",\"next\":\"{position}-{last}\"").as_bytes());
        if let Some(at) = call.position() {
            call.pins.keep(at);
        }
    }
    body.push(b'}');
    Ok(caching::tagged(call.pinned(), Format::Json, body, room))
}
