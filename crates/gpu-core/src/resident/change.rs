//! Changes rows of a table on the device, and rounds them again in the 8-bit table: as long as they do not become too long, nothing
//! else of it has to change.

#![allow(unsafe_code)]

use cust::stream::Stream;

use super::Resident;
use super::abi::{ChangeRowsParams, entries};
use super::quantise::rotating_threads;
use crate::GpuError;
use crate::abi::DevicePointer;
use crate::driver::{Array, Doing, Kernel, Modules, Room, Shape};

/// How rows change.
#[derive(Clone, Copy)]
struct Change {
    /// `[vectors, dim]` and `[rows]`: gradients, or new values.
    components: DevicePointer<f32>,
    biases: DevicePointer<f32>,
    vectors: usize,
    /// For gradients.
    rate: Option<f32>,
}

/// The kernel that changes rows, and its buffers.
pub(crate) struct RowChanges {
    // In the order in which they must be dropped: buffers, then the kernel, then its module.
    rows: Room<u32>,
    slots: Room<u32>,
    too_long: Room<u32>,
    /// New values.
    components: Room<f32>,
    biases: Room<f32>,
    kernel: Kernel<ChangeRowsParams>,
    vector_bytes: usize,
    _modules: Modules,
}

impl RowChanges {
    /// For tables whose lifted rows have `dim` components.
    ///
    /// # Errors
    /// If the device can't run the kernel.
    pub(crate) fn new(dim: usize) -> Result<Self, GpuError> {
        let vector_bytes = size_of::<f64>() * dim;
        let mut modules = Modules::default();
        let kernel = modules.kernel(entries::quantise_rows::change_rows)?;
        Ok(Self {
            rows: Room::new()?,
            slots: Room::new()?,
            too_long: Room::new()?,
            components: Room::new()?,
            biases: Room::new()?,
            kernel: kernel.allow_shared(vector_bytes)?.with_threads(rotating_threads(dim)),
            vector_bytes,
            _modules: modules,
        })
    }

    /// Takes a step of this rate against the gradients of some rows and their biases, and rounds the rows again. Returns whether none
    /// has become too long for the table's `Lift`; if one has, scores are wrong from now on.
    ///
    /// # Safety
    /// Nothing else uses the tables, which are under the metric `dot`, have biases and are not shared. The gradients are
    /// `[rows, dim]` and `[rows]`; rows are distinct and in the table.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) unsafe fn step(
        &mut self,
        resident: &Resident,
        rows: &[u32],
        (gradients, bias_gradients): (DevicePointer<f32>, DevicePointer<f32>),
        rate: f32,
        stream: &Stream,
    ) -> Result<bool, GpuError> {
        let change = Change {
            components: gradients,
            biases: bias_gradients,
            vectors: rows.len(),
            rate: Some(rate),
        };
        // SAFETY: the caller's promise.
        unsafe { self.change(resident, rows, change, stream) }
    }

    /// Gives rows new biases, and the first of them new vectors, and rounds them again. Returns as [`step`](Self::step).
    ///
    /// # Safety
    /// As for [`step`](Self::step).
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) unsafe fn replace(
        &mut self,
        resident: &Resident,
        rows: &[u32],
        (vectors, biases): (&[f32], &[f32]),
        stream: &Stream,
    ) -> Result<bool, GpuError> {
        let dim = resident.dim;
        assert!(vectors.len() <= rows.len() * dim && biases.len() == rows.len(), "rows' values");
        // SAFETY: no kernel uses the buffers, because each call waits for its own; `change` synchronises the stream.
        unsafe {
            self.components.upload(vectors, stream)?;
            self.biases.upload(biases, stream)?;
        }
        let change = Change {
            components: self.components.pointer(),
            biases: self.biases.pointer(),
            vectors: vectors.len() / dim,
            rate: None,
        };
        // SAFETY: the caller's promise.
        unsafe { self.change(resident, rows, change, stream) }
    }

    /// # Safety
    /// As for [`step`](Self::step).
    unsafe fn change(
        &mut self,
        resident: &Resident,
        rows: &[u32],
        change: Change,
        stream: &Stream,
    ) -> Result<bool, GpuError> {
        if rows.is_empty() {
            return Ok(true);
        }
        let quantised = resident.quantised.as_ref().expect("a table with certificates");
        let biases = resident.biases.as_ref().expect("a table with biases");
        assert_eq!(self.vector_bytes, size_of::<f64>() * resident.lifted_dim(), "lifted rows");
        let slots: Vec<u32> = rows.iter().map(|&row| quantised.slots.of(row)).collect();
        // SAFETY: the stream is synchronised below, before anything else uses the buffers.
        unsafe {
            self.rows.upload(rows, stream)?;
            self.slots.upload(&slots, stream)?;
            self.too_long.clear(1, stream)?;
        }
        let params = ChangeRowsParams {
            table: resident.view(),
            lift: resident.lift_view(),
            rows: self.rows.pointer(),
            slots: self.slots.pointer(),
            components_by: change.components,
            biases_by: change.biases,
            components: resident.components.pointer_mut(),
            biases: Array::pointer_mut(biases),
            tiles8: quantised.int8.pointer_mut(),
            scales: quantised.scales.pointer_mut(),
            too_long: self.too_long.pointer_mut(),
            vectors: change.vectors as u32,
            is_step: u32::from(change.rate.is_some()),
            rate: change.rate.unwrap_or_default(),
            unused: 0,
        };
        let shape = Shape::grid(rows.len(), 1).shared(self.vector_bytes);
        // SAFETY: the caller's promise; every row of a table under `dot` has a slot.
        unsafe {
            self.kernel.launch(stream, shape, &params)?;
            self.too_long.download(stream)?;
        }
        stream.synchronize().doing("changing rows")?;
        Ok(self.too_long.values()[0] == 0)
    }
}
