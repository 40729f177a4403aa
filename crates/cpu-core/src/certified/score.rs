//! Scores rows by a query's formula, several together.

use contract::{Hit, Query, Ranking, Row, Table};

use crate::InstructionSet;
use crate::full_scan::dots::{Chunk, Dots, chunks_per_row, widen};
use crate::instruction_set::{Kernel, Vectors, Work};
use crate::prefetch::{Cache, prefetch, prefetch_line};

/// Maximum number of rows that are scored together.
pub(crate) const ROWS: usize = 16;

/// Rows that are widened together: they stay in a first-level cache until they are multiplied.
const TOGETHER: usize = 2;

/// Scores rows of the table for one query.
pub(crate) struct Scorer<'a> {
    query: &'a Query,
    table: Table<'a>,
    instructions: InstructionSet,
    /// The query's vectors in float64, `[vectors, chunks_per_row]`.
    vectors: Vec<Chunk>,
    /// `[TOGETHER, chunks_per_row]`.
    widened: Vec<Chunk>,
    /// `[ROWS, vectors]`.
    dots: Vec<f64>,
    /// `[vectors, ROWS]`.
    cosines: Vec<f64>,
    scores: [f64; ROWS],
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(query: &'a Query, table: Table<'a>, instructions: InstructionSet) -> Self {
        let mut scorer = Self {
            query,
            table,
            instructions,
            vectors: Vec::new(),
            widened: vec![Chunk::ZERO; TOGETHER * chunks_per_row(table.dim())],
            dots: Vec::new(),
            cosines: Vec::new(),
            scores: [f64::NAN; ROWS],
        };
        scorer.turn_to(query);
        scorer
    }

    /// Scores for another query from now on.
    pub(crate) fn turn_to(&mut self, query: &'a Query) {
        let (chunks, count) = (chunks_per_row(self.table.dim()), query.vectors().len());
        self.query = query;
        self.vectors.resize(count * chunks, Chunk::ZERO);
        self.dots.resize(ROWS * count, 0.0);
        self.cosines.resize(ROWS * count, 0.0);
        for (vector, widened) in query.vectors().iter().zip(self.vectors.chunks_exact_mut(chunks)) {
            widen(vector.components(&self.table), widened);
        }
    }

    /// Starts to read these rows, which are scored soon.
    pub(crate) fn prefetch(&self, rows: impl Iterator<Item = Row>, cache: Cache) {
        for row in rows {
            prefetch(self.table.row(row), cache);
            prefetch_line(&raw const self.table.norms()[row.index()], cache);
        }
    }

    /// Those of these rows, at most [`ROWS`], that have a score and pass the filter.
    pub(crate) fn hits(
        &mut self,
        rows: impl ExactSizeIterator<Item = Row> + Clone,
    ) -> impl Iterator<Item = Hit> {
        let filter = &self.query.filter;
        let scores = self.score(rows.clone());
        let hits = rows.zip(scores).map(|(row, &score)| Hit { row, score });
        // A comparison with NaN is false, but an absent bound compares nothing.
        hits.filter(|hit| !hit.score.is_nan() && filter.admits(hit.row, hit.score))
    }

    /// The score of each of these rows. NaN if a row has none.
    fn score(&mut self, rows: impl ExactSizeIterator<Item = Row> + Clone) -> &[f64] {
        let count = rows.len();
        let chunks = chunks_per_row(self.table.dim());
        self.prefetch(rows.clone(), Cache::First);
        let vectors = self.query.vectors();
        let dots = &mut self.dots[..count * vectors.len()];
        self.instructions.run(DotsOfRows {
            table: self.table,
            rows: rows.clone(),
            widened: &mut self.widened,
            queries: &self.vectors,
            chunks,
            dots,
        });
        let cosine = |dot: f64, norm: f64, row: Row| {
            self.table.score_of_dot(dot, norm, row).unwrap_or(f64::NAN)
        };
        match self.query.ranking() {
            Ranking::Vector(vector) => {
                for ((score, &dot), row) in self.scores.iter_mut().zip(&*dots).zip(rows) {
                    *score = cosine(dot, vector.norm, row);
                }
            }
            Ranking::Formula(scoring) => {
                for ((i, row), dots) in rows.enumerate().zip(dots.chunks_exact(vectors.len())) {
                    for (v, (vector, &dot)) in vectors.iter().zip(dots).enumerate() {
                        self.cosines[v * ROWS + i] = cosine(dot, vector.norm, row);
                    }
                }
                let of = |vector: usize| &self.cosines[vector * ROWS..][..count];
                scoring.scores(of, &mut self.scores[..count], &mut [0.0; ROWS]);
            }
        }
        &self.scores[..count]
    }
}

/// The dot products `[rows, queries]` of rows of the table, which are widened here.
struct DotsOfRows<'a, R> {
    table: Table<'a>,
    rows: R,
    /// Room for some rows, `[TOGETHER, chunks]`.
    widened: &'a mut [Chunk],
    /// `[queries, chunks]`.
    queries: &'a [Chunk],
    chunks: usize,
    dots: &'a mut [f64],
}

impl<R: ExactSizeIterator<Item = Row>> Kernel for DotsOfRows<'_, R> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { table, mut rows, widened, queries, chunks, dots } = self;
        for dots in dots.chunks_mut(TOGETHER * queries.len() / chunks) {
            let mut count = 0;
            // In this order, no row is taken without room for it.
            for (widened, row) in widened.chunks_exact_mut(chunks).zip(rows.by_ref()) {
                widen(table.row(row), widened);
                count += 1;
            }
            let rows = &widened[..count * chunks];
            Dots { rows, queries, chunks, dots }.run(vectors);
        }
    }
}
