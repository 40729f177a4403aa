//! Asks for ranges of rows and writes the answers where they belong, in buffers that are used
//! again.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use contract::{Filter, Hit, Query, QueryVector, Row};
use model_store::ModelStore;

use super::journal::WrittenRange;
use super::npz::Rows;
use super::tables::Tables;
use super::{GraphError, Identity};
use crate::asking::Asking;
use crate::jobs::{Ask, Cancellation, Interrupted, Searches};
use crate::question::has_neighbours;

/// How all threads ask.
pub(super) struct Asker<'s, 'a> {
    pub(super) model: &'s Arc<ModelStore>,
    /// Gives what each request is asked through.
    pub(super) asking: &'s (dyn Fn() -> Asking<'a> + Sync),
    pub(super) identity: &'s Identity,
    pub(super) tables: &'s Tables,
    pub(super) cancellation: &'s Cancellation,
}

/// The answers of a range, as they are written.
#[derive(Default)]
pub(super) struct Buffers {
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

impl<'s, 'a> Ask for Asker<'s, 'a> {
    /// The number of a range.
    type Piece = u64;
    type Answer = WrittenRange;
    type Error = GraphError;
    type Worker = (Searches<'s, 'a>, Buffers);

    fn worker(&self, number: usize, threads: usize) -> io::Result<Self::Worker> {
        let most = self.identity.rows_per_range as usize;
        let searches = Searches::new(self.asking, self.cancellation, most, (number, threads))?;
        Ok((searches, Buffers::default()))
    }

    fn ask(
        &self,
        (searches, buffers): &mut Self::Worker,
        range: u64,
    ) -> Result<WrittenRange, Interrupted<GraphError>> {
        let (rows, k) = (self.identity.range(range), self.identity.k as usize);
        buffers.clear((rows.end - rows.start) as usize, k);
        let first = rows.start;
        let put = |some: Range<u64>, answers: &[Vec<Hit>]| {
            let with_answers = some.filter(|&row| has_neighbours(self.model, Row(row as u32)));
            for (row, hits) in with_answers.zip(answers) {
                buffers.put((row - first) as usize, k, hits);
            }
        };
        let asked = searches.all(rows, |some| Ok(self.queries(some)), put);
        asked.map_err(Interrupted::of_job::<GraphError>)?;
        self.write(range, buffers).map_err(Interrupted::Failed)
    }

    fn no_thread(&self, source: io::Error) -> GraphError {
        GraphError::io("start a thread for", &self.tables.folder)(source)
    }
}

impl Asker<'_, '_> {
    /// Writes the answers of a range where they belong.
    fn write(&self, range: u64, buffers: &Buffers) -> Result<WrittenRange, GraphError> {
        let row = self.identity.range(range).start;
        let indices = self.tables.write(Rows::Indices, row, &buffers.indices)?;
        let scores = self.tables.write(Rows::Scores, row, &buffers.scores)?;
        Ok(WrittenRange { number: range, edges: buffers.edges, checksums: [indices, scores] })
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
