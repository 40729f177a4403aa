//! Asks for ranges of rows and writes the answers where they belong, in buffers that are used
//! again.

use std::ops::Range;

use contract::{Filter, Hit, Query, QueryVector, RowSet};

use super::Identity;
use super::journal::WrittenRange;
use super::live_rows::LiveRows;
use super::tables::{Table, Tables};
use crate::cancellation::Interrupted;
use crate::requests::{Searches, has_neighbours};

/// How a thread asks.
pub(super) struct Asker<'s, 'a> {
    pub(super) rows: &'s LiveRows<'a>,
    /// The rows that may be neighbours.
    pub(super) within: &'s RowSet,
    pub(super) tables: &'s Tables,
    pub(super) searches: Searches<'s, 'a>,
    pub(super) buffers: Buffers,
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
    fn put(&mut self, place: usize, k: usize, hits: &[Hit], live: &LiveRows<'_>) {
        let of_row = place * k * 8..(place + 1) * k * 8;
        let indices = self.indices[of_row.clone()].as_chunks_mut::<8>().0;
        let scores = self.scores[of_row].as_chunks_mut::<8>().0;
        for ((hit, index), score) in hits.iter().zip(indices).zip(scores) {
            *index = i64::from(live.place(hit.row)).to_le_bytes();
            *score = hit.score.to_le_bytes();
        }
        self.edges += hits.len().min(k) as u64;
    }
}

impl Asker<'_, '_> {
    /// Asks for a range, and writes its answers where they belong.
    pub(super) fn ask(&mut self, range: u64) -> Result<WrittenRange, Interrupted> {
        let Self { rows: live, within, tables, searches, buffers } = self;
        let identity = &tables.identity;
        let (rows, k) = (identity.range(range), identity.k as usize);
        let first = rows.start;
        buffers.clear((rows.end - first) as usize, k);
        let put = |some: Range<u64>, answers: &[Vec<Hit>]| {
            let with_answers = some.filter(|&place| has_neighbours(live.rows(), live.row(place)));
            for (place, hits) in with_answers.zip(answers) {
                buffers.put((place - first) as usize, k, hits, live);
            }
        };
        searches.all(rows, |some| Ok(queries(live, identity, within, some)), put)?;
        let indices = tables.write(Table::Indices, first, &buffers.indices)?;
        let scores = tables.write(Table::Scores, first, &buffers.scores)?;
        Ok(WrittenRange { number: range, edges: buffers.edges, checksums: [indices, scores] })
    }
}

/// The queries of the rows that can be asked for.
fn queries(
    live: &LiveRows<'_>,
    identity: &Identity,
    within: &RowSet,
    places: Range<u64>,
) -> Vec<Query> {
    let table = live.rows().table();
    let Identity { k, min_score, .. } = *identity;
    let mut queries = Vec::with_capacity((places.end - places.start) as usize);
    queries.extend(places.map(|place| live.row(place)).filter_map(|row| {
        let filter = Filter { rows: within.clone().less(vec![row]), min_score, max_score: None };
        // The only fault that a row of the table can have is that it is zero.
        Query::new(&table, QueryVector::Row(row), k as usize, filter).ok()
    }));
    queries
}
