//! Decides which pass answers each query of a batch, and what happens to queries that it could not certify.

use std::time::{Duration, Instant};

use contract::{FilterParts, Hit, Query, Ranking, Row, TopK};

use super::abi::{MAX_K, NO_SCORE};
use super::exchange::{fits_list, listed};
use super::formula;
use super::plan::Class;
use super::workspace::{MAX_BATCH, MAX_EXCLUDED};
use super::{CudaEngine, GraphKey, Path};
use crate::GpuError;
use crate::driver::Doing;

/// The cost of a query that reads every float32 row, in plain queries of a full batch, if certified passes
/// answer those. A rough estimate.
const EXACT_COST: usize = 48;

#[allow(unsafe_code)]
impl CudaEngine {
    /// The class of the certified pass that can answer this query, if there is one.
    fn certified_class(&self, query: &Query) -> Option<Class> {
        // Without `..`, so that a new field does not compile until it is decided whether certified passes
        // support it.
        let FilterParts { excluded: _, first_rows: _, min_score: _, max_score: _ } =
            query.filter().parts();
        let class = Class::of(query.k()).filter(|_| self.certifies() && fits_list(query));
        match query.ranking() {
            Ranking::Cosine(_) => class,
            Ranking::Formula(scoring) => {
                class.filter(|&class| class != Class::Large && formula::is_certifiable(scoring))
            }
        }
    }

    /// The tiles of the quantised tables; 0 without any.
    pub(super) fn tiles(&self) -> usize {
        self.resident.quantised.as_ref().map_or(0, |quantised| quantised.tiles)
    }

    /// How many of the table's tiles a pass for these queries scans, from the first on: all of them, or a few more
    /// than the highest limit needs. Rounded, because each number has its own graphs.
    fn tiles_to_scan(&self, batch: &[&Query], indices: &[usize]) -> usize {
        let Some(quantised) = &self.resident.quantised else { return 0 };
        let limit = |&index: &usize| batch[index].filter().row_limit(self.resident.rows);
        let limit = indices.iter().map(limit).max().unwrap_or(0);
        let covering = quantised.slots.tiles_covering(limit as u32) as usize;
        let needed = covering.max(64);
        let rounded = needed.next_multiple_of(needed.next_power_of_two() / 8);
        if 2 * rounded > quantised.tiles { quantised.tiles } else { rounded }
    }

    /// Whether there are certified passes at all.
    fn certifies(&self) -> bool {
        self.resident.quantised.is_some() && self.resident.rows >= self.paths.certified_from_rows
    }

    /// The cost of a query, in plain queries of a full batch.
    pub(super) fn cost(&self, query: &Query) -> usize {
        // If the query does not fit the lists, the pass only finds out that the host must rank it.
        if query.k() == 0 || !fits_device_lists(query) {
            return 1;
        }
        match self.certified_class(query) {
            Some(class) => slots(query) * class.cost(),
            // Nor does the device score formulas without a certificate.
            None if is_formula(query) || !self.certifies() => 1,
            None => EXACT_COST,
        }
    }

    /// Answers a batch. Calls `meanwhile` in each pass, while the device works. `None` for a query that does
    /// not fit the device's lists: [`rank_on_host`](Self::rank_on_host) answers it, slowly.
    pub(super) fn answer(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, GpuError> {
        let mut answers: Vec<Vec<Hit>> = vec![Vec::new(); batch.len()];
        let mut certified: [Vec<usize>; 3] = Default::default();
        let mut exact = Vec::new();
        for (index, query) in batch.iter().enumerate() {
            match self.certified_class(query) {
                _ if query.k() == 0 || query.filter().row_limit(self.resident.rows) == 0 => {}
                Some(class) => certified[class as usize].push(index),
                None => exact.push(index),
            }
        }
        let (mut formulas, mut exact): (Vec<usize>, Vec<usize>) =
            exact.into_iter().partition(|&index| is_formula(batch[index]));
        self.counters.exact += exact.len() as u64;
        let [small, medium, _] = &mut certified;
        let columns =
            |indices: &[usize]| -> usize { indices.iter().map(|&index| slots(batch[index])).sum() };
        let together = columns(small) + columns(medium);
        if !medium.is_empty() && together <= Class::Medium.max_batch() {
            // One pass takes less time than two.
            medium.append(small);
        }
        for (class, indices) in Class::ALL.into_iter().zip(certified) {
            for indices in self.pieces(batch, &indices, class.max_batch()) {
                let doubtful = self.certified(batch, &indices, class, &mut answers, meanwhile)?;
                self.counters.fallbacks += doubtful.len() as u64;
                for index in doubtful {
                    if is_formula(batch[index]) { formulas.push(index) } else { exact.push(index) }
                }
            }
        }
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            exact.into_iter().partition(|&index| fits_device_lists(batch[index]));
        for indices in self.pieces(batch, &listed, 64) {
            self.exact(batch, &indices, &mut answers, meanwhile)?;
        }
        let mut answers: Vec<Option<Vec<Hit>>> = answers.into_iter().map(Some).collect();
        for index in unlisted.into_iter().chain(formulas) {
            answers[index] = None;
        }
        Ok(answers)
    }

    /// Cuts a batch into pieces for one pass each: at most `max` columns, and lists that fit.
    fn pieces(&self, batch: &[&Query], indices: &[usize], max: usize) -> Vec<Vec<usize>> {
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let (mut taken, mut in_list) = (0, usize::MAX);
        for &index in indices {
            let query = batch[index];
            let more = listed(query);
            match pieces.last_mut() {
                Some(piece) if taken + slots(query) <= max && in_list + more <= MAX_EXCLUDED => {
                    piece.push(index);
                    (taken, in_list) = (taken + slots(query), in_list + more);
                }
                _ => {
                    pieces.push(vec![index]);
                    (taken, in_list) = (slots(query), more);
                }
            }
        }
        pieces
    }

    /// Runs one certified pass. Returns the indices of queries without a certificate.
    fn certified(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        class: Class,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        let formulas = indices.iter().any(|&index| is_formula(batch[index]));
        let tiles = self.tiles_to_scan(batch, indices);
        let has_int4 = self.resident.quantised.as_ref().is_some_and(|tables| tables.int4.is_some());
        if indices.len() == 1 && !formulas && class == Class::Small && has_int4 {
            let key = GraphKey { tiles, path: Path::Int4 };
            let doubtful = self.run(batch, indices, key, answers, meanwhile)?;
            if doubtful.is_empty() {
                return Ok(doubtful);
            }
            self.counters.retried += 1;
        }
        let columns: usize = indices.iter().map(|&index| slots(batch[index])).sum();
        let widths = self.kernels.int8.widths;
        let width = widths.iter().copied().find(|&width| width >= columns).unwrap_or(MAX_BATCH);
        let key = GraphKey { tiles, path: Path::Int8 { width, class, formulas } };
        self.prepare_graph(key)?;
        let started = Instant::now();
        let doubtful = self.run(batch, indices, key, answers, meanwhile)?;
        // Other passes take longer or shorter, and say nothing of these.
        if class != Class::Large && tiles == self.tiles() {
            self.pace.note(width, started.elapsed());
        }
        Ok(doubtful)
    }

    fn run(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        key: GraphKey,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        let (width, class) = key.width_and_class();
        self.prepare_graph(key)?;
        self.begin()?;
        self.upload_queries(batch, indices, width);
        // SAFETY: the promise of a pass. The graph was recorded over this engine's own buffers and tables; the
        // stream is idle after `begin`; `upload_queries` has filled the headers up to its width, with queries of its
        // class, which have no row beyond its tiles; nothing accesses the workspace before `end` or `abandon` has
        // synchronised.
        unsafe { self.graphs[&key].launch(&self.stream)? };
        self.end(meanwhile)?;
        let doubtful = self.collect(batch, indices, class.stride(), answers);
        self.counters.certified += (indices.len() - doubtful.len()) as u64;
        Ok(doubtful)
    }

    fn exact(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), GpuError> {
        let most = indices.iter().map(|&index| batch[index].k()).max().unwrap_or(0);
        let class = Class::of(most).unwrap_or(Class::Large);
        self.begin()?;
        self.upload_queries(batch, indices, indices.len());
        // SAFETY: the promise of a pass: as in `run`; no query asks for more hits than its class.
        unsafe { self.pass().exact(indices.len(), class, self.paths.float32)? };
        self.end(meanwhile)?;
        self.collect(batch, indices, class.stride(), answers);
        Ok(())
    }

    /// Answers a query with more hits or excluded rows than the device's lists hold: the device scores, the
    /// host ranks.
    pub(super) fn rank_on_host(&mut self, query: &Query) -> Result<Vec<Hit>, GpuError> {
        self.begin()?;
        self.upload_queries(&[query], &[0], 1);
        // SAFETY: the promise of a pass: as in `run`.
        unsafe { self.pass().upload_queries(1)? };
        let limit = query.filter().row_limit(self.resident.rows);
        let step = self.workspace.scratch.len();
        let mut best = TopK::new(query.k());
        for first in (0..limit).step_by(step) {
            let count = step.min(limit - first);
            // SAFETY: the promise of a pass: as in `run`. No list is made, so any number of hits is allowed.
            unsafe { self.pass().scores(first, count)? };
            self.stream.synchronize().doing("scoring rows")?;
            for (i, bits) in self.workspace.scratch.read()?[..count].iter().enumerate() {
                let hit = Hit { row: Row((first + i) as u32), score: f64::from_bits(*bits) };
                if hit.score > NO_SCORE
                    && best.admits(hit)
                    && query.filter().admits(hit.row, hit.score)
                {
                    best.push(hit);
                }
            }
        }
        self.end(&mut || ())?;
        Ok(best.into_sorted())
    }

    /// Begins a pass, and ensures that the stream is idle. Every pass ends with [`end`](Self::end), or with
    /// [`abandon`](Self::abandon) if something failed or panicked.
    fn begin(&mut self) -> Result<(), GpuError> {
        if self.under_way {
            self.abandon();
        }
        self.under_way = true;
        self.counters.passes += 1;
        if let Some([start, _]) = &self.timing {
            start.record(&self.stream).doing("recording an event")?;
        }
        Ok(())
    }

    /// Waits for a pass that failed half way, so that its buffers may be used again.
    pub(super) fn abandon(&mut self) {
        let _ = self.stream.synchronize();
        self.under_way = false;
    }

    /// Ends a pass, with the pass's only wait.
    fn end(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), GpuError> {
        if let Some([_, end]) = &self.timing {
            end.record(&self.stream).doing("recording an event")?;
        }
        meanwhile();
        self.stream.synchronize().doing("searching")?;
        self.under_way = false;
        if let Some([start, end]) = &self.timing {
            let milliseconds = end.elapsed_time_f32(start).doing("reading an event")?;
            self.device_time += Duration::from_secs_f64(f64::from(milliseconds) / 1e3);
        }
        Ok(())
    }
}

/// The slots of a pass that a query takes: one for each column.
pub(super) fn slots(query: &Query) -> usize {
    query.columns().unwrap_or(1)
}

fn is_formula(query: &Query) -> bool {
    matches!(query.ranking(), Ranking::Formula(_))
}

/// Whether a query's hits and excluded rows fit the device's lists.
fn fits_device_lists(query: &Query) -> bool {
    query.k() <= MAX_K && fits_list(query)
}
