//! An expander's terms in the device memory of another library, such as PyTorch's parameters: the
//! terms that texts touch, and the sums of rows that gradients are.
//!
//! Vectors are read where they are. Work is in a stream of its own, which waits for the library's
//! stream and is waited for by it, so that for the caller everything happens in that stream.

#![allow(unsafe_code)]

use std::rc::Rc;

use contract::certificate::Lift;
use contract::expansion::LEAST;
use cust::stream::Stream;

use super::CudaEngine;
use super::expand::{MAX_TEXTS, MAX_TOKENS, TokenVectors, Tokens, Touched, touched};
use super::kernels::Kernels;
use super::paths::Paths;
use super::workspace::{Sizes, Workspace};
use crate::abi::{DevicePointer, DevicePointerMut};
use crate::driver::{Array, Doing, Gpu, Handover, Kernel, Modules, Shape, new_stream};
use crate::heads::Kept;
use crate::heads::expand::abi::{SUMMED_TOGETHER, SumRowsParams, entries};
use crate::resident::{
    BorrowedTable, Derived, LiftView, Metric, Resident, RoundAgain, Rounding, TableView, fit,
};
use crate::{GpuError, Precision};

/// What rows may grow by before they are lifted in another way.
const ROOM: f64 = 1.25;

/// The least magnitude of the largest bias, as a part of the largest norm: biases that are zero now
/// may change.
const LEAST_BIAS: f64 = 1.0 / 1024.0;

/// Lanes of a warp.
const WARP: usize = 32;

/// Terms whose vectors and biases another library keeps on a GPU.
///
/// The rounded table, which finds the terms, is its own. It is made from the vectors and biases by
/// [`round`](Self::round), and is out of date once these have changed.
pub struct BorrowedTerms {
    // In the order in which they must be dropped: what is on the device, then its kernels, then the
    // device.
    rounded: Option<Rounded>,
    sum_by_group: Kernel<SumRowsParams>,
    _modules: Modules,
    handover: Handover,
    stream: Stream,
    gpu: Gpu,
}

struct Rounded {
    again: RoundAgain,
    engine: CudaEngine,
    of: BorrowedTable,
}

/// Sums of rows with weights, all at addresses on the device: a group of entries is one sum, in
/// float64 and in the order of its entries, rounded to float32 once.
#[derive(Debug, Clone, Copy)]
pub struct SumsOfRows {
    /// `[any, dim]` float32.
    pub rows: u64,
    /// `[entries]` uint32 and float32: which row each is, and its weight.
    pub indices: u64,
    /// See `indices`.
    pub weights: u64,
    /// `[groups + 1]` uint32: where the entries of each group begin.
    pub begins: u64,
    /// `[groups, dim]` float32.
    pub sums: u64,
    /// `[groups]` float32: the sums of the weights.
    pub totals: u64,
    /// Components of a row.
    pub dim: usize,
    /// Groups.
    pub groups: usize,
}

impl BorrowedTerms {
    /// The most texts that [`touched`](Self::touched) takes.
    pub const MAX_TEXTS: usize = MAX_TEXTS;

    /// The most tokens that it takes.
    pub const MAX_TOKENS: usize = MAX_TOKENS;

    /// Opens the GPU, which becomes current on this thread.
    ///
    /// # Errors
    /// If there is no such GPU.
    pub fn new(ordinal: u32) -> Result<Self, GpuError> {
        let gpu = Gpu::open(Some(ordinal))?;
        let mut modules = Modules::default();
        Ok(Self {
            rounded: None,
            sum_by_group: modules.kernel(entries::gradients::sum_by_group)?,
            _modules: modules,
            handover: Handover::new()?,
            stream: new_stream()?,
            gpu,
        })
    }

    /// Rounds the terms as they are now, for tokens whose norm is about `token_norm`.
    /// `largest_bias` is the largest magnitude of a bias. `after` is the library's stream.
    ///
    /// # Safety
    /// - The table is at the addresses that it names.
    /// - The stream exists.
    /// - Until the next call, nothing else uses the table's memory.
    ///
    /// # Errors
    /// If the device fails or lacks the memory, or a vector or a bias is not finite.
    pub unsafe fn round(
        &mut self,
        table: BorrowedTable,
        (largest_bias, token_norm): (f64, f64),
        after: u64,
    ) -> Result<(), GpuError> {
        // Its memory is needed.
        self.rounded = None;
        // SAFETY: the foreign stream exists, as the caller promises.
        unsafe { self.handover.after(after, &self.stream)? };
        let (rows, dim) = (table.rows, table.dim);
        let lifted_dim = dim + usize::from(table.biases.is_some());
        let gpu = Gpu::open(Some(self.gpu.ordinal))?;
        let kernels = Kernels::load(&gpu, lifted_dim, false)?;
        let sizes = Sizes::new(rows, dim, kernels.int8.form.0);
        let wanted = Derived { int8: true, int4: false };
        // Those of the measurement.
        let peak_bytes = (size_of::<f32>() * rows) as u64;
        let derived =
            fit::fit(&gpu, peak_bytes, (rows, lifted_dim), wanted, Workspace::bytes(sizes) as u64)?;
        if !derived.int8 {
            return Err(does_not_fit(&gpu, rows, lifted_dim)?);
        }
        let rounding = Rounding::new(lifted_dim)?;
        let (peaks, longest_square) = (Array::zeroed(rows)?, Array::zeroed(1)?);
        let as_they_are = LiftView { longest: 1.0, beta: 1.0, dim: dim as i32, unused: 0 };
        // SAFETY: the table is at its addresses and nothing else uses it, as the caller promises;
        // the arrays are made here, and the stream is synchronised before they are dropped.
        unsafe {
            rounding.peaks(
                (view(table), as_they_are),
                &peaks,
                Some(&longest_square),
                &self.stream,
            )?;
        }
        self.stream.synchronize().doing("measuring the terms")?;
        let norm = longest_square.read()?[0].sqrt();
        if !(norm + largest_bias).is_finite() {
            return Err(GpuError::NotFinite);
        }
        let bias = match (table.biases, norm > 0.0) {
            (None, _) => 0.0,
            (Some(_), true) => largest_bias.max(norm * LEAST_BIAS),
            (Some(_), false) => largest_bias.max(LEAST_BIAS),
        };
        let lift = Lift::of_largest(norm, bias, token_norm).with_room(ROOM);
        // SAFETY: the table is at its addresses and does not change until the next call, as the
        // caller promises.
        let resident = unsafe { Resident::borrow(gpu, table, lift, &self.stream)? };
        let paths = Paths { certified_from_rows: 0, int4: false, ..Paths::default() };
        let kept = Kept { precision: Precision::Float32, memory: None, portable: false };
        let engine = CudaEngine::with_tables(Rc::new(resident), kernels, sizes, paths, kept)?;
        let quantised = engine.resident.quantised.as_ref().expect("every row has a slot");
        let again = RoundAgain::new(&engine.resident, quantised)?;
        self.rounded = Some(Rounded { again, engine, of: table });
        Ok(())
    }

    /// Rounds the same terms again after they have changed. Returns whether that was possible; if
    /// not, they must be [rounded](Self::round) from the start.
    ///
    /// # Safety
    /// - The table is at the addresses that it names.
    /// - The stream exists.
    /// - Until the next call, nothing else uses the table's memory.
    ///
    /// # Errors
    /// If the device fails.
    pub unsafe fn round_again(
        &mut self,
        table: BorrowedTable,
        after: u64,
    ) -> Result<bool, GpuError> {
        let Some(Rounded { again, engine, .. }) =
            self.rounded.as_mut().filter(|rounded| rounded.of == table)
        else {
            return Ok(false);
        };
        let (resident, stream) = (&engine.resident, &engine.stream);
        let quantised = resident.quantised.as_ref().expect("every row has a slot");
        // SAFETY: the foreign stream exists, as the caller promises; nothing else uses the tables,
        // because this has them by exclusive reference.
        unsafe {
            self.handover.after(after, stream)?;
            again.round(resident, quantised, stream)
        }
    }

    /// The terms that each text touches, ordered by text, then by term: those above zero, with the
    /// first position of their maximum. And the texts that touch more than the device merges, of
    /// which there are none in the list. `vectors` is the address of the texts' tokens,
    /// `[tokens, dim]` float32, one text after the other; each text `ends` at a token.
    ///
    /// # Safety
    /// - The terms were rounded as they are now.
    /// - They and the tokens are at the addresses that were given.
    /// - The stream exists.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If nothing was rounded, or there are too many texts or tokens.
    pub unsafe fn touched(
        &mut self,
        vectors: u64,
        ends: &[usize],
        after: u64,
    ) -> Result<(Vec<Touched>, Vec<u32>), GpuError> {
        let engine = &mut self.rounded.as_mut().expect("terms were rounded").engine;
        let tokens = ends.last().copied().unwrap_or(0);
        assert!(ends.len() <= MAX_TEXTS && tokens <= MAX_TOKENS, "{tokens} tokens");
        // SAFETY: the foreign stream exists, as the caller promises.
        unsafe { self.handover.after(after, &engine.stream)? };
        let leasts = vec![LEAST; ends.len()];
        let vectors = TokenVectors::Borrowed(DevicePointer::new(vectors));
        let texts = engine.terms_of(Tokens { vectors, ends, leasts: &leasts })?;
        Ok(touched(texts, ends))
    }

    /// Starts summing rows. `stream` is the library's: the sums begin after what is in it now, and
    /// what is put into it from now on begins after the sums.
    ///
    /// # Safety
    /// - The arrays are at their addresses, with the lengths that `of` says.
    /// - The stream exists.
    ///
    /// # Errors
    /// If the device fails.
    pub unsafe fn sum(&mut self, of: SumsOfRows, stream: u64) -> Result<(), GpuError> {
        let SumsOfRows { rows, indices, weights, begins, sums, totals, dim, groups } = of;
        let params = SumRowsParams {
            rows: DevicePointer::new(rows),
            indices: DevicePointer::new(indices),
            weights: DevicePointer::new(weights),
            begins: DevicePointer::new(begins),
            targets: DevicePointer::NULL,
            sums: DevicePointerMut::new(sums),
            totals: DevicePointerMut::new(totals),
            dim: dim as i32,
            groups: groups as u32,
        };
        let blocks = groups.div_ceil(self.sum_by_group.threads() / WARP);
        let shape = Shape::grid(blocks, dim.div_ceil(SUMMED_TOGETHER * WARP));
        // SAFETY: the arrays have their lengths and the foreign stream exists, as the caller
        // promises; a warp for each group and part of its components; the foreign stream goes on
        // only after the sums.
        unsafe {
            self.handover.after(stream, &self.stream)?;
            self.sum_by_group.launch(&self.stream, shape, &params)?;
            self.handover.before(stream, &self.stream)
        }
    }
}

impl Drop for BorrowedTerms {
    fn drop(&mut self) {
        // Sums may be under way.
        let _ = self.stream.synchronize();
    }
}

/// The vectors alone, as kernels take them.
fn view(table: BorrowedTable) -> TableView {
    TableView {
        components: DevicePointer::new(table.components),
        norms: DevicePointer::NULL,
        biases: DevicePointer::NULL,
        rows: table.rows as u32,
        dim: table.dim as i32,
        metric: Metric::Dot,
        unused: 0,
    }
}

/// The error for an 8-bit table that does not fit.
fn does_not_fit(gpu: &Gpu, rows: usize, dim: usize) -> Result<GpuError, GpuError> {
    let needed = fit::memory(0, (rows, dim), Derived { int8: true, int4: false }, 0).1;
    let parts = format!("the rounded table of {rows} terms");
    let (name, free, total) = (gpu.name.clone(), gpu.free_memory()?, gpu.total_memory);
    Ok(GpuError::DoesNotFit { name, parts, needed, free, total })
}
