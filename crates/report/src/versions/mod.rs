//! The four versions: what each keeps on the device, and the steps of a query.

#![allow(unsafe_code)]

pub(crate) mod abi;
mod launches;

use std::time::{Duration, Instant};

use contract::Row;
use cust::event::{Event, EventFlags};
use cust::stream::Stream;
use gpu_core::driver::{
    Array, Doing, Gpu, Kernel, Modules, Pinned, new_stream, start_download, start_upload,
};
use model_store::ModelStore;

use crate::GpuError;
use abi::{
    MergePiecesParams, NO_NEIGHBOUR, REPORT_MAX_DIM, REPORT_MAX_K, REPORT_ROWS_NARROW,
    REPORT_ROWS_WIDE, ReportDotParams, SortPiecesParams, entries,
};

/// A version of the report's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// One thread per row; the whole table is copied for each query.
    V1,
    /// The table stays on the device; the query is in constant memory.
    V2,
    /// Eight threads per row; their loads share a memory sector.
    V3,
    /// Partial sums are added by shuffles; buffers are kept, and only one wait is left.
    V4,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4];

    /// Rows of the table that a block of its first kernel takes.
    fn rows_per_block(self) -> usize {
        if self < Self::V3 { REPORT_ROWS_NARROW } else { REPORT_ROWS_WIDE }
    }
}

/// The times of one query.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Device time for the cosine of every row.
    pub dot_product: Duration,
    /// Device time for sorting the pieces.
    pub first_merge: Duration,
    /// Device time for all rounds of merging.
    pub merge_sort: Duration,
    /// Host time for everything, from the query's row to its neighbours.
    pub total: Duration,
}

impl Times {
    /// The time outside kernels: copies, allocations, waiting.
    pub fn overhead(&self) -> Duration {
        self.total.saturating_sub(self.dot_product + self.first_merge + self.merge_sort)
    }
}

/// One version, and what it keeps between queries.
#[derive(Debug)]
pub struct Report<'a> {
    version: Version,
    model: &'a ModelStore,
    k: usize,
    /// Version 1 copies the table from here for each query.
    host_table: Option<Pinned<f32>>,
    host_norms: Pinned<f32>,
    query: Pinned<f32>,
    scores: Pinned<f32>,
    positions: Pinned<u32>,
    table: Option<Table>,
    room: Option<Room>,
    dot_product: Kernel<ReportDotParams>,
    first_merge: Kernel<SortPiecesParams>,
    merge_sort: Kernel<MergePiecesParams>,
    stream: Stream,
    modules: Modules,
    // Dropped last: everything else belongs to it.
    _gpu: Gpu,
}

/// The table on the device.
#[derive(Debug)]
struct Table {
    components: Array<f32>,
    norms: Array<f32>,
}

/// The buffers of a query.
#[derive(Debug)]
struct Room {
    query: Array<f32>,
    scores: Array<f32>,
    positions: Array<u32>,
    /// Only in version 1, which merges pieces here.
    scratch: Option<(Array<f32>, Array<u32>)>,
}

impl<'a> Report<'a> {
    /// This version on this table, for `k` neighbours of each query (its own row included).
    ///
    /// # Errors
    /// If there is no GPU, or the table does not fit.
    ///
    /// # Panics
    /// Unless `k` is 1 to 32 and the table has at most 4096 components.
    pub fn new(model: &'a ModelStore, version: Version, k: usize) -> Result<Self, GpuError> {
        assert!(
            (1..=REPORT_MAX_K).contains(&k),
            "the report's pieces have 1 to {REPORT_MAX_K} rows, not {k}"
        );
        let table = model.table();
        assert!(table.dim() <= REPORT_MAX_DIM, "constant memory holds {REPORT_MAX_DIM} components");
        let gpu = Gpu::open(None)?;
        let mut modules = Modules::default();
        let (dot, first, sort) = {
            use entries::dot_product::{
                dot_product_v1, dot_product_v2, dot_product_v3, dot_product_v4,
            };
            use entries::merge::{
                botched_merge_sort, botched_merge_sort_v1, first_merge, first_merge_v1,
            };
            match version {
                Version::V1 => (dot_product_v1, first_merge_v1, botched_merge_sort_v1),
                Version::V2 => (dot_product_v2, first_merge, botched_merge_sort),
                Version::V3 => (dot_product_v3, first_merge, botched_merge_sort),
                Version::V4 => (dot_product_v4, first_merge, botched_merge_sort),
            }
        };
        let mut host_norms = Pinned::zeroed(table.rows())?;
        for (to, norm) in host_norms.iter_mut().zip(table.norms()) {
            *to = *norm as f32;
        }
        let components = table.components();
        let best = k.min(table.rows());
        let mut report = Self {
            version,
            model,
            k,
            host_table: None,
            host_norms,
            query: Pinned::zeroed(table.dim())?,
            scores: Pinned::zeroed(best)?,
            positions: Pinned::zeroed(best)?,
            table: None,
            room: None,
            dot_product: modules.kernel(dot)?,
            first_merge: modules.kernel(first)?,
            merge_sort: modules.kernel(sort)?,
            stream: new_stream()?,
            modules,
            _gpu: gpu,
        };
        if version == Version::V1 {
            let mut host_table = Pinned::zeroed(components.len())?;
            host_table.copy_from_slice(components);
            report.host_table = Some(host_table);
        } else {
            report.table = Some(Table {
                components: Array::from_slice(components)?,
                norms: Array::from_slice(&report.host_norms)?,
            });
        }
        if version == Version::V4 {
            report.room = Some(report.allocate()?);
        }
        Ok(report)
    }

    /// The best k rows for a row of the table, with their cosines, and the times. Rows of norm zero
    /// are no neighbours. The ranking is by float32 scores.
    ///
    /// # Errors
    /// If the device fails.
    pub fn search(&mut self, row: Row) -> Result<(Vec<(Row, f32)>, Times), GpuError> {
        let started = Instant::now();
        let (rows, k) = (self.model.rows(), self.k);
        let table = match self.table.take() {
            Some(table) => table,
            None => self.copy_table()?,
        };
        let room = match self.room.take() {
            Some(room) => room,
            None => self.allocate()?,
        };
        // SAFETY: as for the launches below.
        unsafe { self.copy_query(row, &room)? };
        let marks = [self.mark()?, self.mark()?, self.mark()?, self.mark()?];
        self.begin(&marks[0])?;
        // SAFETY: `search` borrows this mutably and synchronises before it returns; if a step
        // fails, the device has failed too.
        unsafe { self.start_dot_product(row, &table, &room)? };
        self.end(&marks[1])?;
        let pieces = rows.div_ceil(k);
        // SAFETY: as above.
        unsafe { self.start_sorting(pieces, &room)? };
        self.end(&marks[2])?;
        // SAFETY: as above.
        unsafe { self.start_merging(pieces, &room)? };
        self.end(&marks[3])?;
        let best = self.scores.len();
        // SAFETY: the stream is synchronised right below.
        unsafe {
            start_download(&room.scores, &self.scores, best, &self.stream)?;
            start_download(&room.positions, &self.positions, best, &self.stream)?;
        }
        self.stream.synchronize().doing("searching")?;
        let found = self
            .positions
            .iter()
            .zip(self.scores.iter())
            .filter(|(_, score)| **score > NO_NEIGHBOUR)
            .map(|(row, score)| (Row(*row), *score))
            .collect();
        if self.version != Version::V1 {
            self.table = Some(table);
        }
        if self.version == Version::V4 {
            self.room = Some(room);
        }
        // Version 1's table is freed here, which is part of its time.
        let total = started.elapsed();
        let between = |i: usize| -> Result<Duration, GpuError> {
            let ms = marks[i + 1].elapsed_time_f32(&marks[i]).doing("reading an event")?;
            Ok(Duration::from_secs_f64(f64::from(ms) / 1e3))
        };
        let times = Times {
            dot_product: between(0)?,
            first_merge: between(1)?,
            merge_sort: between(2)?,
            total,
        };
        Ok((found, times))
    }

    fn mark(&self) -> Result<Event, GpuError> {
        Event::new(EventFlags::DEFAULT).doing("making an event")
    }

    fn begin(&self, mark: &Event) -> Result<(), GpuError> {
        mark.record(&self.stream).doing("recording an event")
    }

    /// Marks the end of a step. All versions but the last wait for it.
    fn end(&self, mark: &Event) -> Result<(), GpuError> {
        mark.record(&self.stream).doing("recording an event")?;
        if self.version < Version::V4 {
            self.stream.synchronize().doing("searching")?;
        }
        Ok(())
    }

    fn copy_table(&self) -> Result<Table, GpuError> {
        let host = self.host_table.as_ref().expect("version 1 has it");
        let table = Table {
            components: Array::uninitialised(host.len())?,
            norms: Array::uninitialised(self.host_norms.len())?,
        };
        // SAFETY: the stream is synchronised right below.
        unsafe {
            start_upload(host, &table.components, &self.stream)?;
            start_upload(&self.host_norms, &table.norms, &self.stream)?;
        }
        self.stream.synchronize().doing("copying the table")?;
        Ok(table)
    }

    fn allocate(&self) -> Result<Room, GpuError> {
        let rows = self.model.rows();
        let scratch = if self.version == Version::V1 {
            Some((Array::uninitialised(rows)?, Array::uninitialised(rows)?))
        } else {
            None
        };
        Ok(Room {
            query: Array::uninitialised(REPORT_MAX_DIM)?,
            scores: Array::uninitialised(rows)?,
            positions: Array::uninitialised(rows)?,
            scratch,
        })
    }

    /// Copies the query to constant memory in version 2, to global memory in the others.
    ///
    /// # Safety
    /// The caller synchronises the stream before it frees the room or copies another query.
    unsafe fn copy_query(&mut self, row: Row, room: &Room) -> Result<(), GpuError> {
        self.query.copy_from_slice(self.model.table().row(row));
        if self.version != Version::V2 {
            // SAFETY: the caller promises it.
            unsafe { start_upload(&self.query, &room.query, &self.stream)? };
            if self.version < Version::V4 {
                self.stream.synchronize().doing("copying the query")?;
            }
            return Ok(());
        }
        let mut symbol = self
            .modules
            .file("dot_product")
            .expect("loaded with its kernel")
            .get_global::<[f32; REPORT_MAX_DIM]>(c"report_query")
            .doing("finding report_query")?;
        let mut components = [0.0; REPORT_MAX_DIM];
        components[..self.query.len()].copy_from_slice(&self.query);
        cust::memory::CopyDestination::copy_from(&mut symbol, &components)
            .doing("copying the query")
    }
}
