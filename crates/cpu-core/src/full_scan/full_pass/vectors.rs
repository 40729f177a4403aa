//! The different vectors of a batch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use contract::{FullPassQuery, QueryVector, Row, Table};

use super::super::dots::{Chunk, chunks_per_row, widen};

/// The different vectors, in the order in which the queries first name them. So the first n are those of the
/// first n queries.
pub(super) struct Vectors {
    /// In float64, `[vectors, chunks_per_row]`.
    pub(super) widened: Vec<Chunk>,
    /// `[vectors]`.
    pub(super) norms: Vec<f64>,
    /// Which of them the queries name, one query after the other.
    named: Vec<usize>,
    /// For each query, where in `named` its vectors end and how many different ones the queries up to it name.
    ends: Vec<(usize, usize)>,
}

impl Vectors {
    /// Those of these queries, which fit the table.
    pub(super) fn new<'a>(
        table: &Table<'_>,
        queries: impl Iterator<Item = &'a FullPassQuery>,
    ) -> Self {
        let chunks = chunks_per_row(table.dim());
        let (mut widened, mut norms) = (Vec::new(), Vec::new());
        let (mut named, mut ends) = (Vec::new(), Vec::new());
        let mut places: HashMap<Row, usize> = HashMap::new();
        for query in queries {
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
                    widen(asked.components(table), &mut widened[next * chunks..]);
                    norms.push(asked.norm);
                }
                named.push(place);
            }
            ends.push((named.len(), norms.len()));
        }
        Self { widened, norms, named, ends }
    }

    /// Those of this query, in the order of its formula.
    pub(super) fn of(&self, query: usize) -> &[usize] {
        let start = query.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.named[start..self.ends[query].0]
    }

    /// How many different ones the first n queries name.
    pub(super) fn of_first(&self, queries: usize) -> usize {
        queries.checked_sub(1).map_or(0, |last| self.ends[last].1)
    }
}
