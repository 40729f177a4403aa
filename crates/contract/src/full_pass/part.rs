//! The state of a full-pass query between slices. A pass can be cut into slices, and a slice into
//! shares for several threads.
//!
//! Ranks are counted as follows. The ranked rows are sorted by rank. For each row of the table, a
//! binary search finds its position among them, and the count at that position is incremented: the
//! row ranks before all ranked rows from there on. In the end, the number of rows before a ranked
//! row is the sum of the counts up to its own position. If few rows are ranked, it is faster to
//! compare each of them with some rows of the table at a time.

use super::list::List;
use super::{FullPassAnswer, FullPassQuery, RankedRow};
use crate::{Filter, Hit, Row, Table};

/// The cost of keeping a row, in multiply-adds.
const KEPT_WORK: usize = 100;

/// Up to this many ranked rows are compared with several rows at a time.
const FEW_RANKED: usize = 64;

/// A query of a full pass, and its result for the rows processed so far.
///
/// The caller creates it and takes its answer; in between only `full_pass_part` of
/// `FullPassEngine` changes it.
#[derive(Debug, Clone)]
pub struct FullPassPart {
    query: FullPassQuery,
    list: List,
    /// The distinct ranked rows, ascending.
    ranked: Vec<Row>,
    /// The scores of the first n of them. NaN if a row has none.
    scores: Vec<f64>,
    /// Whether `ranking` and `counts` are set up.
    is_prepared: bool,
    is_answered: bool,
    /// The ranked rows that pass the filter, and the first row with each score of `above`: best
    /// first.
    ranking: Vec<Hit>,
    /// For each of them, its index among the ranked rows, after which those of `above` follow.
    targets: Vec<u32>,
    /// Their scores, separately: a search among plain numbers has no branches to mispredict.
    ranking_scores: Vec<f64>,
    /// For each of them, the number of rows that rank before it but not before the one above it.
    counts: Vec<u32>,
    /// The same query over parts of the table, for an engine that is made of several.
    shards: Vec<Option<FullPassPart>>,
    /// Set by [`complete`](Self::complete).
    answer: Option<FullPassAnswer>,
}

/// One thread's result for a [`FullPassPart`], over rows that no other thread processes.
#[derive(Debug, Clone)]
pub struct FullPassShare {
    list: List,
    /// Lower scores do not enter the list.
    least_kept: f64,
    /// Lower scores change neither list nor counts, so one comparison is enough for them.
    floor: f64,
    /// Like the part's; empty while there is nothing to count.
    counts: Vec<u32>,
}

impl FullPassPart {
    /// A query for which no row has been processed.
    pub fn new(query: FullPassQuery) -> Self {
        let mut ranked = query.ranked.clone();
        ranked.sort_unstable();
        ranked.dedup();
        let list = List::new(query.k, query.groups.as_ref());
        let scores = Vec::with_capacity(ranked.len());
        Self {
            query,
            list,
            ranked,
            scores,
            is_prepared: false,
            is_answered: false,
            ranking: Vec::new(),
            targets: Vec::new(),
            ranking_scores: Vec::new(),
            counts: Vec::new(),
            shards: Vec::new(),
            answer: None,
        }
    }

    /// The same query over parts of the table. Only an engine that is made of several uses this; it
    /// is empty before the first slice.
    pub fn shards(&mut self) -> &mut Vec<Option<Self>> {
        &mut self.shards
    }

    /// Answers the query with what an engine that is made of several has joined.
    pub fn complete(&mut self, answer: FullPassAnswer) {
        self.answer = Some(answer);
        self.is_answered = true;
    }

    /// The query.
    pub fn query(&self) -> &FullPassQuery {
        &self.query
    }

    /// Whether the query fits a table of this shape, see [`FullPassQuery::fits`]. If the part is
    /// prepared, the ranked rows are not checked again.
    pub fn fits(&self, table: &Table<'_>) -> bool {
        if !self.is_prepared {
            return self.query.fits(table);
        }
        self.query.filter.rows.fits(table.rows())
            && self.query.scoring.vectors().iter().all(|vector| vector.fits(table))
    }

    /// The ranked rows whose own scores are still missing, before any row is processed.
    pub fn unscored(&self) -> &[Row] {
        &self.ranked[self.scores.len()..]
    }

    /// Sets the scores of the first n [`unscored`](Self::unscored) rows, by [`Scoring::scores`].
    /// NaN means none.
    ///
    /// # Panics
    /// If there are more scores than unscored rows.
    ///
    /// [`Scoring::scores`]: super::Scoring::scores
    pub fn set_scores(&mut self, scores: &[f64]) {
        assert!(scores.len() <= self.unscored().len(), "one score for each ranked row");
        self.scores.extend_from_slice(scores);
    }

    /// The scores of the first n [`distinct_ranked`](Self::distinct_ranked) rows that have been
    /// [set](Self::set_scores), NaN if a row has none.
    pub fn ranked_scores(&self) -> &[f64] {
        &self.scores
    }

    /// The rows whose ranks are requested: distinct, ascending.
    pub fn distinct_ranked(&self) -> &[Row] {
        &self.ranked
    }

    /// Answers a query for ranks alone, of which no row was processed, by what a device has
    /// counted among all rows, as [`merge_counted`](Self::merge_counted) takes it. `scores` are
    /// those of the [`distinct_ranked`](Self::distinct_ranked) rows, NaN if a row has none.
    ///
    /// # Panics
    /// If the query asks for hits, a row was processed, or there are not as many scores and counts.
    pub fn answer_ranks(&mut self, table: &Table<'_>, scores: &[f64], before: &[u32]) {
        assert!(!self.is_prepared && self.scores.is_empty() && scores.len() == self.ranked.len());
        self.set_scores(scores);
        self.prepare(table);
        self.merge_counted(before);
        self.is_answered = true;
    }

    /// Merges what a device has counted among rows that nobody else processes, for a query for
    /// ranks alone: for each of the [`distinct_ranked`](Self::distinct_ranked) rows the number of
    /// rows that pass the filter and rank before it; then for each score of
    /// [`FullPassQuery::above`] the number of those above it. The count of a row without a score,
    /// or that does not pass the filter, is not used.
    ///
    /// # Panics
    /// If the query asks for hits, the part is not [prepared](Self::prepare), or there are not as
    /// many counts.
    pub fn merge_counted(&mut self, before: &[u32]) {
        let targets = self.ranked.len() + self.query.above.len();
        assert!(self.query.k == 0 && self.is_prepared && before.len() == targets);
        let mut last = 0;
        for (count, &target) in self.counts.iter_mut().zip(&self.targets) {
            let before = before[target as usize];
            *count += before - last;
            last = before;
        }
    }

    /// Whether [`answer_ranks`](Self::answer_ranks) or [`complete`](Self::complete) was called: no
    /// engine needs to process rows.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Whether [`prepare`](Self::prepare) was called.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Must be called before any row is processed. Scores the ranked rows that are still
    /// [unscored](Self::unscored), and sorts them all. Further calls do nothing.
    ///
    /// # Panics
    /// If the query does not [fit](Self::fits) the table.
    pub fn prepare(&mut self, table: &Table<'_>) {
        if self.is_prepared {
            return;
        }
        for index in self.scores.len()..self.ranked.len() {
            let score = self.query.score(table, self.ranked[index]);
            self.scores.push(score.unwrap_or(f64::NAN));
        }
        let filter = &self.query.filter;
        let hits = self.ranked.iter().zip(&self.scores).map(|(&row, &score)| Hit { row, score });
        // A row that does not pass the filter has no rank. A comparison with NaN is false.
        let passes =
            |(_, hit): &(u32, Hit)| !hit.score.is_nan() && filter.admits(hit.row, hit.score);
        // No row ranks before the first with the same score, so what ranks before it is above the
        // score. Adding zero turns −0.0 into +0.0.
        let above = self.query.above.iter().map(|score| Hit { row: Row(0), score: score + 0.0 });
        let mut targets: Vec<(u32, Hit)> = (0..).zip(hits).filter(passes).collect();
        targets.extend((self.ranked.len() as u32..).zip(above));
        targets.sort_unstable_by_key(|&(_, hit)| hit);
        (self.targets, self.ranking) = targets.into_iter().unzip();
        self.ranking_scores = self.ranking.iter().map(|hit| hit.score).collect();
        self.counts = vec![0; self.ranking.len()];
        self.is_prepared = true;
    }

    /// The cost of the next row without its dot products, like [`FullPassQuery::row_work`]. Until
    /// the list is full, every row enters it.
    pub fn row_work(&self) -> usize {
        let is_filling = self.query.k > 0 && self.list.worst.is_none();
        self.query.row_work() + if is_filling { KEPT_WORK } else { 0 }
    }

    /// The lowest score of a hit: rows with lower ones are none. Infinity if the query asks for no
    /// hits.
    pub fn least_kept(&self) -> f64 {
        let least = match self.query.k {
            0 => f64::INFINITY,
            _ => self.query.filter.min_score.unwrap_or(f64::NEG_INFINITY),
        };
        self.list.worst.map_or(least, |worst| least.max(worst.score))
    }

    /// The ranked rows that pass the filter, and row 0 with each score of [`FullPassQuery::above`]:
    /// best first, if the part is [prepared](Self::prepare).
    pub fn ranking(&self) -> &[Hit] {
        &self.ranking
    }

    /// An empty share, for rows not processed yet. Cheap: a slice needs one per thread.
    pub fn share(&self) -> FullPassShare {
        let mut share = FullPassShare {
            list: self.list.emptied(),
            least_kept: self.least_kept(),
            floor: f64::NEG_INFINITY,
            counts: Vec::new(),
        };
        share.raise_floor(self.least_ranked());
        share
    }

    /// Adds the scores of some rows, from `first` on, to a share. NaN if a row has none.
    #[inline]
    pub fn add_scores(&self, share: &mut FullPassShare, first: Row, scores: &[f64]) {
        if share.is_changed_by(scores) {
            self.take_together(share, first, scores);
        }
    }

    /// The same for rows that need not follow each other, `[rows]`.
    #[inline]
    pub fn add_scores_of(&self, share: &mut FullPassShare, rows: &[Row], scores: &[f64]) {
        if share.is_changed_by(scores) {
            self.take(share, rows.iter().copied(), scores);
        }
    }

    fn take_together(&self, share: &mut FullPassShare, first: Row, scores: &[f64]) {
        if self.only_counts(first, scores.len()) && self.count_together(&mut share.counts, scores) {
            return;
        }
        self.take(share, (first.0..).map(Row), scores);
    }

    fn take(&self, share: &mut FullPassShare, rows: impl Iterator<Item = Row>, scores: &[f64]) {
        let least_ranked = self.least_ranked();
        for (row, &score) in rows.zip(scores) {
            let hit = Hit { row, score };
            let is_counted = score >= least_ranked;
            let is_kept = score >= share.least_kept;
            if !((is_counted || is_kept) && self.query.filter.admits(row, score)) {
                continue;
            }
            if is_counted {
                self.count(&mut share.counts, hit);
            }
            if is_kept {
                share.list.push(hit);
            }
        }
        share.raise_floor(least_ranked);
    }

    /// Whether all that these rows can change is counts, and all of them pass the filter, whatever
    /// their scores.
    fn only_counts(&self, first: Row, rows: usize) -> bool {
        // Without `..`: a new part of the filter must be checked here, or it does not compile.
        let Filter { rows: ref set, min_score, max_score } = self.query.filter;
        let few = self.query.k == 0 && self.ranking.len() <= FEW_RANKED;
        let any_score = min_score.is_none() && max_score.is_none();
        few && any_score && set.has_all(first.index()..first.index() + rows)
    }

    /// Counts some rows. Does nothing and returns `false` if one has the score of a ranked row:
    /// then the order of rows decides.
    fn count_together(&self, counts: &mut Vec<u32>, scores: &[f64]) -> bool {
        let mut ties = 0;
        for &ranked in &self.ranking_scores {
            ties += scores.iter().map(|&score| u64::from(score == ranked)).sum::<u64>();
        }
        if ties > 0 {
            return false;
        }
        if counts.is_empty() {
            counts.resize(self.counts.len(), 0);
        }
        let mut before = 0;
        for (count, &ranked) in counts.iter_mut().zip(&self.ranking_scores) {
            // A comparison with NaN is false.
            let above = scores.iter().map(|&score| u64::from(score > ranked)).sum::<u64>();
            *count += (above - before) as u32;
            before = above;
        }
        true
    }

    fn count(&self, counts: &mut Vec<u32>, hit: Hit) {
        // Scores are never NaN here and never −0.0, so that plain comparisons give the order of
        // hits.
        let mut index = self.ranking_scores.partition_point(|&ranked| ranked > hit.score);
        if self.ranking_scores.get(index) == Some(&hit.score) {
            index += self.ranking[index..].partition_point(|ranked| *ranked <= hit);
        }
        if counts.is_empty() {
            counts.resize(self.counts.len(), 0);
        }
        // After the last ranked row, it ranks before none.
        if let Some(count) = counts.get_mut(index) {
            *count += 1;
        }
    }

    /// The lowest score that counts for ranks.
    fn least_ranked(&self) -> f64 {
        self.ranking_scores.last().copied().unwrap_or(f64::INFINITY)
    }

    /// Merges a thread's share.
    pub fn merge(&mut self, share: FullPassShare) {
        self.list.append(share.list);
        for (count, more) in self.counts.iter_mut().zip(share.counts) {
            *count += more;
        }
    }

    /// Merges what a device has found among rows that nobody else processes: at least those that
    /// pass the filter and whose scores are not below [`least_kept`](Self::least_kept); and for
    /// each position in the [`ranking`](Self::ranking), the number of rows that pass the filter and
    /// rank before that row, but not before the one above it.
    ///
    /// # Panics
    /// If there is not one count for each of these positions.
    pub fn merge_found(&mut self, hits: impl IntoIterator<Item = Hit>, counts: &[u32]) {
        assert_eq!(counts.len(), self.counts.len(), "one count for each ranked row");
        hits.into_iter().for_each(|hit| self.list.push(hit));
        for (count, more) in self.counts.iter_mut().zip(counts) {
            *count += more;
        }
    }

    /// The answer, once an engine has processed all rows. Before that, the answer for the rows
    /// processed so far; a part that is not prepared has no ranks.
    pub fn into_answer(self) -> FullPassAnswer {
        if let Some(answer) = self.answer {
            return answer;
        }
        let mut ranks_before = vec![None; self.ranked.len() + self.query.above.len()];
        let mut before = 0;
        for (&target, count) in self.targets.iter().zip(&self.counts) {
            before += count;
            ranks_before[target as usize] = Some(before);
        }
        let ranked = |&row: &Row| {
            let index = self.ranked.binary_search(&row).expect("it was requested");
            let score = self.scores.get(index).copied().filter(|score| !score.is_nan());
            RankedRow { row, score, rank: ranks_before[index].map(|before| before + 1) }
        };
        let ranks = self.query.ranked.iter().map(ranked).collect();
        let above = &ranks_before[self.ranked.len()..];
        let above = above.iter().map(|before| before.unwrap_or(0)).collect();
        FullPassAnswer { ranks, hits: self.list.into_sorted(), above }
    }
}

impl FullPassShare {
    #[inline]
    fn is_changed_by(&self, scores: &[f64]) -> bool {
        // A comparison with NaN is false.
        scores.iter().any(|&score| score >= self.floor)
    }

    fn raise_floor(&mut self, least_ranked: f64) {
        if let Some(worst) = self.list.worst {
            self.least_kept = self.least_kept.max(worst.score);
        }
        self.floor = self.least_kept.min(least_ranked);
    }
}

#[cfg(test)]
mod tests;
