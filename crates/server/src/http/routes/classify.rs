//! `POST /classify`: the labels that a head gives to texts.

use contract::TokenText;
use kindred::heads::{
    Explanation, Head, HeadKind, Label, MAX_NGRAM_BYTES, Vocabulary, explain, explanation_cost,
    labels,
};
use serde::Serialize;

use super::heads::{HeadAnswer, KnownText, find, look_up};
use super::search::{Answered, answered_in_time, encoding, with_timing};
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::classification::{ClassifyBody, ClassifyRequest, Shown, read_text};
use crate::http::parse::{invalid, negotiation};
use crate::http::render;
use crate::http::render::size::Size;
use crate::models::{AnyHead, Call, ServedModel};
use crate::workers::Cancellation;

/// N-grams that are named as reasons.
const REASONS: usize = 10;

/// `POST /classify`
pub(in crate::http) async fn post_classify(call: Call, received: Received) -> Answered {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let plan = move |cancellation: &Cancellation| {
        let received = received.whole()?;
        let body = received.parse::<ClassifyBody<'_>>()?;
        let deadline = same.deadline(body.timeout_ms())?;
        let ClassifyRequest { texts, is_single, head, explained, shown } = body.check()?;
        let found = find(&same, head.as_deref(), HeadKind::Classifier)?;
        let AnyHead::Classifier(head) = found.head else { unreachable!("it is a classifier") };
        let name = found.name;
        let explained = explained.map(|label| find_label(&head.head, &label)).transpose()?;
        let cancellation = cancellation.at_most(deadline);
        let vocabulary = Vocabulary::of_head(&head.head, &same.model);
        let known_text = |text| look_up(&vocabulary, text, shown.explain);
        let mut known = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            check_deadline(&cancellation)?;
            let index = (!is_single).then_some(index);
            known.push(read_text(index, text).and_then(known_text));
        }
        negotiation::check(&received.headers, &negotiation::JSON)?;
        if is_single {
            known = vec![Ok(known.pop().expect("one text")?)];
        }
        Ok((known, is_single, (name, head), (shown, explained), deadline, received.into_room()))
    };
    let planned = stage(&call, cost, latest, plan).await;
    let (mut known, is_single, (name, head), (shown, explained), deadline, _room) =
        suggestions::with(&call, planned).await?;
    let faults = known.iter_mut().filter_map(|one| one.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let classifier = head.classifier();
    let tokenised = known.iter().flatten().map(|one| &one.tokenised);
    call.text_counts.add(tokenised);
    let text = |one: &mut KnownText| {
        let tokens = &mut one.tokenised.tokens;
        // An explanation needs them later.
        let tokens = if shown.explain { tokens.clone() } else { std::mem::take(tokens) };
        TokenText::new(classifier.clone(), tokens)
    };
    let texts: Vec<TokenText> = known.iter_mut().flatten().map(text).collect();
    let timed = if texts.is_empty() {
        kindred::queue::ClassScores::default()
    } else {
        let asking = call.asking(deadline);
        answered_in_time(&call, asking.classify(texts).await, deadline).await?
    };
    let timing = encoding(timed.queued, timed.engine);
    let (size, cost) = size(&head.head, &known, shown);
    let (room, served) = (size.room(&call)?, call.served().clone());
    let write = move |cancellation: &Cancellation| {
        let mut scores = timed.scores.into_iter();
        let labels = |text| {
            let scores = scores.next().expect("scores of each text");
            answer(&served, &head.head, text, &scores, shown, explained)
        };
        let whole = HeadAnswer::new((&served, &name), &known, is_single, cancellation, labels)?;
        Ok(render::json_in(&whole, room))
    };
    let response = stage(&call, cost, deadline, write).await?;
    Ok(with_timing((response, timing)))
}

/// The class of a label that is to be explained.
fn find_label(head: &Head, label: &str) -> Result<usize, ApiError> {
    let found = head.description().labels.iter().position(|known| known == label);
    found.ok_or_else(|| invalid("explain_label"))
}

/// About how large the answer is, and how long writing it takes.
fn size(head: &Head, known: &[Result<KnownText, ApiError>], shown: Shown) -> (Size, Cost) {
    /// Nanoseconds of a multiply-add of the formula in plain loops.
    const MULTIPLY_ADD: u64 = 1;
    let labels = head.description().labels.len().min(shown.top);
    let of_labels: usize = head.description().labels.iter().map(String::len).sum();
    let (mut all, mut formula) = (Size::default(), 0u64);
    for one in known {
        let size = match one {
            Ok(one) => {
                let unknown: usize = one.tokenised.unknown.iter().map(String::len).sum();
                let labels = Size::of_rows(labels) + Size::of_text(of_labels + unknown);
                if shown.explain {
                    formula +=
                        explanation_cost(head, one.tokenised.tokens.len()) as u64 * MULTIPLY_ADD;
                    let ngrams = Size::of_text(REASONS * one.text.len().min(MAX_NGRAM_BYTES));
                    labels + Size::of_rows(REASONS) + ngrams
                } else {
                    labels
                }
            }
            Err(error) => Size::of_error(error),
        };
        all = all + size;
    }
    (all, Cost(all.cost().0 + formula))
}

/// The answer to one text.
#[derive(Serialize)]
struct LabelsAnswer<'a> {
    labels: Vec<LabelAnswer<'a>>,
    /// Words that were left out.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unknown: &'a [String],
    /// Whether the text was too long, so that only a part was read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation<'a>>,
}

#[derive(Serialize)]
struct LabelAnswer<'a> {
    label: &'a str,
    probability: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

fn answer<'a>(
    served: &ServedModel,
    head: &'a Head,
    known: &'a KnownText,
    scores: &[f64],
    shown: Shown,
    explained: Option<usize>,
) -> Result<LabelsAnswer<'a>, ApiError> {
    let names = &head.description().labels;
    let all = labels(head, scores).map_err(kindred::Error::from)?;
    let is_shown = |label: &&Label| label.probability >= shown.threshold;
    let label = |label: &Label| LabelAnswer {
        label: &names[label.class],
        probability: label.probability,
        score: shown.scores.then_some(label.score),
    };
    let explanation = shown.explain.then(|| {
        let class = explained.unwrap_or(all[0].class);
        explain(&served.model, head, &known.text, &known.tokenised, class, REASONS)
    });
    Ok(LabelsAnswer {
        labels: all.iter().take(shown.top).take_while(is_shown).map(label).collect(),
        unknown: &known.tokenised.unknown,
        cut: known.tokenised.is_cut,
        explanation,
    })
}
