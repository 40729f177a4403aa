//! The multi-threaded engine, with every instruction set that this machine has, against the plain
//! reference: the same rows and the same score bits, always.

use std::sync::Arc;

use cpu_core::{FullScanEngine, InstructionSet, ReferenceEngine};
use model_store::{Engine, Filter, Hit, ModelStore, Query, QueryBatch, QueryVector, Row};
use proptest::prelude::*;

/// A table from few distinct components, so that ties, equal rows and zero rows are common, with a
/// few components at the ends of float32's range.
fn tables() -> impl Strategy<Value = Arc<ModelStore>> {
    let component = prop_oneof![
        12 => (-2i8..=2).prop_map(f32::from),
        6 => -1.0f32..1.0,
        1 => Just(f32::from_bits(1)),
        1 => Just(3.0e38f32),
    ];
    (1usize..70, 1usize..90).prop_flat_map(move |(dim, rows)| {
        let row = prop_oneof![
            8 => prop::collection::vec(component.clone(), dim),
            1 => Just(vec![0.0; dim]),
        ];
        prop::collection::vec(row, rows).prop_map(move |rows| Arc::new(model(dim, &rows)))
    })
}

fn model(dim: usize, rows: &[Vec<f32>]) -> ModelStore {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice));
    ModelStore::from_rows("random", dim, rows).unwrap()
}

/// Seeds of a query: (row or own vector, k, excluded rows, first rows, minimum score).
type Seed = (Result<u32, Vec<f32>>, usize, Vec<u32>, Option<u32>, Option<f64>);

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let vector = prop_oneof![
        any::<u32>().prop_map(Ok),
        prop::collection::vec(-3.0f32..3.0, 70).prop_map(Err),
    ];
    let seed = (
        vector,
        prop_oneof![Just(1usize), 1usize..120],
        prop::collection::vec(0u32..100, 0..8),
        prop::option::of(1u32..100),
        prop::option::of(-1.0f64..1.0),
    );
    prop::collection::vec(seed, 1..20)
}

fn queries(model: &ModelStore, seeds: Vec<Seed>) -> Vec<Query> {
    let make = |(vector, k, excluded, first_rows, min_score): Seed| {
        let vector = match vector {
            Ok(row) => QueryVector::Row(Row(row % model.rows() as u32)),
            Err(components) => QueryVector::Components(components[..model.dim()].to_vec()),
        };
        let mut filter = Filter::excluding(excluded.into_iter().map(Row).collect());
        (filter.first_rows, filter.min_score) = (first_rows, min_score);
        Query::new(&model.table(), vector, k, filter).ok()
    };
    seeds.into_iter().filter_map(make).collect()
}

fn bits(answers: &[Vec<Hit>]) -> Vec<Vec<(u32, u64)>> {
    answers.iter().map(|hits| hits.iter().map(|h| (h.row.0, h.score.to_bits())).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_instruction_set_gives_the_references_bits(
        model in tables(), seeds in seeds(), threads in 1usize..4,
    ) {
        let queries = queries(&model, seeds);
        let batch: QueryBatch<'_> = queries.iter().collect();
        let expected = bits(&ReferenceEngine::new(model.clone()).search(&batch).unwrap());
        for instructions in InstructionSet::available() {
            let mut engine =
                FullScanEngine::with_instructions(model.clone(), threads, instructions).unwrap();
            let found = bits(&engine.search(&batch).unwrap());
            prop_assert_eq!(&found, &expected, "with {}", instructions);
        }
    }

    #[test]
    fn no_answer_depends_on_its_batch_or_its_k(model in tables(), seeds in seeds()) {
        let queries = queries(&model, seeds);
        let mut engine = FullScanEngine::new(model.clone(), 2).unwrap();
        let together = engine.search(&queries.iter().collect()).unwrap();
        for (query, together) in queries.iter().zip(together) {
            let alone = engine.search(&std::iter::once(query).collect()).unwrap().remove(0);
            prop_assert_eq!(bits(&[alone]), bits(std::slice::from_ref(&together)));
            let more = Query::new(
                &model.table(), query.vector().clone(), model.rows(), query.filter().clone(),
            ).unwrap();
            let more = engine.search(&std::iter::once(&more).collect()).unwrap().remove(0);
            prop_assert!(more.len() >= together.len());
            prop_assert_eq!(bits(&[more[..together.len()].to_vec()]), bits(&[together]));
        }
    }
}

#[test]
fn tables_larger_than_one_task_are_covered_to_the_last_row() {
    // 5,000 rows are several tasks and end within a block; rows repeat every 617, so each score
    // is a tie that the lower row must win.
    let rows: Vec<Vec<f32>> = (0..5000)
        .map(|row| {
            (0..33).map(|i| ((row % 617 + 1) * (i + 3) * 7919 % 1009) as f32 - 504.0).collect()
        })
        .collect();
    let model = Arc::new(model(33, &rows));
    let ask = |row, k| {
        Query::new(&model.table(), QueryVector::Row(Row(row)), k, Filter::default()).unwrap()
    };
    let queries: Vec<Query> =
        [(4999, 1), (0, 10), (616, 5000), (17, 100)].map(|(r, k)| ask(r, k)).into();
    let batch = queries.iter().collect();
    let found = FullScanEngine::new(model.clone(), 3).unwrap().search(&batch).unwrap();
    let expected = ReferenceEngine::new(model.clone()).search(&batch).unwrap();
    assert_eq!(bits(&found), bits(&expected));
    assert_eq!(found[0][0].row, Row(4999 % 617));
    assert_eq!(found[2].len(), 5000);
}

#[test]
fn queries_for_another_table_are_refused() {
    let small = Arc::new(model(2, &[vec![1.0, 0.0]]));
    let large = model(3, &[vec![1.0; 3], vec![1.0; 3]]);
    for vector in [QueryVector::Row(Row(1)), QueryVector::Components(vec![1.0; 3])] {
        let query = Query::new(&large.table(), vector, 1, Filter::default()).unwrap();
        let batch = std::iter::once(&query).collect();
        assert!(FullScanEngine::new(small.clone(), 1).unwrap().search(&batch).is_err());
        assert!(ReferenceEngine::new(small.clone()).search(&batch).is_err());
    }
}

#[test]
fn an_empty_batch_has_an_empty_answer() {
    let model = Arc::new(model(1, &[vec![1.0]]));
    assert!(
        FullScanEngine::new(model, 1).unwrap().search(&QueryBatch::default()).unwrap().is_empty()
    );
}
