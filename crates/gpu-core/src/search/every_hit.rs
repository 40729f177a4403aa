//! Answers queries for every row from a minimum score on, of which there may be more than the
//! device ranks: it lists them, and the host ranks them.

use contract::{Hit, Query, Row};

use super::CudaEngine;
use super::demand::have_sets;
use super::workspace::{LISTED_HITS, MAX_BATCH};
use crate::GpuError;

#[allow(unsafe_code)]
impl CudaEngine {
    /// Answers the queries of these indices. Returns the indices of those with too many candidates
    /// or hits.
    pub(super) fn every_hit(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        let mut doubtful = Vec::new();
        let mut pieces = self.pieces(batch, indices, MAX_BATCH);
        while let Some(mut indices) = pieces.pop() {
            let widths = self.kernels.int8.widths.iter().copied();
            let width = widths.clone().find(|&width| width >= indices.len()).unwrap_or(MAX_BATCH);
            let exchange = self.free_exchange();
            self.begin();
            self.upload_queries(exchange, batch, &indices, width)?;
            self.note_start()?;
            let sets = have_sets(batch, &indices);
            let quantised = self.resident.quantised.as_ref().expect("such queries are certified");
            // SAFETY: the promise of a pass: as in `launch`; this pass has room for any number of
            // hits.
            unsafe { self.pass(exchange).every_hit(quantised, width, sets)? };
            self.end(meanwhile)?;
            let listed = self.exchanges[exchange].listed_count[0] as usize;
            if listed <= LISTED_HITS {
                doubtful.extend(self.collect_listed(exchange, listed, batch, &indices, answers));
            } else if indices.len() == 1 {
                doubtful.extend(indices);
            } else {
                pieces.push(indices.split_off(indices.len() / 2));
                pieces.push(indices);
            }
        }
        Ok(doubtful)
    }

    /// Reads the first `listed` hits of a pass from its exchange. Returns the indices of queries
    /// whose hits are not listed.
    fn collect_listed(
        &mut self,
        exchange: usize,
        listed: usize,
        batch: &[&Query],
        indices: &[usize],
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        let exchange = &self.exchanges[exchange];
        for hit in &exchange.listed[..listed] {
            answers[indices[hit.query as usize]].push(Hit { row: Row(hit.row), score: hit.score });
        }
        let mut doubtful = Vec::new();
        for (&index, &overflowed) in indices.iter().zip(&exchange.overflowed[..]) {
            let (query, hits) = (batch[index], &mut answers[index]);
            if overflowed != 0 {
                doubtful.push(index);
                continue;
            }
            hits.sort_unstable();
            hits.truncate(query.k);
        }
        self.counters.certified += (indices.len() - doubtful.len()) as u64;
        self.counters.survivors += listed as u64;
        doubtful
    }
}
