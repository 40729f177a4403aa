//! A GPU that fails: a kernel that traps ends the process's context on it, and nothing else. The engine says so at once, in every
//! later call as well; once it is dropped, another can be made on the same GPU.

use std::sync::Arc;

use contract::{Engine, EngineError, Filter, Query, QueryBatch, QueryVector, Row};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use gpu_core::driver::Gpu;
use gpu_core::search::Paths;
use model_store::ModelStore;
use shards::split_evenly;

use crate::shards::shards;
use crate::support::{Numbers, bits, engine, model, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("a_trap_fails_the_engine_and_another_can_be_made", fails_the_engine as fn()),
        ("a_trap_fails_all_shards_and_others_can_be_made", fails_all_shards),
    ]
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

fn fails_the_engine() {
    let (model, queries) = rows();
    let batch: QueryBatch<'_> = queries.iter().collect();
    let expected = reference(&model, &queries);
    for _ in 0..2 {
        let mut one = engine(&model, Paths::default());
        assert_eq!(bits(&one.search(&batch).unwrap()), expected);
        trap();
        fails(one.search(&batch));
        fails(one.search(&batch));
        drop(one);
    }
    assert_eq!(bits(&engine(&model, Paths::default()).search(&batch).unwrap()), expected);
}

fn fails_all_shards() {
    let (model, queries) = rows();
    let batch: QueryBatch<'_> = queries.iter().collect();
    let expected = reference(&model, &queries);
    let mut all = shards(&model, split_evenly(model.rows(), 3));
    assert_eq!(bits(&all.search(&batch).unwrap()), expected);
    trap();
    fails(all.search(&batch));
    drop(all);
    let mut all = shards(&model, split_evenly(model.rows(), 3));
    assert_eq!(bits(&all.search(&batch).unwrap()), expected);
}
