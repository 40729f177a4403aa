//! Decides which pass answers each query of a batch, and what happens to queries that it could not
//! certify.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use contract::{Hit, Query};

use super::demand::{fits_device_lists, have_sets, is_formula, listed, slots};
use super::pass::RowsToRead;
use super::plan::Class;
use super::workspace::{MAX_BATCH, MAX_EXCLUDED};
use super::{CudaEngine, GraphKey, Path};
use crate::GpuError;
use crate::driver::Doing;
use crate::resident::Quantised;

/// Sets of a batch that together have at most one of this many rows are read row by row: that takes
/// less time than the 8-bit scan for the fewest queries.
const GATHERED_PART: usize = 32;

#[allow(unsafe_code)]
impl CudaEngine {
    /// The tiles of the quantised tables; 0 without any.
    pub(super) fn tiles(&self) -> usize {
        self.resident.quantised.as_ref().map_or(0, Quantised::tiles)
    }

    /// Whether there is a 4-bit table.
    fn has_int4(&self) -> bool {
        self.resident.quantised.as_ref().is_some_and(|tables| tables.int4.is_some())
    }

    /// How many of the table's tiles a pass for these queries scans, from the first on: all of
    /// them, or a few more than the highest limit needs. Rounded, because each number has its own
    /// graphs.
    fn tiles_to_scan(&self, batch: &[&Query], indices: &[usize]) -> usize {
        let Some(quantised) = &self.resident.quantised else { return 0 };
        let limit = |&index: &usize| batch[index].filter.row_limit(self.resident.searched());
        let limit = indices.iter().map(limit).max().unwrap_or(0);
        let covering = quantised.slots.borrow().tiles_covering(limit as u32) as usize;
        let needed = covering.max(64);
        let rounded = needed.next_multiple_of(needed.next_power_of_two() / 8);
        if 2 * rounded > quantised.tiles() { quantised.tiles() } else { rounded }
    }

    /// Whether no row can be a neighbour, whatever the table has.
    pub(super) fn has_no_hits(&self, query: &Query) -> bool {
        query.k == 0 || query.filter.row_limit(self.resident.searched()) == 0
    }

    /// The highest number of members of a query's set, if it takes less time to read the members
    /// of all sets of a batch, each for its query, than to scan tables for it.
    pub(super) fn gathered(&self, batch: &[&Query]) -> Option<usize> {
        let rows = self.resident.searched();
        let (mut sum, mut most) = (0, 0);
        for query in batch {
            let set = &query.filter.rows;
            if set.bitmap().is_none() || is_formula(query) || !fits_device_lists(query) {
                return None;
            }
            let members = set.at_most(rows);
            (sum, most) = (sum + members, most.max(members));
        }
        // The 4-bit scan for one query skips what is not in its set, too.
        let is_int4 = self.has_int4()
            && matches!(batch, [query] if self.costs.certified_class(query) == Some(Class::Small));
        (sum <= rows / GATHERED_PART && !is_int4).then_some(most)
    }

    /// Answers a batch. Calls `meanwhile` in each pass, while the device works. `None` for a query
    /// that needs a full pass.
    pub(super) fn answer(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, GpuError> {
        let mut answers: Vec<Vec<Hit>> = vec![Vec::new(); batch.len()];
        if let Some(members) = self.gathered(batch) {
            let there = |&index: &usize| !self.has_no_hits(batch[index]);
            let there: Vec<usize> = (0..batch.len()).filter(there).collect();
            self.counters.gathered += there.len() as u64;
            for indices in self.pieces(batch, &there, 64) {
                let rows = RowsToRead::Members(members);
                self.exact(batch, &indices, rows, &mut answers, meanwhile)?;
            }
            return Ok(answers.into_iter().map(Some).collect());
        }
        let mut certified: [Vec<usize>; 3] = Default::default();
        let (mut exact, mut listed) = (Vec::new(), Vec::new());
        for (index, query) in batch.iter().enumerate() {
            match self.costs.certified_class(query) {
                _ if self.has_no_hits(query) => {}
                Some(class) => certified[class as usize].push(index),
                None if self.costs.lists_hits(query) => listed.push(index),
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
                let key = self.key(batch, &indices, class);
                let doubtful = self.run(batch, &indices, key, &mut answers, meanwhile)?;
                let doubtful = self.retry(batch, doubtful, key, &mut answers, meanwhile)?;
                self.counters.fallbacks += doubtful.len() as u64;
                for index in doubtful {
                    if is_formula(batch[index]) { formulas.push(index) } else { exact.push(index) }
                }
            }
        }
        let doubtful = self.every_hit(batch, &listed, &mut answers, meanwhile)?;
        self.counters.fallbacks += doubtful.len() as u64;
        exact.extend(doubtful);
        self.without_certificates(batch, exact, formulas, answers, meanwhile)
    }

    /// Completes the answers of a batch: scores every row for the cosines `exact`. What needs a
    /// full pass, such as `formulas` and queries that do not fit the device's lists, becomes
    /// `None`.
    pub(super) fn without_certificates(
        &mut self,
        batch: &[&Query],
        exact: Vec<usize>,
        formulas: Vec<usize>,
        mut answers: Vec<Vec<Hit>>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, GpuError> {
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            exact.into_iter().partition(|&index| fits_device_lists(batch[index]));
        for indices in self.pieces(batch, &listed, 64) {
            self.exact(batch, &indices, RowsToRead::All, &mut answers, meanwhile)?;
        }
        let mut answers: Vec<Option<Vec<Hit>>> = answers.into_iter().map(Some).collect();
        for index in unlisted.into_iter().chain(formulas) {
            answers[index] = None;
        }
        Ok(answers)
    }

    /// Cuts a batch into pieces for one pass each: at most `max` columns, lists that fit, and no
    /// more sets than have places.
    pub(super) fn pieces(
        &self,
        batch: &[&Query],
        indices: &[usize],
        max: usize,
    ) -> Vec<Vec<usize>> {
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let (mut taken, mut in_list) = (0, usize::MAX);
        let mut sets = HashSet::new();
        for &index in indices {
            let query = batch[index];
            let more = listed(query);
            let set = query.filter.rows.bitmap().map(|bitmap| bitmap.id());
            let has_place =
                set.is_none_or(|id| sets.len() < self.sets.most() || sets.contains(&id));
            match pieces.last_mut() {
                Some(piece)
                    if taken + slots(query) <= max
                        && in_list + more <= MAX_EXCLUDED
                        && has_place =>
                {
                    piece.push(index);
                    (taken, in_list) = (taken + slots(query), in_list + more);
                }
                _ => {
                    pieces.push(vec![index]);
                    (taken, in_list) = (slots(query), more);
                    sets.clear();
                }
            }
            sets.extend(set);
        }
        pieces
    }

    /// The certified pass for these queries, which it has room for.
    pub(super) fn key(&self, batch: &[&Query], indices: &[usize], class: Class) -> GraphKey {
        let path = match (indices, self.int8(batch, indices, class)) {
            ([_], Path::Int8 { class: Class::Small, formulas: false, sets, .. })
                if self.has_int4() =>
            {
                Path::Int4 { sets }
            }
            (_, int8) => int8,
        };
        let tiles = self.tiles_to_scan(batch, indices);
        GraphKey { exchange: self.free_exchange(), tiles, path }
    }

    fn int8(&self, batch: &[&Query], indices: &[usize], class: Class) -> Path {
        let columns: usize = indices.iter().map(|&index| slots(batch[index])).sum();
        let widths = self.kernels.int8.widths;
        let width = widths.iter().copied().find(|&width| width >= columns).unwrap_or(MAX_BATCH);
        let formulas = indices.iter().any(|&index| is_formula(batch[index]));
        Path::Int8 { width, class, formulas, sets: have_sets(batch, indices) }
    }

    /// Runs a pass again for the queries that it could not certify, if that was with 4 bits.
    /// Returns those that are left.
    pub(super) fn retry(
        &mut self,
        batch: &[&Query],
        doubtful: Vec<usize>,
        key: GraphKey,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        if !matches!(key.path, Path::Int4 { .. }) || doubtful.is_empty() {
            return Ok(doubtful);
        }
        self.counters.retried += 1;
        let path = self.int8(batch, &doubtful, Class::Small);
        self.run(batch, &doubtful, GraphKey { path, ..key }, answers, meanwhile)
    }

    /// Runs one certified pass. Returns the indices of queries without a certificate.
    fn run(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        key: GraphKey,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, GpuError> {
        self.prepare_graph(key)?;
        let began = Instant::now();
        self.begin();
        self.launch(batch, indices, key)?;
        self.end(meanwhile)?;
        self.note_time(key, began.elapsed());
        Ok(self.collect_certified(batch, indices, key, answers))
    }

    /// Starts a pass of a graph that is prepared. Its exchange is free.
    pub(super) fn launch(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        key: GraphKey,
    ) -> Result<(), GpuError> {
        let (width, _) = key.width_and_class();
        self.upload_queries(key.exchange, batch, indices, width)?;
        self.note_start()?;
        // SAFETY: the promise of a pass. The graph was recorded over this engine's own buffers,
        // stream and tables; no other pass that is under way uses its exchange; `upload_queries`
        // has filled the headers up to its width, with queries of its class, which have no row
        // beyond its tiles; nothing accesses the exchange before the pass has been waited for.
        unsafe {
            self.pass(key.exchange).upload_vectors(width)?;
            self.graphs[&key].launch(&self.stream)
        }
    }

    /// Notes how long the device took for a pass. Those over a part of the table, or for many hits,
    /// say nothing of others.
    pub(super) fn note_time(&mut self, key: GraphKey, took: Duration) {
        if let Path::Int8 { width, class, .. } = key.path
            && class != Class::Large
            && key.tiles == self.tiles()
        {
            self.pace.note(width, took);
        }
    }

    /// Reads the answers of a pass that is over. Returns the indices of queries without a
    /// certificate.
    pub(super) fn collect_certified(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        key: GraphKey,
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        let (_, class) = key.width_and_class();
        let doubtful = self.collect(key.exchange, batch, indices, class.stride(), answers);
        self.counters.certified += (indices.len() - doubtful.len()) as u64;
        doubtful
    }

    fn exact(
        &mut self,
        batch: &[&Query],
        indices: &[usize],
        rows: RowsToRead,
        answers: &mut [Vec<Hit>],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), GpuError> {
        let most = indices.iter().map(|&index| batch[index].k).max().unwrap_or(0);
        let class = Class::of(most).unwrap_or(Class::Large);
        let exchange = self.free_exchange();
        self.begin();
        self.upload_queries(exchange, batch, indices, indices.len())?;
        self.note_start()?;
        // SAFETY: the promise of a pass: as in `launch`; no query asks for more hits than its
        // class.
        unsafe { self.pass(exchange).exact(indices.len(), class, rows, self.scans_float32())? };
        self.end(meanwhile)?;
        self.collect(exchange, batch, indices, class.stride(), answers);
        Ok(())
    }

    /// Begins a pass that this thread waits for, after those that were started. Every one ends with
    /// [`end`](Self::end), or with [`abandon`](Self::abandon) if something failed or panicked.
    pub(super) fn begin(&mut self) {
        if self.under_way {
            self.abandon();
        }
        self.under_way = true;
        self.counters.passes += 1;
    }

    /// Notes that the device's part of a pass begins: the host has put the queries together.
    pub(super) fn note_start(&self) -> Result<(), GpuError> {
        match &self.timing {
            Some([start, _]) => start.record(&self.stream).doing("recording an event"),
            None => Ok(()),
        }
    }

    /// Waits for passes that failed half way, so that their buffers may be used again.
    pub(super) fn abandon(&mut self) {
        let _ = self.stream.synchronize();
        self.classifiers.abandon();
        self.under_way = false;
        self.started.clear();
    }

    /// Ends a pass, with the pass's only wait.
    pub(super) fn end(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), GpuError> {
        if let Some([_, end]) = &self.timing {
            end.record(&self.stream).doing("recording an event")?;
        }
        meanwhile();
        self.stream.synchronize().doing("searching")?;
        self.under_way = false;
        self.finished = Instant::now();
        if let Some([start, end]) = &self.timing {
            let milliseconds = end.elapsed_time_f32(start).doing("reading an event")?;
            self.device_time += Duration::from_secs_f64(f64::from(milliseconds) / 1e3);
        }
        Ok(())
    }
}
