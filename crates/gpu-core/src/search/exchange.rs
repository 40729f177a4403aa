//! Writes queries into pinned memory, where the device reads them, and reads the answers from there.

use contract::{FilterParts, Hit, Query, QueryVector, Ranking, Row, ScoringVector};

use super::CudaEngine;
use super::abi::{ANSWERED, NOT_A_FORMULA, QueryHeader, QueryResult, ScoredRow};
use super::formula::{formula, words};
use super::workspace::{MAX_BATCH, MAX_EXCLUDED, Workspace};
use crate::GpuError;
use crate::driver::start_upload;
use crate::resident::NOT_A_ROW;

impl CudaEngine {
    /// Fills the pinned headers, and starts the upload of what only some queries have: vectors and
    /// lists of excluded rows. `indices` are the positions of the pass's queries in the batch.
    ///
    /// # Safety
    /// The stream is idle, and the caller ends the pass with `end` or `abandon`, which synchronise, before the
    /// workspace is used again or dropped.
    #[allow(unsafe_code)]
    pub(super) unsafe fn upload_queries(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        width: usize,
    ) -> Result<(), GpuError> {
        let (dim, rows) = (self.resident.dim, self.resident.rows);
        assert!(indices.len() <= MAX_BATCH && width <= MAX_BATCH, "a pass of {}", indices.len());
        let Workspace {
            headers, vectors, excluded: list, uploaded_formulas, formula_count, ..
        } = &mut self.workspace;
        let (mut vector_count, mut listed, mut slots) = (0, 0, 0);
        let (mut formulas, mut columns) = (0, 0);
        for &index in indices {
            let query = batch[index];
            let header = &mut headers.host[slots];
            slots += 1;
            // Without `..`: a new field must be handled here, or it does not compile.
            let FilterParts { excluded, first_rows, min_score, max_score } = query.filter().parts();
            *header = QueryHeader {
                // The norm of a formula's column is computed on the device.
                norm: 1.0,
                min_score: min_score.unwrap_or(f64::NEG_INFINITY),
                max_score: max_score.unwrap_or(f64::INFINITY),
                row: NOT_A_ROW,
                vector: vector_count,
                k: query.k() as u32,
                first_rows: first_rows.map_or(rows as u32, |first| first.min(rows as u32)),
                excluded: listed as u32,
                excluded_count: excluded.len() as u32,
                formula: NOT_A_FORMULA,
                column: 0,
            };
            match query.ranking() {
                Ranking::Cosine(ScoringVector { vector: QueryVector::Row(row), norm }) => {
                    assert!(row.index() < rows, "{row} of {rows}");
                    (header.row, header.norm) = (row.0, *norm);
                }
                Ranking::Cosine(ScoringVector {
                    vector: QueryVector::Components(components),
                    norm,
                }) => {
                    header.norm = *norm;
                    vectors.host[vector_count as usize * dim..][..dim].copy_from_slice(components);
                    vector_count += 1;
                }
                Ranking::Formula(_) => header.formula = formulas as u32,
            }
            match excluded {
                [] => {}
                [row] => header.excluded = row.0,
                // The host applies longer lists.
                long if long.len() > MAX_EXCLUDED => header.excluded_count = 0,
                rows => {
                    for (to, row) in list.host[listed..][..rows.len()].iter_mut().zip(rows) {
                        *to = row.0;
                    }
                    listed += rows.len();
                }
            }
            if let Ranking::Formula(scoring) = query.ranking() {
                let words = words(scoring).expect("only certified formulas get here");
                let mut on_device = formula(scoring, query.k(), rows, listed);
                on_device.slot = slots as u32 - 1;
                on_device.vector = (MAX_BATCH - 1 - columns) as u32;
                for (to, row) in list.host[listed..][..words.len()].iter_mut().zip(&words) {
                    assert!(row.index() < rows, "{row} of {rows}");
                    *to = row.0;
                }
                listed += words.len();
                let first = headers.host[slots - 1];
                slots -= 1;
                for column in 0..on_device.columns {
                    // Their vectors are made on the device, from the last place down.
                    columns += 1;
                    let vector = (MAX_BATCH - columns) as u32;
                    headers.host[slots] = QueryHeader { vector, column, ..first };
                    slots += 1;
                }
                uploaded_formulas[formulas] = on_device;
                formulas += 1;
            }
        }
        formula_count[0] = formulas as u32;
        assert!(slots <= MAX_BATCH && vector_count as usize + columns <= MAX_BATCH);
        headers.host[slots..width.max(slots)].fill(bytemuck::Zeroable::zeroed());
        let stream = &self.stream;
        if vector_count > 0 {
            // SAFETY: the caller promises it; the host side is not written again in this pass.
            unsafe {
                start_upload(&vectors.host, &vectors.device, vector_count as usize * dim, stream)?;
            }
        }
        if listed > 0 {
            // SAFETY: as above.
            unsafe { start_upload(&list.host, &list.device, listed, stream)? };
        }
        Ok(())
    }

    /// Reads the answers from pinned memory. Returns the indices of queries without an answer.
    pub(super) fn collect(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        stride: usize,
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        let mut doubtful = Vec::new();
        let mut slot = 0;
        for &index in indices {
            let answer = &self.workspace.answers.host[slot * (1 + stride)..][..1 + stride];
            slot += super::answer::slots(batch[index]);
            let result: QueryResult = bytemuck::cast(answer[0]);
            self.counters.candidates += u64::from(result.candidates);
            self.counters.survivors += u64::from(result.survivors);
            if result.status == ANSWERED {
                debug_assert!(result.count as usize <= batch[index].k());
                let hits = answer[1..=result.count as usize].iter().map(|answer| {
                    let hit: ScoredRow = bytemuck::cast(*answer);
                    Hit { row: Row(hit.row), score: hit.score }
                });
                answers[index] = hits.collect();
            } else {
                doubtful.push(index);
            }
        }
        doubtful
    }
}
