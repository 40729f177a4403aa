//! `POST /similarity`: how similar two words or two sets of words are, for many pairs in one
//! request. `POST /odd-one-out`: which of some words is least similar to all of them together.
//! Neither needs a search.

use std::borrow::Cow;

use kindred::SubwordsOf;
use kindred::question::{Similarity, odd_one_out, similarity};
use serde::Serialize;
use serde_json::value::RawValue;

use super::search::Timed;
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::comparisons::{OddOneOutBody, SimilarityBody, read_pair};
use crate::http::parse::negotiation;
use crate::http::render::neighbors;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::http::render::{self, ItemAnswer};
use crate::models::Call;
use crate::workers::Cancellation;

#[derive(Serialize)]
struct SimilarityAnswer<'a> {
    model: &'a str,
    version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    results: Vec<ItemAnswer<'static, PairScore>>,
}

#[derive(Serialize)]
struct PairScore {
    score: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subwords: Option<Vec<SubwordsOf>>,
}

/// `POST /similarity`
pub(in crate::http) async fn post_similarity(call: Call, received: Received) -> Timed {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let compare_all = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let (pairs, unknown) = received.parse::<SimilarityBody<'_>>()?.check()?;
        same.log_queries(pairs.len());
        let compare = |(index, pair): (usize, &RawValue)| {
            check_deadline(cancellation)?;
            let score = |pair| Ok(similarity(same.rows(), pair, unknown)?);
            Ok(read_pair(index, pair).and_then(score))
        };
        let results: Vec<Result<Similarity, ApiError>> =
            pairs.into_iter().enumerate().map(compare).collect::<Result<_, ApiError>>()?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((results, received.into_room()))
    };
    let (mut results, _room) = stage(&call, cost, latest, compare_all).await?;
    let faults = results.iter_mut().filter_map(|result| result.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    let size: Size = errors.map(Size::of_error).sum();
    let named = results.iter().flatten().map(named_bytes).map(Size::of_text).sum();
    let size: Size = [size, named, Size::of_rows(results.len())].into_iter().sum();
    let (room, same) = (size.room(&call)?, call.clone());
    let write = move |_: &Cancellation| {
        let results = results.into_iter().map(|result| match result {
            Ok(Similarity { score, skipped, subwords }) => {
                ItemAnswer::Found(PairScore { score, skipped, subwords })
            }
            Err(error) => ItemAnswer::Failed { error: Cow::Owned(error) },
        });
        let (model, version) = (same.name(), same.model.version());
        let (position, results) = (same.pinned().position(), results.collect());
        Ok(render::json(&SimilarityAnswer { model, version, position, results }, room))
    };
    Ok((stage(&call, size.cost(), call.latest(), write).await?, Timing::default()))
}

/// Bytes of the words that were left out or have the vectors of their subwords.
fn named_bytes(similarity: &Similarity) -> usize {
    let skipped: usize = similarity.skipped.iter().flatten().map(String::len).sum();
    skipped + similarity.subwords.iter().flatten().map(SubwordsOf::bytes).sum::<usize>()
}

/// `POST /odd-one-out`
pub(in crate::http) async fn post_odd_one_out(call: Call, received: Received) -> Timed {
    call.log_queries(1);
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let compare = move |_: &Cancellation| {
        let received = received.whole()?;
        let (words, unknown) = received.parse::<OddOneOutBody>()?.check()?;
        let odd = odd_one_out(same.rows(), words, unknown)?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        // Writing so few words costs no more than the body that they came in.
        Ok(neighbors::odd_one_out(same.pinned(), &odd))
    };
    let compared = stage(&call, cost, latest, compare).await;
    Ok((suggestions::with(&call, compared).await?, Timing::default()))
}
