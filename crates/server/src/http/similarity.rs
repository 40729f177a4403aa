//! `POST /similarity`: how alike two words are, or two sets of words, many pairs at once. The scores are
//! the contract's, of two rows or of the sums that an analogy would look for; no search is needed.

use model_store::contract::score;
use model_store::{ModelStore, Row};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::aside::read_aside_if_large;
use super::ask::Answered;
use super::body::{JsonBody, Received};
use super::fields::{Unknown, invalid, present};
use super::formula::{sum, zero_row};
use super::look_up::{each_once, unknown_words};
use super::{ApiError, answer, negotiation, suggestions};
use crate::models::Call;

/// Most pairs in one request.
pub const MAX_PAIRS: usize = 1024;

/// Most words in one set.
pub const MAX_SET_WORDS: usize = 256;

/// What `POST /similarity` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarityBody<'a> {
    #[serde(default, deserialize_with = "present", borrow)]
    pairs: Option<Vec<&'a RawValue>>,
    #[serde(default, deserialize_with = "present")]
    unknown: Option<Unknown>,
}

impl<'a> JsonBody<'a> for SimilarityBody<'a> {}

/// One side of a pair.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Side {
    Word(String),
    Set(Vec<String>),
}

/// What has a cosine to the other side.
enum Vector {
    /// A word's own.
    Row(Row),
    /// A set's, `[dim]`, and its norm.
    Sum(Vec<f32>, f64),
}

#[derive(Serialize)]
struct SimilarityAnswer<'a> {
    model: &'a str,
    version: &'a str,
    results: Vec<PairAnswer>,
}

/// The answer to one pair.
#[derive(Serialize)]
#[serde(untagged)]
enum PairAnswer {
    Score {
        score: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped: Option<Vec<String>>,
    },
    Failed {
        error: Box<ApiError>,
    },
}

/// `POST /similarity`
pub(super) async fn post_similarity(call: Call, received: Received) -> Answered {
    read_aside_if_large(received.len(), async move {
        let asked = received.parse::<SimilarityBody<'_>>()?;
        let pairs = asked.pairs.ok_or_else(|| invalid("pairs"))?;
        if pairs.is_empty() || pairs.len() > MAX_PAIRS {
            return Err(invalid("pairs"));
        }
        let unknown = asked.unknown.unwrap_or(Unknown::Error);
        let mut results: Vec<_> = pairs
            .into_iter()
            .enumerate()
            .map(|(place, pair)| compare(&call.model, read_pair(place, pair)?, unknown))
            .collect();
        let faults = results.iter_mut().filter_map(|result| result.as_mut().err());
        suggestions::fill_in(&call, faults).await;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        let results = results.into_iter().map(|result| {
            result.unwrap_or_else(|error| PairAnswer::Failed { error: Box::new(error) })
        });
        let (model, version) = (call.model.name(), call.model.version());
        Ok(answer::json(&SimilarityAnswer { model, version, results: results.collect() }))
    })
    .await
}

fn read_pair(place: usize, pair: &RawValue) -> Result<[Side; 2], ApiError> {
    let sides: Option<[Side; 2]> = serde_json::from_str(pair.get()).ok();
    let has_words = |side: &Side| match side {
        Side::Word(_) => true,
        Side::Set(words) => (1..=MAX_SET_WORDS).contains(&words.len()),
    };
    sides
        .filter(|sides| sides.iter().all(has_words))
        .ok_or_else(|| invalid(&format!("pairs[{place}]")))
}

fn compare(model: &ModelStore, pair: [Side; 2], unknown: Unknown) -> Result<PairAnswer, ApiError> {
    let mut missing = Vec::new();
    let mut look_up = |words: Vec<String>| {
        let mut known = Vec::with_capacity(words.len());
        for word in words {
            match model.words().row(&word) {
                Some(row) => known.push(row),
                None => missing.push(word),
            }
        }
        known
    };
    let sides = pair.map(|side| match side {
        Side::Word(word) => (look_up(vec![word]), false),
        Side::Set(words) => (look_up(words), true),
    });
    // A side of which nothing is left can't be compared with anything.
    let nothing_left = sides.iter().any(|(rows, _)| rows.is_empty());
    if nothing_left || (unknown == Unknown::Error && !missing.is_empty()) {
        return Err(unknown_words(missing));
    }
    let vector = |(rows, is_set): (Vec<Row>, bool)| match rows[..] {
        [row] if !is_set && model.table().norm(row) == 0.0 => Err(zero_row(model, row)),
        [row] if !is_set => Ok(Vector::Row(row)),
        _ => {
            let components = sum(model, &rows)?;
            let norm = score::norm(&components);
            Ok(Vector::Sum(components, norm))
        }
    };
    let [a, b] = sides.map(vector);
    let skipped = (unknown == Unknown::Skip).then(|| each_once(missing));
    Ok(PairAnswer::Score { score: cosine(model, &a?, &b?), skipped })
}

fn cosine(model: &ModelStore, a: &Vector, b: &Vector) -> f64 {
    let table = model.table();
    let [(a, a_norm), (b, b_norm)] = [a, b].map(|vector| match vector {
        Vector::Row(row) => (table.row(*row), table.norm(*row)),
        Vector::Sum(components, norm) => (&components[..], *norm),
    });
    score::cosine(score::dot(a, b), a_norm, b_norm)
}
