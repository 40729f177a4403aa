//! What can be added to a query: the interface of all expansions, and how they are mixed with the query.

use super::analyse::{Analyser, Word};
use super::index::{Bm25, Index, Term, Weighted};

/// Names and values of parameters, for people.
pub type Setting = Vec<(&'static str, f64)>;

/// The number of documents that an expansion can look at.
pub const MAX_FEEDBACK: usize = 50;

/// A query that is expanded.
#[derive(Debug)]
pub struct Asked<'a> {
    /// Its index among the queries that are measured.
    pub number: usize,
    /// Its words that are no stop words, in order.
    pub words: &'a [Word],
    /// Its terms that the collection has, each once, with their counts.
    pub terms: &'a [Weighted],
    /// The collection.
    pub index: &'a Index,
    /// What made terms of the collection's words.
    pub analyser: &'a Analyser,
    /// The parameters with which the query is answered.
    pub bm25: Bm25,
    /// Its best documents without the expansion, at most [`MAX_FEEDBACK`], with their scores.
    pub best: &'a [(u32, f64)],
}

impl Asked<'_> {
    /// The terms of a word, or of several, that the collection has.
    pub fn terms_of<'b>(&'b self, word: &'b str) -> impl Iterator<Item = Term> + 'b {
        self.analyser.terms(word).filter_map(|term| self.index.term(&term))
    }

    /// The terms of the first `most` of these words that the query does not have itself, with the words' weights.
    pub fn others(&self, words: &[(String, f64)], most: usize) -> Vec<Weighted> {
        let mut others = Vec::new();
        for (word, weight) in words.iter().take(most) {
            let terms = self.terms_of(word).filter(|&term| !self.has(term));
            others.extend(terms.map(|term| (term, *weight)));
        }
        others
    }

    /// Whether the query has this term itself.
    pub fn has(&self, term: Term) -> bool {
        self.terms.iter().any(|&(own, _)| own == term)
    }
}

/// How the terms of an expansion are mixed with those of the query. The weight is tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixing {
    /// query + weight × expansion.
    Add,
    /// (1 − weight) × query + weight × expansion, each divided by the sum of its weights first.
    Interpolate,
}

impl Mixing {
    /// What the scores of query and expansion are multiplied by. `sums` has the sums of their weights.
    pub(super) fn factors(self, weight: f64, sums: [f64; 2]) -> [f64; 2] {
        let part = |weight: f64, sum: f64| if sum > 0.0 { weight / sum } else { 0.0 };
        match self {
            Self::Add => [1.0, weight],
            Self::Interpolate => [part(1.0 - weight, sums[0]), part(weight, sums[1])],
        }
    }
}

/// An expansion of queries: from a query to weighted terms, which are mixed with it. Its settings and the weight of the mixture
/// are tuned by cross-validation.
pub trait Expansion: Sync {
    /// Its name in tables and in JSON.
    fn name(&self) -> &str;

    /// What it is, in a few words.
    fn description(&self) -> String;

    /// The settings to choose from, at least one; an empty one if there is nothing to choose. Of equally good ones the first is
    /// chosen.
    fn settings(&self) -> Vec<Setting>;

    /// How terms are mixed with the query. A model's terms are added.
    fn mixing(&self) -> Mixing {
        Mixing::Add
    }

    /// The weights to choose from: those for terms that are added.
    fn weights(&self) -> Vec<f64> {
        vec![0.02, 0.05, 0.1, 0.2, 0.4]
    }

    /// The terms that one of the settings, by its index, adds to a query. A term may be there several times: its weights add up.
    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtures_are_linear() {
        assert_eq!(Mixing::Add.factors(0.2, [4.0, 3.0]), [1.0, 0.2]);
        assert_eq!(Mixing::Interpolate.factors(0.25, [3.0, 0.5]), [0.25, 0.5]);
        assert_eq!(Mixing::Interpolate.factors(0.5, [2.0, 0.0]), [0.25, 0.0], "nothing is added");
    }
}
