//! Writes queries into pinned memory, where the device reads them, and reads the answers from
//! there.

use contract::certificate::{Factor, Lift};
use contract::{
    Components, Filter, Hit, Metric, Query, QueryVector, Ranking, Row, RowSetParts, ScoringVector,
};

use super::CudaEngine;
use super::abi::{ANSWERED, FEW_EXCLUDED, NOT_A_FORMULA, QueryHeader, QueryResult, ScoredRow};
use super::demand::{fits_list, have_sets, slots};
use super::formula::{formula, words};
use super::pass::Pass;
use super::workspace::{Exchange, MAX_BATCH, Uploads};
use crate::GpuError;
use crate::driver::Registered;
use crate::resident::{NOT_A_ROW, Resident};
use crate::sets::DeviceSet;

/// What the host puts together for a pass, in pinned memory, and how much of each buffer is in use.
struct Upload<'a> {
    exchange: &'a mut Exchange,
    resident: &'a Resident,
    headers: usize,
    vectors: usize,
    formulas: usize,
    /// Of the list of excluded rows, slots and words.
    listed: usize,
    /// Whether the device fetches the vectors from where they are.
    is_staged: bool,
}

impl Upload<'_> {
    /// Appends a query, whose set of rows is this one on the device: a header for each of its
    /// columns.
    fn push(&mut self, query: &Query, DeviceSet { of_rows, of_slots }: DeviceSet) {
        // Without `..`: a new field must be handled here, or it does not compile.
        let Filter { rows: ref set, min_score, max_score } = query.filter;
        let RowSetParts { limit: _, bitmap, excluded } = set.parts();
        let rows = self.resident.searched();
        // No member of a bitmap comes after its end.
        let first_rows = set.row_limit(rows) as u32;
        let few = excluded.len() <= FEW_EXCLUDED as usize;
        let is_filtered =
            (first_rows as usize) < rows || bitmap.is_some() || max_score.is_some() || !few;
        let factor = factor(&self.resident.lift, query);
        let mut header = QueryHeader {
            norm: 1.0,
            factor: factor.get(),
            min_score: factor.minimum(min_score.unwrap_or(f64::NEG_INFINITY)),
            max_score: factor.maximum(max_score.unwrap_or(f64::INFINITY)),
            set: of_rows,
            set_of_slots: of_slots,
            row: NOT_A_ROW,
            vector: 0,
            k: query.k as u32,
            first_rows,
            excluded: self.listed as u32,
            excluded_count: excluded.len() as u32,
            formula: NOT_A_FORMULA,
            column: 0,
            rank: query.k.saturating_add(if few { excluded.len() } else { 0 }) as u32,
            is_filtered: u32::from(is_filtered),
            tiles_within: 0,
            tiles_covering: 0,
            words: 0,
            text: 0,
        };
        if let Some(quantised) = &self.resident.quantised {
            let slots = quantised.slots.borrow();
            header.tiles_within = slots.tiles_within(first_rows);
            header.tiles_covering = slots.tiles_covering(first_rows);
        }
        match excluded {
            [] => {}
            [row] => header.excluded = row.0,
            // The host applies longer lists.
            _ if !fits_list(query) => header.excluded_count = 0,
            excluded => {
                self.list(excluded.iter().map(|row| row.0));
                if let (false, Some(quantised)) = (few, &self.resident.quantised) {
                    let slots = quantised.slots.borrow();
                    self.list(excluded.iter().map(|&row| slots.of(row.0)));
                }
            }
        }
        match query.ranking() {
            Ranking::Vector(ScoringVector { vector, norm }) => {
                header.norm = match self.resident.lift.metric {
                    Metric::Cosine => *norm,
                    Metric::Dot => 1.0 / (factor.get() * self.resident.lift.longest),
                };
                match vector {
                    QueryVector::Row(row) => header.row = in_table(*row, rows),
                    QueryVector::Components(components) => {
                        header.vector = self.vectors as u32;
                        if !self.is_staged {
                            let dim = self.resident.dim;
                            let to = &mut self.exchange.vectors[self.vectors * dim..][..dim];
                            to.copy_from_slice(components);
                        }
                        self.vectors += 1;
                    }
                }
                self.put(header);
            }
            Ranking::Formula(scoring) => {
                // The norms of its columns are computed on the device.
                header.formula = self.formulas as u32;
                header.words = self.listed as u32;
                let formula = formula(scoring, query.k, first_rows as usize, self.headers);
                self.list(words(scoring).map(|row| in_table(row, rows)));
                for column in 0..formula.columns {
                    self.put(QueryHeader { column, ..header });
                }
                self.exchange.formulas[self.formulas] = formula;
                self.formulas += 1;
            }
        }
    }

    fn put(&mut self, header: QueryHeader) {
        self.exchange.headers[self.headers] = header;
        self.headers += 1;
    }

    fn list(&mut self, values: impl ExactSizeIterator<Item = u32>) {
        let to = &mut self.exchange.excluded[self.listed..][..values.len()];
        self.listed += values.len();
        to.iter_mut().zip(values).for_each(|(to, value)| *to = value);
    }
}

/// The first vector of these queries, if all of their vectors lie one after another in a registered
/// block.
fn staged(
    registered: &Registered,
    batch: &[&Query],
    indices: &[usize],
    dim: usize,
) -> Option<Components> {
    let mut vectors = indices.iter().filter_map(|&index| match batch[index].ranking() {
        Ranking::Vector(ScoringVector { vector: QueryVector::Components(own), .. }) => Some(own),
        _ => None,
    });
    let first = vectors.next()?;
    let mut next = first.as_ptr().wrapping_add(dim);
    for vector in vectors {
        if vector.as_ptr() != next {
            return None;
        }
        next = next.wrapping_add(dim);
    }
    let count = (next.addr() - first.as_ptr().addr()) / size_of::<f32>();
    registered.holds(first, count).then(|| first.clone())
}

fn in_table(row: Row, rows: usize) -> u32 {
    assert!(row.index() < rows, "{row} of {rows}");
    row.0
}

/// What the device multiplies a query's scores by.
fn factor(lift: &Lift, query: &Query) -> Factor {
    match query.ranking() {
        Ranking::Vector(ScoringVector { norm, .. }) if lift.unit(*norm).is_useful() => {
            lift.unit(*norm).factor()
        }
        _ => Factor::ONE,
    }
}

impl CudaEngine {
    /// Writes queries into an exchange, and empty ones up to `width`. `indices` are the positions
    /// of the pass's queries in the batch. No pass that is under way uses this exchange. Puts their
    /// sets of rows on the device.
    ///
    /// # Errors
    /// If the device lacks the memory for a set, or fails.
    #[allow(unsafe_code)]
    pub(super) fn upload_queries(
        &mut self,
        exchange: usize,
        batch: &[&Query],
        indices: &[usize],
        width: usize,
    ) -> Result<(), GpuError> {
        let resident = &*self.resident;
        let staged = match &self.registered {
            // Other passes read vectors in place.
            Some(registered) if Pass::copies_vectors(width) => {
                staged(registered, batch, indices, resident.dim)
            }
            _ => None,
        };
        let (exchange, is_staged) = (&mut self.exchanges[exchange], staged.is_some());
        self.counters.staged += u64::from(is_staged);
        exchange.staged = staged;
        let (headers, vectors, formulas, listed) = (0, 0, 0, 0);
        let mut upload =
            Upload { exchange, resident, headers, vectors, formulas, listed, is_staged };
        self.sets.begin_pass();
        let all = match have_sets(batch, indices) {
            true => self.sets.all_rows()?,
            false => DeviceSet::default(),
        };
        for &index in indices {
            let rows = &batch[index].filter.rows;
            // SAFETY: the tables are the engine's own, as the stream is, in which all of its passes
            // are.
            let set = unsafe { self.sets.of_query(rows, all, resident, &self.stream)? };
            upload.push(batch[index], set);
        }
        let Upload { exchange, headers, vectors, formulas, listed, .. } = upload;
        assert!(headers.max(width) <= MAX_BATCH, "a pass of {headers}");
        // If all queries have the same set, so do the empty ones: then tiles without members are
        // not read.
        let set_of_slots =
            headers.checked_sub(1).map_or(0, |last| exchange.headers[last].set_of_slots);
        let empty = QueryHeader { set_of_slots, ..bytemuck::Zeroable::zeroed() };
        exchange.headers[headers..width.max(headers)].fill(empty);
        exchange.formula_count[0] = formulas as u32;
        exchange.almost_over[0] = 0;
        exchange.uploads = Uploads { components: vectors * resident.dim, listed };
        Ok(())
    }

    /// Reads the answers of a pass from its exchange. Returns the indices of queries without an
    /// answer.
    pub(super) fn collect(
        &mut self,
        exchange: usize,
        batch: &[&Query],
        indices: &[usize],
        stride: usize,
        answers: &mut [Vec<Hit>],
    ) -> Vec<usize> {
        // The pass is over, so callers may fill that memory again.
        self.exchanges[exchange].staged = None;
        let mut doubtful = Vec::new();
        let mut slot = 0;
        for &index in indices {
            let answer = &self.exchanges[exchange].answers[slot * (1 + stride)..][..1 + stride];
            slot += slots(batch[index]);
            let result: QueryResult = bytemuck::cast(answer[0]);
            self.counters.candidates += u64::from(result.candidates);
            self.counters.survivors += u64::from(result.survivors);
            if result.status == ANSWERED {
                debug_assert!(result.count as usize <= batch[index].k);
                let factor = factor(&self.resident.lift, batch[index]);
                let hits = answer[1..=result.count as usize].iter().map(|answer| {
                    let hit: ScoredRow = bytemuck::cast(*answer);
                    Hit { row: Row(hit.row), score: factor.score(hit.score) }
                });
                answers[index] = hits.collect();
            } else {
                doubtful.push(index);
            }
        }
        doubtful
    }
}
