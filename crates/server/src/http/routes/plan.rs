//! Turns the fields of a search into queries that are ready for the queue, one or many, and estimates the size of their
//! answer.

use std::time::Instant;

use axum::http::HeaderMap;
use kindred::question::{Checked, Common, Prepared, prepare};
use serde_json::value::RawValue;

use crate::http::ApiError;
use crate::http::offload::check_deadline;
use crate::http::parse::bodies::{Parts, Queries};
use crate::http::parse::body::{self, JsonBody};
use crate::http::parse::limits::{check_size, check_work};
use crate::http::parse::negotiation;
use crate::http::parse::{invalid, not_exactly_one};
use crate::http::render::size::Size;
use crate::models::Call;
use crate::workers::Patience;

/// A request whose words have been looked up.
pub(super) enum Plan {
    One(Ready),
    Many(Batch),
}

/// A query that is ready for the queue.
pub(super) struct Ready {
    pub(super) prepared: Prepared,
    pub(super) deadline: Instant,
    pub(super) size: Size,
}

/// The items of a batch. Each is ready for the queue, or has an error.
pub(super) struct Batch {
    pub(super) items: Vec<Result<Prepared, ApiError>>,
    pub(super) deadline: Instant,
    pub(super) size: Size,
}

/// Checks the fields of a body and looks up its words.
pub(super) fn plan<'a, B>(
    call: &Call,
    headers: &HeaderMap,
    body: B,
    patience: &Patience,
) -> Result<Plan, ApiError>
where
    B: JsonBody<'a> + Into<Parts<'a>>,
{
    let mut parts: Parts<'a> = body.into();
    match parts.queries.take() {
        None => prepare_one(call, headers, parts).map(Plan::One),
        Some(queries) => plan_many::<B>(call, headers, queries, parts, patience).map(Plan::Many),
    }
}

pub(super) fn prepare_one(
    call: &Call,
    headers: &HeaderMap,
    parts: Parts<'_>,
) -> Result<Ready, ApiError> {
    let target = parts.target.resolve()?;
    let deadline = call.deadline(parts.options.timeout_ms)?;
    let options = Checked::new(&call.model, parts.options, None)?;
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
    queries: Queries<'a>,
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
        check_deadline(&patience)?;
        items.push(prepare_item::<B>(call, item, &common));
    }
    let good = || items.iter().flatten().map(|(prepared, options)| (prepared, options));
    check_size(good().map(|(_, options)| options), call.model.dim())?;
    check_work(good())?;
    negotiation::check(headers, &negotiation::JSON)?;
    let size = |item: &Result<(Prepared, Checked), ApiError>| match item {
        Ok((prepared, options)) => Size::of(call, prepared, options),
        Err(error) => Size::of_error(error),
    };
    let size = items.iter().map(size).sum();
    let items = items.into_iter().map(|item| item.map(|(prepared, _)| prepared)).collect();
    Ok(Batch { items, deadline, size })
}

/// Prepares one item of `queries`. Options that it does not have are taken from the whole request.
fn prepare_item<'a, B>(
    call: &Call,
    item: &'a RawValue,
    common: &Common,
) -> Result<(Prepared, Checked), ApiError>
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
    let options = Checked::new(&call.model, item.options, Some(common))?;
    Ok((prepare(&call.model, target, &options)?, options))
}
