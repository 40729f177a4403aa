//! A GPU that fails: a kernel that traps ends what the process has, with a driver for CUDA 13.0 on
//! its other GPUs as well. Engines say so at once, and in every later call; nothing hangs. The
//! driver lets the process make no other context, so a new engine is an error, until the process is
//! started again.

use std::sync::Arc;

use contract::{EngineError, Filter, Query, QueryVector, Row, SearchEngine};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use gpu_core::Options;
use gpu_core::driver::Gpu;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;
use shards::split_evenly;

use crate::shards::shards;
use crate::support::{Numbers, bits, engine, model, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![("a_trap_fails_all_engines_on_its_gpu", fails_all_engines as fn())]
}

/// Ends this process's context on the first GPU.
fn trap() {
    const KERNEL: &str = "
.version 6.4
.target sm_75
.address_size 64
.visible .entry trap_now() { trap; }
";
    let _gpu = Gpu::open(None).unwrap();
    let module = Module::from_ptx(KERNEL, &[]).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let function = module.get_function("trap_now").unwrap();
    // SAFETY: the kernel takes no parameters and touches no memory.
    #[allow(unsafe_code)]
    unsafe { cust::launch!(function<<<1, 1, 0, stream>>>()) }.unwrap();
    assert!(stream.synchronize().is_err(), "the kernel has trapped");
}

fn rows() -> (Arc<ModelStore>, Vec<Query>) {
    let mut numbers = Numbers::new(71);
    let rows: Vec<Vec<f32>> = (0..20_000).map(|_| numbers.vector(40)).collect();
    let model = model(40, &rows);
    let query = |row: u32| {
        Query::new(&model.table(), QueryVector::Row(Row(row * 7)), 10, Filter::default()).unwrap()
    };
    let queries = (0..50).map(query).collect();
    (model, queries)
}

fn fails(found: Result<Vec<Vec<contract::Hit>>, EngineError>) {
    assert!(matches!(found, Err(EngineError::Device(_))), "{found:?}");
}

fn fails_all_engines() {
    let (model, queries) = rows();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = reference(&model, &queries);
    let mut one = engine(&model, Paths::default());
    // Shards on all GPUs: one of them is on the first.
    let mut all = shards(&model, split_evenly(model.rows(), 3));
    assert_eq!(bits(&one.search(&batch).unwrap()), expected);
    assert_eq!(bits(&all.search(&batch).unwrap()), expected);
    trap();
    for _ in 0..2 {
        fails(one.search(&batch));
        fails(all.search(&batch));
    }
    drop((one, all));
    let again = CudaEngine::new(model.clone(), Options::default(), Paths::default());
    println!("another engine on the GPU: {:?}", again.as_ref().err());
    if let Ok(mut again) = again {
        assert_eq!(bits(&again.search(&batch).unwrap()), expected);
    }
    for other in 1..gpu_core::count().unwrap_or(1) {
        let options = Options { ordinal: Some(other), ..Options::default() };
        let engine = CudaEngine::new(model.clone(), options, Paths::default());
        println!("an engine on cuda:{other}: {:?}", engine.as_ref().err());
        if let Ok(mut engine) = engine {
            assert_eq!(bits(&engine.search(&batch).unwrap()), expected);
        }
    }
}
