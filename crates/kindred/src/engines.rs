//! Makes the engine that searches a model.

mod self_check;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Engine;
pub use contract::Precision;
use cpu_core::{CpuEngine, Origin, StartError, TablesReport};
use gpu_core::GpuError;
use model_store::ModelStore;
use tracing::{info, warn};

use crate::background::give_way;
use crate::device::Device;
use crate::warm_up::WarmUp;
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

/// Makes an engine, on the thread that will own it, and again each time that engine has failed.
pub type Maker = Box<dyn FnMut(WarmUp) -> Result<Box<dyn Engine>, EngineStartError> + Send>;

/// Which engine to make, and how.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The device that searches.
    pub device: Device,
    /// Threads of the CPU engine; 0 for one per core.
    pub threads: usize,
    /// Whether the CPU engine keeps its derived table beside the model folder.
    pub keep_tables: bool,
    /// How it keeps classifiers.
    pub heads: KeptHeads,
}

/// How an engine keeps classifiers.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeptHeads {
    /// The most memory for what is computed from a classifier, in bytes. `None`: 2 GiB for the CPU, half of what is free on a GPU.
    pub memory: Option<u64>,
    /// How it is kept. `None`: as float16 on a GPU, as float32 for the CPU, where all machines then give the same bits.
    pub precision: Option<Precision>,
}

/// Makes the engine for a model. To be called on the thread that will own it. Drops `warm` when the engine has reached
/// its full speed.
///
/// # Errors
/// If the device that was asked for is not there.
pub fn make(
    model: &Arc<ModelStore>,
    wanted: Wanted,
    warm: WarmUp,
) -> Result<Box<dyn Engine>, EngineStartError> {
    let device = wanted.device;
    match device {
        Device::Cuda(ordinal) => {
            return on_gpu(model, ordinal, wanted.heads)
                .map_err(|source| EngineStartError::Gpu { device, source });
        }
        Device::Auto => match on_gpu(model, None, wanted.heads) {
            Ok(engine) => return Ok(engine),
            Err(e) => info!("using the CPU: {e}"),
        },
        Device::Cpu => {}
    }
    let options = cpu_core::Options {
        threads: wanted.threads,
        keep_in: if wanted.keep_tables { file_for_table(model) } else { None },
        before_deriving: warm
            .is_beside_others()
            .then(|| -> Box<dyn FnOnce() + Send> { Box::new(give_way) }),
        report: Some(Box::new(move |report| {
            say(&report);
            drop(warm);
        })),
        products: wanted.heads.memory,
        precision: wanted.heads.precision.unwrap_or(Precision::Float32),
        ..cpu_core::Options::default()
    };
    Ok(Box::new(CpuEngine::new(model.clone(), options)?))
}

/// As [`make`], but the engine has also passed its [`self_check`], so it may be used.
///
/// # Errors
/// As [`make`], or if it answers wrong.
pub fn make_checked(
    model: &Arc<ModelStore>,
    wanted: Wanted,
    warm: WarmUp,
) -> Result<Box<dyn Engine>, EngineStartError> {
    let mut engine = make(model, wanted, warm)?;
    self_check(&mut *engine, model)?;
    Ok(engine)
}

/// The file beside a model folder that keeps its derived table.
fn file_for_table(model: &ModelStore) -> Option<PathBuf> {
    /// A smaller table is derived in less time than anybody notices.
    const KEPT_FROM_COMPONENTS: usize = 50_000_000;
    if model.rows() * model.dim() < KEPT_FROM_COMPONENTS {
        return None;
    }
    // Also for a folder that is given as `.` or ends in `..`.
    let folder = model.folder()?.canonicalize().ok()?;
    let mut name = folder.file_name()?.to_owned();
    name.push(".cpu-table");
    Some(folder.with_file_name(name))
}

fn say(report: &TablesReport) {
    match report.origin {
        Origin::None(_) => warn!("{report}"),
        _ => info!("{report}"),
    }
}

/// Makes the GPU engine, and logs the progress of its upload.
fn on_gpu(
    model: &Arc<ModelStore>,
    ordinal: Option<u32>,
    heads: KeptHeads,
) -> Result<Box<dyn Engine>, GpuError> {
    const BETWEEN_LINES: Duration = Duration::from_secs(2);
    let started = Instant::now();
    let mut last = started;
    let mut progress = |done: u64, total: u64| {
        let gigabytes_per_second = done as f64 / 1e9 / started.elapsed().as_secs_f64();
        if last.elapsed() >= BETWEEN_LINES {
            last = Instant::now();
            let percent = done * 100 / total.max(1);
            info!("uploading the table: {percent} %, {gigabytes_per_second:.1} GB/s");
        }
    };
    let KeptHeads { memory: products, precision } = heads;
    let precision = precision.unwrap_or(Precision::Float16);
    let progress: Option<&mut dyn FnMut(u64, u64)> = Some(&mut progress);
    let options = gpu_core::Options { ordinal, progress, precision, products };
    let engine = gpu_core::engine(model, options)?;
    let bytes = size_of_val(model.table().components());
    info!(
        "uploaded {:.2} GB and derived the scan tables in {:.2} s",
        bytes as f64 / 1e9,
        started.elapsed().as_secs_f64()
    );
    Ok(engine)
}
