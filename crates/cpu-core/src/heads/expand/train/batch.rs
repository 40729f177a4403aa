//! The texts of a step: their distinct words, and these words' vectors under the projection.

use std::collections::HashMap;

use contract::score;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Example;

/// Queries and texts. First all queries, then their relevant texts, then the irrelevant ones.
pub(super) struct Batch<'a> {
    /// The distinct words, in the order of their first occurrence.
    pub(super) words: Vec<u32>,
    /// For each text the words that it has, as indices of these, in the order of their first occurrence: where two positions score
    /// alike because they have the same word, the lower one counts.
    pub(super) texts: Vec<Vec<u32>>,
    pub(super) queries: usize,
    /// For each query, the index of its irrelevant text among those that are not queries.
    pub(super) irrelevant: Vec<Option<usize>>,
    /// The texts that are not queries, as they were given.
    given: Vec<&'a [u32]>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(examples: &[&'a Example]) -> Self {
        let queries = examples.len();
        let mut given: Vec<&[u32]> = examples.iter().map(|one| &one.relevant[..]).collect();
        let irrelevant = examples.iter().map(|one| {
            one.irrelevant.as_ref().map(|text| {
                given.push(text);
                given.len() - 1
            })
        });
        let irrelevant = irrelevant.collect();
        let (mut words, mut known) = (Vec::new(), HashMap::new());
        let mut of_text = |text: &[u32]| -> Vec<u32> {
            let mut own: Vec<u32> = Vec::with_capacity(text.len());
            let mut met = std::collections::HashSet::new();
            for &word in text {
                let index = *known.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as u32 - 1
                });
                if met.insert(index) {
                    own.push(index);
                }
            }
            own
        };
        let mut texts: Vec<Vec<u32>> = examples.iter().map(|one| of_text(&one.query)).collect();
        texts.extend(given.iter().map(|text| of_text(text)));
        Self { words, texts, queries, irrelevant, given }
    }

    /// Whether a text is the query's relevant one, or differs from it.
    pub(super) fn is_candidate(&self, query: usize, text: usize) -> bool {
        query == text || self.given[query] != self.given[text]
    }

    /// The words' vectors before the projection, `[words, dim]`.
    pub(super) fn rows(&self, vectors: &[f32], dim: usize) -> Vec<f32> {
        let row = |&word: &u32| &vectors[word as usize * dim..][..dim];
        self.words.iter().flat_map(row).copied().collect()
    }

    /// Where each text ends, in its words.
    pub(super) fn ends(&self) -> Vec<usize> {
        let mut end = 0;
        let after = |text: &Vec<u32>| {
            end += text.len();
            end
        };
        self.texts.iter().map(after).collect()
    }

    /// The vectors of each text's words, one text after the other.
    pub(super) fn expanded(&self, vectors: &[f32], dim: usize) -> Vec<f32> {
        let row = |&word: &u32| &vectors[word as usize * dim..][..dim];
        self.texts.iter().flatten().flat_map(row).copied().collect()
    }
}

/// `x = P · e` for each row `e`: the contract's dot products, rounded to float32. The identity changes nothing.
pub(super) fn project(
    rows: Vec<f32>,
    projection: Option<&[f32]>,
    dim: usize,
    pool: &ThreadPool,
) -> Vec<f32> {
    let Some(projection) = projection else { return rows };
    let mut projected = vec![0.0; rows.len()];
    pool.install(|| {
        projected.par_chunks_mut(dim).zip(rows.par_chunks(dim)).with_min_len(8).for_each(
            |(x, e)| {
                for (x, p) in x.iter_mut().zip(projection.chunks_exact(dim)) {
                    *x = score::dot(p, e) as f32;
                }
            },
        );
    });
    projected
}
