//! Tests the multi-threaded engines, with every instruction set of this machine, against the plain
//! reference: the same rows and score bits, always.

use std::sync::Arc;

use crate::support::{
    bits, certified, expected, model, queries, repeating_model, seeds, tables_of_both_metrics,
};
use contract::{Filter, Metric, Query, QueryVector, Ranking, Row, SearchEngine};
use cpu_core::{
    CpuEngine, FirstLook, FullScanEngine, InstructionSet, Options, Paths, ReferenceEngine,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_instruction_set_gives_the_references_bits(
        model in tables_of_both_metrics(90), seeds in seeds(), threads in 1usize..4,
    ) {
        let queries = queries(&model, seeds);
        let batch: Vec<&Query> = queries.iter().collect();
        let expected = expected(&model, &batch);
        for instructions in InstructionSet::available() {
            let mut engine =
                FullScanEngine::with_instructions(model.clone(), threads, instructions).unwrap();
            let found = bits(&engine.search(&batch).unwrap());
            prop_assert_eq!(&found, &expected, "full scan with {}", instructions);
        }
    }

    #[test]
    fn the_certified_engine_gives_the_references_bits_on_every_path(
        model in tables_of_both_metrics(400),
        seeds in seeds(),
        threads in 1usize..4,
        always_certify in prop::bool::weighted(0.8),
        first_look in prop::option::of(prop_oneof![
            Just(FirstLook::FourBits), Just(FirstLook::EightBits),
        ]),
        room in prop::option::weighted(0.2, 0usize..100),
        gather in prop::option::of(any::<bool>()),
        all_threads in any::<bool>(),
    ) {
        let queries = queries(&model, seeds);
        let batch: Vec<&Query> = queries.iter().collect();
        let expected = expected(&model, &batch);
        let paths = Paths { always_certify, first_look, room, gather, all_threads };
        for instructions in InstructionSet::available() {
            let mut engine = certified(&model, threads, instructions, paths);
            let found = bits(&engine.search(&batch).unwrap());
            prop_assert_eq!(&found, &expected, "with {}, {:?}", instructions, paths);
            let counted = engine.counted();
            let asked = counted.certified + counted.full + counted.fallbacks;
            prop_assert_eq!(asked, queries.len() as u64, "each query is counted once");
            let has_cover = |query: &Query| match query.ranking() {
                Ranking::Vector(_) => true,
                Ranking::Formula(scoring) => scoring.cover_len().is_some(),
            };
            let without = queries.iter().filter(|query| !has_cover(query)).count();
            // Under dot, a zero query has the same score with all rows, or only that of their
            // biases.
            let all_suit = model.table().metric() == Metric::Cosine;
            prop_assert!(!always_certify || !all_suit || counted.full == without as u64);
        }
    }

    #[test]
    fn no_answer_depends_on_its_batch_or_its_k(model in tables_of_both_metrics(90), seeds in seeds()) {
        let queries = queries(&model, seeds);
        let paths = Paths { always_certify: true, ..Paths::default() };
        let mut full = FullScanEngine::new(model.clone(), 2).unwrap();
        let mut certified = certified(&model, 2, InstructionSet::best(), paths);
        let engines: [&mut dyn SearchEngine; 2] = [&mut full, &mut certified];
        for engine in engines {
            let together = engine.search(&queries.iter().collect::<Vec<_>>()).unwrap();
            for (query, together) in queries.iter().zip(together) {
                let alone = engine.search(&[query]).unwrap().remove(0);
                prop_assert_eq!(bits(&[alone]), bits(std::slice::from_ref(&together)));
                let mut more = query.clone();
                more.k = model.rows();
                let more = engine.search(&[&more]).unwrap().remove(0);
                prop_assert!(more.len() >= together.len());
                prop_assert_eq!(bits(&[more[..together.len()].to_vec()]), bits(&[together]));
            }
        }
    }
}

#[test]
fn tables_larger_than_one_task_are_covered_to_the_last_row() {
    // Each score is a tie that the lower row must win.
    let model = Arc::new(repeating_model());
    let ask = |row, k| {
        Query::new(&model.table(), QueryVector::Row(Row(row)), k, Filter::default()).unwrap()
    };
    let queries: Vec<Query> =
        [(4999, 1), (0, 10), (616, 5000), (17, 100)].map(|(r, k)| ask(r, k)).into();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = expected(&model, &batch);
    let found = FullScanEngine::new(model.clone(), 3).unwrap().search(&batch).unwrap();
    assert_eq!(bits(&found), expected);
    assert_eq!(found[0][0].row, Row(4999 % 617));
    assert_eq!(found[2].len(), 5000);
    for always_certify in [false, true] {
        let paths = Paths { always_certify, all_threads: always_certify, ..Paths::default() };
        for instructions in InstructionSet::available() {
            let mut engine = certified(&model, 3, instructions, paths);
            assert_eq!(bits(&engine.search(&batch).unwrap()), expected, "{instructions}");
        }
    }
}

#[test]
fn queries_for_another_table_are_refused() {
    let small = Arc::new(model(2, &[vec![1.0, 0.0]]));
    let large = model(3, &[vec![1.0; 3], vec![1.0; 3]]);
    for vector in [QueryVector::Row(Row(1)), QueryVector::from(vec![1.0; 3])] {
        let query = Query::new(&large.table(), vector, 1, Filter::default()).unwrap();
        let batch: Vec<&Query> = std::iter::once(&query).collect();
        assert!(FullScanEngine::new(small.clone(), 1).unwrap().search(&batch).is_err());
        assert!(CpuEngine::new(small.clone(), Options::default()).unwrap().search(&batch).is_err());
        assert!(ReferenceEngine::new(small.clone()).search(&batch).is_err());
    }
}

#[test]
fn an_empty_batch_has_an_empty_answer() {
    let model = Arc::new(model(1, &[vec![1.0]]));
    assert!(FullScanEngine::new(model.clone(), 1).unwrap().search(&[]).unwrap().is_empty());
    let mut engine = CpuEngine::new(model, Options::default()).unwrap();
    assert!(engine.search(&[]).unwrap().is_empty());
}
