//! `POST /rank`: the ranks of given words among the neighbours of a query, by one full pass.

use kindred::contract::{RankedRow, Row};
use kindred::question::{Checked, Notes, Placed, placed, prepare_rank};
use kindred::{SubwordsOf, TextTokens};
use scheduler::account::Reservation;
use serde::Serialize;

use super::search::{Timed, answered_in_time, encoding};
use super::suggestions;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::bodies::RankBody;
use crate::http::parse::body::Received;
use crate::http::parse::negotiation;
use crate::http::render;
use crate::http::render::size::Size;
use crate::models::{Call, Pinned};
use crate::workers::Cancellation;

#[derive(Serialize)]
struct RankAnswer<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    ranked: Vec<Placed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<&'a [SubwordsOf]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<TextTokens>,
}

/// `POST /rank`
pub(in crate::http) async fn post_rank(call: Call, received: Received) -> Timed {
    call.log_queries(1);
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let plan = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let body = received.parse::<RankBody>()?;
        let deadline = same.deadline(body.timeout_ms)?;
        let (words, target, options) = body.check()?;
        let cancellation = cancellation.at_most(deadline);
        let is_wanted = || !cancellation.is_cancelled();
        let sets = same.sets.wanted_while(&is_wanted);
        let options = Checked::new(same.rows(), sets, options, None)?;
        check_deadline(&cancellation)?;
        let (query, notes) = prepare_rank(same.rows(), words, target, &options)?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((query, notes, deadline, received.into_room()))
    };
    let planned = stage(&call, cost, latest, plan).await;
    let (query, notes, deadline, _room) = suggestions::with(&call, planned).await?;
    let room = Size::of_rows(query.ranked.len()).room(&call)?;
    let asking = call.asking(deadline);
    let answer = answered_in_time(&call, asking.full_pass(vec![query]).await, deadline).await?;
    let timing = encoding(answer.queued, answer.device);
    let ranks = &answer.responses.first().expect("the engine answers every query").ranks;
    Ok((write(call.pinned(), ranks, &notes, room), timing))
}

fn write(
    asked: Pinned<'_>,
    ranks: &[RankedRow],
    notes: &Notes,
    room: Option<Reservation>,
) -> axum::response::Response {
    let rows = asked.rows();
    let word = |row: &Row| rows.word(*row);
    let ranked = RankAnswer {
        model: asked.name(),
        version: rows.version(),
        position: asked.position(),
        ranked: placed(rows, ranks),
        used: notes.used.as_ref().map(|used| used.iter().map(word).collect()),
        skipped: notes.skipped.as_deref(),
        subwords: notes.subwords.as_deref(),
        tokens: notes.tokens.as_deref().copied(),
    };
    render::json(&ranked, room)
}
