//! Picks a query's neighbours among its hits, where they are not just all of them: the first may be
//! on an earlier page; of words that differ only in upper and lower case, or of rows with the same
//! value of an attribute, the best stays.

use std::collections::HashSet;
use std::sync::Arc;

use contract::full_pass::Groups;
use contract::{FullPassQuery, Hit, Query};

use super::excluded::Excluded;
use crate::options::MAX_K;
use crate::rows::Rows;

/// If too few of the hits are neighbours, the next round asks for this many times as many.
const GROWTH: usize = 4;

/// Searches take queries for so many hits; for more, a full pass costs less than another search.
const MOST_SEARCHED: usize = MAX_K as usize;

/// Which hits of a query are its neighbours.
///
/// The best n rows of a query are the first n of its best 4 n. So a query with too few neighbours
/// among its hits is asked again for more hits, and the answer is that of the whole ranking.
#[derive(Debug, Clone)]
pub struct Pick {
    /// How many neighbours at most.
    pub(crate) k: usize,
    /// How many of those that stay come before them.
    offset: usize,
    rule: Rule,
}

/// Which hits stay.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// All.
    All,
    /// The best of the words that differ only in case.
    Fold(Fold),
    /// The best of each of these groups, and rows in none.
    Distinct(Arc<dyn Groups>),
}

/// What is asked next if too few of the hits are neighbours.
pub(crate) enum Next {
    /// A search for this many hits.
    Search(usize),
    /// A full pass.
    FullPass(Box<FullPassQuery>),
}

impl Pick {
    /// The best `k` of the hits that stay, after the first `offset` of them.
    pub(super) fn new(k: usize, offset: usize, rule: Rule) -> Self {
        Self { k, offset, rule }
    }

    /// How many hits that stay are enough.
    fn depth(&self) -> usize {
        self.offset + self.k
    }

    /// How many hits to ask for at first: most words have a variant or none, and most values a few
    /// rows that are alike.
    pub(super) fn first_k(&self) -> usize {
        match &self.rule {
            Rule::All => self.depth(),
            Rule::Fold(fold) => 2 * self.depth() + 2 * fold.left_out().min(8),
            Rule::Distinct(_) => (GROWTH * self.depth()).min(MOST_SEARCHED),
        }
    }

    /// The neighbours among these hits, best first.
    pub(crate) fn of(&self, model: &dyn Rows, hits: &[Hit]) -> Vec<Hit> {
        let those_that = |stay: &mut dyn FnMut(&&Hit) -> bool| {
            hits.iter().filter(stay).skip(self.offset).take(self.k).copied().collect()
        };
        match &self.rule {
            Rule::All => those_that(&mut |_| true),
            Rule::Fold(fold) => those_that(&mut fold.stays(model)),
            Rule::Distinct(groups) => {
                let mut seen = HashSet::new();
                those_that(&mut |hit| groups.group(hit.row).is_none_or(|group| seen.insert(group)))
            }
        }
    }

    /// What to ask after this query, whose hits were too few. A value may have nearly all rows, so
    /// that no number of hits is enough: after a few searches, a full pass keeps the best row of
    /// each value. It has all neighbours, however the values are distributed, and takes no more
    /// memory than they do.
    pub(crate) fn next(&self, query: &Query) -> Next {
        match &self.rule {
            Rule::Distinct(groups)
                if query.k >= MOST_SEARCHED.min(GROWTH * GROWTH * self.depth()) =>
            {
                let groups = Some(groups.clone());
                let pass = FullPassQuery::of_search(query);
                Next::FullPass(Box::new(FullPassQuery { k: self.depth(), groups, ..pass }))
            }
            Rule::Distinct(_) => Next::Search((GROWTH * query.k).min(MOST_SEARCHED)),
            Rule::All | Rule::Fold(_) => Next::Search(query.k.saturating_mul(GROWTH)),
        }
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
    fn stays(&self, model: &dyn Rows) -> impl FnMut(&&Hit) -> bool {
        let mut seen = HashSet::new();
        let excluded = self.excluded.as_ref().map(|excluded| excluded.folded());
        move |hit: &&Hit| {
            let folded = model.word(hit.row).to_lowercase();
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
            let pick = Pick::new(k, 0, Rule::Fold(Fold::new(own.iter().copied(), excluded)));
            let kept = pick.of(&model, &hits);
            kept.into_iter().map(|hit| words[hit.row.index()]).collect::<Vec<_>>()
        };
        assert_eq!(kept(9, &[]), ["frog", "TOAD", "Σίσυφος", "newt"]);
        assert_eq!(kept(2, &[]), ["frog", "TOAD"]);
        assert_eq!(kept(9, &["FROG", "nowhere", "newt"]), ["TOAD", "Σίσυφος"]);
    }
}
