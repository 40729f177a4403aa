//! A model's tables on one device: the float32 table and its norms as stored, and the tables that are derived
//! from them there. Workloads share them by reference.

pub(crate) mod abi;
mod fit;
mod quantise;
mod slots;
mod upload;

use std::sync::Arc;

use cust::stream::Stream;
use model_store::ModelStore;

use crate::GpuError;
use crate::driver::{Array, Gpu, new_stream};

pub(crate) use abi::{CHUNK_BYTES, CHUNK4, CHUNK8, NOT_A_ROW, TILE_ROWS, TableView, TileScale};
pub(crate) use fit::{Derived, fit, table_bytes};
pub(crate) use slots::Slots;
pub use upload::upload;

/// A model's tables in the memory of one GPU, which is current on the thread that made them. One thread owns
/// a device, so its workloads share the tables by `Rc`.
#[derive(Debug)]
pub(crate) struct Resident {
    // In the order in which they must be dropped: what is on the device, then the device.
    /// `[rows, dim]`.
    components: Array<f32>,
    /// `[rows]`.
    norms: Array<f64>,
    /// `None` if it was not asked for, there was no memory for it, or no row can be a neighbour.
    pub(crate) quantised: Option<Quantised>,
    pub(crate) rows: usize,
    pub(crate) dim: usize,
    pub(crate) gpu: Gpu,
    pub(crate) model: Arc<ModelStore>,
}

/// Tiles of [`TILE_ROWS`] slots. Rows of norm zero have no slot.
#[derive(Debug)]
pub(crate) struct Quantised {
    pub(crate) tiles: usize,
    pub(crate) slots: Slots,
    /// `[tiles * TILE_ROWS]`: the row of each slot, or [`NOT_A_ROW`].
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

impl Resident {
    /// Uploads the model's table and derives the requested tables from it. Calls `progress` with the number of
    /// bytes whose copies have started.
    ///
    /// # Errors
    /// If the device lacks the memory, or fails.
    pub(crate) fn upload(
        gpu: Gpu,
        model: &Arc<ModelStore>,
        derived: Derived,
        progress: impl FnMut(u64),
    ) -> Result<Self, GpuError> {
        let stream: Stream = new_stream()?;
        let table = model.table();
        let (rows, dim) = (table.rows(), table.dim());
        let components = upload(table.components(), &stream, progress)?;
        let norms = upload(table.norms(), &stream, |_| {})?;
        let model = model.clone();
        let mut resident = Self { components, norms, quantised: None, rows, dim, gpu, model };
        if derived.int8 {
            resident.quantised = quantise::quantise(&resident, &stream, derived.int4)?;
        }
        Ok(resident)
    }

    /// The table as kernels take it. Valid as long as `self` exists.
    pub(crate) fn view(&self) -> TableView {
        TableView {
            components: self.components.pointer(),
            norms: self.norms.pointer(),
            rows: self.rows as u32,
            dim: self.dim as i32,
        }
    }

    /// Bytes of the derived tables.
    pub(crate) fn derived_bytes(&self) -> usize {
        let Some(quantised) = &self.quantised else { return 0 };
        fit::int8_bytes(self.rows, self.dim)
            + quantised.int4.as_ref().map_or(0, |_| fit::int4_bytes(self.rows, self.dim))
    }
}
