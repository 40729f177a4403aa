//! Words that differ only in upper and lower case, taken for one: of all that are found, the best stays.

use std::collections::HashSet;

use model_store::{Hit, Words};

/// The best `k` hits of different words, and none of some words.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    /// How many are to be left.
    pub(super) k: usize,
    /// In lower case.
    left_out: HashSet<String>,
}

impl Fold {
    /// Leaves out these words in all their variants.
    pub(super) fn new<'a>(k: usize, left_out: impl Iterator<Item = &'a str>) -> Self {
        Self { k, left_out: left_out.map(str::to_lowercase).collect() }
    }

    /// How many hits to ask for at first: most words have a variant or none.
    pub(super) fn first_k(&self) -> usize {
        2 * self.k + 2 * self.left_out.len().min(8)
    }

    /// What is left of hits, best first.
    pub(super) fn keep(&self, words: &Words, hits: &[Hit]) -> Vec<Hit> {
        let mut seen = HashSet::new();
        let is_new = |hit: &&Hit| {
            let folded = words.word(hit.row).to_lowercase();
            !self.left_out.contains(&folded) && seen.insert(folded)
        };
        hits.iter().filter(is_new).take(self.k).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use model_store::{ModelStore, Row};

    use super::*;

    #[test]
    fn of_words_that_differ_in_case_the_first_stays() {
        let words = ["frog", "Frog", "TOAD", "toad", "Σίσυφος", "ΣΊΣΥΦΟΣ", "newt"];
        let model = ModelStore::from_rows("m", 1, words.map(|word| (word, &[1.0f32][..]))).unwrap();
        let hits: Vec<Hit> = (0..7).map(|row| Hit { row: Row(row), score: 1.0 }).collect();
        let kept = |k, left_out: &[&str]| {
            let kept = Fold::new(k, left_out.iter().copied()).keep(model.words(), &hits);
            kept.into_iter().map(|hit| words[hit.row.index()]).collect::<Vec<_>>()
        };
        assert_eq!(kept(9, &[]), ["frog", "TOAD", "Σίσυφος", "newt"]);
        assert_eq!(kept(2, &[]), ["frog", "TOAD"]);
        assert_eq!(kept(9, &["FROG", "nowhere", "newt"]), ["TOAD", "Σίσυφος"]);
    }
}
