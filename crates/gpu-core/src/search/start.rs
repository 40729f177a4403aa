//! Makes the engine: opens the GPU, uploads the table, derives from it what the scans need, and
//! records the first passes.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::certificate::Lift;
use contract::{HasTable, Metric, Table};

use super::cost::DeviceCosts;
use super::kernels::Kernels;
use super::pace::Pace;
use super::workspace::{Exchange, Sizes, Workspace};
use super::{Counters, CudaEngine, Paths};
use crate::driver::{Gpu, Registered, new_stream};
use crate::full_pass::FullPasses;
use crate::heads::{Classifiers, Kept};
use crate::ranks::Ranks;
use crate::resident::{Derived, Resident, fit, table_bytes};
use crate::sets::{self, DeviceSets};
use crate::{GpuError, Options};

/// Bytes that an engine takes on a GPU for n rows of a table: those without which it does not
/// start, and those with all tables that it derives.
pub(crate) fn memory(table: &Table<'_>, rows: usize) -> (u64, u64) {
    let dim = table.dim();
    let row = size_of::<f64>() + size_of::<f32>() * (dim + usize::from(table.biases().is_some()));
    let lifted = dim + usize::from(table.biases().is_some());
    let buffers =
        Workspace::bytes(Sizes::new(rows, dim, 0)) + Ranks::bytes(dim) + sets::bytes(rows);
    let int4 = table.metric() == Metric::Cosine;
    fit::memory(rows * row, (rows, lifted), Derived { int8: true, int4 }, buffers)
}

impl CudaEngine {
    /// Opens the GPU, uploads the table and derives from it what these kinds of pass need.
    ///
    /// # Errors
    /// If there is no such GPU, or the table does not fit.
    pub fn new(
        table: Arc<dyn HasTable>,
        options: Options<'_>,
        paths: Paths,
    ) -> Result<Self, GpuError> {
        let Options { ordinal, progress, precision, products: memory, at_full_speed, staging } =
            options;
        let kept = Kept { precision, memory, portable: paths.portable };
        let gpu = Gpu::open(ordinal)?;
        let lift = Lift::of(&table.table(), None);
        if at_full_speed {
            let table = table.table();
            let (_, needed) = self::memory(&table, table.rows());
            fit::check(&gpu, needed, || "with all derived tables".to_owned())?;
        }
        let mut engine = Self::on(gpu, table, lift, None, paths, kept, progress)?;
        engine.registered = staging.as_ref().map(Registered::new);
        Ok(engine)
    }

    /// An engine for another table on the same device, which shares with this one what is the same
    /// in both, for queries whose norm is about this.
    pub(super) fn beside(
        &self,
        of: &Arc<dyn HasTable>,
        query_norm: Option<f64>,
    ) -> Result<Self, GpuError> {
        let gpu = Gpu::open(Some(self.resident.gpu.ordinal))?;
        let kept = self.classifiers.kept;
        let lift = Lift::of(&of.table(), query_norm);
        Self::on(gpu, of.clone(), lift, Some(&self.resident), self.paths, kept, None)
    }

    /// An engine on a GPU that is open.
    pub(super) fn on(
        gpu: Gpu,
        of: Arc<dyn HasTable>,
        lift: Lift,
        beside: Option<&Resident>,
        paths: Paths,
        kept: Kept,
        mut progress: Option<&mut dyn FnMut(u64, u64)>,
    ) -> Result<Self, GpuError> {
        let table = of.table();
        let (rows, dim) = (table.rows(), table.dim());
        let lifted_dim = lift.dim(dim);
        let kernels = Kernels::load(&gpu, lifted_dim, paths.portable)?;
        let sizes = Sizes::new(rows, dim, kernels.int8.form.0);
        // The levels of the 4-bit table are made for unit vectors.
        let int4 = paths.int4 && table.metric() == Metric::Cosine;
        let wanted = Derived { int8: paths.int8, int4 };
        let buffers = (Workspace::bytes(sizes) + Ranks::bytes(dim) + sets::bytes(rows)) as u64;
        let shares = beside.is_some_and(|beside| beside.has_components(&table));
        let needed = table_bytes(&table) - if shares { size_of_val(table.components()) } else { 0 };
        let derived = fit::fit(&gpu, needed as u64, (rows, lifted_dim), wanted, buffers)?;
        let total = needed as u64;
        let resident = Resident::upload(gpu, &of, lift, beside, derived, |done| {
            if let Some(progress) = &mut progress {
                progress(done, total);
            }
        })?;
        Self::with_tables(Rc::new(resident), kernels, sizes, paths, kept)
    }

    /// The engine over tables that are on the device already, which other workloads may share.
    pub(super) fn with_tables(
        resident: Rc<Resident>,
        kernels: Kernels,
        sizes: Sizes,
        paths: Paths,
        kept: Kept,
    ) -> Result<Self, GpuError> {
        let ranks = match resident.lift.metric {
            Metric::Cosine => Ranks::new(&resident.gpu, resident.dim, paths.portable)?,
            // Its scan is for cosines.
            Metric::Dot => None,
        };
        let costs = DeviceCosts {
            certifies: resident.quantised.is_some() && resident.rows >= paths.certified_from_rows,
            counts_ranks: ranks.is_some(),
            components: resident.rows.saturating_mul(resident.dim),
        };
        let mut engine = Self {
            graphs: HashMap::new(),
            timing: None,
            workspace: Workspace::new(sizes)?,
            exchanges: [Exchange::new(resident.dim)?, Exchange::new(resident.dim)?],
            registered: None,
            full_passes: FullPasses::new()?,
            sets: DeviceSets::new(&resident)?,
            classifiers: Classifiers::new(resident.clone(), kept),
            expanders: Vec::new(),
            token_passes: None,
            ranks,
            costs,
            pace: Pace::new(kernels.int8.widths),
            kernels,
            stream: new_stream()?,
            resident,
            paths,
            counters: Counters::default(),
            under_way: false,
            started: VecDeque::new(),
            finished: Instant::now(),
            device_time: Duration::ZERO,
        };
        engine.record_graphs()?;
        Ok(engine)
    }
}
