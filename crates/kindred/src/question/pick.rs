//! Picks a query's neighbours among its hits, where they are not just all of them: of words that
//! differ only in upper and lower case, the best stays.

use std::collections::HashSet;
use std::sync::Arc;

use contract::Hit;
use model_store::Words;

use super::excluded::Excluded;

/// Which hits of a query are its neighbours.
#[derive(Debug, Clone)]
pub struct Pick {
    /// How many neighbours at most.
    pub(crate) k: usize,
    fold: Fold,
}

impl Pick {
    /// The best `k` hits that stay after folding.
    pub(super) fn new(k: usize, fold: Fold) -> Self {
        Self { k, fold }
    }

    /// How many hits to ask for at first: most words have a variant or none.
    pub(super) fn first_k(&self) -> usize {
        2 * self.k + 2 * self.fold.left_out().min(8)
    }

    /// The neighbours among these hits, best first.
    pub(crate) fn of(&self, words: &Words, hits: &[Hit]) -> Vec<Hit> {
        hits.iter().filter(self.fold.stays(words)).take(self.k).copied().collect()
    }
}

/// Takes words that differ only in case for one, and leaves some words out in all their variants.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    /// The query's own words, in lower case.
    own: HashSet<String>,
    excluded: Option<Arc<Excluded>>,
}

impl Fold {
    /// Leaves out the query's own words and those that it excludes.
    pub(super) fn new<'a>(
        own: impl Iterator<Item = &'a str>,
        excluded: Option<Arc<Excluded>>,
    ) -> Self {
        Self { own: own.map(str::to_lowercase).collect(), excluded }
    }

    /// How many words are left out.
    fn left_out(&self) -> usize {
        self.own.len() + self.excluded.as_ref().map_or(0, |excluded| excluded.folded().len())
    }

    /// Whether a hit stays; asked of each in their order.
    fn stays(&self, words: &Words) -> impl FnMut(&&Hit) -> bool {
        let mut seen = HashSet::new();
        let excluded = self.excluded.as_ref().map(|excluded| excluded.folded());
        move |hit: &&Hit| {
            let folded = words.word(hit.row).to_lowercase();
            let is_excluded = excluded.is_some_and(|words| words.contains(&folded));
            !self.own.contains(&folded) && !is_excluded && seen.insert(folded)
        }
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
            let pick = Pick::new(k, Fold::new(own.iter().copied(), excluded));
            let kept = pick.of(model.words(), &hits);
            kept.into_iter().map(|hit| words[hit.row.index()]).collect::<Vec<_>>()
        };
        assert_eq!(kept(9, &[]), ["frog", "TOAD", "Σίσυφος", "newt"]);
        assert_eq!(kept(2, &[]), ["frog", "TOAD"]);
        assert_eq!(kept(9, &["FROG", "nowhere", "newt"]), ["TOAD", "Σίσυφος"]);
    }
}
