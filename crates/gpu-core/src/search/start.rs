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
use crate::resident::{Appending, Derived, Resident, TILE_ROWS, fit, table_bytes};
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

/// Slots for rows and for as many more, which begin with a tile of their own.
fn capacity(rows: usize, room: usize) -> usize {
    if room == 0 { rows } else { rows.next_multiple_of(TILE_ROWS) + room }
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
        let Options {
            ordinal,
            progress,
            precision,
            products: memory,
            at_full_speed,
            staging,
            room,
        } = options;
        let kept = Kept { precision, memory, portable: paths.portable };
        let gpu = Gpu::open(ordinal)?;
        let lift = Lift::of(&table.table(), None);
        if at_full_speed {
            let table = table.table();
            let (_, needed) = self::memory(&table, table.rows() + room);
            fit::check(&gpu, needed, || "with all derived tables".to_owned())?;
        }
        let mut engine = Self::on(gpu, (table, room), lift, None, paths, kept, progress)?;
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
        Self::on(gpu, (of.clone(), 0), lift, Some(&self.resident), self.paths, kept, None)
    }

    /// An engine for a table on a GPU that is open, with room for so many more rows.
    pub(super) fn on(
        gpu: Gpu,
        (of, room): (Arc<dyn HasTable>, usize),
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
        // The levels of the 4-bit table are made for unit vectors.
        let int4 = paths.int4 && table.metric() == Metric::Cosine;
        let wanted = Derived { int8: paths.int8, int4 };
        let shares = beside.is_some_and(|beside| beside.has_components(&table));
        let needed = table_bytes(&table) - if shares { size_of_val(table.components()) } else { 0 };
        let total = needed as u64;
        let fit = |room: usize| {
            // Rows that are appended begin with a tile of their own.
            let sizes = Sizes::new(capacity(rows, room), dim, kernels.int8.form.0);
            let own = Workspace::bytes(sizes) + Ranks::bytes(dim) + sets::bytes(rows + room);
            let row = size_of::<f32>() * dim + size_of::<f64>();
            let (table, buffers) = ((needed + room * row) as u64, own as u64);
            let derived = fit::fit(&gpu, table, (rows + room, lifted_dim), wanted, buffers)?;
            Ok::<_, GpuError>((derived, sizes))
        };
        // The scale of rows under the metric `dot` is that of those that are there.
        let room = if table.metric() == Metric::Cosine { room } else { 0 };
        let (derived, sizes) = fit(0)?;
        // Room is less than derived tables.
        let with_room = fit(room).ok().filter(|with_room| with_room.0 == derived);
        let (room, sizes) = with_room.map_or((0, sizes), |(_, sizes)| (room, sizes));
        let resident = Resident::upload(gpu, &of, lift, beside, (derived, room), |done| {
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
        let has_room = resident.capacity > resident.rows;
        let appending = has_room.then(|| Appending::new(&resident)).transpose()?;
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
            appending,
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
