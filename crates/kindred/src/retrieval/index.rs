//! An inverted index, and BM25 over it.
//!
//! BM25 as in Lucene (Robertson and Zaragoza 2009), with exact lengths: a term of weight `w` in the query gives a document
//!
//! ```text
//! w · ln(1 + (N − n + ½) / (n + ½)) · f / (f + k1 · (1 − b + b · length / mean length))
//! ```
//!
//! where `N` documents are in the collection, `n` of them have the term, and this one has it `f` times.

use std::collections::HashMap;

use rayon::prelude::*;

use super::analyse::Analyser;
use super::texts::Text;

/// A term's number.
pub type Term = u32;

/// A term of a query, and how much it counts.
pub type Weighted = (Term, f64);

/// A collection's terms and documents.
#[derive(Debug)]
pub struct Index {
    numbers: HashMap<String, Term>,
    /// For each term the documents that have it, in order, and how often.
    postings: Vec<Vec<(u32, u32)>>,
    /// For each document its terms, in order of first appearance, and how often it has them.
    documents: Vec<Vec<(Term, u32)>>,
    /// For each document the number of its words.
    lengths: Vec<u32>,
    mean_length: f64,
}

/// The parameters of BM25.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bm25 {
    /// How slowly further occurrences of a term stop to matter; 0: at once.
    pub k1: f64,
    /// How much a document's length matters, from 0 to 1.
    pub b: f64,
}

impl Index {
    /// The index of these documents.
    pub fn new(documents: &[Text], analyser: &Analyser) -> Self {
        let terms: Vec<Vec<String>> =
            documents.par_iter().map(|document| analyser.terms(&document.text).collect()).collect();
        let mut index = Self {
            numbers: HashMap::new(),
            postings: Vec::new(),
            documents: Vec::with_capacity(terms.len()),
            lengths: terms.iter().map(|terms| terms.len() as u32).collect(),
            mean_length: terms.iter().map(Vec::len).sum::<usize>() as f64 / terms.len() as f64,
        };
        for (document, terms) in (0..).zip(terms) {
            let mut own = Vec::<(Term, u32)>::new();
            let mut places = HashMap::new();
            for term in terms {
                let next = index.postings.len() as Term;
                let number = *index.numbers.entry(term).or_insert(next);
                if number == next {
                    index.postings.push(Vec::new());
                }
                let place = *places.entry(number).or_insert(own.len());
                match own.get_mut(place) {
                    Some((_, count)) => *count += 1,
                    None => own.push((number, 1)),
                }
            }
            for &(term, count) in &own {
                index.postings[term as usize].push((document, count));
            }
            index.documents.push(own);
        }
        index
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The number of documents without a term.
    pub fn empty_documents(&self) -> usize {
        self.lengths.iter().filter(|&&length| length == 0).count()
    }

    /// The mean number of terms in a document.
    pub fn mean_length(&self) -> f64 {
        self.mean_length
    }

    /// A term's number; `None` if no document has it.
    pub fn term(&self, term: &str) -> Option<Term> {
        self.numbers.get(term).copied()
    }

    /// The terms of a document with their counts, and the number of its words.
    pub fn document(&self, document: u32) -> (&[(Term, u32)], u32) {
        (&self.documents[document as usize], self.lengths[document as usize])
    }

    /// The score of every document, in order; 0 for one that has none of the terms.
    pub fn scores(&self, bm25: Bm25, query: &[Weighted]) -> Vec<f64> {
        let Bm25 { k1, b } = bm25;
        let mut scores = vec![0.0; self.len()];
        for &(term, weight) in query {
            let postings = &self.postings[term as usize];
            let having = postings.len() as f64;
            let rarity = (1.0 + (self.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            for &(document, count) in postings {
                let (document, count) = (document as usize, f64::from(count));
                let length = f64::from(self.lengths[document]) / self.mean_length;
                scores[document] += weight * rarity * count / (count + k1 * (1.0 - b + b * length));
            }
        }
        scores
    }
}

/// The documents with the highest scores above 0, at most `count`, best first; equal scores by document.
pub fn best(scores: &[f64], count: usize) -> Vec<(u32, f64)> {
    let mut found: Vec<(u32, f64)> =
        (0..).zip(scores.iter().copied()).filter(|&(_, score)| score > 0.0).collect();
    let order = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if found.len() > count {
        found.select_nth_unstable_by(count, order);
        found.truncate(count);
    }
    found.sort_unstable_by(order);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn index(texts: &[&str]) -> Index {
        let text = |text: &&str| Text { id: String::new(), text: (*text).into(), line: 1 };
        Index::new(&texts.iter().map(text).collect::<Vec<_>>(), &Analyser::new("", false))
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        let index = index(&["a b a", "", "b c", "c c c c c c c"]);
        assert_eq!((index.len(), index.empty_documents(), index.mean_length()), (4, 1, 3.0));
        let [a, b] = ["a", "b"].map(|term| index.term(term).unwrap());
        assert_eq!(index.term("d"), None);
        // ln(1 + 3.5 / 1.5) · 2 / (2 + 1.2 · 1), since the length is the mean.
        let scores = index.scores(Bm25 { k1: 1.2, b: 0.75 }, &[(a, 1.0)]);
        assert!((scores[0] - (10.0f64 / 3.0).ln() * 2.0 / 3.2).abs() < 1e-15);
        assert_eq!(scores[1..], [0.0; 3]);
        let twice = index.scores(Bm25 { k1: 1.2, b: 0.75 }, &[(a, 2.0), (b, 0.0)]);
        assert_eq!(twice[0], 2.0 * scores[0]);
        // Without lengths and counts, each document with the term has its rarity.
        let plain = index.scores(Bm25 { k1: 0.0, b: 0.0 }, &[(b, 1.0)]);
        assert_eq!(plain, [2f64.ln(), 0.0, 2f64.ln(), 0.0]);
        assert_eq!(index.scores(Bm25 { k1: 2.0, b: 1.0 }, &[]), [0.0; 4]);
    }

    #[test]
    fn scores_are_those_of_another_program() {
        let recorded: Value = serde_json::from_str(include_str!("recorded/bm25.json")).unwrap();
        let texts = |name: &str| -> Vec<String> {
            let texts = recorded[name].as_array().unwrap();
            texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let documents = texts("documents");
        let index = index(&documents.iter().map(String::as_str).collect::<Vec<_>>());
        let queries = texts("queries");
        let mut compared = 0;
        for run in recorded["runs"].as_array().unwrap() {
            let number = |name: &str| run[name].as_f64().unwrap();
            let bm25 = Bm25 { k1: number("k1"), b: number("b") };
            for (query, expected) in queries.iter().zip(run["scores"].as_array().unwrap()) {
                let query: Vec<Weighted> =
                    query.split(' ').filter_map(|term| Some((index.term(term)?, 1.0))).collect();
                for (found, expected) in
                    index.scores(bm25, &query).iter().zip(expected.as_array().unwrap())
                {
                    assert!(
                        (found - expected.as_f64().unwrap()).abs() < 1e-5,
                        "{found} {expected}"
                    );
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 4 * queries.len() * documents.len());
    }

    #[test]
    fn equal_scores_are_in_the_order_of_documents() {
        let scores = [1.0, 0.0, 2.0, 1.0, -1.0, 2.0, 1.0];
        assert_eq!(best(&scores, 4), [(2, 2.0), (5, 2.0), (0, 1.0), (3, 1.0)]);
        assert_eq!(best(&scores, 100).len(), 5, "a document without a score is not found");
        assert!(best(&[], 1).is_empty() && best(&scores, 0).is_empty());
    }
}
