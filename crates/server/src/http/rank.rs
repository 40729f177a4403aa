//! `POST /rank`: where given words stand among the neighbours of a query, by one pass over all rows.

use contract::{FullPassQuery, RankedRow, Row};
use serde::{Deserialize, Serialize};

use super::answer::Notes;
use super::aside::{goes_on, stage};
use super::ask::{Answered, with_timing};
use super::body::{JsonBody, Received};
use super::explain::{Placed, placed};
use super::fields::{
    AtMost, ExcludedWords, RawOptions, RawTarget, Unknown, WeightedWords, invalid, present,
};
use super::look_up::{each_once, look_up, unknown_words};
use super::request::{Common, Options, Resolved, Target, filter, not_exactly_one, resolve};
use super::search::submitted;
use super::server_timing::Timing;
use super::size::Size;
use super::{ApiError, answer, negotiation, suggestions};
use crate::models::{Call, ServedModel};
use crate::workers::Patience;
use kindred::method::Method;
use scheduler::account::Held;

/// Most words that one request may rank.
pub const MAX_RANKED: usize = 1000;

/// What `POST /rank` takes: words to rank, and a query as in `/nearest` or `/analogy`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankBody {
    #[serde(default, deserialize_with = "present")]
    words: Option<AtMost<String, MAX_RANKED>>,
    #[serde(default, deserialize_with = "present")]
    word: Option<String>,
    #[serde(default, deserialize_with = "present")]
    vector: Option<Vec<f64>>,
    #[serde(default, deserialize_with = "present")]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    expression: Option<String>,
    #[serde(default, deserialize_with = "present")]
    positive: Option<WeightedWords>,
    #[serde(default, deserialize_with = "present")]
    negative: Option<WeightedWords>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Method>,
    #[serde(default, deserialize_with = "present")]
    exclude: Option<ExcludedWords>,
    #[serde(default, deserialize_with = "present")]
    include_query: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    vocab_limit: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    min_score: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    unknown: Option<Unknown>,
    #[serde(default, deserialize_with = "present")]
    timeout_ms: Option<u64>,
}

impl<'a> JsonBody<'a> for RankBody {
    fn expression(&self) -> Option<&str> {
        self.expression.as_deref()
    }
}

/// A request, its form checked.
struct Asked {
    words: Vec<String>,
    target: Target,
    options: Options,
}

#[derive(Serialize)]
struct RankAnswer<'a> {
    model: &'a str,
    version: &'a str,
    ranked: Vec<Placed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'a [String]>,
}

/// `POST /rank`
pub(super) async fn post_rank(call: Call, received: Received) -> Answered {
    let (work, latest, same) = (received.work(), received.latest(&call), call.clone());
    let plan = move |patience: &Patience| {
        let received = received.whole()?;
        let asked = received.parse::<RankBody>()?;
        let deadline = same.deadline(asked.timeout_ms)?;
        let asked = check(&same, asked)?;
        goes_on(&patience.at_most(deadline))?;
        let (query, notes) = prepare(&same, asked)?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((query, notes, deadline, received.into_room()))
    };
    let planned = stage(&call, work, latest, plan).await;
    let (query, notes, deadline, _room) = suggestions::with(&call, planned).await?;
    let room = Size::of_rows(query.ranked().len()).room(&call)?;
    let answered = call.queue.full_pass(call.account(), vec![query], deadline).await;
    let answer = submitted(&call, answered)?;
    let timing = Timing { queue: answer.queued, engine: answer.engine, ..Timing::default() };
    let ranks = &answer.answers.first().expect("the engine answers every query").ranks;
    Ok(with_timing((write(&call, ranks, &notes, room), timing)))
}

fn check(served: &ServedModel, body: RankBody) -> Result<Asked, ApiError> {
    let words = body.words.and_then(AtMost::all).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| invalid("words"))?;
    let RankBody { word, vector, text, expression, positive, negative, .. } = body;
    let nearest = RawTarget::Nearest { word, vector, text };
    let analogy = RawTarget::Analogy { expression, positive, negative };
    let target = match (nearest.is_given(), analogy.is_given()) {
        (true, false) if body.method.is_some() => {
            let reason = "`method` goes with `expression`, `positive` and `negative` only";
            return Err(ApiError::InvalidRequest { reason: reason.to_owned() });
        }
        (true, false) => nearest,
        (false, true) => analogy,
        _ => return Err(not_exactly_one(ALTERNATIVES)),
    };
    let target = target.resolve_among(ALTERNATIVES)?;
    let options = RawOptions {
        exclude: body.exclude,
        include_query: body.include_query,
        vocab_limit: body.vocab_limit,
        min_score: body.min_score,
        unknown: body.unknown,
        method: body.method,
        ..RawOptions::default()
    };
    Ok(Asked { words, target, options: Options::new(&served.model, options, &Common::none())? })
}

const ALTERNATIVES: &str =
    "`word`, `vector`, `text`, `expression`, or `positive` and/or `negative`";

/// Looks all words up. Those of the query come first, in errors as well.
fn prepare(served: &ServedModel, asked: Asked) -> Result<(FullPassQuery, Notes), ApiError> {
    let model = &served.model;
    let Asked { words, target, options } = asked;
    let query = resolve(model, target, options.method, options.unknown)
        .and_then(|resolved| Ok((resolved.formula.scoring(model)?, resolved)));
    let to_rank = words.into_iter().map(|word| (word, ()));
    let to_rank = look_up(model.words(), to_rank, options.unknown.unwrap_or(Unknown::Error));
    let ((scoring, resolved), to_rank) = match (query, to_rank) {
        (Ok(query), Ok(to_rank)) => (query, to_rank),
        (
            Err(ApiError::UnknownWord { unknown: mut first }),
            Err(ApiError::UnknownWord { unknown: second }),
        ) => {
            first.extend(second);
            return Err(unknown_words(first.into_iter().map(|unknown| unknown.word)));
        }
        // Unknown words come before known ones that can't be asked for.
        (Err(ApiError::ZeroQuery { .. } | ApiError::NotFinite { .. }), Err(error))
        | (Err(error), _)
        | (_, Err(error)) => return Err(error),
    };
    let Resolved { inputs, mut notes, .. } = resolved;
    if let Some(skipped) = &mut notes.skipped {
        *skipped = each_once(skipped.drain(..).chain(to_rank.skipped));
    }
    let rows: Vec<Row> = to_rank.known.into_iter().map(|(row, ())| row).collect();
    let left_out = if options.include_query { Vec::new() } else { inputs };
    let filter = filter(&options, left_out);
    Ok((FullPassQuery::new(scoring, 0, filter, rows), notes))
}

fn write(
    served: &ServedModel,
    ranks: &[RankedRow],
    notes: &Notes,
    room: Option<Held>,
) -> axum::response::Response {
    let model = &served.model;
    let word = |row: &Row| model.words().word(*row);
    let ranked = RankAnswer {
        model: model.name(),
        version: model.version(),
        ranked: placed(model, ranks),
        used: notes.used.as_ref().map(|used| used.iter().map(word).collect()),
        skipped: notes.skipped.as_deref(),
    };
    answer::json_in(&ranked, room)
}
