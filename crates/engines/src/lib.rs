//! Makes the engines that search a model. `makers`: which engines, on which devices. `placement`
//! says what each device gets, `numa` where its threads and memory are, `warm_up` what it searches
//! before it is used, `self_check` whether its answers are right.
#![forbid(unsafe_code)]

pub mod background;
pub mod device;
mod makers;
pub mod numa;
pub mod placement;
mod self_check;
pub mod warm_up;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub use contract::Precision;
use contract::{Engine, HasTable, Staging};
use cpu_core::{CpuEngine, Origin, StartError, TablesReport};
use gpu_core::GpuError;
use model_store::ModelStore;
use tracing::{info, warn};

use crate::background::give_way;
use crate::device::{Device, Gpus, Placement};
use crate::placement::DoesNotFit;
use crate::warm_up::WarmUp;
pub use makers::{Maker, Makers, makers};
pub use self_check::{SELF_CHECK_PASSES, WrongAnswer, self_check};

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineStartError {
    /// The CPU engine does not start.
    #[error(transparent)]
    Cpu(#[from] StartError),
    /// The GPU engine does not start, and no other was allowed.
    #[error(
        "--device {device}: {source}; use --device cpu, or --device auto to use a GPU only if there is one"
    )]
    Gpu {
        /// The requested device.
        device: Device,
        /// Why it does not start.
        source: GpuError,
    },
    /// The model does not fit on several GPUs.
    #[error("--device {device} --placement {placement}: {source}")]
    Placement {
        /// The requested devices.
        device: Device,
        /// The requested placement.
        placement: Placement,
        /// What they lack.
        source: DoesNotFit,
    },
    /// The thread that owns the engine does not start.
    #[error("can't start the engine thread: {0}")]
    Thread(#[from] std::io::Error),
    /// It panicked while it was being made.
    #[error("the engine failed while starting: {0}; see the log")]
    Broken(String),
    /// It gives wrong answers.
    #[error(transparent)]
    WrongAnswer(#[from] WrongAnswer),
}

impl From<scheduler::StartError<EngineStartError>> for EngineStartError {
    fn from(error: scheduler::StartError<EngineStartError>) -> Self {
        match error {
            scheduler::StartError::Device(error) => error,
            scheduler::StartError::Broken(reason) => Self::Broken(reason),
            scheduler::StartError::Thread(error) => Self::Thread(error),
        }
    }
}

/// Which engine to make, and how.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The device that searches.
    pub device: Device,
    /// Placement of the model on several GPUs.
    pub placement: Placement,
    /// Threads of the CPU engine; 0 for one per core.
    pub threads: usize,
    /// Whether the CPU engine keeps its derived table beside the model folder.
    pub keep_tables: bool,
    /// How it keeps classifiers.
    pub heads: KeptHeads,
    /// Whether an engine was made on a GPU. All models of a service share it.
    pub had_gpu: HadGpu,
    /// Memory that callers fill with vectors: a GPU fetches them from there by itself.
    pub staging: Option<Arc<Staging>>,
    /// Rows that may be put behind the model's while its engine searches: a GPU keeps room for
    /// them.
    pub room: usize,
}

/// Whether an engine was made on a GPU. Clones share it; [`makers`] sets and reads it. With it, a
/// service that started on a GPU with [`Device::Auto`] does not continue on the CPU unnoticed.
#[derive(Debug, Clone, Default)]
pub struct HadGpu(Arc<AtomicBool>);

impl Wanted {
    /// The same, but `auto` means a GPU if an engine was made on one. If there is none any more,
    /// the error says why.
    fn insisting_if_had_gpu(mut self) -> Self {
        if self.had_gpu.0.load(Ordering::Relaxed) {
            self.insist_on_gpu();
        }
        self
    }

    /// Notes that an engine was made on a GPU. From now on `auto` means a GPU here.
    fn insist_on_gpu(&mut self) {
        self.had_gpu.0.store(true, Ordering::Relaxed);
        if self.device == Device::Auto {
            self.device = Device::Cuda(Gpus::First);
        }
    }
}

/// How an engine keeps classifiers.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptHeads {
    /// The most memory for what is computed from a classifier, in bytes. `None`: 2 GiB for the CPU,
    /// half of what is free on a GPU.
    pub memory: Option<u64>,
    /// How it is kept. `None`: as float16 on a GPU, as float32 for the CPU, where all machines then
    /// give the same bits.
    pub precision: Option<Precision>,
}

/// Makes the engine for a model, on one device. To be called on the thread that will own it. Drops
/// `warm` when the engine has reached its full speed.
///
/// # Errors
/// If the device that was asked for is not there.
pub fn make(
    model: &Arc<ModelStore>,
    wanted: &Wanted,
    warm: WarmUp,
) -> Result<Box<dyn Engine>, EngineStartError> {
    let on_first = |ordinal| on_gpu(model.clone(), ordinal, wanted, false);
    let made = wanted.device.on_first_gpu(on_first, |e| info!("using the CPU: {e}"));
    if let Some(engine) = made.map_err(|source| gpu_error(wanted, source))? {
        return Ok(engine);
    }
    let tell = |report: &TablesReport| match report.origin {
        Origin::None(_) | Origin::NotByRows(_) => warn!("{report}"),
        _ => info!("{report}"),
    };
    let options = cpu_core::Options {
        threads: wanted.threads,
        keep_in: if wanted.keep_tables { file_for_table(model) } else { None },
        before_deriving: warm
            .beside_others
            .then(|| -> Box<dyn FnOnce() + Send> { Box::new(give_way) }),
        report: Some(Box::new(move |report: TablesReport| {
            tell(&report);
            drop(warm);
        })),
        by_rows: model.attributes().is_some(),
        report_by_rows: Some(Box::new(move |report: TablesReport| tell(&report))),
        products: wanted.heads.memory,
        precision: wanted.heads.precision.unwrap_or(Precision::Float32),
        ..cpu_core::Options::default()
    };
    Ok(Box::new(CpuEngine::new(model.clone(), options)?))
}

fn gpu_error(wanted: &Wanted, source: GpuError) -> EngineStartError {
    EngineStartError::Gpu { device: wanted.device.clone(), source }
}

/// The file beside a model folder that keeps its derived table.
fn file_for_table(model: &ModelStore) -> Option<PathBuf> {
    /// A smaller table is derived in less time than anybody notices.
    const KEPT_FROM_COMPONENTS: usize = 50_000_000;
    if model.rows() * model.dim() < KEPT_FROM_COMPONENTS {
        return None;
    }
    cpu_core::table_file(model.folder()?)
}

/// Makes the engine for a table on a GPU, and logs the progress of its upload. If it must be
/// `at_full_speed`, too little memory for the tables that it derives is an error.
fn on_gpu(
    table: Arc<dyn HasTable>,
    ordinal: Option<u32>,
    wanted: &Wanted,
    at_full_speed: bool,
) -> Result<Box<dyn Engine>, GpuError> {
    const BETWEEN_LINES: Duration = Duration::from_secs(2);
    let started = Instant::now();
    let mut last = started;
    let mut progress = |done: u64, total: u64| {
        let gigabytes_per_second = done as f64 / 1e9 / started.elapsed().as_secs_f64();
        if last.elapsed() >= BETWEEN_LINES {
            last = Instant::now();
            let percent = done * 100 / total.max(1);
            let gpu = ordinal.unwrap_or(0);
            info!("cuda:{gpu}: uploading the table: {percent} %, {gigabytes_per_second:.1} GB/s");
        }
    };
    let KeptHeads { memory: products, precision } = wanted.heads;
    let options = gpu_core::Options {
        ordinal,
        progress: Some(&mut progress),
        precision: precision.unwrap_or(Precision::Float16),
        products,
        at_full_speed,
        staging: wanted.staging.clone(),
        room: wanted.room,
    };
    let bytes = size_of_val(table.table().components());
    let engine = gpu_core::engine(table, options)?;
    info!(
        "cuda:{}: uploaded {:.2} GB and derived the scan tables in {:.2} s",
        ordinal.unwrap_or(0),
        bytes as f64 / 1e9,
        started.elapsed().as_secs_f64()
    );
    Ok(engine)
}
