//! Why a neighbour has its score: what each word of the query contributes, and the ranks of those
//! words themselves.

use std::borrow::Cow;

use contract::scoring::EPSILON;
use contract::{Metric, RankedRow, Row, TableRows};
use serde::{Deserialize, Serialize};

use super::formula::Formula;
use super::with_added::WithAdded;
use crate::added::AddedWords;
use crate::rows::Rows;

/// What explains an answer.
#[derive(Debug)]
pub struct Explanation {
    /// How rows are scored.
    pub formula: Formula,
    /// Words of the formula that are no rows of the model.
    pub(crate) added: AddedWords,
    /// The words of the query, with the score and rank that each would have.
    pub inputs: Vec<RankedRow>,
}

/// A word's part in a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Term<'a> {
    /// The word.
    pub word: Cow<'a, str>,
    /// Its weight in the query.
    pub weight: f64,
    /// How similar the neighbour is to the word.
    #[serde(flatten)]
    pub similarity: WordSimilarity,
    /// Its part in the score.
    #[serde(flatten)]
    pub part: Part,
}

/// How similar a neighbour is to a word, by the model's metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WordSimilarity {
    /// The cosine similarity.
    Cosine(f64),
    /// The dot product, without the neighbour's bias.
    Dot(f64),
}

/// What a word adds to a score or multiplies it by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The parts sum to the score; under the metric `dot` to the score without the neighbour's
    /// bias.
    Contribution(f64),
    /// The parts multiply to the score.
    Factor(f64),
}

/// A word of the query among its own neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed<'a> {
    /// The word.
    pub word: Cow<'a, str>,
    /// The number of its row, from 0.
    pub row: u32,
    /// Its score; none if its row is zero.
    pub score: Option<f64>,
    /// Its rank, from 1; none if it has no score or the filter excludes it.
    pub rank: Option<u32>,
}

/// Ranked rows with their words.
pub fn placed<'a>(model: &'a dyn Rows, ranks: &[RankedRow]) -> Vec<Placed<'a>> {
    let placed = ranks.iter().map(|ranked| Placed {
        word: model.word(ranked.row).into(),
        row: model.number(ranked.row),
        score: ranked.score,
        rank: ranked.rank,
    });
    placed.collect()
}

impl Term<'_> {
    /// The same, for those who do not keep the model.
    #[must_use]
    pub fn into_owned(self) -> Term<'static> {
        let Self { word, weight, similarity, part } = self;
        Term { word: Cow::Owned(word.into_owned()), weight, similarity, part }
    }
}

impl Placed<'_> {
    /// The same, for those who do not keep the model.
    #[must_use]
    pub fn into_owned(self) -> Placed<'static> {
        let Self { word, row, score, rank } = self;
        Placed { word: Cow::Owned(word.into_owned()), row, score, rank }
    }
}

impl Explanation {
    /// The terms of a neighbour's score.
    pub fn terms<'a>(&self, model: &'a dyn Rows, neighbor: Row) -> Vec<Term<'a>> {
        self.formula.terms(model, &self.added, neighbor)
    }
}

impl Formula {
    /// The terms of a neighbour's score. The score of a sum comes from its vector, which is rounded
    /// to float32. The terms' contributions are not rounded, so their sum differs from the score by
    /// that rounding.
    fn terms<'a>(&self, model: &'a dyn Rows, added: &AddedWords, neighbor: Row) -> Vec<Term<'a>> {
        let with = WithAdded { rows: model, added };
        let table = with.table();
        let word = |row: Row| match added.word(row) {
            Some(word) => Cow::Owned(word.to_owned()),
            None => Cow::Borrowed(model.word(row)),
        };
        let similarity =
            |a: Row, b: Row| table.similarity(a, b).expect("zero rows were refused before");
        let term = |row: Row, weight: f64, part: Part| Term {
            word: word(row),
            weight,
            similarity: match table.metric() {
                Metric::Cosine => WordSimilarity::Cosine(similarity(row, neighbor)),
                Metric::Dot => WordSimilarity::Dot(similarity(row, neighbor)),
            },
            part,
        };
        match self {
            Self::Vector { words, norm, .. } => words
                .iter()
                .map(|word| {
                    let part = word.weight / norm * similarity(word.row, neighbor);
                    term(word.row, word.weight, Part::Contribution(part))
                })
                .collect(),
            Self::Product { positive, negative } => {
                let half = |row| (similarity(row, neighbor) + 1.0) / 2.0;
                let above = positive.iter().map(|&row| term(row, 1.0, Part::Factor(half(row))));
                let below = negative.iter().map(|&row| {
                    let factor = 1.0 / (half(row) + EPSILON);
                    term(row, -1.0, Part::Factor(factor))
                });
                above.chain(below).collect()
            }
            &Self::Direction { b, c, a } => {
                let length = |cosine: f64| (2.0 - 2.0 * cosine).sqrt();
                let below = length(similarity(c, neighbor)) * length(similarity(a, b));
                let part = |row| (similarity(row, neighbor) - similarity(row, c)) / below;
                vec![
                    term(b, 1.0, Part::Contribution(part(b))),
                    term(c, 1.0, Part::Contribution(0.0)),
                    term(a, -1.0, Part::Contribution(-part(a))),
                ]
            }
        }
    }
}
