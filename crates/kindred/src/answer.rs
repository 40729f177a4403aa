//! Answers in words.

use std::borrow::Cow;

use changes::Snapshot;
use contract::Row;
use encoders::TextTokens;
use model_store::ModelStore;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::added::SubwordsOf;
use crate::asking::Times;
use crate::heads::{
    Cause, Expander, Explanation, ScoresNotFinite, TextClassifier, Tokenised, WantedTerms, cause,
    explain, labels,
};
use crate::question::{Notes, Placed, Term, placed};
use crate::rows::Rows;
use crate::search::SearchResult;

/// The answer to a question; its words and vectors are the model's own, unless it was read from
/// JSON. JSON has these names, in this order, without the times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer<'a> {
    /// The neighbours, best first.
    pub neighbors: Vec<Neighbor<'a>>,
    /// The words of a text that the model has; none for other targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Vec<Cow<'a, str>>>,
    /// The words that were left out, if words may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subwords: Option<Vec<SubwordsOf>>,
    /// The tokens of a text that the model's encoder has made a vector of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TextTokens>,
    /// With `explain`: score and rank of the question's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Placed<'a>>>,
    /// Where the time went.
    #[serde(skip)]
    pub times: Times,
    /// The position of the rows that were asked about, if they change.
    #[serde(skip)]
    pub position: Option<u64>,
}

/// A neighbour. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Neighbor<'a> {
    /// Its word.
    pub word: Cow<'a, str>,
    /// Its score: a cosine from −1 to 1, or the result of the method's formula.
    pub score: f64,
    /// The number of its row, from 0.
    pub row: u32,
    /// With `with_vectors`: its vector, `[dim]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<Cow<'a, [f32]>>,
    /// With `with_text`: its text, null where that is missing.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present", default)]
    pub text: Option<Value>,
    /// With `with_attributes`: its attributes by their names, null where a value is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes: Option<Map<String, Value>>,
    /// With `explain`: what each word of the question contributes to the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Vec<Term<'a>>>,
}

/// The ranks of words among the neighbours of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks<'a> {
    /// The words in their order, with score and rank.
    pub ranked: Vec<Placed<'a>>,
    /// The words of a text that the model has; none for other targets.
    pub used: Option<Vec<Cow<'a, str>>>,
    /// The words that were left out, if words may be.
    pub skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    pub subwords: Option<Vec<SubwordsOf>>,
    /// The tokens of a text that the model's encoder has made a vector of.
    pub tokens: Option<TextTokens>,
    /// Where the time went.
    pub times: Times,
    /// The position of the rows that were asked about, if they change.
    pub position: Option<u64>,
}

/// The labels of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Classified {
    /// All labels, the most probable first.
    pub labels: Vec<NamedLabel>,
    /// Words that neither the model nor the head has; they were left out.
    pub unknown: Vec<String>,
    /// Whether the text was too long, so that a part of it was left out.
    pub is_cut: bool,
    /// Where the time went, of all texts that were classified together.
    pub times: Times,
}

/// A label and how probable it is. JSON has `label`, `probability` and `score`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedLabel {
    /// The label.
    #[serde(rename = "label")]
    pub name: String,
    /// Its position among the head's labels.
    #[serde(skip)]
    pub class: usize,
    /// Its probability.
    pub probability: f64,
    /// The class score that the probability was computed from.
    pub score: f64,
}

/// The terms that a text implies, the largest weight first.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpliedTerms {
    /// The terms.
    pub terms: Vec<ImpliedTerm>,
    /// Words that the model does not have, each once; the first hundred.
    pub unknown: Vec<String>,
    /// Whether the text was too long, so that a part of it was left out.
    pub is_cut: bool,
    /// Where the time went, of all texts that were expanded together.
    pub times: Times,
}

/// A term that a text implies. JSON has `term`, `weight` and `token`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImpliedTerm {
    /// Its word.
    #[serde(rename = "term")]
    pub word: String,
    /// Its number among the expander's terms.
    #[serde(skip)]
    pub row: u32,
    /// How much the text implies it: above zero.
    pub weight: f64,
    /// The token of the text that implies it most.
    pub token: Cause,
}

impl ImpliedTerms {
    pub(crate) fn new(
        expander: &Expander,
        wanted: &WantedTerms,
        terms: &[contract::Term],
        text: Option<(String, Tokenised)>,
        times: Times,
    ) -> Self {
        let known = text.as_ref().map(|(text, tokenised)| (text.as_str(), tokenised));
        let term = |(term, weight): (&contract::Term, f64)| ImpliedTerm {
            word: expander.term(term.row).to_owned(),
            row: term.row.0,
            weight,
            token: cause(term, known),
        };
        let terms = terms.iter().zip(wanted.weights(expander, terms)).map(term).collect();
        let (unknown, is_cut) =
            text.map(|(_, tokenised)| (tokenised.unknown, tokenised.is_cut)).unwrap_or_default();
        Self { terms, unknown, is_cut, times }
    }
}

impl Classified {
    pub(crate) fn new(
        head: &TextClassifier,
        scores: &[f64],
        tokenised: Tokenised,
        times: Times,
    ) -> Result<Self, ScoresNotFinite> {
        let names = head.labels();
        let labels = labels(head, scores)?.into_iter().map(|label| NamedLabel {
            name: names[label.class].clone(),
            class: label.class,
            probability: label.probability,
            score: label.score,
        });
        let Tokenised { unknown, is_cut, .. } = tokenised;
        Ok(Self { labels: labels.collect(), unknown, is_cut, times })
    }

    /// Why the text has its most probable label: the `most` n-grams with the largest shares.
    /// `text`, `head` and `model` are those that this answers for. The text becomes tokens again,
    /// so that answers without an explanation need not keep them.
    pub fn explanation<'a>(
        &self,
        model: &ModelStore,
        head: &'a TextClassifier,
        text: &'a str,
        most: usize,
    ) -> Option<Explanation<'a>> {
        let label = self.labels.first()?;
        let tokenised = head.split(text, model);
        Some(explain(model, head, text, &tokenised, label.class, most))
    }
}

impl<'a> Answer<'a> {
    pub(crate) fn new(model: &'a dyn Rows, found: SearchResult, times: Times) -> Self {
        let SearchResult { hits, included, notes, explanation } = found;
        let base = model.base().table();
        let vector = |row: Row| match model.tail_row(row) {
            Some(tail) => tail.vector,
            None => base.row(row),
        };
        let neighbors = hits.iter().map(|hit| Neighbor {
            word: model.word(hit.row).into(),
            score: hit.score,
            row: model.number(hit.row),
            vector: included.vectors.then(|| vector(hit.row).into()),
            text: included.text.map(|column| json!(model.value(hit.row, usize::from(column)))),
            attributes: included
                .attributes
                .as_ref()
                .map(|columns| attributes_of(model, hit.row, columns)),
            terms: explanation.as_ref().map(|why| why.terms(model, hit.row)),
        });
        Self {
            neighbors: neighbors.collect(),
            used: used(model, &notes),
            skipped: notes.skipped,
            subwords: notes.subwords,
            tokens: notes.tokens.map(|tokens| *tokens),
            inputs: explanation.map(|why| placed(model, &why.inputs)),
            times,
            position: model.snapshot().map(Snapshot::position),
        }
    }

    /// The same, for those who do not keep the model.
    pub fn into_owned(self) -> Answer<'static> {
        let Self { neighbors, used, skipped, subwords, tokens, inputs, times, position } = self;
        let owned = |word: Cow<'_, str>| Cow::Owned(word.into_owned());
        Answer {
            neighbors: neighbors.into_iter().map(Neighbor::into_owned).collect(),
            used: used.map(|words| words.into_iter().map(owned).collect()),
            skipped,
            subwords,
            tokens,
            inputs: inputs.map(|words| words.into_iter().map(Placed::into_owned).collect()),
            times,
            position,
        }
    }

    /// The words of the neighbours, best first.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.neighbors.iter().map(|neighbor| &*neighbor.word)
    }
}

impl Ranks<'_> {
    /// The same, for those who do not keep the model.
    pub(crate) fn into_owned(self) -> Ranks<'static> {
        let Self { ranked, used, skipped, subwords, tokens, times, position } = self;
        let owned = |word: Cow<'_, str>| Cow::Owned(word.into_owned());
        Ranks {
            ranked: ranked.into_iter().map(Placed::into_owned).collect(),
            used: used.map(|words| words.into_iter().map(owned).collect()),
            skipped,
            subwords,
            tokens,
            times,
            position,
        }
    }
}

impl Neighbor<'_> {
    fn into_owned(self) -> Neighbor<'static> {
        let Self { word, score, row, vector, text, attributes, terms } = self;
        Neighbor {
            word: Cow::Owned(word.into_owned()),
            score,
            row,
            vector: vector.map(|vector| Cow::Owned(vector.into_owned())),
            text,
            attributes,
            terms: terms.map(|terms| terms.into_iter().map(Term::into_owned).collect()),
        }
    }
}

/// A field that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Some attributes of a row, by their columns.
fn attributes_of(model: &dyn Rows, row: Row, columns: &[usize]) -> Map<String, Value> {
    let all = model.columns();
    let each = columns.iter().filter(|&&column| column < all.len());
    let each = each.map(|&column| (all[column].name().to_owned(), json!(model.value(row, column))));
    each.collect()
}

pub(crate) fn used<'a>(model: &'a dyn Rows, notes: &Notes) -> Option<Vec<Cow<'a, str>>> {
    let rows = notes.used.as_ref()?;
    Some(rows.iter().map(|&row| model.word(row).into()).collect())
}
