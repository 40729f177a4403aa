//! Scores rows by a query's formula, several together.

use contract::{Hit, Query, Ranking, Row, Table};

use crate::InstructionSet;
use crate::full_scan::dots::{Chunk, Dots, DotsOfNarrow, chunks_per_row, widen};
use crate::instruction_set::{Kernel, Vectors, Work};
use crate::prefetch::{Cache, prefetch, prefetch_line};

/// Maximum number of rows that are scored together.
pub(crate) const ROWS: usize = 16;

/// Rows that are multiplied together. If they are widened for that, they stay in a first-level
/// cache.
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

    /// Those of these rows, at most [`ROWS`], that have a score and pass the filter. Memory starts
    /// to read the `later` rows meanwhile, so that they take less time.
    pub(crate) fn hits(
        &mut self,
        rows: impl ExactSizeIterator<Item = Row> + Clone,
        later: impl Iterator<Item = Row>,
    ) -> impl Iterator<Item = Hit> {
        let filter = &self.query.filter;
        let scores = self.score(rows.clone(), later);
        let hits = rows.zip(scores).map(|(row, &score)| Hit { row, score });
        // A comparison with NaN is false, but an absent bound compares nothing.
        hits.filter(|hit| !hit.score.is_nan() && filter.admits(hit.row, hit.score))
    }

    /// The score of each of these rows. NaN if a row has none.
    fn score(
        &mut self,
        rows: impl ExactSizeIterator<Item = Row> + Clone,
        later: impl Iterator<Item = Row>,
    ) -> &[f64] {
        let count = rows.len();
        let chunks = chunks_per_row(self.table.dim());
        rows.clone().for_each(|row| prefetch_row(&self.table, row, Cache::First));
        let vectors = self.query.vectors();
        let dots = &mut self.dots[..count * vectors.len()];
        self.instructions.run(DotsOfRows {
            table: self.table,
            rows: rows.clone(),
            later,
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

/// Parts of a list that are scored together, each with the part after it.
pub(crate) fn with_later<T>(all: &[T]) -> impl Iterator<Item = (&[T], &[T])> {
    let later = all.chunks(ROWS).skip(1).chain(std::iter::once(&[][..]));
    all.chunks(ROWS).zip(later)
}

/// Starts to read a row, and its norm.
#[inline(always)]
fn prefetch_row(table: &Table<'_>, row: Row, cache: Cache) {
    prefetch(table.row(row), cache);
    prefetch_line(&raw const table.norms()[row.index()], cache);
}

/// The dot products `[rows, queries]` of rows of the table.
struct DotsOfRows<'a, R, L> {
    table: Table<'a>,
    rows: R,
    /// Prefetched one by one: memory serves few lines at once, and all of them would wait.
    later: L,
    /// Room for some rows, `[TOGETHER, chunks]`.
    widened: &'a mut [Chunk],
    /// `[queries, chunks]`.
    queries: &'a [Chunk],
    chunks: usize,
    dots: &'a mut [f64],
}

impl<R: ExactSizeIterator<Item = Row>, L: Iterator<Item = Row>> Kernel for DotsOfRows<'_, R, L> {
    const WORK: Work = Work::Wide;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let Self { table, mut rows, mut later, widened, queries, chunks, dots } = self;
        let is_one_query = queries.len() == chunks;
        for dots in dots.chunks_mut(TOGETHER * queries.len() / chunks) {
            for row in later.by_ref().take(TOGETHER) {
                prefetch_row(&table, row, Cache::Second);
            }
            if is_one_query {
                dots_of_one(vectors, &table, rows.by_ref(), queries, dots);
                continue;
            }
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

/// The dot products of at most [`TOGETHER`] rows with one query.
#[inline(always)]
fn dots_of_one<V: Vectors>(
    vectors: V,
    table: &Table<'_>,
    mut rows: impl Iterator<Item = Row>,
    query: &[Chunk],
    dots: &mut [f64],
) {
    let mut next = || rows.next().map_or(&[][..], |row| table.row(row));
    if let ([first, second], 2) = (&mut *dots, V::DOTS_TILE[0]) {
        [*first, *second] = vectors.run(DotsOfNarrow { rows: [next(), next()], query });
        return;
    }
    for dot in dots {
        [*dot] = vectors.run(DotsOfNarrow { rows: [next()], query });
    }
}
