//! Answers in words.

use model_store::ModelStore;

use crate::asking::Times;
use crate::question::{Notes, Placed, Term, placed};
use crate::search::SearchResult;

/// The answer to a question; its words and vectors are the model's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<'a> {
    /// The neighbours, best first.
    pub neighbors: Vec<Neighbor<'a>>,
    /// The words of a text that the model has; none for other targets.
    pub used: Option<Vec<&'a str>>,
    /// The words that were left out, if words may be.
    pub skipped: Option<Vec<String>>,
    /// With `explain`: score and rank of the question's own words.
    pub inputs: Option<Vec<Placed<'a>>>,
    /// Where the time went.
    pub times: Times,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbor<'a> {
    /// Its word.
    pub word: &'a str,
    /// Its row, from 0.
    pub row: u32,
    /// Its score: a cosine from −1 to 1, or the result of the method's formula.
    pub score: f64,
    /// With `with_vectors`: its vector, `[dim]`.
    pub vector: Option<&'a [f32]>,
    /// With `explain`: what each word of the question contributes to the score.
    pub terms: Option<Vec<Term<'a>>>,
}

/// The ranks of words among the neighbours of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks<'a> {
    /// The words in their order, with score and rank.
    pub ranked: Vec<Placed<'a>>,
    /// The words of a text that the model has; none for other targets.
    pub used: Option<Vec<&'a str>>,
    /// The words that were left out, if words may be.
    pub skipped: Option<Vec<String>>,
    /// Where the time went.
    pub times: Times,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(model: &'a ModelStore, found: SearchResult, times: Times) -> Self {
        let SearchResult { hits, with_vectors, notes, explanation } = found;
        let (words, table) = (model.words(), model.table());
        let neighbors = hits.iter().map(|hit| Neighbor {
            word: words.word(hit.row),
            row: hit.row.0,
            score: hit.score,
            vector: with_vectors.then(|| table.row(hit.row)),
            terms: explanation.as_ref().map(|why| why.formula.terms(model, hit.row)),
        });
        Self {
            neighbors: neighbors.collect(),
            used: used(model, &notes),
            skipped: notes.skipped,
            inputs: explanation.map(|why| placed(model, &why.inputs)),
            times,
        }
    }

    /// The words of the neighbours, best first.
    pub fn words(&self) -> impl Iterator<Item = &'a str> {
        self.neighbors.iter().map(|neighbor| neighbor.word)
    }
}

pub(crate) fn used<'a>(model: &'a ModelStore, notes: &Notes) -> Option<Vec<&'a str>> {
    let rows = notes.used.as_ref()?;
    Some(rows.iter().map(|&row| model.words().word(row)).collect())
}
