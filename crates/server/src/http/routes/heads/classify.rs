//! `/classify`, by GET and POST: the labels that a head gives to texts.

use std::sync::Arc;

use kindred::asking::Asking;
use kindred::contract::TokenText;
use kindred::heads::{
    AnyHead, Explanation, Head, HeadKind, Label, MAX_NGRAM_BYTES, REASONS, Vocabulary, explain,
    explanation_cost, labels,
};
use kindred::queue::{Answered, SubmitError};
use serde::Serialize;

use super::{Asked, KnownText, Read, look_up};
use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::http::parse::body::Received;
use crate::http::parse::classification::{ClassifyBody, LabelOptions, Shown};
use crate::http::parse::invalid;
use crate::http::parse::texts::{UnreadText, of_query};
use crate::http::render::size::Size;
use crate::models::{Call, ServedModel};
use crate::workers::Cancellation;

/// Labels of texts.
pub(in crate::http::routes) struct Classify {
    head: Arc<Head>,
    shown: Shown,
    /// The class of the label to explain; otherwise the most probable one is explained.
    explained: Option<usize>,
}

impl Asked for Classify {
    const KIND: HeadKind = HeadKind::Classifier;
    type Unread<'a> = UnreadText<'a>;
    type Options = LabelOptions;
    type Request = TokenText;
    type Found = Vec<f64>;
    type Answer<'a> = LabelsAnswer<'a>;

    fn read<'a>(call: &Call, received: &'a Received) -> Read<UnreadText<'a>, LabelOptions> {
        let (text, body) = if received.is_get {
            let (text, options) = of_query::<ClassifyBody<'_>>(received.query())?;
            (Some(text), options)
        } else {
            (None, received.parse::<ClassifyBody<'_>>()?)
        };
        Ok((call.deadline(body.timeout_ms)?, body.check(text)?))
    }

    fn new(
        _: &Call,
        head: AnyHead,
        options: LabelOptions,
        _: &Cancellation,
    ) -> Result<Self, ApiError> {
        let AnyHead::Classifier(head) = head else { unreachable!("it is a classifier") };
        let LabelOptions { shown, explained } = options;
        let labels = &head.description().labels;
        let class = |label: String| labels.iter().position(|known| *known == label);
        let class = |label| class(label).ok_or_else(|| invalid("explain_label"));
        let explained = explained.map(class).transpose()?;
        Ok(Self { head, shown, explained })
    }

    fn know(
        &self,
        served: &ServedModel,
        index: Option<usize>,
        text: Self::Unread<'_>,
    ) -> Result<(KnownText, TokenText), ApiError> {
        let head = &self.head;
        let vocabulary = Vocabulary::of_head(head, &served.model);
        let mut text = look_up(&vocabulary, text.read(index)?, self.shown.explain)?;
        let tokens = &mut text.tokenised.tokens;
        // An explanation needs them later.
        let tokens = if self.shown.explain { tokens.clone() } else { std::mem::take(tokens) };
        Ok((text, TokenText::new(head.clone(), tokens)))
    }

    fn ask(
        &self,
        asking: Asking<'_>,
        texts: Vec<TokenText>,
    ) -> impl Future<Output = Result<Answered<Vec<f64>>, SubmitError>> + Send {
        asking.classify(texts)
    }

    fn size(&self, known: &KnownText, _: &Vec<f64>) -> (Size, Cost) {
        /// Nanoseconds of a multiply-add of the formula in plain loops.
        const MULTIPLY_ADD: u64 = 1;
        let KnownText { tokenised, text } = known;
        let labels = &self.head.description().labels;
        let of_labels: usize = labels.iter().map(String::len).sum();
        let unknown: usize = tokenised.unknown.iter().map(String::len).sum();
        let size =
            Size::of_rows(labels.len().min(self.shown.top)) + Size::of_text(of_labels + unknown);
        if !self.shown.explain {
            return (size, Cost(0));
        }
        let formula = explanation_cost(&self.head, tokenised.tokens.len()) as u64;
        let ngrams = Size::of_text(REASONS * text.len().min(MAX_NGRAM_BYTES));
        (size + Size::of_rows(REASONS) + ngrams, Cost(formula * MULTIPLY_ADD))
    }

    fn answer<'a>(
        &'a self,
        served: &'a ServedModel,
        known: &'a KnownText,
        scores: &'a Vec<f64>,
    ) -> Result<LabelsAnswer<'a>, ApiError> {
        let (head, shown) = (&*self.head, self.shown);
        let names = &head.description().labels;
        let all = labels(head, scores).map_err(kindred::Error::from)?;
        let is_shown = |label: &&Label| label.probability >= shown.threshold;
        let label = |label: &Label| LabelAnswer {
            label: &names[label.class],
            probability: label.probability,
            score: shown.scores.then_some(label.score),
        };
        let explanation = shown.explain.then(|| {
            let class = self.explained.unwrap_or(all[0].class);
            explain(&served.model, head, &known.text, &known.tokenised, class, REASONS)
        });
        Ok(LabelsAnswer {
            labels: all.iter().take(shown.top).take_while(is_shown).map(label).collect(),
            unknown: &known.tokenised.unknown,
            cut: known.tokenised.is_cut,
            explanation,
        })
    }
}

/// The answer to one text.
#[derive(Serialize)]
pub(in crate::http::routes) struct LabelsAnswer<'a> {
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
