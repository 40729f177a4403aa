//! Every engine, and every way to its answers.

use std::sync::Arc;

use contract::{Engine, HasTable};
use cpu_core::{CpuEngine, FirstLook, InstructionSet, Options, Paths};
use kindred::{ModelStore, ReferenceEngine};
use shards::{Shards, split_evenly};

/// Makes an engine, on the thread that will own it.
pub(crate) type Make = Arc<dyn Fn(&Arc<ModelStore>) -> Box<dyn Engine> + Send + Sync>;

fn make(of: impl Fn(&Arc<ModelStore>) -> Box<dyn Engine> + Send + Sync + 'static) -> Make {
    Arc::new(of)
}

/// The CPU's engine, with all of its tables made.
fn with_tables(table: Arc<dyn HasTable>, set: InstructionSet, paths: Paths) -> Box<dyn Engine> {
    let (instructions, by_rows) = (Some(set), paths.gather.is_some());
    let options = Options { threads: 2, instructions, paths, by_rows, ..Options::default() };
    let mut engine = CpuEngine::over(table, options).unwrap();
    engine.wait_for_tables();
    Box::new(engine)
}

/// The CPU's engine, which begins before it has any.
fn at_once(model: &Arc<ModelStore>) -> Box<dyn Engine> {
    let options = Options { threads: 2, by_rows: true, ..Options::default() };
    Box::new(CpuEngine::new(model.clone(), options).unwrap())
}

/// The engines of the CPU with their names.
pub(crate) fn on_cpu() -> Vec<(String, Make)> {
    let mut engines = vec![
        ("reference".to_owned(), make(|model| Box::new(ReferenceEngine::new(model.clone())))),
        ("cpu_at_once".to_owned(), make(at_once)),
    ];
    let all = Paths { always_certify: true, all_threads: true, ..Paths::default() };
    let ways = [
        ("as_it_chooses", Paths::default()),
        ("certified_by_4_bits", Paths { first_look: Some(FirstLook::FourBits), ..all }),
        ("certified_by_8_bits", Paths { first_look: Some(FirstLook::EightBits), ..all }),
        ("gathers", Paths { gather: Some(true), ..all }),
    ];
    for set in InstructionSet::available() {
        for (name, paths) in ways {
            let made = make(move |model| with_tables(model.clone(), set, paths));
            engines.push((format!("cpu_{name}_{set}").replace(' ', "_"), made));
        }
    }
    for count in [2, 3] {
        let made = make(move |model| {
            // All of one kind: a text has the same class scores on each of them.
            let own = move |_: usize, table: Arc<dyn HasTable>| -> Result<_, String> {
                Ok(with_tables(table, InstructionSet::best(), all))
            };
            let ranges = split_evenly(model.rows(), count);
            Box::new(Shards::new(model.clone(), ranges, own).unwrap())
        });
        engines.push((format!("shards_{count}"), made));
    }
    engines
}

/// The engines of a GPU with their names, and whether there is a GPU.
#[cfg(not(feature = "cuda"))]
pub(crate) fn on_gpu() -> (Vec<(String, Make)>, bool) {
    (Vec::new(), false)
}

/// The engines of a GPU with their names, and whether there is a GPU.
#[cfg(feature = "cuda")]
pub(crate) fn on_gpu() -> (Vec<(String, Make)>, bool) {
    use gpu_core::search::{CudaEngine, Paths};

    fn cuda(table: Arc<dyn HasTable>, ordinal: u32, paths: Paths) -> Box<dyn Engine> {
        let options = gpu_core::Options { ordinal: Some(ordinal), ..Default::default() };
        Box::new(CudaEngine::new(table, options, paths).unwrap())
    }

    let all = Paths { certified_from_rows: 0, ..Paths::default() };
    let ways = [
        ("as_it_chooses", Paths::default()),
        ("int4", all),
        ("int8", Paths { int4: false, ..all }),
        ("portable", Paths { int4: false, portable: true, ..all }),
        ("float32", Paths { int8: false, ..all }),
        ("float64", Paths { int8: false, float32: false, ..all }),
    ];
    let mut engines: Vec<(String, Make)> = ways
        .into_iter()
        .map(|(name, paths)| {
            (format!("cuda_{name}"), make(move |model| cuda(model.clone(), 0, paths)))
        })
        .collect();
    let gpus = gpu_core::count().unwrap_or(0);
    for count in [2, 3] {
        let made = make(move |model| {
            let own = move |index, table| -> Result<Box<dyn Engine>, String> {
                Ok(cuda(table, index as u32 % gpus, all))
            };
            Box::new(Shards::new(model.clone(), split_evenly(model.rows(), count), own).unwrap())
        });
        engines.push((format!("cuda_shards_{count}"), made));
    }
    (engines, gpus > 0)
}
