//! Which engines a model gets: one, a replica on each GPU or group of GPUs, or one on each node of
//! memory.

use std::sync::Arc;

use contract::Engine;
use gpu_core::{GpuError, GpuMemory};
use model_store::ModelStore;
use shards::Shards;
use tracing::{info, warn};

use super::{EngineStartError, HadGpu, Wanted, gpu_error, make, on_gpu, self_check};
use crate::device::{Device, Gpus};
use crate::numa;
use crate::placement::{Placed, Shard, place};
use crate::warm_up::WarmUp;

/// Makes one engine of a model, on the thread that will own it, and again whenever it has failed.
/// Drops its [`WarmUp`] when the engine has reached its full speed.
pub type Maker = Box<dyn FnMut(WarmUp) -> Result<Box<dyn Engine>, EngineStartError> + Send>;

/// What makes the engines of a model: one, or a replica on each GPU or group of GPUs.
pub struct Makers {
    /// A maker for each replica.
    pub each: Vec<Maker>,
    /// Which GPUs they use; `None` without GPUs.
    pub placed: Option<Placed>,
}

/// The makers of the engines for a model, each of which will also have passed its [`self_check`]. A
/// model without rows gets an engine of the CPU, whatever was asked for.
/// `replaces` is where the model is that this one replaces on the same GPUs: its memory counts as
/// free.
///
/// # Errors
/// If the GPUs that were asked for are not there, or the model does not fit.
pub fn makers(
    model: &Arc<ModelStore>,
    wanted: &Wanted,
    replaces: Option<&Placed>,
) -> Result<Makers, EngineStartError> {
    let wanted = &match model.rows() {
        // Nothing of it would be on a GPU. It has no part in whether the service has one.
        0 => Wanted { device: Device::Cpu, had_gpu: HadGpu::default(), ..wanted.clone() },
        _ => wanted.clone().insisting_if_had_gpu(),
    };
    let checked = |make| checked(model.clone(), wanted.clone(), make);
    let gpus = match &wanted.device {
        Device::Cuda(gpus) if gpus.only().is_none() => gpus,
        _ => {
            let each = match near_memory(wanted, numa::nodes()) {
                Some(nodes) => nodes.into_iter().map(checked).collect(),
                None => vec![checked(Box::new(make))],
            };
            return Ok(Makers { each, placed: None });
        }
    };
    let placed = place_on(model, gpus, wanted, replaces)?;
    info!(model = model.name(), "{placed}");
    let each = placed.replicas.iter().map(|shards| {
        let mut shards = shards.clone();
        checked(Box::new(move |model, wanted, _| {
            let made = on_gpus(model, &shards, wanted);
            // One that is made again takes what memory there is.
            shards.iter_mut().for_each(|shard| shard.at_full_speed = false);
            made.map_err(|source| gpu_error(wanted, source))
        }))
    });
    Ok(Makers { each: each.collect(), placed: Some(placed) })
}

/// Makes engines, each of which has passed its [`self_check`]. After the first on a GPU, all are on
/// a GPU.
fn checked(model: Arc<ModelStore>, mut wanted: Wanted, mut make: Make) -> Maker {
    Box::new(move |warm| {
        let mut engine = make(&model, &wanted, warm)?;
        self_check(&mut *engine, &model)?;
        if engine.description().name == "cuda" {
            wanted.insist_on_gpu();
        }
        Ok(engine)
    })
}

/// A CPU engine for each of several nodes of memory, with the node's cores. `None` if there is one
/// node, a GPU may search, or a number of threads was asked for.
fn near_memory(wanted: &Wanted, nodes: Vec<Vec<usize>>) -> Option<Vec<Make>> {
    if nodes.len() < 2 || wanted.threads > 0 {
        return None;
    }
    let on_cpu = match wanted.device {
        Device::Cpu => true,
        // Only now, because counting GPUs initialises the driver.
        Device::Auto => gpu_core::count().is_err(),
        Device::Cuda(_) => false,
    };
    if !on_cpu {
        return None;
    }
    info!("an engine on each of {} nodes of memory (NUMA)", nodes.len());
    let of_node = |cores: Vec<usize>| -> Make {
        Box::new(move |model, wanted, warm| {
            let wanted = Wanted { device: Device::Cpu, threads: cores.len(), ..wanted.clone() };
            if let Err(e) = numa::stay_on(&cores) {
                warn!("the engine may use memory that is far from its cores: {e}");
            }
            make(model, &wanted, warm)
        })
    };
    Some(nodes.into_iter().map(of_node).collect())
}

/// Makes one engine of a model, as wanted now.
type Make = Box<
    dyn FnMut(&Arc<ModelStore>, &Wanted, WarmUp) -> Result<Box<dyn Engine>, EngineStartError>
        + Send,
>;

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
                // A version that replaces another does without it. At the start, somebody should
                // know.
                (Err(e), Some(_)) => {
                    warn!("cuda:{index} is left out, because it does not work: {e}");
                }
                (Err(e), None) => return Err(e),
            }
        }
        let of = |index: u32| known.iter().find(|gpu| gpu.ordinal == index).cloned();
        let working: Vec<GpuMemory> = asked.into_iter().filter_map(of).collect();
        match working.is_empty() {
            true => Err(GpuError::NoDevice { source: "none of those asked for works".into() }),
            false => Ok(working),
        }
    };
    let gpus = ask().map_err(|source| gpu_error(wanted, source))?;
    let table = model.table();
    let room = |rows| if rows == model.rows() { wanted.room } else { 0 };
    let memory = |rows| gpu_core::needed_memory(&table, rows + room(rows));
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
    if let [only] = shards {
        return on_gpu(model.clone(), Some(only.gpu), wanted, only.at_full_speed);
    }
    let own: Vec<(u32, bool)> = shards.iter().map(|one| (one.gpu, one.at_full_speed)).collect();
    let ranges = shards.iter().map(|shard| shard.rows.clone()).collect();
    // One device takes the vectors from there, and the others would have to be given them. Rows
    // behind all of them are searched by the CPU.
    let wanted = Wanted { staging: None, room: 0, ..wanted.clone() };
    let sharded = Shards::new(model.clone(), ranges, move |index, table| {
        let (gpu, at_full_speed) = own[index];
        on_gpu(table, Some(gpu), &wanted, at_full_speed)
    });
    match sharded {
        Ok(engine) => Ok(Box::new(engine)),
        Err(shards::StartError::Engine(error)) => Err(error),
        Err(error) => Err(GpuError::Driver { doing: "starting the shards", source: error.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use contract::{
        EngineDescription, EngineError, FullPassEngine, HeadEngine, Hit, Query, SearchEngine,
    };

    use super::*;

    fn model() -> Arc<ModelStore> {
        let rows = (0..50u16).map(|row| [1.0, f32::from(row)]).collect::<Vec<_>>();
        let words: Vec<String> = (0..50).map(|row| format!("w{row}")).collect();
        let rows = words.iter().map(String::as_str).zip(rows.iter().map(|row| &row[..]));
        Arc::new(ModelStore::from_rows("model", 2, rows).unwrap())
    }

    fn wanted(device: Device, threads: usize) -> Wanted {
        let (placement, heads, had_gpu) = Default::default();
        Wanted {
            device,
            placement,
            threads,
            keep_tables: false,
            heads,
            had_gpu,
            staging: None,
            room: 0,
        }
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
        let wanted = wanted(Device::Cpu, 0);
        let makes = near_memory(&wanted, nodes()).unwrap();
        assert_eq!(makes.len(), 2);
        for mut make in makes {
            let (store, wanted) = (model.clone(), wanted.clone());
            let made = move || {
                let mut engine = make(&store, &wanted, WarmUp::for_nobody()).unwrap();
                self_check(&mut *engine, &store).unwrap();
                engine.description().detail
            };
            let detail = std::thread::spawn(made).join().unwrap();
            assert!(detail.ends_with("1 threads"), "{detail}");
        }
    }

    /// An engine that says where it is, and can't search.
    struct Named(&'static str);

    impl contract::Device for Named {
        fn description(&self) -> EngineDescription {
            EngineDescription { name: self.0, detail: String::new() }
        }
    }

    impl SearchEngine for Named {
        fn preferred_batch(&self, waiting: usize) -> usize {
            waiting
        }

        fn search(&mut self, _: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
            unreachable!("there is nothing to check in a table of zeros")
        }
    }

    impl FullPassEngine for Named {}

    impl HeadEngine for Named {}

    #[test]
    fn a_service_that_had_a_gpu_gets_no_engine_on_the_cpu() {
        let zeros = Arc::new(ModelStore::from_rows("zeros", 1, [("a", &[0.0][..])]).unwrap());
        let of_service = wanted(Device::Auto, 1);
        // The devices that are asked for, if the engine is made here twice.
        let asked = |name: &'static str| {
            let asked = Arc::new(Mutex::new(Vec::new()));
            let seen = asked.clone();
            let make = move |_: &Arc<ModelStore>, wanted: &Wanted, _| {
                seen.lock().unwrap().push(wanted.device.to_string());
                Ok(Box::new(Named(name)) as Box<dyn Engine>)
            };
            let mut maker = checked(zeros.clone(), of_service.clone(), Box::new(make));
            (0..2).for_each(|_| drop(maker(WarmUp::for_nobody()).unwrap()));
            drop(maker);
            Arc::into_inner(asked).unwrap().into_inner().unwrap()
        };
        let model = model();
        let made = |wanted: &Wanted| {
            let mut makers = makers(&model, wanted, None).unwrap();
            makers.each[0](WarmUp::for_nobody()).map(|engine| engine.description().name)
        };
        assert_eq!(asked("cpu"), ["auto", "auto"]);
        made(&of_service).unwrap();
        assert_eq!(asked("cuda"), ["auto", "cuda"]);
        // A model that is on the CPU already may stay there.
        assert_eq!(asked("cpu"), ["auto", "auto"]);
        // Another model of the service.
        match made(&of_service) {
            Ok(name) => assert_eq!(name, "cuda"),
            Err(error) => assert!(error.to_string().contains("--device cuda:"), "{error}"),
        }
        // It was asked for.
        assert_ne!(made(&Wanted { device: Device::Cpu, ..of_service }).unwrap(), "cuda");
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
