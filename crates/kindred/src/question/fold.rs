//! Folds words that differ only in upper and lower case: of those that are found, the best stays.

use std::collections::HashSet;
use std::sync::Arc;

use contract::Hit;
use model_store::Words;

use super::excluded::Excluded;

/// Keeps the best `k` hits of different words, and leaves some words out.
#[derive(Debug, Clone)]
pub struct Fold {
    /// How many hits to keep at most.
    pub(crate) k: usize,
    /// The query's own words, in lower case.
    own: HashSet<String>,
    excluded: Option<Arc<Excluded>>,
}

impl Fold {
    /// Leaves out these words in all their variants.
    pub(super) fn new<'a>(
        k: usize,
        own: impl Iterator<Item = &'a str>,
        excluded: Option<Arc<Excluded>>,
    ) -> Self {
        Self { k, own: own.map(str::to_lowercase).collect(), excluded }
    }

    /// How many hits to ask for at first: most words have a variant or none.
    pub(super) fn first_k(&self) -> usize {
        let excluded = self.excluded.as_ref().map_or(0, |excluded| excluded.folded().len());
        2 * self.k + 2 * (self.own.len() + excluded).min(8)
    }

    /// The hits that stay, best first.
    pub(crate) fn keep(&self, words: &Words, hits: &[Hit]) -> Vec<Hit> {
        let mut seen = HashSet::new();
        let excluded = self.excluded.as_ref().map(|excluded| excluded.folded());
        let is_excluded = |word: &String| excluded.is_some_and(|words| words.contains(word));
        let is_new = |hit: &&Hit| {
            let folded = words.word(hit.row).to_lowercase();
            !self.own.contains(&folded) && !is_excluded(&folded) && seen.insert(folded)
        };
        hits.iter().filter(is_new).take(self.k).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use contract::Row;
    use model_store::ModelStore;

    use super::*;

    #[test]
    fn of_words_that_differ_in_case_the_first_stays() {
        let words = ["frog", "Frog", "TOAD", "toad", "Σίσυφος", "ΣΊΣΥΦΟΣ", "newt"];
        let model = ModelStore::from_rows("m", 1, words.map(|word| (word, &[1.0f32][..]))).unwrap();
        let hits: Vec<Hit> = (0..7).map(|row| Hit { row: Row(row), score: 1.0 }).collect();
        let kept = |k, left_out: &[&str]| {
            let (own, excluded) = left_out.split_at(left_out.len() / 2);
            let excluded = excluded.iter().map(|&word| word.to_owned()).collect();
            let excluded = Some(Excluded::new(&model, excluded).unwrap());
            let kept = Fold::new(k, own.iter().copied(), excluded).keep(model.words(), &hits);
            kept.into_iter().map(|hit| words[hit.row.index()]).collect::<Vec<_>>()
        };
        assert_eq!(kept(9, &[]), ["frog", "TOAD", "Σίσυφος", "newt"]);
        assert_eq!(kept(2, &[]), ["frog", "TOAD"]);
        assert_eq!(kept(9, &["FROG", "nowhere", "newt"]), ["TOAD", "Σίσυφος"]);
    }
}
