//! Vectors that the device fetches from where a caller has put them give the same answers as all
//! others.

use std::sync::Arc;

use contract::{Components, Device, Filter, Query, QueryVector, Row, SearchEngine, Staging};
use gpu_core::Options;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;

use crate::support::{Numbers, all_paths, reference};
use crate::tables::synthetic;

const DIM: usize = 100;

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("staged_vectors_on_every_path", on_every_path as fn()),
        ("staged_vectors_in_passes_that_overlap", overlapped),
        ("staged_vectors_among_others_and_out_of_order", among_others),
    ]
}

fn engine(model: &Arc<ModelStore>, staging: &Arc<Staging>, paths: Paths) -> CudaEngine {
    let options = Options { staging: Some(staging.clone()), ..Options::default() };
    CudaEngine::new(model.clone(), options, paths).unwrap()
}

/// Queries for vectors in one block.
fn staged(
    model: &ModelStore,
    staging: &Staging,
    count: usize,
    numbers: &mut Numbers,
) -> Vec<Query> {
    let fill = |to: &mut [f32]| to.fill_with(|| numbers.real());
    let (memory, from, ()) = staging.fill(count * DIM, fill).expect("a free block");
    let query = |index: usize| {
        let from = from + index * DIM;
        let vector = QueryVector::Components(Components::part(&memory, from..from + DIM));
        Query::new(&model.table(), vector, 10, Filter::default()).unwrap()
    };
    (0..count).map(query).collect()
}

type Bits = Vec<(u32, u64)>;

fn bits(answers: Vec<Vec<contract::Hit>>) -> Vec<Bits> {
    let of_one = |hits: Vec<contract::Hit>| {
        hits.iter().map(|hit| (hit.row.0, hit.score.to_bits())).collect()
    };
    answers.into_iter().map(of_one).collect()
}

fn search(engine: &mut CudaEngine, asked: &[Query]) -> Vec<Bits> {
    bits(engine.search(&asked.iter().collect::<Vec<&Query>>()).unwrap())
}

fn on_every_path() {
    let mut numbers = Numbers::new(71);
    let model = synthetic(40_000, DIM, 71);
    let staging = Arc::new(Staging::new(1, 600 * DIM));
    for (name, paths) in all_paths() {
        let mut engine = engine(&model, &staging, paths);
        for count in [1, 100, 256, 600] {
            let before = engine.counters().staged;
            // Each time in the same memory, which is free again.
            let asked = staged(&model, &staging, count, &mut numbers);
            let expected = reference(&model, &asked);
            assert_eq!(search(&mut engine, &asked), expected, "{name}, {count}");
            let passes = engine.counters().staged - before;
            let should = count > 200 && !name.starts_with("float");
            assert!(passes > 0 || !should, "{name}: {count} were not staged");
        }
    }
}

fn overlapped() {
    let mut numbers = Numbers::new(72);
    let model = synthetic(150_000, DIM, 72);
    let staging = Arc::new(Staging::new(3, 700 * DIM));
    let paths = Paths { certified_from_rows: 0, ..Paths::default() };
    let mut engine = engine(&model, &staging, paths);
    let mut before: Option<Vec<Query>> = None;
    let check = |engine: &mut CudaEngine, asked: Vec<Query>| {
        let batch: Vec<&Query> = asked.iter().collect();
        let found = engine.finish_search(&batch).unwrap();
        let found = found.into_iter().map(|hits| hits.expect("it is certified")).collect();
        assert_eq!(bits(found), reference(&model, &asked));
    };
    for _ in 0..20 {
        let count = 257 + numbers.below(400);
        let asked = staged(&model, &staging, count, &mut numbers);
        engine.wait_until_almost_over().unwrap();
        assert!(engine.start_search(&asked.iter().collect::<Vec<_>>()).unwrap(), "it overlaps");
        if let Some(before) = before.replace(asked) {
            check(&mut engine, before);
        }
    }
    check(&mut engine, before.unwrap());
    assert_eq!(engine.counters().staged, 20);
}

fn among_others() {
    let mut numbers = Numbers::new(73);
    let model = synthetic(40_000, DIM, 73);
    let staging = Arc::new(Staging::new(2, 400 * DIM));
    let mut engine = engine(&model, &staging, Paths::default());
    let row = |row: u32| {
        let without_itself = Filter::excluding(vec![Row(row)]);
        Query::new(&model.table(), QueryVector::Row(Row(row)), 10, without_itself).unwrap()
    };
    let own = |numbers: &mut Numbers| {
        let vector = QueryVector::from(numbers.vector(DIM));
        Query::new(&model.table(), vector, 10, Filter::default()).unwrap()
    };
    let mut check = |asked: &[Query], is_staged: bool| {
        let before = engine.counters().staged;
        assert_eq!(search(&mut engine, asked), reference(&model, asked));
        assert_eq!(engine.counters().staged > before, is_staged);
    };

    let mut asked = staged(&model, &staging, 300, &mut numbers);
    (0..50).for_each(|i| asked.insert(5 * i as usize, row(i)));
    check(&asked, true);

    let vector_of_its_own = own(&mut numbers);
    asked.insert(100, vector_of_its_own);
    check(&asked, false);
    asked.remove(100);
    asked.swap(1, 2);
    check(&asked, false);
    asked.swap(1, 2);
    asked.remove(7);
    check(&asked, false);

    // Of two blocks.
    let others = staged(&model, &staging, 300, &mut numbers);
    asked.truncate(200);
    asked.extend(others);
    check(&asked, false);
}
