//! A model's tables on one device: the float32 table, its norms and biases as stored, and the
//! tables that are derived from them there. Workloads share them by reference.

pub(crate) mod abi;
mod append;
pub(crate) mod fit;
mod quantise;
mod round_again;
mod slots;
mod upload;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use contract::certificate::Lift;
use contract::{HasTable, Table};
use cust::stream::Stream;

use crate::GpuError;
use crate::abi::DevicePointer;
use crate::driver::{Array, Gpu, new_background_stream};

pub(crate) use abi::{
    CHUNK_BYTES, CHUNK4, CHUNK8, LiftView, Metric, NOT_A_ROW, TILE_ROWS, TableView, TileScale,
};
pub(crate) use append::Appending;
pub(crate) use fit::{Derived, table_bytes};
pub(crate) use quantise::Rounding;
pub(crate) use round_again::RoundAgain;
pub(crate) use slots::Slots;
pub use upload::upload;

/// A model's tables in the memory of one GPU, which is current on the thread that made them. One
/// thread owns a device, so its workloads share the tables by `Rc`.
#[derive(Debug)]
pub(crate) struct Resident {
    // In the order in which they must be dropped: what is on the device, then the device.
    /// `[capacity, dim]`.
    components: Rc<Array<f32>>,
    /// `[capacity]`.
    norms: Array<f64>,
    /// `[rows]`, if there are biases.
    biases: Option<Array<f32>>,
    /// How rows become vectors that the derived tables have.
    pub(crate) lift: Lift,
    /// `None` if it was not asked for, there was no memory for it, or no row can be a neighbour.
    pub(crate) quantised: Option<Quantised>,
    /// Rows of the table that was uploaded.
    pub(crate) rows: usize,
    /// Those and the rows that were appended, which searches alone see.
    searched: Cell<usize>,
    /// Rows for which there is room.
    pub(crate) capacity: usize,
    pub(crate) dim: usize,
    pub(crate) gpu: Gpu,
    /// The table in the host's memory; one without rows if it is on the device alone.
    pub(crate) of: Arc<dyn HasTable>,
}

/// A float32 table in the device memory of another library, under the metric `dot`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorrowedTable {
    /// The address of `[rows, dim]` float32.
    pub components: u64,
    /// The address of `[rows]` float32.
    pub biases: Option<u64>,
    /// At least one.
    pub rows: usize,
    /// At least one.
    pub dim: usize,
}

/// Stands for a table that the host does not have.
#[derive(Debug)]
struct NotOnHost {
    dim: usize,
}

impl HasTable for NotOnHost {
    fn table(&self) -> Table<'_> {
        Table::new(&[], &[], self.dim).under_dot(None)
    }
}

/// Tiles of [`TILE_ROWS`] slots. Rows without scores have no slot: under the metric `cosine`, those
/// of norm zero.
#[derive(Debug)]
pub(crate) struct Quantised {
    /// Tiles that passes read. The last of them may be empty, so that their number changes seldom.
    tiles: Cell<usize>,
    pub(crate) slots: RefCell<Slots>,
    /// `[all tiles * TILE_ROWS]`: the row of each slot, or [`NOT_A_ROW`].
    pub(crate) slot_rows: Array<u32>,
    /// `[tiles, chunks, TILE_ROWS, CHUNK_BYTES]`.
    pub(crate) int8: Array<u8>,
    /// `[tiles]`.
    pub(crate) scales: Array<TileScale>,
    pub(crate) int4: Option<Int4>,
}

/// The 4-bit form of the same tiles.
#[derive(Debug)]
pub(crate) struct Int4 {
    /// `[tiles, chunks, TILE_ROWS, CHUNK_BYTES]`.
    pub(crate) levels: Array<u8>,
    /// `[tiles]`.
    pub(crate) residuals: Array<f32>,
    /// Half of the step between two levels.
    pub(crate) half_step: f32,
}

impl Quantised {
    /// Tiles that passes read.
    pub(crate) fn tiles(&self) -> usize {
        self.tiles.get()
    }

    /// Tiles for which there is room.
    pub(crate) fn all_tiles(&self) -> usize {
        self.slot_rows.len() / TILE_ROWS
    }
}

impl Resident {
    /// Uploads a table, whose rows are lifted like this, and derives the requested tables from it,
    /// with room for that many rows behind them.
    /// Shares the components with the tables `beside` it, if they are the same. Calls `progress`
    /// with the number of bytes whose copies have started.
    ///
    /// # Errors
    /// If the device lacks the memory, or fails.
    pub(crate) fn upload(
        gpu: Gpu,
        of: &Arc<dyn HasTable>,
        lift: Lift,
        beside: Option<&Self>,
        (derived, room): (Derived, usize),
        progress: impl FnMut(u64),
    ) -> Result<Self, GpuError> {
        // A table of a reload or a fold is uploaded while another one is searched.
        let stream: Stream = new_background_stream()?;
        let on = (&stream, gpu.is_shared);
        let table = of.table();
        let (rows, dim) = (table.rows(), table.dim());
        let components = match beside.filter(|beside| beside.has_components(&table)) {
            Some(beside) => beside.components.clone(),
            None => Rc::new(upload(table.components(), room * dim, on, progress)?),
        };
        let norms = upload(table.norms(), room, on, |_| {})?;
        let upload_biases = |biases| upload(biases, room, on, |_| {});
        let biases = table.biases().map(upload_biases).transpose()?;
        let arrays = (components, norms, biases);
        let mut resident = Self::of_arrays(gpu, of.clone(), lift, arrays, (rows, room));
        if derived.int8 {
            resident.quantised = quantise::quantise(&resident, &stream, derived.int4)?;
        }
        Ok(resident)
    }

    /// A table that another library keeps on the device, lifted like this, and its 8-bit table.
    ///
    /// # Safety
    /// - The table is at the addresses that it names.
    /// - It does not change while work uses it.
    ///
    /// # Errors
    /// If the device lacks the memory, or fails.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn borrow(
        gpu: Gpu,
        table: BorrowedTable,
        lift: Lift,
        stream: &Stream,
    ) -> Result<Self, GpuError> {
        let BorrowedTable { components, biases, rows, dim } = table;
        // SAFETY: as many values are at the addresses, and do not change while work uses them: the
        // caller's promise.
        let (components, biases) = unsafe {
            let biases = biases.map(|address| Array::borrowed(address, rows));
            (Rc::new(Array::borrowed(components, rows * dim)), biases)
        };
        let (norms, of) = (Array::zeroed(0)?, Arc::new(NotOnHost { dim }));
        let arrays = (components, norms, biases);
        let mut resident = Self::of_arrays(gpu, of, lift, arrays, (rows, 0));
        resident.quantised = quantise::quantise(&resident, stream, false)?;
        Ok(resident)
    }

    /// A table whose components, norms and biases are on the device, with room behind its rows, and
    /// without derived tables.
    fn of_arrays(
        gpu: Gpu,
        of: Arc<dyn HasTable>,
        lift: Lift,
        (components, norms, biases): (Rc<Array<f32>>, Array<f64>, Option<Array<f32>>),
        (rows, room): (usize, usize),
    ) -> Self {
        let (dim, searched, capacity) = (of.table().dim(), Cell::new(rows), rows + room);
        let quantised = None;
        Self { components, norms, biases, lift, quantised, rows, searched, capacity, dim, gpu, of }
    }

    /// Whether a table's components are those of this one: the same in the host's memory.
    pub(crate) fn has_components(&self, table: &Table<'_>) -> bool {
        std::ptr::eq(self.of.table().components(), table.components())
    }

    /// Rows that searches see.
    pub(crate) fn searched(&self) -> usize {
        self.searched.get()
    }

    /// The table as kernels of searches take it, with the rows that were appended.
    pub(crate) fn searched_view(&self) -> TableView {
        TableView { rows: self.searched() as u32, ..self.view() }
    }

    /// Some rows of the table, as kernels take them.
    pub(super) fn part(&self, rows: Range<usize>) -> TableView {
        let view = self.view();
        let biases = self.biases.as_ref().map_or(view.biases, |_| view.biases.offset(rows.start));
        TableView {
            components: view.components.offset(rows.start * self.dim),
            norms: view.norms.offset(rows.start),
            biases,
            rows: rows.len() as u32,
            ..view
        }
    }

    /// The table as kernels take it. Valid as long as `self` exists.
    pub(crate) fn view(&self) -> TableView {
        TableView {
            components: self.components.pointer(),
            norms: self.norms.pointer(),
            biases: self.biases.as_ref().map_or(DevicePointer::NULL, Array::pointer),
            rows: self.rows as u32,
            dim: self.dim as i32,
            metric: match self.lift.metric {
                contract::Metric::Cosine => Metric::Cosine,
                contract::Metric::Dot => Metric::Dot,
            },
            unused: 0,
        }
    }

    /// Components of the vectors that the derived tables have.
    pub(crate) fn lifted_dim(&self) -> usize {
        self.lift.dim(self.dim)
    }

    /// How kernels lift rows and queries.
    pub(crate) fn lift_view(&self) -> LiftView {
        LiftView {
            longest: self.lift.longest,
            beta: self.lift.beta.unwrap_or(1.0),
            dim: self.lifted_dim() as i32,
            unused: 0,
        }
    }
}
