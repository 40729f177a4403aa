//! Turns the fields or vectors of a search into queries that are ready for the queue, one or many,
//! and estimates the size of their answer.

use std::borrow::Borrow;
use std::time::Instant;

use axum::http::HeaderMap;
use kindred::Target;
use kindred::contract::Row;
use kindred::filters::SetsWhile;
use kindred::question::{Checked, Common, Prepared, prepare};
use scheduler::account::Reservation;
use serde_json::value::RawValue;

use super::set_room::SetRoom;
use crate::http::ApiError;
use crate::http::offload::check_deadline;
use crate::http::parse::bodies::{Parts, Queries};
use crate::http::parse::body::Received;
use crate::http::parse::json::{JsonBody, parse_item};
use crate::http::parse::limits::{check_size, check_work};
use crate::http::parse::negotiation::{self, Format};
use crate::http::parse::{invalid, not_exactly_one, query_string};
use crate::http::render::size::Size;
use crate::http::render::table::Table;
use crate::models::Call;
use crate::workers::Cancellation;

/// A request whose words have been looked up.
pub(super) enum Plan {
    One(Ready),
    /// The items of a batch. Each is ready for the queue, or has an error.
    Many {
        items: Vec<Result<Prepared, ApiError>>,
        deadline: Instant,
        size: Size,
        /// The memory of the sets of their filters.
        sets: Option<Reservation>,
    },
    /// One or many, answered by one array. All of them are ready for the queue: the array has no
    /// place for errors.
    Array {
        queries: Vec<Prepared>,
        table: Table,
        deadline: Instant,
        sets: Option<Reservation>,
    },
}

/// A query that is ready for the queue.
pub(super) struct Ready {
    pub(super) prepared: Prepared,
    pub(super) deadline: Instant,
    pub(super) size: Size,
}

/// Checks the fields of a body and looks up its words. `format` chooses that of the answer.
pub(super) fn plan<'a, B>(
    call: &Call,
    headers: &HeaderMap,
    body: B,
    format: fn(&HeaderMap) -> Result<Format, ApiError>,
    cancellation: &Cancellation,
) -> Result<Plan, ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let mut parts: Parts<'a> = body.into();
    if let Some(queries) = parts.queries.take() {
        return plan_many::<B>(call, headers, queries, parts, format, cancellation);
    }
    let (prepared, options, deadline) = check_one(call, parts, cancellation)?;
    match format(headers)? {
        Format::Json => {
            let size = Size::of(call.pinned(), &prepared, &options);
            Ok(Plan::One(Ready { prepared, deadline, size }))
        }
        Format::Npy => {
            let table = Table::new(std::iter::once(&options), false, call.model.dim())?;
            Ok(Plan::Array { queries: vec![prepared], table, deadline, sets: None })
        }
    }
}

/// The query of a GET, which is answered in JSON.
pub(super) fn prepare_one(
    call: &Call,
    headers: &HeaderMap,
    parts: Parts<'_>,
    cancellation: &Cancellation,
) -> Result<Ready, ApiError> {
    let (prepared, options, deadline) = check_one(call, parts, cancellation)?;
    negotiation::check(headers, &negotiation::JSON)?;
    let size = Size::of(call.pinned(), &prepared, &options);
    Ok(Ready { prepared, deadline, size })
}

#[inline]
fn check_one(
    call: &Call,
    parts: Parts<'_>,
    cancellation: &Cancellation,
) -> Result<(Prepared, Checked, Instant), ApiError> {
    let target = parts.target.resolve()?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let cancellation = cancellation.at_most(deadline);
    let is_wanted = || !cancellation.is_cancelled();
    let sets = call.sets.wanted_while(&is_wanted);
    let options = Checked::new(call.rows(), sets, parts.options, None)?;
    check_size(std::iter::once(&options), call.model.dim())?;
    let prepared = prepare(call.rows(), target, &options)?;
    check_work(std::iter::once((&prepared, &options)))?;
    Ok((prepared, options, deadline))
}

/// As [`plan`], for a body that is an array of vectors. Its options are in the query string.
pub(super) fn plan_array(
    call: &Call,
    received: &mut Received,
    cancellation: &Cancellation,
) -> Result<Plan, ApiError> {
    let asked = query_string::options_of_vectors(received.query())?;
    let deadline = call.deadline(asked.timeout_ms)?;
    let cancellation = cancellation.at_most(deadline);
    let is_wanted = || !cancellation.is_cancelled();
    let sets = call.sets.wanted_while(&is_wanted);
    let options = Checked::new(call.rows(), sets, asked, None)?;
    let dim = call.model.dim();
    let count = received.array()?.vectors(dim)?.count;
    check_size(std::iter::repeat_n(&options, count), dim)?;
    let per_query = 2 * size_of::<Prepared>()
        + dim * size_of::<f32>()
        + options.excluded_rows() * size_of::<Row>();
    received.count(call, (count * per_query) as u64)?;
    let format = negotiation::json_or_npy(&received.headers);
    let vectors = received.array()?.vectors(dim)?;
    let mut items = Vec::with_capacity(count);
    for (index, vector) in vectors.each().enumerate() {
        check_deadline(&cancellation)?;
        let item = prepare(call.rows(), Target::Components(vector), &options);
        let item = item.map(|prepared| (prepared, &options)).map_err(ApiError::from);
        if vectors.is_list {
            items.push(accepted(&format, index, item)?);
        } else {
            items.push(Ok(item?));
        }
    }
    let format = format?;
    if format == Format::Json && !vectors.is_list {
        let (prepared, options) = items.pop().expect("one vector")?;
        let size = Size::of(call.pinned(), &prepared, options);
        return Ok(Plan::One(Ready { prepared, deadline, size }));
    }
    plan_items(call, items, (format, vectors.is_list), deadline, None)
}

/// The plan of several queries with their options, or of one that is answered by an array.
fn plan_items<O: Borrow<Checked>>(
    call: &Call,
    items: Vec<Result<(Prepared, O), ApiError>>,
    (format, is_list): (Format, bool),
    deadline: Instant,
    sets: Option<Reservation>,
) -> Result<Plan, ApiError> {
    if format == Format::Npy {
        let (queries, options): (Vec<_>, Vec<O>) = items.into_iter().flatten().unzip();
        let options = options.iter().map(<O as Borrow<Checked>>::borrow);
        let table = Table::new(options, is_list, call.model.dim())?;
        return Ok(Plan::Array { queries, table, deadline, sets });
    }
    let size = |item: &Result<(Prepared, O), ApiError>| match item {
        Ok((prepared, options)) => Size::of(call.pinned(), prepared, options.borrow()),
        Err(error) => Size::of_error(error),
    };
    let size = items.iter().map(size).sum();
    let items = items.into_iter().map(|item| item.map(|(prepared, _)| prepared)).collect();
    Ok(Plan::Many { items, deadline, size, sets })
}

/// An item of a batch. In an array there is no place for its error, which then is that of the whole
/// request.
fn accepted<T>(
    format: &Result<Format, ApiError>,
    index: usize,
    item: Result<T, ApiError>,
) -> Result<Result<T, ApiError>, ApiError> {
    match item {
        Err(error) if matches!(format, Ok(Format::Npy)) => {
            let (list, item, error) = ("queries", "query", Box::new(error));
            Err(ApiError::InItem { list, item, index, error })
        }
        item => Ok(item),
    }
}

fn plan_many<'a, B>(
    call: &Call,
    headers: &HeaderMap,
    queries: Queries<'a>,
    parts: Parts<'a>,
    format: fn(&HeaderMap) -> Result<Format, ApiError>,
    cancellation: &Cancellation,
) -> Result<Plan, ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    if parts.target.is_given() {
        return Err(not_exactly_one(parts.target.alternatives()));
    }
    let queries = queries.all().filter(|queries| !queries.is_empty());
    let queries = queries.ok_or_else(|| invalid("queries"))?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let cancellation = cancellation.at_most(deadline);
    let is_wanted = || !cancellation.is_cancelled();
    let sets = call.sets.wanted_while(&is_wanted);
    let common = Common::new(call.rows(), sets, parts.options)?;
    let mut items = Vec::with_capacity(queries.len());
    let (format, mut room) = (format(headers), SetRoom::default());
    for (index, item) in queries.into_iter().enumerate() {
        check_deadline(&cancellation)?;
        let item = prepare_item::<B>(call, sets, item, &common);
        if let Ok((prepared, options)) = &item {
            room.count(call, options)?;
            room.add(call, prepared.added_bytes() as u64)?;
        }
        items.push(accepted(&format, index, item)?);
    }
    // The last item may be one whose set was not made in time.
    check_deadline(&cancellation)?;
    let good = || items.iter().flatten().map(|(prepared, options)| (prepared, options));
    check_size(good().map(|(_, options)| options), call.model.dim())?;
    check_work(good())?;
    plan_items(call, items, (format?, true), deadline, room.into_room())
}

/// Prepares one item of `queries`. Options that it does not have are taken from the whole request.
fn prepare_item<'a, B>(
    call: &Call,
    sets: SetsWhile<'_>,
    item: &'a RawValue,
    common: &Common,
) -> Result<(Prepared, Checked), ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let item: Parts<'_> = parse_item::<B>(item)?.into();
    if item.queries.is_some() {
        let reason = "`queries` can't be inside `queries`".to_owned();
        return Err(ApiError::invalid_request(reason));
    }
    if item.options.timeout_ms.is_some() {
        let reason = "`timeout_ms` is for the whole request; give it beside `queries`".to_owned();
        return Err(ApiError::invalid_request(reason));
    }
    let target = item.target.resolve()?;
    let options = Checked::new(call.rows(), sets, item.options, Some(common))?;
    Ok((prepare(call.rows(), target, &options)?, options))
}
