//! The kernels of the search, loaded for one device.

use contract::certificate;
use cust::module::Module;

use crate::GpuError;
use crate::driver::{Gpu, Kernel, fatbins, load};
use crate::resident::constants::TILE_ROWS;

/// `TopKList` of `top_k_list.cuh`, bytes; the larger of what the ranking kernels keep there.
pub(crate) const LIST_BYTES: usize = 2048 * 12 + 40;

/// The most hits that a list on the device ranks.
pub(crate) const MAX_K: usize = 1024;

/// Where `prepare_queries` puts a query's bytes; the `Layout` of that kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Plain = 0,
    Fragments16 = 1,
    Fragments64 = 2,
}

/// One width of batch: its sampling and its scanning kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scans {
    /// Queries that one block takes.
    pub(crate) queries: usize,
    pub(crate) sample: Kernel,
    pub(crate) scan: Kernel,
}

/// The kernels that scan the 8-bit table on this device.
#[derive(Debug)]
pub(crate) struct Int8Kernels {
    /// Narrowest first.
    pub(crate) scans: Vec<Scans>,
    /// The batches that there are passes for, ascending; each is a multiple of a scan's queries.
    pub(crate) widths: &'static [usize],
    pub(crate) layout: Layout,
    /// Components of a query with padding.
    pub(crate) padded: usize,
    /// Of Hopper's ring in shared memory; `None` on the portable path.
    pub(crate) ring: Option<Ring>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub(crate) stages: usize,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) exact_scan: Kernel,
    pub(crate) float32_scan: Kernel,
    pub(crate) merge_parts: Kernel,
    pub(crate) score_rows: Kernel,
    pub(crate) row_peaks: Kernel,
    pub(crate) quantise_rows: Kernel,
    pub(crate) prepare_queries: Kernel,
    pub(crate) first_thresholds: Kernel,
    pub(crate) raise_thresholds: Kernel,
    pub(crate) rescore: Kernel,
    pub(crate) int4_scan: Kernel,
    pub(crate) int4_threshold: Kernel,
    pub(crate) int4_rescore: Kernel,
    pub(crate) int8: Int8Kernels,
    /// Whether every kernel of a pass was compiled for a device on which it can wait for the one before
    /// it: only then may it be launched early. Code for 8.0, say, compiled anew by the driver of a 9.0,
    /// has no such wait.
    pub(crate) wait: bool,
    // The functions above belong to these.
    _modules: Vec<Module>,
}

impl Kernels {
    /// Loads what this device runs best for tables of `dim` components, or the portable kernels only.
    pub(crate) fn load(gpu: &Gpu, dim: usize, portable: bool) -> Result<Self, GpuError> {
        let exact = load(fatbins::EXACT_SCAN)?;
        let quantise = load(fatbins::QUANTISE_ROWS)?;
        let prepare = load(fatbins::PREPARE_QUERIES)?;
        let thresholds = load(fatbins::THRESHOLDS)?;
        let rescore = load(fatbins::RESCORE)?;
        let int4 = load(fatbins::INT4_SCAN)?;
        let (int8_module, int8) = match Self::hopper(gpu, dim, portable)? {
            Some(hopper) => hopper,
            None => Self::portable(dim)?,
        };
        // Of larger rows no tables are derived, see `fit`.
        let dim = dim.min(certificate::MAX_DIM);
        let vector_bytes = 8 * dim;
        let quantise_bytes = vector_bytes + 32 * dim.div_ceil(32);
        let mut kernels = Self {
            exact_scan: Kernel::find(&exact, "exact_scan")?.allow_shared(LIST_BYTES)?,
            float32_scan: Kernel::find(&exact, "float32_scan")?.allow_shared(LIST_BYTES)?,
            merge_parts: Kernel::find(&exact, "merge_parts")?.allow_shared(LIST_BYTES)?,
            score_rows: Kernel::find(&exact, "score_rows")?,
            row_peaks: Kernel::find(&quantise, "row_peaks")?.allow_shared(vector_bytes)?,
            quantise_rows: Kernel::find(&quantise, "quantise_rows")?
                .allow_shared(quantise_bytes)?,
            prepare_queries: Kernel::find(&prepare, "prepare_queries")?
                .allow_shared(vector_bytes)?,
            first_thresholds: Kernel::find(&thresholds, "first_thresholds")?,
            raise_thresholds: Kernel::find(&thresholds, "raise_thresholds")?,
            rescore: Kernel::find(&rescore, "rescore")?.allow_shared(LIST_BYTES)?,
            int4_scan: Kernel::find(&int4, "int4_scan")?,
            int4_threshold: Kernel::find(&int4, "int4_threshold")?,
            int4_rescore: Kernel::find(&int4, "int4_rescore")?.allow_shared(LIST_BYTES)?,
            int8,
            wait: false,
            _modules: vec![exact, quantise, prepare, thresholds, rescore, int4, int8_module],
        };
        kernels.wait = kernels.all_wait()?;
        Ok(kernels)
    }

    fn all_wait(&self) -> Result<bool, GpuError> {
        let small = [
            self.prepare_queries,
            self.first_thresholds,
            self.raise_thresholds,
            self.rescore,
            self.int4_scan,
            self.int4_threshold,
            self.int4_rescore,
        ];
        let scans = self.int8.scans.iter().flat_map(|scans| [scans.sample, scans.scan]);
        for kernel in small.into_iter().chain(scans) {
            if kernel.compiled_for()? < 90 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compute capability 9.0 exactly: the instructions exist nowhere else. Up to 320 components, so
    /// that 128 queries fit a warpgroup's registers.
    fn hopper(
        gpu: &Gpu,
        dim: usize,
        portable: bool,
    ) -> Result<Option<(Module, Int8Kernels)>, GpuError> {
        const NAMES: [(usize, [[&str; 2]; 3]); 4] = [
            (
                2,
                [
                    ["hopper_sample_64_2", "hopper_scan_64_2"],
                    ["hopper_sample_128_2", "hopper_scan_128_2"],
                    ["hopper_sample_256_2", "hopper_scan_256_2"],
                ],
            ),
            (
                4,
                [
                    ["hopper_sample_64_4", "hopper_scan_64_4"],
                    ["hopper_sample_128_4", "hopper_scan_128_4"],
                    ["hopper_sample_256_4", "hopper_scan_256_4"],
                ],
            ),
            (
                7,
                [
                    ["hopper_sample_64_7", "hopper_scan_64_7"],
                    ["hopper_sample_128_7", "hopper_scan_128_7"],
                    ["hopper_sample_256_7", "hopper_scan_256_7"],
                ],
            ),
            (
                10,
                [
                    ["hopper_sample_64_10", "hopper_scan_64_10"],
                    ["hopper_sample_128_10", "hopper_scan_128_10"],
                    ["hopper_sample_256_10", "hopper_scan_256_10"],
                ],
            ),
        ];
        const MAX_STAGES: usize = 12;
        /// Barriers and gathered candidates, beside the ring.
        const RESERVED: usize = 8192;
        let chunks = dim.div_ceil(16);
        let Some((steps, names)) = NAMES.iter().find(|(steps, _)| 2 * steps >= chunks) else {
            return Ok(None);
        };
        if portable || gpu.capability != 90 {
            return Ok(None);
        }
        let chunk_bytes = 16 * TILE_ROWS;
        let past_the_end = (2 * steps - chunks) * chunk_bytes;
        let room = gpu.shared_memory as usize - RESERVED - past_the_end;
        let stages = (room / (chunks * chunk_bytes)).min(MAX_STAGES);
        let bytes = stages * chunks * chunk_bytes + past_the_end;
        let module = load(fatbins::HOPPER_SCAN)?;
        let scans = names
            .iter()
            .zip([64, 128, 256])
            .map(|([sample, scan], queries)| {
                Ok(Scans {
                    queries,
                    sample: Kernel::find(&module, sample)?.allow_shared(bytes)?,
                    scan: Kernel::find(&module, scan)?.allow_shared(bytes)?,
                })
            })
            .collect::<Result<_, GpuError>>()?;
        let kernels = Int8Kernels {
            scans,
            // 192 would take longer than 256, and 896 as long as 1024: with groups of 64 or 128 queries
            // each reading the table, and multiprocessors that do not divide among them.
            widths: &[64, 128, 256, 384, 512, 640, 768, 1024],
            layout: Layout::Fragments64,
            padded: steps * 32,
            ring: Some(Ring { stages, bytes }),
        };
        Ok(Some((module, kernels)))
    }

    fn portable(dim: usize) -> Result<(Module, Int8Kernels), GpuError> {
        let module = load(fatbins::INT8_SCAN)?;
        let names = [
            (16, "int8_sample_16", "int8_scan_16"),
            (32, "int8_sample_32", "int8_scan_32"),
            (64, "int8_sample_64", "int8_scan_64"),
        ];
        let scans = names
            .map(|(queries, sample, scan)| {
                Ok(Scans {
                    queries,
                    sample: Kernel::find(&module, sample)?,
                    scan: Kernel::find(&module, scan)?,
                })
            })
            .into_iter()
            .collect::<Result<_, GpuError>>()?;
        let kernels = Int8Kernels {
            scans,
            widths: &[16, 32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024],
            layout: Layout::Fragments16,
            padded: dim.div_ceil(64) * 64,
            ring: None,
        };
        Ok((module, kernels))
    }
}
