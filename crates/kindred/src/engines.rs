//! Makes the engine that searches a model.

mod self_check;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use contract::Precision;
use contract::{Engine, HasTable};
use cpu_core::{CpuEngine, Origin, StartError, TablesReport};
use gpu_core::{GpuError, GpuMemory};
use model_store::ModelStore;
use shards::Shards;
use tracing::{info, warn};

use crate::background::give_way;
use crate::device::{Device, Gpus, Placement};
use crate::numa;
use crate::placement::{DoesNotFit, Placed, Shard, place};
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
    /// How the model is placed on several GPUs.
    pub placement: Placement,
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

/// Makes one engine of a model, on the thread that will own it, and again whenever it has failed. Drops its [`WarmUp`] when the engine
/// has reached its full speed.
pub type Maker = Box<dyn FnMut(WarmUp) -> Result<Box<dyn Engine>, EngineStartError> + Send>;

/// What makes the engines of a model: one, or a replica on each GPU or group of GPUs.
pub struct Makers {
    /// A maker for each replica.
    pub each: Vec<Maker>,
    /// Which GPUs they use; `None` without GPUs.
    pub placed: Option<Placed>,
}

/// What makes the engines for a model, each of which will also have passed its [`self_check`]. `replaces` is where the model is that
/// this one replaces on the same GPUs: its memory counts as free.
///
/// # Errors
/// If the GPUs that were asked for are not there, or the model does not fit.
pub fn makers(
    model: &Arc<ModelStore>,
    wanted: &Wanted,
    replaces: Option<&Placed>,
) -> Result<Makers, EngineStartError> {
    let checked = |mut make: Make| -> Maker {
        let model = model.clone();
        Box::new(move |warm| {
            let mut engine = make(&model, warm)?;
            self_check(&mut *engine, &model)?;
            Ok(engine)
        })
    };
    let gpus = match &wanted.device {
        Device::Cuda(gpus) if gpus.only().is_none() => gpus,
        _ => {
            let each = match near_memory(wanted, numa::nodes()) {
                Some(nodes) => nodes.into_iter().map(checked).collect(),
                None => {
                    let mut wanted = wanted.clone();
                    vec![checked(Box::new(move |model, warm| {
                        let engine = make(model, &wanted, warm)?;
                        // Who started on a GPU must not continue on the CPU unnoticed. Without the GPU there is no engine, and the
                        // next start says why.
                        if engine.description().name == "cuda" && wanted.device == Device::Auto {
                            wanted.device = Device::Cuda(Gpus::First);
                        }
                        Ok(engine)
                    }))]
                }
            };
            return Ok(Makers { each, placed: None });
        }
    };
    let placed = place_on(model, gpus, wanted, replaces)?;
    info!(model = model.name(), "{placed}");
    let each = placed.replicas.iter().map(|shards| {
        let (shards, wanted) = (shards.clone(), wanted.clone());
        let mut shards = shards;
        checked(Box::new(move |model, _| {
            let made = on_gpus(model, &shards, &wanted);
            // One that is made again takes what memory there is.
            shards.iter_mut().for_each(|shard| shard.at_full_speed = false);
            made.map_err(|source| gpu_error(&wanted, source))
        }))
    });
    Ok(Makers { each: each.collect(), placed: Some(placed) })
}

/// A CPU engine for each of several nodes of memory, with the node's cores. `None` if there is one node, a GPU may search, or a number of
/// threads was asked for.
fn near_memory(wanted: &Wanted, nodes: Vec<Vec<usize>>) -> Option<Vec<Make>> {
    let on_cpu = match wanted.device {
        Device::Cpu => true,
        Device::Auto => gpu_core::count().is_err(),
        Device::Cuda(_) => false,
    };
    if !on_cpu || nodes.len() < 2 || wanted.threads > 0 {
        return None;
    }
    info!("an engine on each of {} nodes of memory (NUMA)", nodes.len());
    let of_node = |cores: Vec<usize>| -> Make {
        let wanted = Wanted { device: Device::Cpu, threads: cores.len(), ..wanted.clone() };
        Box::new(move |model, warm| {
            if let Err(e) = numa::stay_on(&cores) {
                warn!("the engine may use memory that is far from its cores: {e}");
            }
            make(model, &wanted, warm)
        })
    };
    Some(nodes.into_iter().map(of_node).collect())
}

type Make =
    Box<dyn FnMut(&Arc<ModelStore>, WarmUp) -> Result<Box<dyn Engine>, EngineStartError> + Send>;

fn gpu_error(wanted: &Wanted, source: GpuError) -> EngineStartError {
    EngineStartError::Gpu { device: wanted.device.clone(), source }
}

/// Chooses which GPU gets which rows.
fn place_on(
    model: &ModelStore,
    gpus: &Gpus,
    wanted: &Wanted,
    replaces: Option<&Placed>,
) -> Result<Placed, EngineStartError> {
    let ask = || -> Result<Vec<GpuMemory>, GpuError> {
        let found = gpu_core::count()?;
        let asked: Vec<u32> = match gpus {
            Gpus::These(indices) => indices.clone(),
            Gpus::All => (0..found).collect(),
            Gpus::First => vec![0],
        };
        if let Some(&asked) = asked.iter().find(|&&index| index >= found) {
            return Err(GpuError::NoSuchDevice { asked, found });
        }
        let mut distinct = asked.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < asked.len() {
            warn!("--device {} gives a GPU several engines, which share it", wanted.device);
        }
        let mut known = Vec::new();
        for (&index, memory) in distinct.iter().zip(gpu_core::memory_of(&distinct)) {
            match (memory, replaces) {
                (Ok(mut gpu), _) => {
                    gpu.free += replaces.map_or(0, |placed| placed.bytes_on(index));
                    known.push(gpu);
                }
                // A version that replaces another does without it. At the start, somebody should know.
                (Err(e), Some(_)) => {
                    warn!("cuda:{index} is left out, because it does not work: {e}");
                }
                (Err(e), None) => return Err(e),
            }
        }
        let of = |index: u32| known.iter().find(|gpu| gpu.ordinal == index).cloned();
        let working: Vec<GpuMemory> = asked.into_iter().filter_map(of).collect();
        match working.is_empty() {
            true => Err(GpuError::NoDevice { reason: "none of those asked for works".to_owned() }),
            false => Ok(working),
        }
    };
    let gpus = ask().map_err(|source| gpu_error(wanted, source))?;
    let table = model.table();
    let memory = |rows| gpu_core::needed_memory(&table, rows);
    place(&gpus, model.rows(), memory, wanted.placement).map_err(|source| {
        EngineStartError::Placement {
            device: wanted.device.clone(),
            placement: wanted.placement,
            source,
        }
    })
}

/// Makes the engine of one replica.
fn on_gpus(
    model: &Arc<ModelStore>,
    shards: &[Shard],
    wanted: &Wanted,
) -> Result<Box<dyn Engine>, GpuError> {
    let heads = wanted.heads;
    if let [only] = shards {
        return on_gpu(model.clone(), Some(only.gpu), heads, only.at_full_speed);
    }
    let own: Vec<(u32, bool)> = shards.iter().map(|one| (one.gpu, one.at_full_speed)).collect();
    let ranges = shards.iter().map(|shard| shard.rows.clone()).collect();
    let sharded = Shards::new(model.clone(), ranges, move |index, table| {
        let (gpu, at_full_speed) = own[index];
        on_gpu(table, Some(gpu), heads, at_full_speed)
    });
    match sharded {
        Ok(engine) => Ok(Box::new(engine)),
        Err(shards::StartError::Engine(error)) => Err(error),
        Err(error) => {
            Err(GpuError::Driver { doing: "starting the shards", reason: error.to_string() })
        }
    }
}

/// Makes the engine for a model, on one device. To be called on the thread that will own it. Drops `warm` when the engine has reached
/// its full speed.
///
/// # Errors
/// If the device that was asked for is not there.
pub fn make(
    model: &Arc<ModelStore>,
    wanted: &Wanted,
    warm: WarmUp,
) -> Result<Box<dyn Engine>, EngineStartError> {
    let on_first = |ordinal| on_gpu(model.clone(), ordinal, wanted.heads, false);
    match &wanted.device {
        Device::Cuda(gpus) => {
            return on_first(gpus.first()).map_err(|source| gpu_error(wanted, source));
        }
        Device::Auto => match on_first(None) {
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

/// Makes the engine for a table on a GPU, and logs the progress of its upload. If it must be `at_full_speed`, too little memory for the
/// tables that it derives is an error.
fn on_gpu(
    table: Arc<dyn HasTable>,
    ordinal: Option<u32>,
    heads: KeptHeads,
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
    let KeptHeads { memory: products, precision } = heads;
    let precision = precision.unwrap_or(Precision::Float16);
    let progress: Option<&mut dyn FnMut(u64, u64)> = Some(&mut progress);
    let options = gpu_core::Options { ordinal, progress, precision, products, at_full_speed };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Arc<ModelStore> {
        let rows = (0..50u16).map(|row| [1.0, f32::from(row)]).collect::<Vec<_>>();
        let words: Vec<String> = (0..50).map(|row| format!("w{row}")).collect();
        let rows = words.iter().map(String::as_str).zip(rows.iter().map(|row| &row[..]));
        Arc::new(ModelStore::from_rows("model", 2, rows).unwrap())
    }

    fn wanted(device: Device, threads: usize) -> Wanted {
        let heads = KeptHeads::default();
        Wanted { device, placement: Placement::Auto, threads, keep_tables: false, heads }
    }

    #[test]
    fn an_engine_on_each_node_has_the_nodes_cores() {
        let nodes = || vec![vec![0], vec![0]];
        for (device, threads, nodes) in [
            (Device::Cpu, 0, vec![vec![0]]),
            (Device::Cpu, 2, nodes()),
            (Device::Cuda(Gpus::First), 0, nodes()),
        ] {
            assert!(near_memory(&wanted(device, threads), nodes).is_none());
        }
        let model = model();
        let makes = near_memory(&wanted(Device::Cpu, 0), nodes()).unwrap();
        assert_eq!(makes.len(), 2);
        for mut make in makes {
            let store = model.clone();
            let made = move || {
                let mut engine = make(&store, WarmUp::for_nobody()).unwrap();
                self_check(&mut *engine, &store).unwrap();
                engine.description().detail
            };
            let detail = std::thread::spawn(made).join().unwrap();
            assert!(detail.ends_with("1 threads"), "{detail}");
        }
    }

    #[test]
    fn several_gpus_that_are_not_there_are_an_error_with_the_cure() {
        let model = model();
        for device in ["cuda:all", "cuda:900,901"] {
            let wanted = wanted(device.parse().unwrap(), 0);
            let Err(error) = makers(&model, &wanted, None) else { panic!("there are none") };
            let said = error.to_string();
            assert!(said.contains(device) && said.contains("--device cpu"), "{said}");
        }
    }
}
