//! Full passes: every row's score by the contract's formula. For queries that no other pass
//! answers.
//!
//! A pass goes through the table in steps. In each, the device computes the cosines of some rows
//! with the queries' distinct vectors, then every query's formula over them. It lists rows that may
//! be hits, and counts those before ranked rows. The host keeps the best hits, so that fewer rows
//! of the next step may be hits. Nothing stays on the device between two steps.

#![allow(unsafe_code)]

pub(crate) mod abi;
mod group;

use contract::{Filter, FullPassPart, Hit, Row, RowSetParts, Table};
use cust::stream::Stream;

use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{
    Array, Doing, Kernel, Modules, Pinned, Room, Shape, start_clearing, start_download,
};
use crate::formulas::Parameters;
use crate::ranks::{self, OnDevice, Ranks};
use crate::resident::Resident;
use crate::sets::{DeviceSet, DeviceSets};
use abi::{
    FoundRow, PassQuery, PassVector, RowCosinesParams, TOGETHER_ROWS, TOGETHER_VECTORS,
    TakeRowsParams, entries,
};
use group::{Group, groups};

/// The most distinct vectors of a pass.
pub(crate) const VECTORS: usize = 256;
/// The most rows that a step finds, over all queries.
const MAX_FOUND: usize = 1 << 18;
/// Components of the rows of a step whose ranks are counted: half a millisecond or more on an H200.
const COUNTED: usize = 1 << 28;
/// Ranked rows that the host scores before it asks whether to go on.
const RANKED_TOGETHER: usize = 64;
/// Threads of a warp.
const WARP: usize = 32;

/// The kernels, and small buffers of such passes.
pub(crate) struct FullPasses {
    // In the order in which they must be dropped: buffers, then kernels, then their module.
    vectors: Room<PassVector>,
    uploaded: Room<f32>,
    queries: Room<PassQuery>,
    words: Room<u32>,
    ranked_scores: Room<f64>,
    ranked_rows: Room<u32>,
    excluded: Room<u32>,
    counts: Room<u32>,
    found_count: Array<u32>,
    host_found_count: Pinned<u32>,
    /// `[MAX_FOUND]`: written in place, because most steps find few.
    found: Pinned<FoundRow>,
    widen_vectors: Kernel<RowCosinesParams>,
    row_cosines: Kernel<RowCosinesParams>,
    few_row_cosines: Kernel<RowCosinesParams>,
    take_rows: Kernel<TakeRowsParams>,
    _modules: Modules,
}

/// Where a pass works.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) resident: &'a Resident,
    pub(crate) stream: &'a Stream,
    /// Room for vectors and cosines, which passes in the same stream may use for other things.
    pub(crate) scratch: DevicePointerMut<f64>,
    /// For how many.
    pub(crate) scratch_len: usize,
}

/// What was done.
pub(crate) struct Done {
    /// Where the next slice starts, if there is more to do.
    pub(crate) next: Option<usize>,
    /// Queries whose ranks could not be counted on tensor cores, once for each step.
    pub(crate) fallbacks: usize,
}

impl Place<'_> {
    /// The room for cosines beside the vectors of a group.
    fn cosines(&self, group: &Group) -> usize {
        self.scratch_len - group.vectors.len() * self.resident.dim
    }
}

impl FullPasses {
    /// # Errors
    /// If the device can't run the kernels, or memory is short.
    pub(crate) fn new() -> Result<Self, GpuError> {
        use entries::full_pass;
        let mut modules = Modules::default();
        Ok(Self {
            vectors: Room::new()?,
            uploaded: Room::new()?,
            queries: Room::new()?,
            words: Room::new()?,
            ranked_scores: Room::new()?,
            ranked_rows: Room::new()?,
            excluded: Room::new()?,
            counts: Room::new()?,
            found_count: Array::zeroed(1)?,
            host_found_count: Pinned::zeroed(1)?,
            found: Pinned::zeroed(MAX_FOUND)?,
            widen_vectors: modules.kernel(full_pass::widen_vectors)?,
            row_cosines: modules.kernel(full_pass::row_cosines)?,
            few_row_cosines: modules.kernel(full_pass::few_row_cosines)?,
            take_rows: modules.kernel(full_pass::take_rows)?,
            _modules: modules,
        })
    }

    /// Processes rows from `from` on, for parts that fit the table; see
    /// [`FullPassEngine::full_pass_part`]. `counting` counts the ranks that it can on tensor cores,
    /// with a set of buffers that no other pass uses. Ends the stream's work.
    ///
    /// # Safety
    /// - Nothing but earlier work in the stream uses the scratch memory and the sets.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// [`FullPassEngine::full_pass_part`]: contract::FullPassEngine::full_pass_part
    pub(crate) unsafe fn part(
        &mut self,
        place: Place<'_>,
        sets: &mut DeviceSets,
        mut counting: Option<(&mut Ranks, usize)>,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Done, GpuError> {
        let table = place.resident.of.table();
        let limit = |part: &FullPassPart| part.query().filter.row_limit(table.rows());
        let mut order: Vec<usize> =
            (0..parts.len()).filter(|&index| !parts[index].is_answered()).collect();
        let mut has_begun = false;
        let mut goes_on = || !std::mem::replace(&mut has_begun, true) || go_on();
        let mut done = Done { next: Some(from), fallbacks: 0 };
        for &index in &order {
            if !prepare(&table, &mut parts[index], &mut goes_on) {
                return Ok(done);
            }
        }
        order.retain(|&index| limit(&parts[index]) > from);
        let end = order.iter().map(|&index| limit(&parts[index])).max().unwrap_or(from);
        let counts = |&index: &usize| {
            let part: &FullPassPart = &parts[index];
            counting.is_some() && Ranks::takes(part.query(), part.distinct_ranked().len())
        };
        let (counted, scored): (Vec<usize>, Vec<usize>) = order.into_iter().partition(counts);
        let groups = groups(parts, &scored);
        let mut first = from;
        while first < end {
            if !goes_on() {
                done.next = Some(first);
                return Ok(done);
            }
            let rows_of = |group: &Group| group.rows(parts, first, place);
            let most = groups
                .iter()
                .map(rows_of)
                .chain((!counted.is_empty()).then_some(COUNTED / table.dim()));
            // Whole tiles, so that ranks can be counted from there.
            let rows =
                most.min().unwrap_or(1).max(1).next_multiple_of(ranks::TILE).min(end - first);
            for group in &groups {
                // SAFETY: the caller's promise; the rows are in the table.
                unsafe { self.step(place, sets, parts, group, first, rows)? };
            }
            if let (Some((ranks, set)), false) = (&mut counting, counted.is_empty()) {
                let (resident, stream, range) = (place.resident, place.stream, first..first + rows);
                let on = OnDevice { resident, sets, stream };
                let rest = ranks.count(*set, on, parts, &counted, range)?;
                done.fallbacks += rest.len();
                for group in self::groups(parts, &rest) {
                    // There may be room for fewer rows at a time.
                    let (mut first, end) = (first, first + rows);
                    while first < end {
                        let rows = group.rows(parts, first, place).min(end - first);
                        // SAFETY: nothing else uses the scratch memory, as the caller promises; the
                        // rows are in the table; `Group::rows` counts only rows whose cosines have
                        // room.
                        unsafe { self.step(place, sets, parts, &group, first, rows)? };
                        first += rows;
                    }
                }
            }
            first += rows;
        }
        done.next = None;
        Ok(done)
    }

    /// Processes some rows for a group.
    ///
    /// # Safety
    /// - Nothing but earlier work in the stream uses the scratch memory and the sets.
    /// - The rows are in the table.
    /// - The scratch memory has room for their cosines.
    unsafe fn step(
        &mut self,
        place: Place<'_>,
        sets: &mut DeviceSets,
        parts: &mut [FullPassPart],
        group: &Group,
        first: usize,
        rows: usize,
    ) -> Result<(), GpuError> {
        sets.begin_pass();
        let all = DeviceSet::default();
        let set = |&part: &usize| {
            let rows = &parts[part].query().filter.rows;
            // SAFETY: the caller's promise.
            unsafe { sets.of_query(rows, all, place.resident, place.stream) }
        };
        let of_parts = group.parts.iter().map(set).collect::<Result<Vec<_>, _>>()?;
        let queries = Queries::new(parts, group, &of_parts, first, rows);
        // SAFETY: the caller's promise. The stream is synchronised before anything else uses the
        // buffers.
        unsafe { self.launch(place, group, &queries, first, rows)? };
        place.stream.synchronize().doing("scoring rows")?;
        let found = self.host_found_count[0] as usize;
        if found > MAX_FOUND {
            let half = rows / 2;
            // SAFETY: nothing else uses the scratch memory, as the caller promises; each half has
            // fewer of the rows, so they are in the table and their cosines have room. One row is
            // found by at most `QUERIES` queries, so there are at least two.
            unsafe {
                self.step(place, sets, parts, group, first, half)?;
                return self.step(place, sets, parts, group, first + half, rows - half);
            }
        }
        let mut hits: Vec<Vec<Hit>> = vec![Vec::new(); group.parts.len()];
        for &FoundRow { score, row, query } in &self.found[..found] {
            hits[query as usize].push(Hit { row: Row(row), score });
        }
        for ((&part, hits), query) in group.parts.iter().zip(hits).zip(&queries.queries) {
            let counts = &self.counts.values()[query.ranked as usize..];
            parts[part].merge_found(hits, &counts[..query.ranked_count as usize]);
        }
        Ok(())
    }

    /// Starts the work of a step.
    ///
    /// # Safety
    /// - Nothing but earlier work in the stream uses the scratch memory and the sets.
    /// - The rows are in the table.
    /// - The scratch memory has room for their cosines.
    /// - Nothing else uses the buffers until the stream has been synchronised.
    unsafe fn launch(
        &mut self,
        place: Place<'_>,
        group: &Group,
        queries: &Queries,
        first: usize,
        rows: usize,
    ) -> Result<(), GpuError> {
        let Place { resident, stream, scratch, .. } = place;
        let vectors = group.vectors.len();
        let cosines = scratch.offset(vectors * resident.dim);
        assert!(vectors * rows <= place.cosines(group) && first + rows <= resident.rows);
        // SAFETY: the caller's promise; `Group` and `Queries` have made all indices.
        unsafe {
            self.vectors.upload(&group.vectors, stream)?;
            self.uploaded.upload(&group.uploaded, stream)?;
            self.words.upload(&group.words, stream)?;
            self.queries.upload(&queries.queries, stream)?;
            self.ranked_scores.upload(&queries.ranked_scores, stream)?;
            self.ranked_rows.upload(&queries.ranked_rows, stream)?;
            self.excluded.upload(&queries.excluded, stream)?;
            self.counts.clear(queries.ranked_rows.len(), stream)?;
            start_clearing(&self.found_count, 1, stream)?;
        }
        let (kernel, together, rows_together) = if vectors <= TOGETHER_VECTORS / 2 {
            (self.few_row_cosines, TOGETHER_VECTORS / 2, 2 * TOGETHER_ROWS)
        } else {
            (self.row_cosines, TOGETHER_VECTORS, TOGETHER_ROWS)
        };
        let groups = vectors.div_ceil(together);
        let resident_blocks = resident.gpu.multiprocessors as usize * kernel.resident_blocks(0)?;
        let rows_of_block = rows_together * kernel.threads() / WARP;
        let blocks = rows.div_ceil(rows_of_block).min(resident_blocks.div_ceil(groups));
        let cosines_of_rows = RowCosinesParams {
            table: resident.view(),
            vectors: self.vectors.pointer(),
            uploaded: self.uploaded.pointer(),
            widened: scratch,
            cosines,
            first: first as u32,
            rows: rows as u32,
            vector_count: vectors as u32,
            unused: 0,
        };
        let take = TakeRowsParams {
            queries: self.queries.pointer(),
            words: self.words.pointer(),
            cosines: cosines.as_const(),
            ranked_scores: self.ranked_scores.pointer(),
            ranked_rows: self.ranked_rows.pointer(),
            excluded: self.excluded.pointer(),
            counts: self.counts.pointer_mut(),
            found: self.found.pointer_mut()?,
            found_count: self.found_count.pointer_mut(),
            first: first as u32,
            rows: rows as u32,
            capacity: MAX_FOUND as u32,
            unused: 0,
        };
        let of_rows = Shape::grid(rows.div_ceil(self.take_rows.threads()), queries.queries.len());
        // SAFETY: the caller's promise; the cosines have room, as asserted.
        unsafe {
            self.widen_vectors.launch(stream, Shape::grid(vectors, 1), &cosines_of_rows)?;
            kernel.launch(stream, Shape::grid(blocks, groups), &cosines_of_rows)?;
            self.take_rows.launch(stream, of_rows, &take)?;
            self.counts.download(stream)?;
            start_download(&self.found_count, &self.host_found_count, 1, stream)
        }
    }
}

/// Scores the ranked rows of a part on the host, because they are few. Returns whether the part is
/// ready.
fn prepare(table: &Table<'_>, part: &mut FullPassPart, goes_on: &mut dyn FnMut() -> bool) -> bool {
    while !part.unscored().is_empty() {
        if !goes_on() {
            return false;
        }
        let some = part.unscored().iter().take(RANKED_TOGETHER);
        let score = |&row: &Row| part.query().score(table, row).unwrap_or(f64::NAN);
        let scores: Vec<f64> = some.map(score).collect();
        part.set_scores(&scores);
    }
    part.prepare(table);
    true
}

/// A group's queries as the device takes them, for some rows.
#[derive(Debug, Default)]
struct Queries {
    queries: Vec<PassQuery>,
    ranked_scores: Vec<f64>,
    ranked_rows: Vec<u32>,
    excluded: Vec<u32>,
}

impl Queries {
    /// `sets` has the addresses of the sets of their rows.
    fn new(
        parts: &[FullPassPart],
        group: &Group,
        sets: &[DeviceSet],
        first: usize,
        rows: usize,
    ) -> Self {
        let mut all = Self::default();
        let mut words = 0;
        let of_group = group.parts.iter().map(|&part| &parts[part]);
        for (part, &DeviceSet { of_rows, of_slots: _ }) in of_group.zip(sets) {
            let (scoring, filter) = (&part.query().scoring, &part.query().filter);
            let Parameters { kind, positive, at_c, length } = Parameters::of(scoring);
            // Without `..`: a new field must be handled here, or it does not compile.
            let Filter { rows: ref set, min_score: _, max_score } = *filter;
            let RowSetParts { limit, bitmap: _, excluded } = set.parts();
            let excluded = &excluded[excluded.partition_point(|row| row.index() < first)..];
            let within = |row: &Row| row.index() < first + rows;
            let excluded = &excluded[..excluded.partition_point(within)];
            all.queries.push(PassQuery {
                at_c,
                length,
                least_kept: part.least_kept(),
                least_ranked: part.ranking().last().map_or(f64::INFINITY, |last| last.score),
                max_score: max_score.unwrap_or(f64::INFINITY),
                set: of_rows,
                kind,
                positive,
                words,
                count: scoring.vectors().len() as u32,
                first_rows: limit.unwrap_or(u32::MAX),
                ranked: all.ranked_rows.len() as u32,
                ranked_count: part.ranking().len() as u32,
                excluded: all.excluded.len() as u32,
                excluded_count: excluded.len() as u32,
                unused: 0,
            });
            words += scoring.vectors().len() as u32;
            all.ranked_scores.extend(part.ranking().iter().map(|hit| hit.score));
            all.ranked_rows.extend(part.ranking().iter().map(|hit| hit.row.0));
            all.excluded.extend(excluded.iter().map(|row| row.0));
        }
        all
    }
}
