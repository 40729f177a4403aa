//! The loss of a batch, and its derivatives by the texts' weights.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::batch::Batch;
use super::{Loss, Means};
use crate::heads::expand::gradients::Touched;

/// The weights of a batch's texts.
pub(super) struct Weights<'a> {
    pub(super) touched: &'a [Touched],
    /// Where the entries of each text end.
    pub(super) ends: &'a [usize],
    /// `[touched]`: the values, or their `ln(1 + f)`.
    pub(super) weights: &'a [f64],
    /// The number of all terms.
    pub(super) terms: usize,
    pub(super) queries: usize,
}

/// For each term, 1 + its index among those of one text, or 0.
struct Slots(Vec<u32>);

impl Slots {
    /// Calls `work` with the slots of a text's terms.
    fn with<T>(&mut self, text: &[Touched], work: impl FnOnce(&[u32]) -> T) -> T {
        (1..).zip(text).for_each(|(slot, one)| self.0[one.term as usize] = slot);
        let result = work(&self.0);
        text.iter().for_each(|one| self.0[one.term as usize] = 0);
        result
    }
}

impl Weights<'_> {
    fn range(&self, text: usize) -> std::ops::Range<usize> {
        text.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[text]
    }

    fn texts(&self) -> usize {
        self.ends.len() - self.queries
    }

    /// A text's terms with their weights.
    fn of(&self, text: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.range(text);
        let weights = &self.weights[range.clone()];
        self.touched[range].iter().zip(weights).map(|(one, weight)| (one.term as usize, *weight))
    }

    /// The scores of all texts for each query.
    pub(super) fn scores(&self, pool: &ThreadPool) -> Vec<Vec<f64>> {
        let new = || Slots(vec![0; self.terms]);
        let of_query = |slots: &mut Slots, query: usize| {
            let own = &self.weights[self.range(query)];
            slots.with(&self.touched[self.range(query)], |slots| {
                let score = |text: usize| {
                    let mut sum = 0.0;
                    for (term, weight) in self.of(self.queries + text) {
                        if let Some(slot) = slots[term].checked_sub(1) {
                            sum += own[slot as usize] * weight;
                        }
                    }
                    sum
                };
                (0..self.texts()).map(score).collect()
            })
        };
        pool.install(|| (0..self.queries).into_par_iter().map_init(new, of_query).collect())
    }

    /// The derivatives by all weights, from those by the scores, `[queries, texts]`.
    fn derivatives(&self, by_scores: &[Vec<f64>], pool: &ThreadPool) -> Vec<f64> {
        let new = || Slots(vec![0; self.terms]);
        let of_text = |slots: &mut Slots, text: usize| {
            let mut own = vec![0.0; self.range(text).len()];
            // Those of the other kind, in their order, with the derivative of the score of both.
            let others: Vec<(usize, f64)> = match text.checked_sub(self.queries) {
                None => (self.queries..).zip(by_scores[text].iter().copied()).collect(),
                Some(text) => (0..).zip(by_scores.iter().map(|row| row[text])).collect(),
            };
            slots.with(&self.touched[self.range(text)], |slots| {
                for (other, derivative) in others {
                    if derivative == 0.0 {
                        continue;
                    }
                    for (term, weight) in self.of(other) {
                        if let Some(slot) = slots[term].checked_sub(1) {
                            own[slot as usize] += derivative * weight;
                        }
                    }
                }
            });
            own
        };
        let all: Vec<Vec<f64>> =
            pool.install(|| (0..self.ends.len()).into_par_iter().map_init(new, of_text).collect());
        all.concat()
    }

    /// `Σ over terms of (mean weight)²` of some texts, whose derivatives are added, times `factor`.
    fn flops(&self, texts: std::ops::Range<usize>, factor: f64, derivatives: &mut [f64]) -> f64 {
        let count = texts.len().max(1) as f64;
        let mut means = vec![0.0; self.terms];
        for text in texts.clone() {
            self.of(text).for_each(|(term, weight)| means[term] += weight);
        }
        means.iter_mut().for_each(|mean| *mean /= count);
        for text in texts {
            for (derivative, (term, _)) in
                derivatives[self.range(text)].iter_mut().zip(self.of(text))
            {
                *derivative += 2.0 * factor * means[term] / count;
            }
        }
        means.iter().map(|mean| mean * mean).sum()
    }
}

/// The loss with the FLOPS of queries and of texts, by these factors: what it is, and its derivatives by all weights.
pub(super) fn derivatives(
    batch: &Batch<'_>,
    weights: &Weights<'_>,
    loss: Loss,
    [of_queries, of_texts]: [f64; 2],
    pool: &ThreadPool,
) -> (Means, Vec<f64>) {
    let mut by_scores = weights.scores(pool);
    let mut sum = 0.0;
    for (query, scores) in by_scores.iter_mut().enumerate() {
        sum += match loss {
            Loss::InfoNce { temperature } => info_nce(batch, query, f64::from(temperature), scores),
            Loss::Margin { margin } => of_margin(batch, query, f64::from(margin), scores),
        };
        scores.iter_mut().for_each(|derivative| *derivative /= batch.queries as f64);
    }
    let mut derivatives = weights.derivatives(&by_scores, pool);
    let (queries, all) = (weights.queries, weights.ends.len());
    let flops_queries = weights.flops(0..queries, of_queries, &mut derivatives);
    let flops_texts = weights.flops(queries..all, of_texts, &mut derivatives);
    let touched = |from: usize, to: usize| {
        let entries = weights.range(to - 1).end - weights.range(from).start;
        entries as f64 / (to - from) as f64
    };
    let means = Means {
        loss: sum / batch.queries as f64,
        flops_queries,
        flops_texts,
        terms_per_query: touched(0, queries),
        terms_per_text: touched(queries, all),
    };
    (means, derivatives)
}

/// The cross-entropy of one query. Turns its scores into derivatives.
fn info_nce(batch: &Batch<'_>, query: usize, temperature: f64, scores: &mut [f64]) -> f64 {
    let relevant = scores[query];
    let is_candidate = |text: usize| batch.is_candidate(query, text);
    let candidates = (0..scores.len()).filter(|&text| is_candidate(text));
    let most = candidates.map(|text| scores[text]).fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (text, score) in scores.iter_mut().enumerate() {
        *score = if is_candidate(text) { ((*score - most) / temperature).exp() } else { 0.0 };
        sum += *score;
    }
    scores.iter_mut().for_each(|score| *score /= sum * temperature);
    scores[query] -= 1.0 / temperature;
    sum.ln() - (relevant - most) / temperature
}

/// The margin loss of one query. Turns its scores into derivatives.
fn of_margin(batch: &Batch<'_>, query: usize, margin: f64, scores: &mut [f64]) -> f64 {
    let irrelevant = batch.irrelevant[query].expect("an irrelevant text");
    let loss = (margin - scores[query] + scores[irrelevant]).max(0.0);
    scores.fill(0.0);
    if loss > 0.0 {
        (scores[query], scores[irrelevant]) = (-1.0, 1.0);
    }
    loss
}
