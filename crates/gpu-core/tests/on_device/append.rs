//! Rows that are appended while an engine searches: the reference's rows and bits at every position,
//! the last one and those before, in every kind of pass.

use std::sync::Arc;

use contract::{Hit, Query, QueryVector, Row, RowBitmap, SearchEngine};
use gpu_core::Options;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;

use crate::formulas;
use crate::support::{Numbers, all_paths, bits, model, queries, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("appended_rows_are_found_at_their_positions", are_found_at_their_positions as fn()),
        ("appended_rows_fill_the_room_and_no_more", fill_the_room_and_no_more),
        ("appended_rows_are_not_in_passes_before", are_not_in_passes_before),
        ("appended_rows_in_a_large_table", in_a_large_table),
    ]
}

/// Rows of every kind: zero, long and short ones, copies of others.
fn rows(count: usize, dim: usize, numbers: &mut Numbers) -> Vec<Vec<f32>> {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for row in 0..count {
        let own = match numbers.below(12) {
            0 => vec![0.0; dim],
            1 if row > 0 => rows[numbers.below(row)].clone(),
            2 => numbers.vector(dim).into_iter().map(|value| value * 1e30).collect(),
            3 => numbers.vector(dim).into_iter().map(|value| value * 1e-30).collect(),
            _ => numbers.vector(dim),
        };
        rows.push(own);
    }
    rows
}

fn with_room(model: &Arc<ModelStore>, room: usize, paths: Paths) -> CudaEngine {
    CudaEngine::new(model.clone(), Options { room, ..Options::default() }, paths).unwrap()
}

fn append(engine: &mut CudaEngine, all: &ModelStore, from: usize, to: usize) -> usize {
    engine.append(&all.table().part(from..to)).unwrap()
}

/// Queries for a table of `all` rows at the position when it had `rows`: as the engine takes them,
/// and as the reference of all rows does.
fn at(rows: usize, all: &Arc<ModelStore>, count: usize, numbers: &mut Numbers) -> [Vec<Query>; 2] {
    let mut made = queries(all, count, &[1, 10, 16, 17, 100, 1000], numbers);
    made.extend(formulas::formulas(all, count / 8, numbers));
    // At a position, rows after it are neither asked about nor left out.
    made.retain(|query| {
        query.vectors().iter().all(|vector| match &vector.vector {
            QueryVector::Row(row) => row.index() < rows,
            QueryVector::Components(_) => true,
        })
    });
    let mut here = Vec::new();
    let mut members = |share| -> Vec<Row> {
        let rows = (0..rows as u32).map(Row);
        rows.filter(|_| numbers.below(share) > 0).collect()
    };
    let sets = [members(2), members(40)];
    let of = |members: &Vec<Row>, rows| Arc::new(RowBitmap::of_rows(members.clone(), rows, "v"));
    let [own, expected] = [rows, all.rows()]
        .map(|rows| sets.iter().map(|members| of(members, rows)).collect::<Vec<_>>());
    for query in &mut made {
        let (mut engine, mut reference) = (query.clone(), query.clone());
        let limit = query.filter.rows.limit().map_or(rows as u32, |limit| limit.min(rows as u32));
        let place = numbers.below(3);
        for (query, sets) in [(&mut engine, &own), (&mut reference, &expected)] {
            let set = query.filter.rows.clone().limited(Some(limit));
            query.filter.rows = match sets.get(place) {
                Some(bitmap) => set.within(bitmap.clone()),
                None => set,
            };
        }
        here.push((engine, reference));
    }
    let (engine, reference) = here.into_iter().unzip();
    [engine, reference]
}

fn found(engine: &mut CudaEngine, queries: &[&Query]) -> Vec<Option<Vec<(u32, u64)>>> {
    let found = engine.search_overlapped(queries, &mut || ()).unwrap();
    let own = |hits: Vec<Hit>| bits(&[hits]).remove(0);
    found.into_iter().map(|hits| hits.map(own)).collect()
}

/// Asks for all together, and for a few alone. Returns how many were left to a full pass.
fn check(
    of: &str,
    engine: &mut CudaEngine,
    all: &Arc<ModelStore>,
    [own, own_all]: &[Vec<Query>; 2],
) -> usize {
    let expected = reference(all, own_all);
    let batch: Vec<&Query> = own.iter().collect();
    let mut open = 0;
    for (i, hits) in found(engine, &batch).into_iter().enumerate() {
        match hits {
            Some(hits) => assert_eq!(hits, expected[i], "{of}, query {i}: {:?}", own[i]),
            None => open += 1,
        }
    }
    for (i, query) in own.iter().enumerate().take(5) {
        if let Some(hits) = found(engine, &[query]).remove(0) {
            assert_eq!(hits, expected[i], "{of}, query {i} alone: {query:?}");
        }
    }
    open
}

fn are_found_at_their_positions() {
    let numbers = &mut Numbers::new(31);
    for (dim, base, parts) in [
        (3, 130, vec![1, 1, 126, 1, 300]),
        (50, 20_000, vec![5, 123, 128, 2000, 1]),
        (300, 3000, vec![64, 64, 1, 1500]),
    ] {
        let total = base + parts.iter().sum::<usize>();
        let vectors = rows(total, dim, numbers);
        let all = model(dim, &vectors);
        let before = model(dim, &vectors[..base]);
        for (name, paths) in all_paths() {
            let mut engine = with_room(&before, total - base + 7, paths);
            let mut end = base;
            let (mut asked, mut open) = (0, 0);
            let mut positions = vec![base];
            for &part in &parts {
                assert_eq!(append(&mut engine, &all, end, end + part), part);
                end += part;
                positions.push(end);
                for rows in [end, positions[numbers.below(positions.len())]] {
                    let queries = at(rows, &all, 40, numbers);
                    asked += queries[0].len();
                    let of = format!("{name}, {dim} components, {rows} of {end} rows");
                    open += check(&of, &mut engine, &all, &queries);
                }
            }
            assert!(4 * open < asked, "{name}: {open} of {asked} were left open");
        }
    }
}

fn fill_the_room_and_no_more() {
    let numbers = &mut Numbers::new(32);
    let vectors = rows(5000, 20, numbers);
    let (all, before) = (model(20, &vectors), model(20, &vectors[..1000]));
    let mut engine = with_room(&before, 300, Paths::default());
    assert_eq!(append(&mut engine, &all, 1000, 1250), 250);
    assert_eq!(append(&mut engine, &all, 1250, 1350), 50);
    assert_eq!(append(&mut engine, &all, 1300, 1400), 0);
    check("full", &mut engine, &all, &at(1300, &all, 60, numbers));
    let mut engine = with_room(&before, 0, Paths::default());
    assert_eq!(append(&mut engine, &all, 1000, 1001), 0);
    check("without room", &mut engine, &before, &at(1000, &before, 60, numbers));
}

fn are_not_in_passes_before() {
    let numbers = &mut Numbers::new(33);
    let vectors = rows(4000, 64, numbers);
    let (all, before) = (model(64, &vectors), model(64, &vectors[..2000]));
    let paths = Paths { certified_from_rows: 0, ..Paths::default() };
    let mut engine = with_room(&before, 2000, paths);
    let mut started = 0;
    for end in (2000..3900).step_by(100) {
        let [own, own_all] = at(end, &all, 30, numbers);
        let batch: Vec<&Query> = own.iter().filter(|query| query.k <= 16).collect();
        let of_all: Vec<Query> = own_all.into_iter().filter(|query| query.k <= 16).collect();
        let is_started = engine.start_search(&batch).unwrap();
        started += usize::from(is_started);
        assert_eq!(append(&mut engine, &all, end, end + 100), 100);
        if is_started {
            let expected = reference(&all, &of_all);
            let found = engine.finish_search(&batch).unwrap();
            for (i, hits) in found.into_iter().enumerate() {
                let Some(hits) = hits else { continue };
                assert_eq!(bits(&[hits])[0], expected[i], "query {i}: {:?}", batch[i]);
            }
        }
    }
    assert!(started > 10, "{started} passes were started");
}

fn in_a_large_table() {
    let numbers = &mut Numbers::new(34);
    let (base, more, dim) = (120_000, 40_000, 64);
    let vectors = rows(base + more, dim, numbers);
    let (all, before) = (model(dim, &vectors), model(dim, &vectors[..base]));
    let paths = Paths { certified_from_rows: 0, ..Paths::default() };
    for portable in [false, true] {
        let mut engine = with_room(&before, more, Paths { portable, ..paths });
        for end in (base..base + more).step_by(10_000) {
            assert_eq!(append(&mut engine, &all, end, end + 10_000), 10_000);
            let queries = at(end + 10_000, &all, 60, numbers);
            check("a large table", &mut engine, &all, &queries);
        }
    }
}
