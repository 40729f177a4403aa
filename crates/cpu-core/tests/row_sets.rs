//! Bitmaps designed to break the certificate of the CPU engine: floors, samples and thresholds must
//! count only rows in the set. Tests every path against the plain reference.

use std::sync::{Arc, mpsc};

use crate::support::{bitmap, bits, certified, expected, model, model_under_dot, repeating_model};
use contract::{
    Filter, FullPassEngine, FullPassQuery, Query, QueryVector, Row, RowBitmap, RowSet, Scoring,
    SearchEngine,
};
use cpu_core::{
    CpuEngine, FirstLook, FullScanEngine, InstructionSet, Options, Origin, Paths, ReferenceEngine,
};
use model_store::ModelStore;
use model_store::synth::split_mix;

const DIM: usize = 12;

/// Rows enough for a sample of members, and the last strip is not full.
const ROWS: usize = 20_005;

/// A number in [-1, 1) that looks random.
fn number(index: usize) -> f32 {
    (split_mix(index as u64) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn random_rows() -> Vec<Vec<f32>> {
    (0..ROWS).map(|row| (0..DIM).map(|i| number(row * DIM + i)).collect()).collect()
}

fn random_model() -> Arc<ModelStore> {
    Arc::new(model(DIM, &random_rows()))
}

fn set(members: impl Iterator<Item = usize>) -> RowSet {
    let rows = members.map(|row| Row(row as u32));
    RowSet::of(Arc::new(RowBitmap::of_rows(rows, ROWS, "v")))
}

/// Checks these queries together, and some alone, on every path.
fn holds(model: &Arc<ModelStore>, queries: &[Query]) {
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = expected(model, &batch);
    let mut full = FullScanEngine::new(model.clone(), 2).unwrap();
    assert_eq!(bits(&full.search(&batch).unwrap()), expected, "full scan");
    for instructions in InstructionSet::available() {
        for (first_look, gather) in [
            (None, None),
            (None, Some(false)),
            (Some(FirstLook::FourBits), Some(false)),
            (Some(FirstLook::EightBits), Some(false)),
            (None, Some(true)),
        ] {
            let always_certify = first_look.is_some();
            let paths = Paths { always_certify, first_look, gather, ..Paths::default() };
            let mut engine = certified(model, 2, instructions, paths);
            let found = bits(&engine.search(&batch).unwrap());
            assert_eq!(found, expected, "{instructions}, {first_look:?}, {gather:?}");
            for (query, expected) in queries.iter().zip(&expected).step_by(5) {
                let found = bits(&engine.search(&[query]).unwrap());
                assert_eq!(found, std::slice::from_ref(expected), "{instructions}, alone");
            }
        }
    }
}

/// Checks these queries together, with the best instructions.
fn holds_together(model: &Arc<ModelStore>, queries: &[Query]) {
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = expected(model, &batch);
    for (always_certify, gather) in
        [(false, None), (false, Some(false)), (true, Some(false)), (false, Some(true))]
    {
        let paths = Paths { always_certify, gather, ..Paths::default() };
        let mut engine = certified(model, 2, InstructionSet::best(), paths);
        assert_eq!(bits(&engine.search(&batch).unwrap()), expected);
    }
}

/// Queries for the neighbours of a row among the rows of each set, for several numbers of them.
fn queries(model: &ModelStore, row: u32, sets: &[RowSet]) -> Vec<Query> {
    let of = |set: &RowSet| {
        [1, 10, 100].map(|k| {
            let filter = Filter::of(set.clone());
            Query::new(&model.table(), QueryVector::Row(Row(row)), k, filter).unwrap()
        })
    };
    sets.iter().flat_map(of).collect()
}

#[test]
fn sets_of_every_size_and_shape() {
    let model = random_model();
    let limits = [31, 32, 1024, ROWS - 1].map(|limit| Some(limit as u32));
    let mut sets = vec![
        set(0..0),
        set([0].into_iter()),
        set([ROWS - 1].into_iter()),
        set((0..ROWS).filter(|&row| row != 77)),
        set((0..ROWS).step_by(2)),
        set((1..ROWS).step_by(2)),
        set((0..ROWS).filter(|row| row / 32 % 3 == 1)),
        set((0..ROWS).filter(|row| row / 1024 % 2 == 1)),
        set((ROWS - 40)..ROWS),
        set((0..ROWS).filter(|&row| split_mix(row as u64).is_multiple_of(500))),
    ];
    let limited: Vec<RowSet> = limits.map(|limit| sets[4].clone().limited(limit)).into();
    sets.extend(limited);
    let excluded = sets[4].clone().less((0..60).map(|row| Row(row * 200)).collect());
    sets.extend([excluded, RowSet::all()]);
    holds(&model, &queries(&model, 77, &sets));
}

#[test]
fn a_set_may_avoid_every_one_of_the_best_rows() {
    let model = random_model();
    let table = model.table();
    for row in [5, 12_345] {
        let row = Row(row);
        let score = |other: usize| {
            table.score(table.row(row), table.norm(row), Row(other as u32)).unwrap_or(-1.0)
        };
        let mut scores: Vec<f64> = (0..ROWS).map(score).collect();
        scores.sort_by(f64::total_cmp);
        // The rows below the median, and those near the worst.
        let below = [0.5, 0.01].map(|part| {
            let limit = scores[(part * ROWS as f64) as usize];
            set((0..ROWS).filter(|&other| score(other) < limit))
        });
        holds(&model, &queries(&model, row.0, &below));
    }
}

#[test]
fn formulas_rank_only_rows_of_the_set() {
    let model = random_model();
    let table = model.table();
    let mut queries = Vec::new();
    for kind in 0..7 {
        let rows = RowSet::of(bitmap(kind, 40 * kind, ROWS)).less(vec![Row(3)]);
        let scorings = [
            Scoring::three_cos_mul(&table, &[Row(3), Row(40)], &[Row(9)]),
            Scoring::three_cos_mul(&table, &[Row(77)], &[]),
            Scoring::pair_direction(&table, Row(3), Row(17), Row(90)),
        ];
        for (scoring, k) in scorings.into_iter().flat_map(|one| [(one.clone(), 1), (one, 30)]) {
            let min_score = (kind == 2).then_some(0.2);
            let filter = Filter { rows: rows.clone(), min_score, max_score: None };
            queries.push(Query::by(scoring.unwrap(), k, filter));
        }
    }
    holds(&model, &queries);
}

/// Under `dot`, long rows and large biases are the best for every query.
#[test]
fn sets_without_the_best_rows_under_dot() {
    let mut rows = random_rows();
    rows.iter_mut().step_by(50).flatten().for_each(|component| *component *= 30.0);
    let bias = |row: usize| if row % 60 == 1 { 40.0 } else { number(row) };
    let biases: Vec<f32> = (0..ROWS).map(bias).collect();
    for biases in [None, Some(&biases[..])] {
        let model = Arc::new(model_under_dot(DIM, &rows, biases));
        let sets = [
            set((0..ROWS).filter(|row| row % 50 != 0 && row % 60 != 1)),
            set((0..ROWS).filter(|row| row % 50 == 7)),
            set([5, 50, 61].into_iter()),
            set(0..0),
        ];
        let mut queries = queries(&model, 123, &sets);
        for (index, query) in queries.iter_mut().enumerate().skip(1).step_by(2) {
            query.filter.min_score = (index % 3 == 0).then_some(1.0);
            query.filter.max_score = Some(2.5);
        }
        holds(&model, &queries);
    }
}

/// Rows of norm zero are no neighbours, so a sample of them is no floor.
#[test]
fn rows_of_norm_zero_in_a_set_are_no_neighbours() {
    let mut rows = random_rows();
    rows.iter_mut().skip(1).step_by(3).for_each(|row| row.fill(0.0));
    let model = Arc::new(model(DIM, &rows));
    let sets = [
        set((1..ROWS).step_by(3)),
        set((0..ROWS).filter(|row| row % 3 == 1 || row % 1000 == 0)),
        set((0..ROWS).filter(|row| row % 3 != 2)),
    ];
    holds(&model, &queries(&model, 0, &sets));
}

/// Each score is that of eight or nine rows, some of them in the set.
#[test]
fn ties_across_the_borders_of_sets_go_to_the_lower_member() {
    let model = Arc::new(repeating_model());
    let rows = model.rows();
    let queries: Vec<Query> = (0..60)
        .map(|n| {
            let rows = RowSet::of(bitmap(n, n * 7919, rows));
            let filter = Filter { rows, min_score: (n % 4 == 0).then_some(0.1), max_score: None };
            let vector = QueryVector::Row(Row(n as u32 * 31));
            Query::new(&model.table(), vector, 1 + n as usize % 20, filter).unwrap()
        })
        .collect();
    holds_together(&model, &queries);
}

#[test]
fn thousands_of_sets_in_one_batch_do_not_meet() {
    const ROWS: usize = 4005;
    let model = Arc::new(model(DIM, &random_rows()[..ROWS]));
    let queries: Vec<Query> = (0..2000u64)
        .map(|n| {
            let filter = Filter::of(RowSet::of(bitmap(n, split_mix(n), ROWS)));
            let vector = QueryVector::Row(Row(n as u32 * 2));
            Query::new(&model.table(), vector, 3, filter).unwrap()
        })
        .collect();
    holds_together(&model, &queries);
}

#[test]
fn ranks_count_only_rows_of_the_set() {
    let model = random_model();
    let table = model.table();
    let ranked: Vec<Row> = [0, 5, 6, 777, 20_004].map(Row).into();
    let query = |n: u64| {
        let filter = Filter::of(RowSet::of(bitmap(n, n, ROWS)).less(vec![Row(6)]));
        let scoring = Scoring::vector(&table, QueryVector::Row(Row(n as u32))).unwrap();
        FullPassQuery::new(scoring, (n % 2) as usize * 4, filter, ranked.clone())
    };
    let queries: Vec<FullPassQuery> = (0..14).map(query).collect();
    let batch: Vec<&FullPassQuery> = queries.iter().collect();
    let expected = ReferenceEngine::new(model.clone()).full_pass(&batch).unwrap();
    let mut full = FullScanEngine::new(model.clone(), 2).unwrap();
    assert_eq!(full.full_pass(&batch).unwrap(), expected);
}

#[test]
fn a_bitmap_of_a_table_of_another_size_is_refused() {
    let model = random_model();
    let filter = Filter::of(RowSet::of(bitmap(0, 0, ROWS + 1)));
    let query = Query::new(&model.table(), QueryVector::Row(Row(1)), 3, filter.clone()).unwrap();
    let scoring = Scoring::vector(&model.table(), QueryVector::Row(Row(1))).unwrap();
    let ranks = FullPassQuery::new(scoring, 0, filter, vec![Row(2)]);
    let mut full = FullScanEngine::new(model.clone(), 1).unwrap();
    assert!(full.search(&[&query]).is_err() && full.full_pass(&[&ranks]).is_err());
    assert!(ReferenceEngine::new(model.clone()).search(&[&query]).is_err());
    let mut engine = certified(&model, 1, InstructionSet::best(), Paths::default());
    assert!(engine.search(&[&query]).is_err());
}

/// The table by rows takes memory, so it is made if a query needs it, and only if it may be.
#[test]
fn the_first_query_for_a_set_starts_to_derive_the_table_by_rows() {
    let model = random_model();
    let queries = queries(&model, 5, &[RowSet::all(), set((0..ROWS).step_by(10))]);
    let expected = expected(&model, &queries.iter().collect::<Vec<_>>());
    for by_rows in [true, false] {
        let (tell, told) = mpsc::channel();
        let report_by_rows = move |report| tell.send(report).unwrap();
        let options = Options {
            by_rows,
            report_by_rows: Some(Box::new(report_by_rows)),
            ..Options::default()
        };
        let mut engine = CpuEngine::new(model.clone(), options).unwrap();
        while engine.table().is_none() {
            std::thread::yield_now();
        }
        let search = |engine: &mut CpuEngine, index: usize| {
            let found = bits(&engine.search(&[&queries[index]]).unwrap());
            assert_eq!(found[0], expected[index]);
        };
        search(&mut engine, 0);
        assert!(told.try_recv().is_err(), "this query has no set");
        search(&mut engine, 4);
        if by_rows {
            let report = told.recv().unwrap();
            assert!(matches!(report.origin, Origin::ByRows), "{report}");
            // A row of 12 components is a cache line; rows are padded to whole strips.
            assert_eq!(report.bytes, ROWS.next_multiple_of(32) * 64);
        }
        (0..queries.len()).for_each(|index| search(&mut engine, index));
        assert!(told.try_recv().is_err(), "once, or never");
    }
}
