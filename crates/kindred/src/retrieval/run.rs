//! Runs: BM25, and BM25 with an expansion, each with parameters that are tuned by cross-validation. The queries of a fold are
//! answered with the parameters that give the highest MAP on all other folds.
//!
//! Which query is in which fold decides on the third digit of MAP. So this is repeated with other folds, and a query's figures
//! are means over the repetitions.

use model_store::synth::split_mix;
use rayon::prelude::*;

use super::analyse::{Analyser, Word};
use super::collection::{Collection, JudgedQuery};
use super::compare::folds;
use super::expansion::{Asked, Expansion, MAX_FEEDBACK, Setting};
use super::index::{Bm25, Index, Weighted, best};
use super::measures::{Measures, average_precision};
use crate::evaluation::EvaluationError;

/// The parameters to choose from. A finer grid finds no better ones: it fits the queries that it is tuned on.
const K1: [f64; 7] = [0.6, 0.9, 1.2, 1.5, 2.0, 2.5, 3.0];
const B: [f64; 4] = [0.3, 0.5, 0.75, 0.9];

/// How runs are tuned and compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// The number of folds, at least two.
    pub folds: usize,
    /// How often the queries are put into folds, at least once.
    pub repetitions: usize,
    /// Decides which query is in which fold, and the permutations.
    pub seed: u64,
    /// BM25's `k1`, if it is not tuned.
    pub k1: Option<f64>,
    /// BM25's `b`, if it is not tuned.
    pub b: Option<f64>,
}

/// A collection that is indexed, with its queries in folds.
#[derive(Debug)]
pub struct Experiment {
    analyser: Analyser,
    index: Index,
    queries: Vec<Prepared>,
    tuning: Tuning,
    /// For each repetition the fold of each query.
    fold_of: Vec<Vec<usize>>,
}

#[derive(Debug)]
struct Prepared {
    words: Vec<Word>,
    terms: Vec<Weighted>,
    query: JudgedQuery,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Run<T> {
    /// The parameters of each fold, one repetition after the other.
    pub chosen: Vec<T>,
    /// For each query, in order, how good its ranking is: the mean over the repetitions.
    pub measures: Vec<Measures>,
}

/// The parameters of a run with an expansion, in a fold.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// The setting's parameters.
    pub setting: Setting,
    /// The weight of the mixture.
    pub weight: f64,
}

impl Experiment {
    /// Indexes a collection. `counts` of the collection get the number of empty documents.
    ///
    /// # Errors
    /// If there are fewer queries than folds.
    pub fn new(
        collection: &mut Collection,
        analyser: Analyser,
        tuning: Tuning,
    ) -> Result<Self, EvaluationError> {
        let count = collection.queries.len();
        if count < tuning.folds {
            let file = "the judgements".to_owned();
            let what = format!(
                "there are fewer queries with relevant documents ({count}) than folds ({}); judge more queries, or choose \
                 fewer --folds (at least 2)",
                tuning.folds
            );
            return Err(EvaluationError::Empty { file, what });
        }
        let index = Index::new(&collection.documents, &analyser);
        collection.counts.empty_documents = index.empty_documents();
        let prepare = |query: &JudgedQuery| {
            let words: Vec<Word> = analyser.words(&query.text).collect();
            let mut terms = Vec::<Weighted>::new();
            for term in words.iter().filter_map(|word| index.term(&word.term)) {
                match terms.iter_mut().find(|(own, _)| *own == term) {
                    Some((_, count)) => *count += 1.0,
                    None => terms.push((term, 1.0)),
                }
            }
            Prepared { words, terms, query: query.clone() }
        };
        let queries = collection.queries.iter().map(prepare).collect();
        let repetitions = 0..tuning.repetitions as u64;
        let seed = |repetition: u64| split_mix(tuning.seed).wrapping_add(repetition);
        let fold_of =
            repetitions.map(|repetition| folds(count, tuning.folds, seed(repetition))).collect();
        Ok(Self { analyser, index, queries, tuning, fold_of })
    }

    /// The collection's index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What made terms of words.
    pub fn analyser(&self) -> &Analyser {
        &self.analyser
    }

    /// How runs are tuned.
    pub fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// The words of each query, which expansions look up.
    pub fn words(&self) -> Vec<Vec<Word>> {
        self.queries.iter().map(|query| query.words.clone()).collect()
    }

    /// The ids of the queries that are measured.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.queries.iter().map(|query| &query.query.id[..])
    }

    /// BM25. `progress` is called after each query.
    pub fn bm25(&self, progress: impl Fn() + Sync) -> Run<Bm25> {
        let only = |fixed: Option<f64>, all: &[f64]| fixed.map_or(all.to_vec(), |one| vec![one]);
        let (k1, b) = (only(self.tuning.k1, &K1), only(self.tuning.b, &B));
        let grid: Vec<Bm25> =
            k1.iter().flat_map(|&k1| b.iter().map(move |&b| Bm25 { k1, b })).collect();
        let precisions = self.each(|_, one| {
            let precision = |&bm25: &Bm25| {
                average_precision(&self.index.scores(bm25, &one.terms), &one.query.relevant)
            };
            let found = grid.iter().map(precision).collect();
            progress();
            found
        });
        let chosen: Vec<Bm25> =
            self.best_settings(&precisions).into_iter().map(|best| grid[best]).collect();
        let measures = self.each(|number, one| {
            self.mean(number, |split| {
                let scores = self.index.scores(chosen[split], &one.terms);
                Measures::new(&scores, &one.query.relevant)
            })
        });
        Run { chosen, measures }
    }

    /// BM25 with an expansion. BM25 keeps the parameters that were chosen for it alone. `progress` is called after each
    /// query, once for each of [`rounds`](Self::rounds).
    pub fn expanded(
        &self,
        base: &Run<Bm25>,
        expansion: &dyn Expansion,
        progress: impl Fn() + Sync,
    ) -> Run<Expanded> {
        let (settings, weights) = (expansion.settings(), expansion.weights());
        let mut chosen = vec![0; base.chosen.len()];
        for (bm25, splits) in Self::rounds_of(base) {
            let precisions = self.each(|number, one| {
                let mut found = Vec::with_capacity(settings.len() * weights.len());
                let asked = self.ask(number, one, bm25);
                for setting in 0..settings.len() {
                    let parts = asked.with(expansion, setting);
                    let relevant = &one.query.relevant;
                    found.extend(weights.iter().map(|&weight| {
                        average_precision(&parts.mixed(expansion, weight), relevant)
                    }));
                }
                progress();
                found
            });
            let best = self.best_settings(&precisions);
            splits.into_iter().for_each(|split| chosen[split] = best[split]);
        }
        let measures = self.each(|number, one| {
            self.mean(number, |split| {
                let (setting, weight) =
                    (chosen[split] / weights.len(), chosen[split] % weights.len());
                let asked = self.ask(number, one, base.chosen[split]);
                let parts = asked.with(expansion, setting);
                Measures::new(&parts.mixed(expansion, weights[weight]), &one.query.relevant)
            })
        });
        let expanded = |&chosen: &usize| Expanded {
            setting: settings[chosen / weights.len()].clone(),
            weight: weights[chosen % weights.len()],
        };
        Run { chosen: chosen.iter().map(expanded).collect(), measures }
    }

    /// How often [`expanded`](Self::expanded) goes through all queries.
    pub fn rounds(base: &Run<Bm25>) -> usize {
        Self::rounds_of(base).len()
    }

    /// The distinct parameters of BM25, and the splits that chose each.
    fn rounds_of(base: &Run<Bm25>) -> Vec<(Bm25, Vec<usize>)> {
        let mut rounds = Vec::<(Bm25, Vec<usize>)>::new();
        for (split, &bm25) in base.chosen.iter().enumerate() {
            match rounds.iter_mut().find(|(own, _)| *own == bm25) {
                Some((_, splits)) => splits.push(split),
                None => rounds.push((bm25, vec![split])),
            }
        }
        rounds
    }

    /// Something of each query, in order, on all cores.
    fn each<T: Send>(&self, of: impl Fn(usize, &Prepared) -> T + Sync) -> Vec<T> {
        self.queries.par_iter().enumerate().map(|(number, one)| of(number, one)).collect()
    }

    /// For each fold of each repetition the setting with the highest mean over the queries of all other folds; the first of
    /// equals. `precisions` has a list for each query.
    fn best_settings(&self, precisions: &[Vec<f64>]) -> Vec<usize> {
        let folds = 0..self.tuning.folds;
        let splits =
            self.fold_of.iter().flat_map(|fold_of| folds.clone().map(move |fold| (fold_of, fold)));
        let best = splits.map(|(fold_of, fold)| {
            let mut sums = vec![0.0; precisions[0].len()];
            for (_, own) in fold_of.iter().zip(precisions).filter(|(of, _)| **of != fold) {
                sums.iter_mut().zip(own).for_each(|(sum, precision)| *sum += precision);
            }
            let better = |best, setting| if sums[setting] > sums[best] { setting } else { best };
            (1..sums.len()).fold(0, better)
        });
        best.collect()
    }

    /// The mean over the repetitions of a query's figures, which are those of the split where it is not tuned on.
    fn mean(&self, number: usize, of: impl Fn(usize) -> Measures) -> Measures {
        let splits = self.fold_of.iter().enumerate();
        let splits = splits.map(|(repetition, own)| repetition * self.tuning.folds + own[number]);
        Measures::mean(&splits.map(of).collect::<Vec<_>>())
    }

    fn ask<'a>(&'a self, number: usize, one: &'a Prepared, bm25: Bm25) -> Answered<'a> {
        let scores = self.index.scores(bm25, &one.terms);
        let best = best(&scores, MAX_FEEDBACK);
        Answered { experiment: self, number, one, bm25, scores, best }
    }
}

/// A query with the scores that it gives by itself.
struct Answered<'a> {
    experiment: &'a Experiment,
    number: usize,
    one: &'a Prepared,
    bm25: Bm25,
    scores: Vec<f64>,
    best: Vec<(u32, f64)>,
}

/// The scores by the query and by its expansion, and the sums of their weights.
struct Parts<'a> {
    scores: &'a [f64],
    of_expansion: Vec<f64>,
    sums: [f64; 2],
}

impl Answered<'_> {
    fn with(&self, expansion: &dyn Expansion, setting: usize) -> Parts<'_> {
        let Experiment { index, analyser, .. } = self.experiment;
        let asked = Asked {
            number: self.number,
            words: &self.one.words,
            terms: &self.one.terms,
            index,
            analyser,
            bm25: self.bm25,
            best: &self.best,
        };
        let terms = expansion.terms(setting, &asked);
        let sum = |terms: &[Weighted]| terms.iter().map(|(_, weight)| weight).sum();
        let sums = [sum(&self.one.terms), sum(&terms)];
        Parts { scores: &self.scores, of_expansion: index.scores(self.bm25, &terms), sums }
    }
}

impl Parts<'_> {
    /// BM25 is linear in the weights of a query's terms, so scores can be mixed in place of queries.
    fn mixed(&self, expansion: &dyn Expansion, weight: f64) -> Vec<f64> {
        let [query, added] = expansion.mixing().factors(weight, self.sums);
        let scores = self.scores.iter().zip(&self.of_expansion);
        scores.map(|(own, other)| query * own + added * other).collect()
    }
}

#[cfg(test)]
mod tests;
