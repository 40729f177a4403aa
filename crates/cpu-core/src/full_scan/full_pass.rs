//! Full passes: scores made of several cosines, and ranks.
//!
//! A batch of such queries shares most of its vectors, so each block of rows is multiplied with the different
//! ones once: `[vectors, rows of the block]` cosines, from which every query takes its own. Its formula then
//! runs over the rows of the block side by side.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::AtomicUsize;

use model_store::{
    FullPassAnswer, FullPassQuery, Hit, QueryVector, RankedRow, Row, Table, TopK, contract::score,
};
use rayon::ThreadPool;

use super::dots::{Chunk, chunks_per_row, widen};
use super::{ROWS_PER_BLOCK, for_each_block, widen_rows};
use crate::InstructionSet;
use crate::row_limits::{looking_at, most_rows_first};

/// One number for each row of a block.
type PerRow = [f64; ROWS_PER_BLOCK];

/// Answers queries that fit the table, in order.
pub(super) fn full_pass(
    table: Table<'_>,
    batch: &[&FullPassQuery],
    instructions: InstructionSet,
    pool: &ThreadPool,
) -> Vec<FullPassAnswer> {
    if batch.is_empty() {
        return Vec::new();
    }
    let mut places: Vec<usize> = (0..batch.len()).collect();
    most_rows_first(batch, &mut places, table.rows());
    let queries: Vec<&FullPassQuery> = places.iter().map(|&place| batch[place]).collect();
    let pass = Pass::new(table, &queries, instructions);
    let mut found: Vec<Found> = pass.queries.iter().map(Found::new).collect();
    for thread in pool.broadcast(|_| pass.run_tasks()) {
        for (found, of_thread) in found.iter_mut().zip(thread) {
            found.merge(of_thread);
        }
    }
    let mut answers = vec![FullPassAnswer::default(); batch.len()];
    for ((&place, asked), found) in places.iter().zip(&pass.queries).zip(found) {
        answers[place] = found.answer(asked);
    }
    answers
}

/// A query, as a pass needs it.
struct Asked<'a> {
    query: &'a FullPassQuery,
    /// Where its vectors are among the different ones of the batch.
    vectors: Vec<usize>,
    /// The rows whose ranks it asks for, with their scores.
    ranked: Vec<(Row, Option<f64>)>,
}

/// One pass over the table, shared by all threads.
struct Pass<'a> {
    table: Table<'a>,
    instructions: InstructionSet,
    /// The queries as references, those that look at the most rows first.
    in_order: &'a [&'a FullPassQuery],
    /// What each of them needs.
    queries: Vec<Asked<'a>>,
    /// The different vectors, in the order in which the queries first name them, in float64,
    /// `[vectors, chunks_per_row]`. So the first so many are those of the first so many queries.
    widened: Vec<Chunk>,
    /// Their norms, `[vectors]`.
    norms: Vec<f64>,
    /// How many of them the queries up to each one name, `[queries]`.
    named: Vec<usize>,
    next_task: AtomicUsize,
}

impl<'a> Pass<'a> {
    fn new(
        table: Table<'a>,
        in_order: &'a [&'a FullPassQuery],
        instructions: InstructionSet,
    ) -> Self {
        let chunks = chunks_per_row(table.dim());
        let (mut widened, mut norms, mut named) = (Vec::new(), Vec::new(), Vec::new());
        let mut places: HashMap<Row, usize> = HashMap::new();
        let mut queries = Vec::with_capacity(in_order.len());
        for &query in in_order {
            let mut vectors = Vec::new();
            for asked in query.scoring().vectors() {
                let next = norms.len();
                let place = match &asked.vector {
                    QueryVector::Row(row) => match places.entry(*row) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(new) => *new.insert(next),
                    },
                    QueryVector::Components(_) => next,
                };
                if place == next {
                    widened.resize((next + 1) * chunks, Chunk::ZERO);
                    widen(asked.components(&table), &mut widened[next * chunks..]);
                    norms.push(asked.norm);
                }
                vectors.push(place);
            }
            named.push(norms.len());
            let score = |&row: &Row| (row, query.score(&table, row));
            let ranked = query.ranked().iter().map(score).collect();
            queries.push(Asked { query, vectors, ranked });
        }
        let next_task = AtomicUsize::new(0);
        Self { table, instructions, in_order, queries, widened, norms, named, next_task }
    }

    /// One thread's share: tasks until there are none left.
    fn run_tasks(&self) -> Vec<Found> {
        let mut worker = Worker::new(self);
        for_each_block(&self.next_task, self.table.rows(), |start, end| {
            worker.scan_block(start, end);
        });
        worker.found
    }
}

/// What a thread needs to itself.
struct Worker<'a> {
    pass: &'a Pass<'a>,
    /// For each query of the pass.
    found: Vec<Found>,
    /// A block's rows in float64, `[ROWS_PER_BLOCK, chunks_per_row]`.
    rows: Vec<Chunk>,
    /// A block's dot products, `[vectors, ROWS_PER_BLOCK]`.
    dots: Vec<f64>,
    /// A block's cosines, `[vectors]`.
    cosines: Vec<PerRow>,
    /// A block's scores for one query, and room for making them.
    scores: Box<[PerRow; 2]>,
}

impl<'a> Worker<'a> {
    fn new(pass: &'a Pass<'a>) -> Self {
        let vectors = pass.norms.len();
        Self {
            pass,
            found: pass.queries.iter().map(Found::new).collect(),
            rows: vec![Chunk::ZERO; ROWS_PER_BLOCK * chunks_per_row(pass.table.dim())],
            dots: vec![0.0; vectors * ROWS_PER_BLOCK],
            cosines: vec![[0.0; ROWS_PER_BLOCK]; vectors],
            scores: Box::new([[0.0; ROWS_PER_BLOCK]; 2]),
        }
    }

    fn scan_block(&mut self, start: usize, end: usize) {
        let Pass { table, in_order, queries, .. } = self.pass;
        let active = looking_at(start, in_order, table.rows());
        if active == 0 {
            return;
        }
        let vectors = self.pass.named[active - 1];
        self.cosines(start, end, vectors);
        let cosines = &self.cosines[..vectors];
        let [scores, space] = &mut *self.scores;
        for (asked, found) in queries[..active].iter().zip(&mut self.found) {
            let scoring = asked.query.scoring();
            scoring.scores(|vector| &cosines[asked.vectors[vector]], scores, space);
            // A comparison with NaN, the score of what is left out, is false.
            if scores.iter().any(|&score| score >= found.floor) {
                found.look_at(asked, start, scores);
            }
        }
    }

    /// The cosines of a block's rows with the first so many vectors. Rows without any have NaN: zero rows,
    /// and those that the last block of a table does not have.
    fn cosines(&mut self, start: usize, end: usize, vectors: usize) {
        let table = &self.pass.table;
        let chunks = chunks_per_row(table.dim());
        widen_rows(table, start, end, &mut self.rows);
        let mut norms = [f64::NAN; ROWS_PER_BLOCK];
        for (norm, &of_row) in norms.iter_mut().zip(&table.norms()[start..end]) {
            *norm = if of_row > 0.0 { of_row } else { f64::NAN };
        }
        // The vectors are the rows of this product, and the block's rows its queries: so its answer lies as
        // the formulas read it. Components commute, and the order of summation is the same.
        let asked = &self.pass.widened[..vectors * chunks];
        let dots = &mut self.dots[..vectors * ROWS_PER_BLOCK];
        self.pass.instructions.dots(asked, &self.rows, chunks, dots);
        let (dots, _) = dots.as_chunks::<ROWS_PER_BLOCK>();
        for ((cosines, dots), norm) in self.cosines.iter_mut().zip(dots).zip(&self.pass.norms) {
            for ((cosine, dot), row_norm) in cosines.iter_mut().zip(dots).zip(norms) {
                *cosine = score::cosine(*dot, *norm, row_norm);
            }
        }
    }
}

/// What was seen for one query.
struct Found {
    list: TopK,
    /// Scores below this change neither list nor counts: one comparison spares a row all others.
    floor: f64,
    /// The least that the counts are for.
    least_ranked: f64,
    /// For each ranked row, how many rows come before it.
    before: Vec<u32>,
}

impl Found {
    fn new(asked: &Asked<'_>) -> Self {
        let scores = asked.ranked.iter().filter_map(|(_, score)| *score);
        let least_ranked = scores.fold(f64::INFINITY, f64::min);
        let list = TopK::new(asked.query.k());
        let least_kept = match asked.query.k() {
            0 => f64::INFINITY,
            _ => asked.query.filter().min_score.unwrap_or(f64::NEG_INFINITY),
        };
        let before = vec![0; asked.ranked.len()];
        Self { list, floor: least_kept.min(least_ranked), least_ranked, before }
    }

    /// Takes a block's scores, from this row on.
    fn look_at(&mut self, asked: &Asked<'_>, start: usize, scores: &PerRow) {
        for (row, &score) in (start as u32..).map(Row).zip(scores) {
            let hit = Hit { row, score };
            let matters = score >= self.least_ranked || self.list.admits(hit);
            // Not a number, it is not at least the floor either.
            if !(score >= self.floor && matters && asked.query.filter().admits(row, score)) {
                continue;
            }
            for (before, &(row, ranked)) in self.before.iter_mut().zip(&asked.ranked) {
                *before += u32::from(ranked.is_some_and(|score| hit < Hit { row, score }));
            }
            self.list.push(hit);
        }
        if let Some(worst) = self.list.worst_if_full() {
            self.floor = worst.score.min(self.least_ranked);
        }
    }

    fn merge(&mut self, other: Self) {
        self.list.merge(other.list);
        for (before, more) in self.before.iter_mut().zip(other.before) {
            *before += more;
        }
    }

    fn answer(self, asked: &Asked<'_>) -> FullPassAnswer {
        let filter = asked.query.filter();
        let ranks = asked.ranked.iter().zip(self.before).map(|(&(row, score), before)| {
            let is_ranked = score.is_some_and(|score| filter.admits(row, score));
            RankedRow { row, score, rank: is_ranked.then_some(before + 1) }
        });
        FullPassAnswer { ranks: ranks.collect(), hits: self.list.into_sorted() }
    }
}
