//! Loads the kernels of classifiers that suit a device.

use super::abi::{
    DENSE_INPUTS, DENSE_OUTPUTS, DENSE_STAGES, DENSE_WIDE_OUTPUTS, DenseParams, FeaturesParams,
    HEAD_TEXTS, HOPPER_DENSE_STAGES, ProductsParams, ScoresParams, entries,
};
use crate::GpuError;
use crate::driver::{Entry, Gpu, Kernel, Modules};

/// The kernels for features, by the widest window that they take; the last one takes any.
#[derive(Debug)]
pub(super) struct Widths([(usize, Kernel<FeaturesParams>); 4]);

impl Widths {
    fn load(modules: &mut Modules, entries: [Entry<FeaturesParams>; 4]) -> Result<Self, GpuError> {
        let [three, five, nine, any] = entries;
        Ok(Self([
            (3, modules.kernel(three)?),
            (5, modules.kernel(five)?),
            (9, modules.kernel(nine)?),
            (usize::MAX, modules.kernel(any)?),
        ]))
    }

    /// The kernel for windows of this width.
    pub(super) fn of(&self, width: usize) -> Kernel<FeaturesParams> {
        self.0.iter().find(|(widest, _)| width <= *widest).expect("the last takes any").1
    }
}

/// A kernel for hidden layers, and how it is launched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dense {
    pub(super) kernel: Kernel<DenseParams>,
    /// Outputs and texts of a block.
    pub(super) outputs: usize,
    pub(super) texts: usize,
    /// Dynamic shared memory of a block, in bytes.
    pub(super) shared: usize,
}

/// Every kernel of classifiers.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) multiply_tokens: Kernel<ProductsParams>,
    /// Float16 products to float16 features.
    pub(super) half: Widths,
    /// Float16 products to float32 features.
    pub(super) mixed: Widths,
    /// Float32 products to float32 features.
    pub(super) float: Widths,
    /// Widest first; the last takes any layer. None: hidden layers are in float32.
    pub(super) dense_half: Vec<Dense>,
    pub(super) dense_float: Dense,
    pub(super) scores_half: Kernel<ScoresParams>,
    pub(super) scores_float: Kernel<ScoresParams>,
    /// The device's second-level cache, in bytes.
    pub(super) cache: usize,
    // The kernels above belong to these modules.
    _modules: Modules,
}

impl Kernels {
    /// Loads the kernels that this device runs best; only those that every device runs if
    /// `portable`.
    pub(super) fn load(gpu: &Gpu, portable: bool) -> Result<Self, GpuError> {
        use entries::{dense, heads, hopper_dense};
        let mut modules = Modules::default();
        let m = &mut modules;
        let mut dense_half = Vec::new();
        let mut add = |m: &mut Modules, entry, outputs, stages| -> Result<(), GpuError> {
            let shared = stages * size_of::<u16>() * DENSE_INPUTS * (HEAD_TEXTS + outputs);
            // A device with too little shared memory uses the next one.
            if shared <= gpu.shared_memory as usize {
                let kernel = m.kernel(entry)?.allow_shared(shared)?;
                dense_half.push(Dense { kernel, outputs, texts: HEAD_TEXTS, shared });
            }
            Ok(())
        };
        if gpu.capability == 90 && !portable {
            add(m, hopper_dense::hopper_dense_256, DENSE_WIDE_OUTPUTS, HOPPER_DENSE_STAGES)?;
            add(m, hopper_dense::hopper_dense_128, DENSE_OUTPUTS, HOPPER_DENSE_STAGES)?;
        } else {
            add(m, dense::dense_half, DENSE_OUTPUTS, DENSE_STAGES)?;
        }
        let dense_float =
            Dense { kernel: m.kernel(dense::dense_float)?, outputs: 64, texts: 64, shared: 0 };
        let half = [
            heads::features_half_3,
            heads::features_half_5,
            heads::features_half_9,
            heads::features_half_any,
        ];
        let mixed = [
            heads::features_mixed_3,
            heads::features_mixed_5,
            heads::features_mixed_9,
            heads::features_mixed_any,
        ];
        let float = [
            heads::features_float_3,
            heads::features_float_5,
            heads::features_float_9,
            heads::features_float_any,
        ];
        Ok(Self {
            multiply_tokens: m.kernel(heads::multiply_tokens)?,
            half: Widths::load(m, half)?,
            mixed: Widths::load(m, mixed)?,
            float: Widths::load(m, float)?,
            dense_half,
            dense_float,
            scores_half: m.kernel(heads::scores_half)?,
            scores_float: m.kernel(heads::scores_float)?,
            cache: gpu.cache as usize,
            _modules: modules,
        })
    }
}
