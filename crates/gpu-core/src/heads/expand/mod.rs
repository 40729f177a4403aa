//! Sums of rows on a device, which the gradients of an expander are:
//! `cpu_core::heads::expand::gradients` has the formulas and the order of summation.

#![allow(unsafe_code)]

pub(crate) mod abi;

use cpu_core::heads::expand::gradients::Way;
use cust::stream::Stream;

use crate::GpuError;
use crate::driver::{Kernel, Modules, Shape};
pub(crate) use abi::SumRowsParams;
use abi::{SUMMED_TOGETHER, entries};

/// Lanes of a warp.
const WARP: usize = 32;

/// Components of a group that a warp sums.
const fn components_of_warp(way: Way) -> usize {
    match way {
        Way::ByTerm => SUMMED_TOGETHER * WARP,
        Way::ByComponent => WARP,
    }
}

/// The kernels that sum rows.
pub(crate) struct RowSums {
    by_group: Kernel<SumRowsParams>,
    by_component: Kernel<SumRowsParams>,
    _modules: Modules,
}

impl RowSums {
    /// # Errors
    /// If the device can't run the kernels.
    pub(crate) fn new() -> Result<Self, GpuError> {
        use entries::gradients;
        let mut modules = Modules::default();
        Ok(Self {
            by_group: modules.kernel(gradients::sum_by_group)?,
            by_component: modules.kernel(gradients::sum_by_component)?,
            _modules: modules,
        })
    }

    /// Starts summing in one way.
    ///
    /// # Safety
    /// - The parameters' arrays have the lengths that the parameters say.
    /// - They stay allocated, and nothing else changes them, until the sums are over.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(crate) unsafe fn start(
        &self,
        way: Way,
        params: &SumRowsParams,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let kernel = match way {
            Way::ByTerm => &self.by_group,
            Way::ByComponent => &self.by_component,
        };
        let groups = (params.groups as usize).div_ceil(kernel.threads() / WARP);
        let shape = Shape::grid(groups, (params.dim as usize).div_ceil(components_of_warp(way)));
        // SAFETY: the caller's promise; a warp for each group and part of its components.
        unsafe { kernel.launch(stream, shape, params) }
    }
}
