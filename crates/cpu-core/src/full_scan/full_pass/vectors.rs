//! The distinct vectors of a batch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use contract::{FullPassQuery, QueryVector, Row, Table};

use super::super::dots::{Chunk, chunks_per_row, widen};

/// The distinct vectors, in the order in which the queries first use them. So the vectors of the
/// first queries are always a prefix.
pub(super) struct Vectors {
    /// In float64, `[vectors, chunks_per_row]`.
    pub(super) widened: Vec<Chunk>,
    /// `[vectors]`.
    pub(super) norms: Vec<f64>,
    /// The indices of the vectors that the queries use, query by query.
    named: Vec<usize>,
    /// For each query, the end of its vectors in `named`, and how many distinct vectors the queries
    /// up to it use.
    ends: Vec<(usize, usize)>,
}

impl Vectors {
    /// The vectors of these queries, which fit the table.
    pub(super) fn new<'a>(
        table: &Table<'_>,
        queries: impl Iterator<Item = &'a FullPassQuery>,
    ) -> Self {
        let chunks = chunks_per_row(table.dim());
        let (mut widened, mut norms) = (Vec::new(), Vec::new());
        let (mut named, mut ends) = (Vec::new(), Vec::new());
        let mut indices: HashMap<Row, usize> = HashMap::new();
        for query in queries {
            for asked in query.scoring.vectors() {
                let next = norms.len();
                let index = match &asked.vector {
                    QueryVector::Row(row) => match indices.entry(*row) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(new) => *new.insert(next),
                    },
                    QueryVector::Components(_) => next,
                };
                if index == next {
                    widened.resize((next + 1) * chunks, Chunk::ZERO);
                    widen(asked.components(table), &mut widened[next * chunks..]);
                    norms.push(asked.norm);
                }
                named.push(index);
            }
            ends.push((named.len(), norms.len()));
        }
        Self { widened, norms, named, ends }
    }

    /// The vectors of this query, in the order of its formula.
    pub(super) fn of(&self, query: usize) -> &[usize] {
        let start = query.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.named[start..self.ends[query].0]
    }

    /// The number of distinct vectors of the first n queries.
    pub(super) fn of_first(&self, queries: usize) -> usize {
        queries.checked_sub(1).map_or(0, |last| self.ends[last].1)
    }
}
