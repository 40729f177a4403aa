//! `POST /similarity`: how alike two words are, or two sets of words, many pairs at once. The scores are
//! the contract's, of two rows or of the sums that an analogy would look for; no search is needed.

use std::fmt;

use contract::Row;
use contract::score;
use model_store::ModelStore;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::aside::{goes_on, stage};
use super::ask::Answered;
use super::body::{JsonBody, Received};
use super::fields::{AtMost, Unknown, invalid, present};
use super::formula::{sum, zero_row};
use super::look_up::{each_once, unknown_words};
use super::size::Size;
use super::{ApiError, answer, negotiation, suggestions};
use crate::models::Call;
use crate::workers::Patience;

/// Most pairs in one request.
pub const MAX_PAIRS: usize = 1024;

/// Most words in one set.
pub const MAX_SET_WORDS: usize = 256;

/// What `POST /similarity` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilarityBody<'a> {
    #[serde(default, deserialize_with = "present", borrow)]
    pairs: Option<AtMost<&'a RawValue, MAX_PAIRS>>,
    #[serde(default, deserialize_with = "present")]
    unknown: Option<Unknown>,
}

impl<'a> JsonBody<'a> for SimilarityBody<'a> {}

/// One side of a pair.
#[derive(Debug)]
enum Side {
    Word(String),
    Set(AtMost<String, MAX_SET_WORDS>),
}

impl<'de> Deserialize<'de> for Side {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrSet;
        impl<'de> Visitor<'de> for WordOrSet {
            type Value = Side;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Side, E> {
                Ok(Side::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Side, A::Error> {
                AtMost::deserialize(SeqAccessDeserializer::new(words)).map(Side::Set)
            }
        }
        deserializer.deserialize_any(WordOrSet)
    }
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
    let (work, latest, same) = (received.work(), received.latest(&call), call.clone());
    let compare_all = move |patience: &Patience| {
        let received = received.whole()?;
        let asked = received.parse::<SimilarityBody<'_>>()?;
        let pairs = asked.pairs.and_then(AtMost::all).filter(|pairs| !pairs.is_empty());
        let pairs = pairs.ok_or_else(|| invalid("pairs"))?;
        let unknown = asked.unknown.unwrap_or(Unknown::Error);
        let compare = |(place, pair): (usize, &RawValue)| {
            goes_on(patience)?;
            let pair = read_pair(place, pair);
            Ok(pair.and_then(|pair| compare(&same.model, pair, unknown)))
        };
        let results: Vec<Result<PairAnswer, ApiError>> =
            pairs.into_iter().enumerate().map(compare).collect::<Result<_, ApiError>>()?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((results, received.into_room()))
    };
    let (mut results, _room) = stage(&call, work, latest, compare_all).await?;
    let faults = results.iter_mut().filter_map(|result| result.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    let size: Size = errors.map(Size::of_error).sum();
    let skipped = results.iter().flatten().map(PairAnswer::skipped).map(Size::of_text).sum();
    let size: Size = [size, skipped, Size::of_rows(results.len())].into_iter().sum();
    let (room, served) = (size.room(&call)?, call.served().clone());
    let write = move |_: &Patience| {
        let results = results
            .into_iter()
            .map(|result| result.unwrap_or_else(|e| PairAnswer::Failed { error: Box::new(e) }));
        let (model, version) = (served.model.name(), served.model.version());
        Ok(answer::json_in(&SimilarityAnswer { model, version, results: results.collect() }, room))
    };
    stage(&call, size.work(), call.latest(), write).await
}

impl PairAnswer {
    /// Bytes of the words that were left out.
    fn skipped(&self) -> usize {
        match self {
            Self::Score { skipped: Some(skipped), .. } => skipped.iter().map(String::len).sum(),
            _ => 0,
        }
    }
}

fn read_pair(place: usize, pair: &RawValue) -> Result<[Side; 2], ApiError> {
    let sides: Option<[Side; 2]> = serde_json::from_str(pair.get()).ok();
    let has_words = |side: &Side| match side {
        Side::Word(_) => true,
        Side::Set(words) => (1..=MAX_SET_WORDS).contains(&words.found),
    };
    sides
        .filter(|sides| sides.iter().all(has_words))
        .ok_or_else(|| invalid(&format!("pairs[{place}]")))
}

fn compare(model: &ModelStore, pair: [Side; 2], unknown: Unknown) -> Result<PairAnswer, ApiError> {
    let mut missing = Vec::new();
    let mut look_up = |words: &[String]| {
        let mut known = Vec::with_capacity(words.len());
        for word in words {
            match model.words().row(word) {
                Some(row) => known.push(row),
                None => missing.push(word.clone()),
            }
        }
        known
    };
    let sides = pair.map(|side| match side {
        Side::Word(word) => (look_up(&[word]), false),
        Side::Set(words) => (look_up(words.first()), true),
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
