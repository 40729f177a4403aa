//! `POST /odd-one-out`: which of some words is least like all of them together.

use contract::score;
use contract::{Hit, Row};
use model_store::ModelStore;
use serde::Deserialize;

use super::answer::{Notes, OddOneOut};
use super::aside::stage;
use super::ask::Answered;
use super::body::{JsonBody, Received};
use super::fields::{AtMost, Unknown, invalid, present};
use super::formula::sum;
use super::look_up::{LookedUp, look_up, unknown_words};
use super::request::each_row_once;
use super::{ApiError, answer, negotiation, suggestions};
use crate::models::Call;
use crate::workers::Patience;

/// Fewest words of which one can be odd: of two, both are as far from their middle.
const MIN_WORDS: usize = 3;

/// Most words that one request may compare.
pub const MAX_COMPARED_WORDS: usize = 256;

/// What `POST /odd-one-out` takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OddOneOutBody {
    #[serde(default, deserialize_with = "present")]
    words: Option<AtMost<String, MAX_COMPARED_WORDS>>,
    #[serde(default, deserialize_with = "present")]
    unknown: Option<Unknown>,
}

impl<'a> JsonBody<'a> for OddOneOutBody {}

/// `POST /odd-one-out`
pub(super) async fn post_odd_one_out(call: Call, received: Received) -> Answered {
    let (work, latest, same) = (received.work(), received.latest(&call), call.clone());
    let compare = move |_: &Patience| {
        let received = received.whole()?;
        let asked = received.parse::<OddOneOutBody>()?;
        let words = asked.words.and_then(AtMost::all).filter(|words| words.len() >= MIN_WORDS);
        let words = words.ok_or_else(|| invalid("words"))?;
        let (ranked, notes) = rank(&same.model, words, asked.unknown.unwrap_or(Unknown::Error))?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        // So few words are no more than the body that they came in.
        Ok(answer::odd_one_out(&OddOneOut { served: &same, ranked: &ranked, notes: &notes }))
    };
    let compared = stage(&call, work, latest, compare).await;
    suggestions::with(&call, compared).await
}

/// The words by their cosine to the mean of all unit vectors, in the contract's order, so that the odd
/// one is the last of them.
fn rank(
    model: &ModelStore,
    words: Vec<String>,
    unknown: Unknown,
) -> Result<(Vec<Hit>, Notes), ApiError> {
    let asked = words.iter().map(|word| (word.clone(), ()));
    let LookedUp { known, skipped } = look_up(model.words(), asked, unknown)?;
    if known.len() < MIN_WORDS {
        return Err(unknown_words(skipped));
    }
    let rows: Vec<Row> = known.into_iter().map(|(row, ())| row).collect();
    // As a direction, the mean is the sum.
    let mean = sum(model, &rows)?;
    let (table, norm) = (model.table(), score::norm(&mean));
    let scored = each_row_once(&rows).into_iter().filter_map(|row| {
        let score = table.score(&mean, norm, row)?;
        Some(Hit { row, score })
    });
    let mut ranked: Vec<Hit> = scored.collect();
    ranked.sort_unstable();
    let skipped = (unknown == Unknown::Skip).then_some(skipped);
    Ok((ranked, Notes { used: None, skipped }))
}
