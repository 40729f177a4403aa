//! Rounds all rows of a table again after they have changed, in the places that they have.

#![allow(unsafe_code)]

use cust::stream::Stream;

use super::abi::{RoundAgainParams, entries};
use super::quantise::Rounding;
use super::{Quantised, Resident};
use crate::GpuError;
use crate::driver::{Array, Doing, Kernel, Modules, Shape};

/// The square of a lifted row's length from which on it may be longer than 1, with what float32
/// sums may be wrong by.
const LONGEST_SQUARE: f64 = 1.0 - 1e-4;

/// The same below which rows are better lifted in another way: they are rounded too coarsely.
const SHORTEST_SQUARE: f64 = 0.25;

/// The kernel that rounds rows again, and what it remembers of each tile.
#[derive(Debug)]
pub(crate) struct RoundAgain {
    // In the order in which they must be dropped: buffers, then kernels, then their module.
    /// `[tiles]`.
    tile_peaks: Array<f32>,
    /// `[1]`.
    longest_square: Array<f64>,
    how: How,
    _modules: Modules,
}

#[derive(Debug)]
enum How {
    Fast {
        kernel: Kernel<RoundAgainParams>,
        shared: usize,
    },
    /// For rows of very few or very many components: as at first.
    Plain {
        rounding: Rounding,
        /// `[rows]`.
        peaks: Array<f32>,
    },
}

impl RoundAgain {
    /// For a table that has been rounded.
    ///
    /// # Errors
    /// If the device lacks the memory, or can't run the kernels.
    pub(crate) fn new(resident: &Resident, quantised: &Quantised) -> Result<Self, GpuError> {
        use entries::round_again as of;
        let dim = resident.lifted_dim();
        let mut modules = Modules::default();
        let how = match dim / 32 {
            values @ 1..64 => {
                let entry = match values.ilog2() {
                    0 => of::round_again_1,
                    1 => of::round_again_2,
                    2 => of::round_again_4,
                    3 => of::round_again_8,
                    4 => of::round_again_16,
                    _ => of::round_again_32,
                };
                let kernel = modules.kernel(entry)?;
                let shared = kernel.threads() / 32 * dim * size_of::<f32>();
                How::Fast { kernel: kernel.allow_shared(shared)?, shared }
            }
            _ => How::Plain { rounding: Rounding::new(dim)?, peaks: Array::zeroed(resident.rows)? },
        };
        Ok(Self {
            tile_peaks: Array::zeroed(quantised.tiles())?,
            longest_square: Array::zeroed(1)?,
            how,
            _modules: modules,
        })
    }

    /// Rounds the rows as they are now. Returns whether they fit the table's `Lift`; if not, scores
    /// are wrong from now on.
    ///
    /// # Safety
    /// - Nothing else uses the tables until this has returned.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) unsafe fn round(
        &mut self,
        resident: &Resident,
        quantised: &Quantised,
        stream: &Stream,
    ) -> Result<bool, GpuError> {
        assert_eq!(self.tile_peaks.len(), quantised.tiles(), "of another table");
        self.longest_square.write(&[0.0])?;
        let (table, lift) = (resident.view(), resident.lift_view());
        // SAFETY: the caller's promise; the tables were made for this table and this lift, and the
        // stream is synchronised below.
        unsafe {
            match &self.how {
                How::Fast { kernel, shared } => {
                    let params = RoundAgainParams {
                        table,
                        lift,
                        slot_rows: quantised.slot_rows.pointer(),
                        tiles8: quantised.int8.pointer_mut(),
                        scales: quantised.scales.pointer_mut(),
                        tile_peaks: self.tile_peaks.pointer_mut(),
                        longest_square: self.longest_square.pointer_mut(),
                    };
                    kernel.launch(
                        stream,
                        Shape::grid(quantised.tiles(), 1).shared(*shared),
                        &params,
                    )?;
                }
                How::Plain { rounding, peaks } => {
                    let square = Some(&self.longest_square);
                    rounding.peaks((table, lift), peaks, square, stream)?;
                    rounding.round((table, lift), peaks, quantised, stream)?;
                }
            }
        }
        stream.synchronize().doing("rounding the terms")?;
        Ok((SHORTEST_SQUARE..LONGEST_SQUARE).contains(&self.longest_square.read()?[0]))
    }
}
