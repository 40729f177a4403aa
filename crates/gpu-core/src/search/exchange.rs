//! Queries into the pinned memory that the device reads, and answers out of it.

use contract::{Hit, Query, QueryVector, Row};

use super::CudaEngine;
use super::workspace::{MAX_EXCLUDED, Workspace};
use crate::GpuError;
use crate::driver::start_upload;
use crate::resident::wire::{ANSWERED, NOT_A_ROW, QueryHeader};

impl CudaEngine {
    /// Fills the pinned headers, and starts the upload of what only some queries have: vectors and
    /// lists of excluded rows.
    pub(super) fn upload_queries(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        width: usize,
    ) -> Result<(), GpuError> {
        let (dim, rows) = (self.tables.dim, self.tables.rows as u32);
        let Workspace { headers, vectors, excluded, .. } = &mut self.workspace;
        let (mut vector_count, mut excluded_count) = (0, 0);
        for (header, &place) in headers.host.iter_mut().zip(places) {
            let query = batch[place];
            let filter = query.filter();
            *header = QueryHeader {
                norm: query.norm(),
                min_score: filter.min_score.unwrap_or(f64::NEG_INFINITY),
                row: NOT_A_ROW,
                vector: vector_count,
                k: query.k() as u32,
                first_rows: filter.row_limit(rows as usize) as u32,
                excluded: excluded_count as u32,
                excluded_count: filter.excluded().len() as u32,
            };
            match query.vector() {
                QueryVector::Row(row) => header.row = row.0,
                QueryVector::Components(components) => {
                    vectors.host[vector_count as usize * dim..][..dim].copy_from_slice(components);
                    vector_count += 1;
                }
            }
            match filter.excluded() {
                [] => {}
                [row] => header.excluded = row.0,
                // Longer ones are the host's affair.
                list if list.len() > MAX_EXCLUDED => header.excluded_count = 0,
                list => {
                    for (to, row) in excluded.host[excluded_count..].iter_mut().zip(list) {
                        *to = row.0;
                    }
                    excluded_count += list.len();
                }
            }
        }
        headers.host[places.len()..width.max(places.len())].fill(bytemuck::Zeroable::zeroed());
        if vector_count > 0 {
            let count = vector_count as usize * dim;
            start_upload(&vectors.host, &vectors.device, count, &self.stream)?;
        }
        if excluded_count > 0 {
            start_upload(&excluded.host, &excluded.device, excluded_count, &self.stream)?;
        }
        Ok(())
    }

    /// Takes the answers out of the pinned results; returns the places of queries without one.
    pub(super) fn collect(
        &mut self,
        batch: &[&Query],
        places: &[usize],
        stride: usize,
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        let mut doubtful = Vec::new();
        let answered = self.workspace.answers.host.chunks(1 + stride);
        for (answer, &place) in answered.zip(places) {
            let result = answer[0].result();
            self.counters.candidates += u64::from(result.candidates);
            self.counters.survivors += u64::from(result.survivors);
            if result.status == ANSWERED {
                debug_assert!(result.count as usize <= batch[place].k());
                let hits = answer[1..=result.count as usize].iter().map(|answer| answer.hit());
                answers[place] =
                    hits.map(|hit| Hit { row: Row(hit.row), score: hit.score }).collect();
            } else {
                doubtful.push(place);
            }
        }
        doubtful
    }
}
