//! Tests ordinary tables of every shape.

use std::sync::Arc;

use contract::{Filter, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cust::stream::{Stream, StreamFlags};
use gpu_core::driver::Gpu;
use gpu_core::resident::upload;
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

use crate::support::{Numbers, check, engine, model, queries};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("uploads_arrive_whole", uploads_arrive_whole),
        ("dimensions_1_to_40", dimensions_1_to_40),
        ("odd_dimensions", odd_dimensions),
        ("row_counts_around_tile_edges", row_counts_around_tile_edges),
        ("batch_sizes_around_widths", batch_sizes_around_widths),
        ("every_k", every_k),
        ("many_excluded_rows", many_excluded_rows),
        ("rows_of_bitmaps", rows_of_bitmaps),
        ("synthetic_words", synthetic_words),
        ("tables_beside_others", tables_beside_others),
        ("queries_are_certified", queries_are_certified),
        ("filtered_queries_are_certified", filtered_queries_are_certified),
    ]
}

fn random(rows: usize, dim: usize, numbers: &mut Numbers) -> Arc<ModelStore> {
    let rows: Vec<Vec<f32>> = (0..rows).map(|_| numbers.vector(dim)).collect();
    model(dim, &rows)
}

pub(crate) fn synthetic(rows: u32, dim: usize, seed: u64) -> Arc<ModelStore> {
    let files = synth_in_memory(SynthOptions { rows, dim, seed, ..Default::default() }).unwrap();
    Arc::new(ModelStore::from_memory("synth", &files).unwrap())
}

fn uploads_arrive_whole() {
    let _gpu = Gpu::open(None).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let mut numbers = Numbers::new(1);
    for len in [0, 1, 5, 8 << 20, (40 << 20) / 8 + 3, 100 << 20 >> 3] {
        let values: Vec<u64> = (0..len).map(|_| numbers.next()).collect();
        for is_shared in [false, true] {
            let mut heard = 0;
            let on = (&stream, is_shared);
            let array = upload(&values, 0, on, |done| heard = done).unwrap();
            assert_eq!(heard, 8 * len as u64);
            assert!(array.read().unwrap() == values, "{len} values");
        }
    }
}

fn dimensions_1_to_40() {
    let mut numbers = Numbers::new(2);
    for dim in 1..=40 {
        let model = random(300 + numbers.below(200), dim, &mut numbers);
        let queries = queries(&model, 20, &[1, 10, 100], &mut numbers);
        check(&format!("dimension {dim}"), &model, &queries);
    }
}

fn odd_dimensions() {
    let mut numbers = Numbers::new(3);
    for dim in [
        63, 64, 65, 100, 127, 129, 223, 225, 255, 257, 299, 300, 319, 320, 321, 511, 768, 1023,
        2049, 4095, 4096,
    ] {
        let model = random(400, dim, &mut numbers);
        let queries = queries(&model, 12, &[1, 10, 30], &mut numbers);
        check(&format!("dimension {dim}"), &model, &queries);
    }
}

fn row_counts_around_tile_edges() {
    let mut numbers = Numbers::new(4);
    for rows in
        [1, 2, 3, 31, 127, 128, 129, 255, 256, 257, 1023, 1025, 8191, 8193, 16_383, 16_385, 20_000]
    {
        let model = random(rows, 33, &mut numbers);
        let queries = queries(&model, 24, &[1, 10, 100, 1000], &mut numbers);
        check(&format!("{rows} rows"), &model, &queries);
    }
}

fn batch_sizes_around_widths() {
    let mut numbers = Numbers::new(5);
    let model = synthetic(20_000, 64, 5);
    for count in
        [1, 2, 15, 16, 17, 63, 64, 65, 127, 129, 255, 257, 513, 700, 1023, 1024, 1025, 2500]
    {
        let queries = queries(&model, count, &[1, 5, 10, 16], &mut numbers);
        check(&format!("{count} queries"), &model, &queries);
    }
}

fn every_k() {
    let mut numbers = Numbers::new(6);
    let model = synthetic(30_000, 50, 6);
    for ks in [
        &[1][..],
        &[10],
        &[100],
        &[1000],
        &[1, 10, 100, 1000],
        &[16, 17, 128, 129, 1023, 1024],
        &[1025, 5000, 40_000],
        &[0, 3],
    ] {
        let queries = queries(&model, 40, ks, &mut numbers);
        check(&format!("k of {ks:?}"), &model, &queries);
    }
}

fn many_excluded_rows() {
    let model = synthetic(20_000, 50, 7);
    let table = model.table();
    let query = |row, k, excluded: Vec<u32>| {
        let filter = Filter::excluding(excluded.into_iter().map(Row).collect());
        Query::new(&table, QueryVector::Row(Row(row)), k, filter).unwrap()
    };
    let mut asked = Vec::new();
    for count in [1u32, 2, 38, 39, 300, 1000, 1024, 1025, 5000, 19_990, 20_000] {
        asked.push(query(77, 10, (0..count).collect()));
        asked.push(query(19_999, 100, (20_000 - count..20_000).collect()));
    }
    check("excluded rows", &model, &asked);
}

/// Beside queries for all rows, which the same passes answer.
fn rows_of_bitmaps() {
    let model = synthetic(20_000, 50, 7);
    let table = model.table();
    let mut asked = Vec::new();
    for step in [1usize, 2, 33, 999, 20_000] {
        for k in [10, 100, 2000] {
            let members = (0..20_000).skip(step / 2).step_by(step).map(Row);
            let bitmap = Arc::new(RowBitmap::of_rows(members, 20_000, "v"));
            let rows = RowSet::of(bitmap).limited(Some(19_000)).less(vec![Row(77)]);
            for rows in [rows, RowSet::all()] {
                let filter = Filter { rows, min_score: None, max_score: Some(0.9) };
                asked.push(Query::new(&table, QueryVector::Row(Row(77)), k, filter).unwrap());
            }
        }
    }
    check("rows of bitmaps", &model, &asked);
}

fn synthetic_words() {
    let mut numbers = Numbers::new(8);
    for (rows, dim) in [(50_000, 300), (60_000, 100), (100_000, 50)] {
        let model = synthetic(rows, dim, 8);
        let queries = queries(&model, 60, &[10, 10, 10, 100], &mut numbers);
        check(&format!("synth {rows} x {dim}"), &model, &queries);
    }
}

/// Tables are derived in smaller parts beside others.
fn tables_beside_others() {
    let other = Gpu::open(None).unwrap();
    assert!(Gpu::open(None).unwrap().is_shared && !other.is_shared);
    let mut numbers = Numbers::new(10);
    for (rows, dim) in [(1, 3), (1_056, 40), (1_057, 40), (60_000, 100)] {
        let model = synthetic(rows, dim, 10);
        let queries = queries(&model, 40, &[10, 100], &mut numbers);
        check(&format!("beside others: synth {rows} x {dim}"), &model, &queries);
    }
    drop(other);
    assert!(!Gpu::open(None).unwrap().is_shared);
}

/// Answers must come from certified passes, not from the fallback.
fn queries_are_certified() {
    let model = synthetic(200_000, 300, 9);
    let table = model.table();
    let asked: Vec<Query> = (0..256u32)
        .map(|i| {
            let row = Row(i * 701 % 200_000);
            Query::new(&table, QueryVector::Row(row), 10, Filter::excluding(vec![row])).unwrap()
        })
        .collect();
    for (name, paths) in crate::support::all_paths().into_iter().take(4) {
        let mut engine = engine(&model, paths);
        engine.search(&asked.iter().collect::<Vec<_>>()).unwrap();
        for query in &asked[..16] {
            engine.search(&[query]).unwrap();
        }
        let counters = engine.counters();
        assert_eq!((counters.fallbacks, counters.exact), (0, 0), "{name}: {counters:?}");
        assert_eq!((counters.passes, counters.retried), (17, 0), "{name}: {counters:?}");
        assert_eq!(counters.certified, 272, "{name}: {counters:?}");
        assert!(counters.survivors < 272 * 500, "{name}: {counters:?}");
    }
}

/// Filters do not take a query out of the certified passes, alone, among its like or among plain
/// queries. A maximum score may: rows above it take room among the candidates.
fn filtered_queries_are_certified() {
    let model = synthetic(600_000, 100, 10);
    let table = model.table();
    let rows = model.rows() as u32;
    let some_rows = |from: u32, count: u32, step: u32| -> Vec<Row> {
        (0..count).map(|i| Row((from + i * step) % rows)).collect()
    };
    type Filters<'a> = Vec<(&'static str, Box<dyn Fn(Row) -> (Filter, usize) + 'a>)>;
    let limited = |limit| {
        move |row| {
            let mut filter = Filter::excluding(vec![row]);
            filter.rows = filter.rows.limited(Some(limit));
            (filter, 10)
        }
    };
    let minimum = |_| {
        let filter = Filter { min_score: Some(0.5), ..Filter::default() };
        (filter, 10)
    };
    let filters: Filters<'_> = vec![
        ("the first row", Box::new(limited(1))),
        ("100 rows", Box::new(limited(100))),
        ("5,000 rows", Box::new(limited(5000))),
        ("60,000 rows", Box::new(limited(60_000))),
        ("599,999 rows", Box::new(limited(599_999))),
        ("50 excluded", Box::new(|row: Row| (Filter::excluding(some_rows(row.0, 50, 7919)), 10))),
        ("frequent words excluded", Box::new(|_| (Filter::excluding(some_rows(0, 1000, 1)), 10))),
        ("many excluded", Box::new(|row: Row| (Filter::excluding(some_rows(row.0, 3000, 17)), 10))),
        ("minimum", Box::new(minimum)),
        ("k = 100", Box::new(|row| (Filter::excluding(vec![row]), 100))),
    ];
    let plain: Vec<Query> = (0..200u32)
        .map(|i| {
            let row = Row(i * 2999 % rows);
            Query::new(&table, QueryVector::Row(row), 10, Filter::excluding(vec![row])).unwrap()
        })
        .collect();
    for (name, paths) in crate::support::all_paths().into_iter().skip(1).take(3) {
        let mut engine = engine(&model, paths);
        for (what, filter) in &filters {
            let asked: Vec<Query> = (0..20u32)
                .map(|i| {
                    let row = Row((i * 30_011 + 77) % rows);
                    let (filter, k) = filter(row);
                    Query::new(&table, QueryVector::Row(row), k, filter).unwrap()
                })
                .collect();
            let expected = crate::support::reference(&model, &asked);
            let before = engine.counters();
            let mixed: Vec<&Query> = asked.iter().chain(&plain).collect();
            let among_others = engine.search(&mixed).unwrap();
            let among_its_like = engine.search(&asked.iter().collect::<Vec<_>>()).unwrap();
            let alone = engine.search(&asked[..1].iter().collect::<Vec<_>>()).unwrap();
            let bits = crate::support::bits;
            assert!(bits(&among_others)[..20] == expected, "{what}, {name}, among others");
            assert!(bits(&among_its_like) == expected, "{what}, {name}, among its like");
            assert!(bits(&alone)[..] == expected[..1], "{what}, {name}, alone");
            let after = engine.counters();
            let uncertified = (after.fallbacks + after.exact) - (before.fallbacks + before.exact);
            assert_eq!((uncertified, after.passes - before.passes), (0, 3), "{what}, {name}");
        }
    }
}
