//! Loads the kernels of the search that suit a device.

use contract::certificate;

use super::abi::{
    ExactScanParams, FirstThresholdsParams, HOPPER_GROUPS, HOPPER_MAX_STAGES, HopperScanParams,
    INT8_GROUPS, Int4RescoreParams, Int4ScanParams, Int4ThresholdParams, Int8ScanParams,
    LIST_BYTES, Layout, ListHitsParams, MergePartsParams, MinimumThresholdsParams,
    PrepareQueriesParams, RaiseThresholdsParams, RescoreParams, SLICE_CHUNKS, StopQueriesParams,
    entries,
};
use crate::GpuError;
use crate::abi::Params;
use crate::driver::{Entry, Gpu, Kernel, Modules};
use crate::resident::{CHUNK_BYTES, CHUNK8, TILE_ROWS};

/// Blocks for each multiprocessor that score the candidates of formulas: a multiprocessor has room
/// for two.
const FORMULA_BLOCKS: usize = 2;

/// The sampling and the scanning kernel for one number of queries per block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scans<P> {
    /// Queries that one block takes.
    pub(crate) queries: usize,
    plain: [Kernel<P>; 2],
    /// For queries with sets of rows: registers for them would cost the others time.
    with_sets: [Kernel<P>; 2],
}

impl<P> Scans<P> {
    pub(crate) fn kernel(&self, Scan { sampling, sets }: Scan) -> &Kernel<P> {
        let [sample, scan] = if sets { &self.with_sets } else { &self.plain };
        if sampling { sample } else { scan }
    }
}

/// The purpose of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// Bounds of groups of rows; otherwise candidates.
    pub(crate) sampling: bool,
    /// Whether some of the queries have sets of rows.
    pub(crate) sets: bool,
}

/// The kernels of the 4-bit table that are different if the query has a set of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Int4Kernels {
    pub(crate) scan: Kernel<Int4ScanParams>,
    pub(crate) rescore: Kernel<Int4RescoreParams>,
}

/// The kernels that scan the 8-bit table on this device, narrowest first.
#[derive(Debug)]
pub(crate) enum Int8Scans {
    Portable(Vec<Scans<Int8ScanParams>>),
    Hopper(Vec<Scans<HopperScanParams>>, Ring),
}

/// The kernels that scan the 8-bit table, and what they need from a pass.
#[derive(Debug)]
pub(crate) struct Int8Kernels {
    pub(crate) scans: Int8Scans,
    /// The batch sizes for which passes exist, ascending; each is a multiple of a scan's queries.
    pub(crate) widths: &'static [usize],
    /// Components of a query, with padding, and where its bytes are put.
    pub(crate) form: (usize, Layout),
    /// Bounds that the sampling scan writes for each tile.
    pub(crate) groups_per_tile: usize,
}

/// The Hopper scan's ring of tiles in shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ring {
    pub(crate) stages: usize,
    pub(crate) bytes: usize,
}

/// The kernels of a pass over the 8-bit table that are different if there are formulas among its
/// queries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryKernels {
    pub(crate) prepare: Kernel<PrepareQueriesParams>,
    pub(crate) first_thresholds: Kernel<FirstThresholdsParams>,
    pub(crate) raise_thresholds: Kernel<RaiseThresholdsParams>,
    pub(crate) rescore: Kernel<RescoreParams>,
    /// Bytes of dynamic shared memory of `first_thresholds`.
    pub(crate) first_shared: usize,
    /// Blocks of `rescore` for formulas, for each multiprocessor.
    pub(crate) formula_blocks: usize,
}

/// Every kernel of the search.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) exact_scan: Kernel<ExactScanParams>,
    pub(crate) float32_scan: Kernel<ExactScanParams>,
    pub(crate) exact_set_scan: Kernel<ExactScanParams>,
    pub(crate) float32_set_scan: Kernel<ExactScanParams>,
    pub(crate) merge_parts: Kernel<MergePartsParams>,
    pub(crate) plain: QueryKernels,
    /// For passes with formulas.
    pub(crate) formulas: QueryKernels,
    pub(crate) minimum_thresholds: Kernel<MinimumThresholdsParams>,
    pub(crate) stop_queries: Kernel<StopQueriesParams>,
    pub(crate) list_hits: Kernel<ListHitsParams>,
    pub(crate) int4: Int4Kernels,
    /// For a query with a set of rows.
    pub(crate) int4_set: Int4Kernels,
    pub(crate) int4_threshold: Kernel<Int4ThresholdParams>,
    pub(crate) int8: Int8Kernels,
    /// Whether every kernel was compiled for compute capability 9.0 or later, so that it can wait
    /// for the previous kernel. Only then may kernels be launched early. Code for 8.0 that the
    /// driver compiles again for a 9.0 has no such wait.
    pub(crate) wait: bool,
    // The kernels above belong to these modules.
    _modules: Modules,
}

impl Kernels {
    /// Loads the kernels that this device runs best for tables of `dim` components; only the
    /// portable ones if `portable`.
    pub(crate) fn load(gpu: &Gpu, dim: usize, portable: bool) -> Result<Self, GpuError> {
        use entries::{exact_scan, int4_scan, prepare_queries, rescore, thresholds};
        let mut modules = Modules::default();
        let int8 = match hopper(&mut modules, gpu, dim, portable)? {
            Some(hopper) => hopper,
            None => self::portable(&mut modules, dim)?,
        };
        // Tables with longer rows have no derived tables, see `resident::fit`.
        let vector_bytes = size_of::<f64>() * dim.min(certificate::MAX_DIM);
        let mut query_kernels = |prepare, first, raise, rescore, first_shared, formula_blocks| {
            Ok::<_, GpuError>(QueryKernels {
                prepare: modules.kernel(prepare)?.allow_shared(vector_bytes)?,
                first_thresholds: modules.kernel(first)?.allow_shared(first_shared)?,
                raise_thresholds: modules.kernel(raise)?,
                rescore: modules.kernel(rescore)?.allow_shared(LIST_BYTES)?,
                first_shared,
                formula_blocks,
            })
        };
        let plain = query_kernels(
            prepare_queries::prepare_queries,
            thresholds::first_thresholds,
            thresholds::raise_thresholds,
            rescore::rescore,
            0,
            0,
        )?;
        // One butterfly of the rotation per thread.
        let threads = (dim.next_power_of_two() / 4).clamp(128, 512) as u32;
        let plain = QueryKernels { prepare: plain.prepare.with_threads(threads), ..plain };
        let formulas = query_kernels(
            prepare_queries::prepare_formulas,
            thresholds::first_formula_thresholds,
            thresholds::raise_formula_thresholds,
            rescore::rescore_formulas,
            vector_bytes,
            FORMULA_BLOCKS,
        )?;
        Ok(Self {
            exact_scan: modules.kernel(exact_scan::exact_scan)?.allow_shared(LIST_BYTES)?,
            float32_scan: modules.kernel(exact_scan::float32_scan)?.allow_shared(LIST_BYTES)?,
            exact_set_scan: modules.kernel(exact_scan::exact_set_scan)?.allow_shared(LIST_BYTES)?,
            float32_set_scan: modules
                .kernel(exact_scan::float32_set_scan)?
                .allow_shared(LIST_BYTES)?,
            merge_parts: modules.kernel(exact_scan::merge_parts)?.allow_shared(LIST_BYTES)?,
            plain,
            formulas,
            minimum_thresholds: modules.kernel(thresholds::minimum_thresholds)?,
            stop_queries: modules.kernel(thresholds::stop_queries)?,
            list_hits: modules.kernel(rescore::list_hits)?,
            int4: Int4Kernels {
                scan: modules.kernel(int4_scan::int4_scan)?,
                rescore: modules.kernel(int4_scan::int4_rescore)?.allow_shared(LIST_BYTES)?,
            },
            int4_set: Int4Kernels {
                scan: modules.kernel(int4_scan::int4_set_scan)?,
                rescore: modules.kernel(int4_scan::int4_set_rescore)?.allow_shared(LIST_BYTES)?,
            },
            int4_threshold: modules.kernel(int4_scan::int4_threshold)?,
            int8,
            wait: modules.oldest_code()? >= 90,
            _modules: modules,
        })
    }
}

/// The Hopper kernels. Only for compute capability 9.0, because the instructions exist nowhere
/// else, and for up to 320 components, so that 128 queries fit a warpgroup's registers.
fn hopper(
    modules: &mut Modules,
    gpu: &Gpu,
    dim: usize,
    portable: bool,
) -> Result<Option<Int8Kernels>, GpuError> {
    use entries::hopper_scan::*;
    type Entries = [Entry<HopperScanParams>; 3];
    /// The number of steps of 32 components, then the kernels for 64, 128 and 256 queries per
    /// block: those that sample, and those that scan; then the same for sets of rows.
    const VARIANTS: [(usize, [Entries; 4]); 4] = [
        (
            2,
            [
                [hopper_sample_64_2, hopper_sample_128_2, hopper_sample_256_2],
                [hopper_scan_64_2, hopper_scan_128_2, hopper_scan_256_2],
                [hopper_set_sample_64_2, hopper_set_sample_128_2, hopper_set_sample_256_2],
                [hopper_set_scan_64_2, hopper_set_scan_128_2, hopper_set_scan_256_2],
            ],
        ),
        (
            4,
            [
                [hopper_sample_64_4, hopper_sample_128_4, hopper_sample_256_4],
                [hopper_scan_64_4, hopper_scan_128_4, hopper_scan_256_4],
                [hopper_set_sample_64_4, hopper_set_sample_128_4, hopper_set_sample_256_4],
                [hopper_set_scan_64_4, hopper_set_scan_128_4, hopper_set_scan_256_4],
            ],
        ),
        (
            7,
            [
                [hopper_sample_64_7, hopper_sample_128_7, hopper_sample_256_7],
                [hopper_scan_64_7, hopper_scan_128_7, hopper_scan_256_7],
                [hopper_set_sample_64_7, hopper_set_sample_128_7, hopper_set_sample_256_7],
                [hopper_set_scan_64_7, hopper_set_scan_128_7, hopper_set_scan_256_7],
            ],
        ),
        (
            10,
            [
                [hopper_sample_64_10, hopper_sample_128_10, hopper_sample_256_10],
                [hopper_scan_64_10, hopper_scan_128_10, hopper_scan_256_10],
                [hopper_set_sample_64_10, hopper_set_sample_128_10, hopper_set_sample_256_10],
                [hopper_set_scan_64_10, hopper_set_scan_128_10, hopper_set_scan_256_10],
            ],
        ),
    ];
    /// Bytes for barriers and gathered candidates, beside the ring.
    const RESERVED: usize = 8192;
    let chunks = dim.div_ceil(CHUNK8);
    if portable || gpu.capability != 90 {
        return Ok(None);
    }
    let chunk_bytes = CHUNK_BYTES * TILE_ROWS;
    let room = gpu.shared_memory as usize - RESERVED;
    let Some(&(steps, entries)) = VARIANTS.iter().find(|(steps, _)| 2 * steps >= chunks) else {
        return hopper_wide(modules, chunks, room);
    };
    let past_the_end = (2 * steps - chunks) * chunk_bytes;
    let room = room - past_the_end;
    let stages = (room / (chunks * chunk_bytes)).min(HOPPER_MAX_STAGES);
    let bytes = stages * chunks * chunk_bytes + past_the_end;
    let scans = scans([64, 128, 256], entries, modules)?;
    let ring = Ring { stages, bytes };
    Ok(Some(Int8Kernels::hopper(scans, ring, (steps * 32, Layout::Fragments64))?))
}

/// The Hopper kernels for rows of more than 320 components, if 128 queries fit the shared memory
/// beside a ring of three slices.
fn hopper_wide(
    modules: &mut Modules,
    chunks: usize,
    room: usize,
) -> Result<Option<Int8Kernels>, GpuError> {
    use entries::hopper_wide_scan::*;
    let entries = [
        [hopper_wide_sample_64, hopper_wide_sample_128],
        [hopper_wide_scan_64, hopper_wide_scan_128],
        [hopper_wide_set_sample_64, hopper_wide_set_sample_128],
        [hopper_wide_set_scan_64, hopper_wide_set_scan_128],
    ];
    let slice = SLICE_CHUNKS;
    let padded = chunks.next_multiple_of(slice) * CHUNK8;
    let (queries_bytes, slice_bytes) = (128 * padded, slice * CHUNK_BYTES * TILE_ROWS);
    let stages = (room.saturating_sub(queries_bytes) / slice_bytes).min(HOPPER_MAX_STAGES);
    if stages < 3 {
        return Ok(None);
    }
    let ring = Ring { stages, bytes: queries_bytes + stages * slice_bytes };
    let scans = scans([64, 128], entries, modules)?;
    Ok(Some(Int8Kernels::hopper(scans, ring, (padded, Layout::Chunks64))?))
}

impl Int8Kernels {
    fn hopper(
        mut scans: Vec<Scans<HopperScanParams>>,
        ring: Ring,
        form: (usize, Layout),
    ) -> Result<Self, GpuError> {
        for Scans { plain, with_sets, .. } in &mut scans {
            for kernel in plain.iter_mut().chain(with_sets) {
                *kernel = kernel.allow_shared(ring.bytes)?;
            }
        }
        Ok(Self {
            scans: Int8Scans::Hopper(scans, ring),
            // 192 would take longer than 256, and 896 as long as 1024: each group of 64 or 128
            // queries would read the table, and the multiprocessors do not divide evenly among the
            // groups.
            widths: &[64, 128, 256, 384, 512, 640, 768, 1024],
            form,
            groups_per_tile: HOPPER_GROUPS,
        })
    }
}

fn portable(modules: &mut Modules, dim: usize) -> Result<Int8Kernels, GpuError> {
    use entries::int8_scan::*;
    let entries = [
        [int8_sample_16, int8_sample_32, int8_sample_64],
        [int8_scan_16, int8_scan_32, int8_scan_64],
        [int8_set_sample_16, int8_set_sample_32, int8_set_sample_64],
        [int8_set_scan_16, int8_set_scan_32, int8_set_scan_64],
    ];
    Ok(Int8Kernels {
        scans: Int8Scans::Portable(scans([16, 32, 64], entries, modules)?),
        widths: &[16, 32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024],
        form: (dim.next_multiple_of(64), Layout::Fragments16),
        groups_per_tile: INT8_GROUPS,
    })
}

/// `entries` are those of kernels that sample, and of those that scan; then the same for sets.
fn scans<P: Params, const N: usize>(
    queries: [usize; N],
    entries: [[Entry<P>; N]; 4],
    modules: &mut Modules,
) -> Result<Vec<Scans<P>>, GpuError> {
    let mut of_width = |index: usize| {
        let mut kernel = |kind: usize| modules.kernel(entries[kind][index]);
        let (plain, with_sets) = ([kernel(0)?, kernel(1)?], [kernel(2)?, kernel(3)?]);
        Ok(Scans { queries: queries[index], plain, with_sets })
    };
    (0..N).map(&mut of_width).collect()
}
