//! `/classify`, by GET and POST: the labels that a head gives to texts.

use std::ops::Range;
use std::time::Instant;

use kindred::contract::TokenText;
use kindred::heads::{
    AnyHead, ClassScores, Explanation, FastTextHead, HeadKind, Label, MAX_NGRAM_BYTES, REASONS,
    TextClassifier, Vocabulary, explain, explanation_cost, labels,
};
use kindred::queue::Answered;
use serde::Serialize;

use super::{Asked, KnownText, Read, answered_in_time, look_up};
use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::classification::{ClassifyBody, LabelOptions, Shown};
use crate::http::parse::invalid;
use crate::http::parse::limits::MAX_TOKENS;
use crate::http::parse::texts::{TextOrWords, UnreadText, of_query};
use crate::http::render::size::Size;
use crate::models::{Call, ServedModel};
use crate::workers::Cancellation;

/// Labels of texts.
pub(in crate::http::routes) struct Classify {
    head: TextClassifier,
    shown: Shown,
    /// The class of the label to explain; otherwise the most probable one is explained.
    explained: Option<usize>,
}

impl Asked for Classify {
    const KIND: HeadKind = HeadKind::Classifier;
    type Unread<'a> = UnreadText<'a>;
    type Options = LabelOptions;
    type Request = ReadText;
    type Found = ClassScores;
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
        let class = |label: String| head.labels().iter().position(|known| *known == label);
        let class = |label| class(label).ok_or_else(|| invalid("explain_label"));
        let explained = explained.map(class).transpose()?;
        Ok(Self { head, shown, explained })
    }

    fn know(
        &self,
        served: &ServedModel,
        index: Option<usize>,
        text: Self::Unread<'_>,
    ) -> Result<(KnownText, ReadText), ApiError> {
        let head = match &self.head {
            TextClassifier::OverRows(head) => head,
            TextClassifier::FastText(head) => return split(head, text.read(index)?, self.shown),
        };
        let vocabulary = Vocabulary::of_head(head, &served.model);
        let mut text = look_up(&vocabulary, text.read(index)?, self.shown.explain)?;
        let tokens = &mut text.tokenised.tokens;
        // An explanation needs them later.
        let tokens = if self.shown.explain { tokens.clone() } else { std::mem::take(tokens) };
        Ok((text, ReadText::Tokens(TokenText::new(head.clone(), tokens))))
    }

    async fn ask(
        &self,
        call: &Call,
        texts: Vec<ReadText>,
        deadline: Instant,
    ) -> Result<Answered<ClassScores>, ApiError> {
        let head = match &self.head {
            TextClassifier::FastText(head) => head.clone(),
            TextClassifier::OverRows(_) => {
                let texts = texts.into_iter().filter_map(ReadText::tokens).collect();
                let answered = call.asking(deadline).classify(texts).await;
                let answered = answered_in_time(call, answered, deadline).await?;
                let Answered { responses, queued, device } = answered;
                let of_scores = |scores| ClassScores { scores, unknown: Vec::new() };
                let responses = responses.into_iter().map(of_scores).collect();
                return Ok(Answered { responses, queued, device });
            }
        };
        let texts: Vec<_> = texts.into_iter().filter_map(ReadText::words).collect();
        let cost = texts.iter().map(|(_, words)| head.cost(words)).sum();
        let read = move |cancellation: &Cancellation| {
            let goes_on = || !cancellation.is_cancelled();
            let scores = |(text, words): &(String, Vec<Range<usize>>)| {
                check_deadline(cancellation)?;
                Ok(head.scores(text, words, goes_on))
            };
            let found = texts.iter().map(scores).collect::<Result<Vec<_>, ApiError>>()?;
            check_deadline(cancellation)?;
            Ok(found)
        };
        let responses = stage(call, Cost(cost), deadline, read).await?;
        let with_unknown = responses.iter().filter(|found| !found.unknown.is_empty()).count();
        if with_unknown > 0 {
            call.text_counts.add_with_unknown_words(with_unknown);
        }
        Ok(Answered { responses, ..Answered::default() })
    }

    fn size(&self, known: &KnownText, found: &ClassScores) -> (Size, Cost) {
        let KnownText { tokenised, text } = known;
        let labels = self.head.labels();
        let of_labels: usize = labels.iter().map(String::len).sum();
        let unknown =
            tokenised.unknown.iter().chain(&found.unknown).map(String::len).sum::<usize>();
        let size =
            Size::of_rows(labels.len().min(self.shown.top)) + Size::of_text(of_labels + unknown);
        let of_labels = match &self.head {
            TextClassifier::OverRows(_) => 0,
            TextClassifier::FastText(head) => head.cost_of_labels(),
        };
        if !self.shown.explain {
            return (size, Cost(of_labels));
        }
        let formula = explanation_cost(&self.head, tokenised) as u64 + of_labels;
        let ngrams = Size::of_text(REASONS * text.len().min(MAX_NGRAM_BYTES));
        (size + Size::of_rows(REASONS) + ngrams, Cost(formula))
    }

    fn answer<'a>(
        &'a self,
        served: &'a ServedModel,
        known: &'a KnownText,
        found: &'a ClassScores,
    ) -> Result<LabelsAnswer<'a>, ApiError> {
        let (head, shown) = (&self.head, self.shown);
        let names = head.labels();
        if found.scores.is_empty() {
            return Err(kindred::Error::no_known_word(found.unknown.clone()).into());
        }
        let all = labels(head, &found.scores).map_err(kindred::Error::from)?;
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
            unknown: match &known.tokenised.unknown[..] {
                [] => &found.unknown,
                unknown => unknown,
            },
            cut: known.tokenised.is_cut,
            explanation,
        })
    }
}

/// A text as its head reads it.
pub(in crate::http::routes) enum ReadText {
    /// For the engine.
    Tokens(TokenText),
    /// For a head of fastText: the text, and where its words are.
    Words(String, Vec<Range<usize>>),
}

impl ReadText {
    fn tokens(self) -> Option<TokenText> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Words(..) => None,
        }
    }

    fn words(self) -> Option<(String, Vec<Range<usize>>)> {
        match self {
            Self::Tokens(_) => None,
            Self::Words(text, words) => Some((text, words)),
        }
    }
}

/// A text for a head of fastText, split into words. They are looked up when they are read.
fn split(
    head: &FastTextHead,
    text: TextOrWords<MAX_TOKENS>,
    shown: Shown,
) -> Result<(KnownText, ReadText), ApiError> {
    let (mut tokenised, text) = match text {
        TextOrWords::Text(text) => (head.split(&text), text),
        TextOrWords::Words(words) => (head.take(words.iter().map(String::as_str)), words.join(" ")),
    };
    // An explanation needs both later.
    let (words, kept) = match shown.explain {
        true => (tokenised.bytes.clone(), text.clone()),
        false => (std::mem::take(&mut tokenised.bytes), String::new()),
    };
    Ok((KnownText { tokenised, text: kept }, ReadText::Words(text, words)))
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
