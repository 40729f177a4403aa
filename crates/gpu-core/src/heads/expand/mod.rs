//! Sums of rows on a device, which the gradients of an expander are:
//! docs/expand.md has the formulas and the order of summation.

#![allow(unsafe_code)]

pub(crate) mod abi;

use cust::stream::Stream;

use crate::GpuError;
use crate::driver::{Kernel, Modules, Shape};
pub(crate) use abi::SumRowsParams;
use abi::{SUMMED_TOGETHER, entries};

/// Lanes of a warp.
const WARP: usize = 32;

/// The kernel that sums rows.
pub(crate) struct RowSums {
    by_group: Kernel<SumRowsParams>,
    _modules: Modules,
}

impl RowSums {
    /// # Errors
    /// If the device can't run the kernel.
    pub(crate) fn new() -> Result<Self, GpuError> {
        let mut modules = Modules::default();
        Ok(Self { by_group: modules.kernel(entries::gradients::sum_by_group)?, _modules: modules })
    }

    /// Starts summing.
    ///
    /// # Safety
    /// - The parameters' arrays have the lengths that the parameters say.
    /// - They stay allocated, and nothing else changes them, until the sums are over.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(crate) unsafe fn start(
        &self,
        params: &SumRowsParams,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let groups = (params.groups as usize).div_ceil(self.by_group.threads() / WARP);
        let parts = (params.dim as usize).div_ceil(SUMMED_TOGETHER * WARP);
        // SAFETY: the caller's promise; a warp for each group and part of its components.
        unsafe { self.by_group.launch(stream, Shape::grid(groups, parts), params) }
    }
}
