//! Threads that ask for ranges of rows and write the answers where they belong, in buffers that
//! they use again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use contract::{Filter, Hit, Query, QueryVector, Row};
use model_store::ModelStore;

use super::journal::Done;
use super::npz::Rows;
use super::tables::Tables;
use super::{GraphError, Identity, Told};
use crate::asking::Asking;
use crate::jobs::{Early, Jobs, Stop};
use crate::question::has_neighbours;

/// What all threads ask by.
pub(super) struct Asker<'s, 'a> {
    pub(super) model: &'s Arc<ModelStore>,
    /// Gives what each job is asked through.
    pub(super) asking: &'s (dyn Fn() -> Asking<'a> + Sync),
    pub(super) identity: &'s Identity,
    pub(super) tables: &'s Tables,
    /// The ranges that are not done.
    pub(super) open: &'s Open,
    pub(super) stop: &'s Stop,
}

/// Ranges that threads take in turn.
pub(super) struct Open {
    ranges: Vec<u64>,
    next: AtomicUsize,
}

impl Open {
    pub(super) fn new(ranges: Vec<u64>) -> Self {
        Self { ranges, next: AtomicUsize::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    fn take(&self) -> Option<u64> {
        self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }
}

/// The answers of a range, as they are written.
struct Buffers {
    indices: Vec<u8>,
    scores: Vec<u8>,
    edges: u64,
}

impl Buffers {
    /// As if no row had a neighbour: index −1, score NaN.
    fn clear(&mut self, rows: usize, k: usize) {
        self.indices.clear();
        self.indices.resize(rows * k * 8, 0xff);
        self.scores.clear();
        self.scores.reserve(rows * k * 8);
        let nan = f64::NAN.to_le_bytes();
        (0..rows * k).for_each(|_| self.scores.extend_from_slice(&nan));
        self.edges = 0;
    }

    /// The neighbours of a row, which has this place in its range.
    fn put(&mut self, place: usize, k: usize, hits: &[Hit]) {
        let of_row = place * k * 8..(place + 1) * k * 8;
        let indices = self.indices[of_row.clone()].as_chunks_mut::<8>().0;
        let scores = self.scores[of_row].as_chunks_mut::<8>().0;
        for ((hit, index), score) in hits.iter().zip(indices).zip(scores) {
            *index = i64::from(hit.row.0).to_le_bytes();
            *score = hit.score.to_le_bytes();
        }
        self.edges += hits.len().min(k) as u64;
    }
}

impl Asker<'_, '_> {
    /// Asks for ranges until all are taken, one fails, or the work is stopped. This is one of
    /// `threads` threads.
    pub(super) fn run(&self, number: usize, threads: usize, tell: &Sender<Told>) {
        let together = self.identity.rows_per_range as usize;
        let mut jobs = match Jobs::new(self.asking, self.stop, together, (number, threads)) {
            Ok(jobs) => jobs,
            Err(source) => {
                let error = GraphError::io("start a thread for", &self.tables.folder)(source);
                let _ = tell.send(Err(error));
                return;
            }
        };
        let mut buffers = Buffers { indices: Vec::new(), scores: Vec::new(), edges: 0 };
        while !self.stop.is_stopped()
            && let Some(range) = self.open.take()
        {
            let told = match self.range(&mut jobs, range, &mut buffers) {
                Ok(()) => self.write(range, &buffers).map(|done| (range, done)),
                Err(Early::Failed(error)) => Err(error.into()),
                Err(Early::Stopped) => return,
            };
            // Nobody listens any more if the work has failed.
            if tell.send(told).is_err() {
                return;
            }
        }
    }

    /// Asks for a range.
    fn range(&self, jobs: &mut Jobs, range: u64, buffers: &mut Buffers) -> Result<(), Early> {
        let (rows, k) = (self.identity.range(range), self.identity.k as usize);
        buffers.clear((rows.end - rows.start) as usize, k);
        let first = rows.start;
        let queries = |some| Ok(self.queries(some));
        jobs.ask(rows, queries, |some, answers| {
            let with_answers = some.filter(|&row| has_neighbours(self.model, Row(row as u32)));
            for (row, hits) in with_answers.zip(answers) {
                buffers.put((row - first) as usize, k, hits);
            }
        })
    }

    /// Writes the answers of a range where they belong.
    fn write(&self, range: u64, buffers: &Buffers) -> Result<Done, GraphError> {
        let row = self.identity.range(range).start;
        let indices = self.tables.write(Rows::Indices, row, &buffers.indices)?;
        let scores = self.tables.write(Rows::Scores, row, &buffers.scores)?;
        Ok(Done { edges: buffers.edges, checksums: [indices, scores] })
    }

    /// The queries of the rows that can be asked for.
    fn queries(&self, rows: Range<u64>) -> Vec<Query> {
        let table = self.model.table();
        let Identity { k, min_score, rows: first_rows, .. } = *self.identity;
        let is_part = first_rows < table.rows() as u64;
        let mut queries = Vec::with_capacity((rows.end - rows.start) as usize);
        queries.extend(rows.map(|row| Row(row as u32)).filter_map(|row| {
            let mut filter = Filter::excluding(vec![row]);
            filter.first_rows = is_part.then_some(first_rows as u32);
            filter.min_score = min_score;
            // The only fault that a row of the table can have is that it is zero.
            Query::new(&table, QueryVector::Row(row), k as usize, filter).ok()
        }));
        queries
    }
}
