//! Queries that a step takes together.

use std::collections::{HashMap, HashSet};

use contract::{FullPassPart, QueryVector, Row};

use super::abi::{PassVector, TOGETHER_VECTORS};
use super::{MAX_FOUND, Place};
use crate::ranks;
use crate::resident::NOT_A_ROW;
use crate::sets;

/// The most distinct vectors of a step, unless one query has more. A step with 256 takes longer for
/// each: 0.30 instead of 0.23 ms for all rows of 2,196,016 × 300 on an H200.
const VECTORS: usize = 32;
/// The most queries of a step.
const QUERIES: usize = 4096;
/// Multiply-adds of a step: about half a millisecond on an H200. Between two steps, others have
/// their turns.
const STEP_WORK: usize = 1 << 30;
/// Rows of the first step, for queries for few hits: any row may be one.
const FIRST_ROWS: usize = 1024;

/// Queries, and their distinct vectors.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The indices of the queries' parts.
    pub(super) parts: Vec<usize>,
    pub(super) vectors: Vec<PassVector>,
    /// `[uploaded, dim]`: vectors that are no rows.
    pub(super) uploaded: Vec<f32>,
    /// The queries' words, one query after the other: indices of vectors.
    pub(super) words: Vec<u32>,
}

/// Divides the parts of these indices into groups.
pub(super) fn groups(parts: &[FullPassPart], order: &[usize]) -> Vec<Group> {
    let mut groups = Vec::new();
    let (mut group, mut rows) = (Group::default(), HashMap::new());
    let mut sets = HashSet::new();
    for &index in order {
        let vectors = parts[index].query().scoring.vectors();
        // Some of them may be in the group already.
        let is_full = group.vectors.len() + vectors.len() > VECTORS
            || group.parts.len() >= QUERIES
            || sets.len() >= sets::FEWEST;
        if is_full && !group.parts.is_empty() {
            groups.push(std::mem::take(&mut group));
            rows.clear();
            sets.clear();
        }
        group.add(index, &parts[index], &mut rows);
        sets.extend(parts[index].query().filter.rows.bitmap().map(|bitmap| bitmap.id()));
    }
    if !group.parts.is_empty() {
        groups.push(group);
    }
    groups
}

impl Group {
    fn add(&mut self, index: usize, part: &FullPassPart, rows: &mut HashMap<Row, u32>) {
        for vector in part.query().scoring.vectors() {
            let next = self.vectors.len() as u32;
            let new = |row, uploaded| PassVector { norm: vector.norm, row, uploaded };
            let word = match &vector.vector {
                QueryVector::Row(row) => *rows.entry(*row).or_insert_with(|| {
                    self.vectors.push(new(row.0, 0));
                    next
                }),
                QueryVector::Components(components) => {
                    let uploaded = (self.uploaded.len() / components.len()) as u32;
                    self.vectors.push(new(NOT_A_ROW, uploaded));
                    self.uploaded.extend_from_slice(components);
                    next
                }
            };
            self.words.push(word);
        }
        self.parts.push(index);
    }

    /// How many rows, from `from` on, its next step should have: at least 1. It may have some more,
    /// to a whole tile.
    pub(super) fn rows(&self, parts: &[FullPassPart], from: usize, place: Place<'_>) -> usize {
        // What the step may find: every row for queries whose lists are not full, and for the
        // others as many as if rows were in any order. If it finds more, it is divided.
        let (mut filling, mut largest, mut hits) = (0, 0, 0usize);
        // A query for the rows of a bitmap finds only its members.
        let (all, mut share) = (place.resident.rows, usize::MAX);
        for part in self.parts.iter().map(|&part| &parts[part]) {
            let k = part.query().k;
            if k > 0 && part.least_kept() == f64::NEG_INFINITY {
                filling += 1;
                largest = largest.max(k);
                let set = &part.query().filter.rows;
                let members = if set.bitmap().is_some() { set.at_most(all) } else { all };
                share = share.min(all / members.max(1));
            }
            hits = hits.saturating_add(k);
        }
        let most = match (filling, hits) {
            (_, 0) => usize::MAX,
            (0, _) => (from.saturating_mul(MAX_FOUND) / hits.saturating_mul(4)).max(FIRST_ROWS),
            _ => {
                let found = largest.saturating_mul(3).max(FIRST_ROWS).min(MAX_FOUND / filling);
                found.saturating_mul(share.max(1))
            }
        };
        let vectors = self.vectors.len().max(1);
        // Rows must be read, however few vectors there are.
        let work = vectors.max(TOGETHER_VECTORS / 2) * place.resident.dim;
        let fit = (place.cosines(self) / vectors).saturating_sub(ranks::TILE);
        most.min(fit).min(STEP_WORK / work).max(1)
    }
}
