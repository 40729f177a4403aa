//! Ranks that the device counts: the host's, whatever the table, the filter and the ties.

use std::sync::Arc;

use contract::{
    Device, Filter, FullPassEngine, FullPassPart, FullPassQuery, Query, QueryVector, Row, RowSet,
    Scoring, SearchEngine,
};
use cpu_core::FullScanEngine;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

use crate::full_pass::run;
use crate::support::{self, Numbers, bits, engine, model, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("ranks_in_tables_of_every_shape", in_tables_of_every_shape as fn()),
        ("ranks_of_synthetic_words", of_synthetic_words),
        ("ranks_one_bit_apart", one_bit_apart),
        ("ranks_of_huge_and_tiny_rows", of_huge_and_tiny_rows),
        ("ranks_with_too_many_rows_in_doubt", with_too_many_rows_in_doubt),
        ("ranks_that_a_pass_does_not_take", that_a_pass_does_not_take),
        ("ranks_and_searches_that_overlap", and_searches_that_overlap),
    ]
}

fn queries(model: &ModelStore, count: usize, numbers: &mut Numbers) -> Vec<FullPassQuery> {
    let (table, rows) = (model.table(), model.rows());
    let mut queries = Vec::new();
    while queries.len() < count {
        let vector = match numbers.below(3) {
            0 => QueryVector::from(numbers.vector(model.dim())),
            _ => QueryVector::Row(Row(numbers.below(rows) as u32)),
        };
        // A zero row makes no query.
        let Ok(scoring) = Scoring::vector(&table, vector) else { continue };
        let some = |most: usize, numbers: &mut Numbers| -> Vec<Row> {
            (0..numbers.below(most + 1)).map(|_| Row(numbers.below(rows) as u32)).collect()
        };
        let ranked = some(13, numbers);
        // Duplicates are one row; a row may be ranked and excluded.
        let ranked = ranked.iter().chain(ranked.first()).copied().chain([Row(0)]).collect();
        let now_and_then = |numbers: &mut Numbers| numbers.below(4) == 0;
        let excluded = some(if numbers.below(2) == 0 { 1 } else { 16 }, numbers);
        let filter = Filter {
            rows: RowSet::all()
                .less(excluded)
                .limited(now_and_then(numbers).then(|| 1 + numbers.below(rows) as u32)),
            min_score: now_and_then(numbers).then(|| f64::from(numbers.real())),
            max_score: now_and_then(numbers).then(|| f64::from(2.0 * numbers.real())),
        };
        queries.push(FullPassQuery::new(scoring, 0, filter, ranked));
    }
    queries
}

/// Compares the ranks and the bits of the scores with the host's, alone and beside a query for
/// hits, because of which the pass has several steps. Returns how many queries the device counted,
/// each time.
fn check(
    what: &str,
    model: &Arc<ModelStore>,
    engine: &mut CudaEngine,
    queries: &[FullPassQuery],
) -> [u64; 2] {
    let mut host = FullScanEngine::new(model.clone(), 0).unwrap();
    let expected = host.full_pass(&queries.iter().collect::<Vec<_>>()).unwrap();
    let for_hits = FullPassQuery::new(queries[0].scoring.clone(), 3, Filter::default(), vec![]);
    [None, Some(for_hits)].map(|beside| {
        let before = engine.counters().ranked;
        let all: Vec<FullPassQuery> = queries.iter().cloned().chain(beside).collect();
        let found = run(engine, &all, 1);
        for ((found, expected), query) in found.into_iter().zip(&expected).zip(queries) {
            for (found, expected) in found.ranks.iter().zip(&expected.ranks) {
                let bits = |score: Option<f64>| score.map(f64::to_bits);
                assert_eq!(bits(found.score), bits(expected.score), "{what}: {query:?}");
                assert_eq!(found.rank, expected.rank, "{what}: {:?} of {query:?}", found.row);
            }
            assert_eq!(found.ranks.len(), expected.ranks.len());
        }
        engine.counters().ranked - before
    })
}

fn check_all(what: &str, model: &Arc<ModelStore>, queries: &[FullPassQuery]) {
    for portable in [false, true] {
        let mut engine = engine(model, Paths { portable, ..Paths::default() });
        for size in [1, 32, 33, 64, 65, queries.len()] {
            let queries = &queries[..size.min(queries.len())];
            assert_eq!(
                check(what, model, &mut engine, queries),
                [queries.len() as u64; 2],
                "{what}"
            );
        }
    }
}

fn in_tables_of_every_shape() {
    let mut numbers = Numbers::new(11);
    let shapes = [(1, 1), (2, 3), (1, 4), (127, 4), (128, 31), (129, 32), (500, 40), (700, 48)];
    for (rows, dim) in shapes.into_iter().chain([(1000, 33), (3000, 300)]) {
        let rows: Vec<Vec<f32>> = (0..rows)
            .map(|row| match row % 50 {
                49 => vec![0.0; dim],
                _ => numbers.vector(dim),
            })
            .collect();
        let model = model(dim, &rows);
        let queries = queries(&model, 150, &mut numbers);
        check_all(&format!("{} x {dim}", rows.len()), &model, &queries);
    }
}

fn of_synthetic_words() {
    for (rows, dim) in [(100_000, 100), (20_000, 768), (30_000, 1030)] {
        let files =
            synth_in_memory(SynthOptions { rows, dim, seed: 5, ..Default::default() }).unwrap();
        let model = Arc::new(ModelStore::from_memory("synth", &files).unwrap());
        let queries = queries(&model, 140, &mut Numbers::new(3));
        check_all(&format!("{rows} x {dim}"), &model, &queries);
    }
}

/// All rows are copies of few, many of them with one bit changed: only exact scores, and rows, tell
/// them apart.
fn one_bit_apart() {
    let dim = 24;
    let mut numbers = Numbers::new(7);
    let base: Vec<Vec<f32>> = (0..10).map(|_| numbers.vector(dim)).collect();
    let rows: Vec<Vec<f32>> = (0..5000)
        .map(|row| {
            let mut own = base[row % base.len()].clone();
            if numbers.below(2) == 0 {
                let component = &mut own[numbers.below(dim)];
                *component = f32::from_bits(component.to_bits() ^ 1);
            }
            if numbers.below(4) == 0 {
                own.iter_mut().for_each(|component| *component *= 3.0);
            }
            own
        })
        .collect();
    let model = model(dim, &rows);
    let queries = queries(&model, 150, &mut numbers);
    check_all("one bit apart", &model, &queries);
}

fn of_huge_and_tiny_rows() {
    let dim = 40;
    let mut numbers = Numbers::new(9);
    let rows: Vec<Vec<f32>> = (0..3000)
        .map(|row| {
            let scale = [1.0, 1e-38, 1e37, 1e-30, 1e25, 1e-20, 1e-42][row % 7];
            let mut own: Vec<f32> = numbers.vector(dim).iter().map(|x| x * scale).collect();
            if numbers.below(3) == 0 {
                // One component has nearly all of the length; the others are below float16's range.
                own[row % dim] *= 1e6;
            }
            own.iter_mut().for_each(|x| *x = x.clamp(-1e38, 1e38));
            own
        })
        .collect();
    let model = model(dim, &rows);
    let of_normal_norm: Vec<FullPassQuery> = queries(&model, 400, &mut numbers)
        .into_iter()
        .filter(|query| (1e-29..1e29).contains(&query.scoring.vectors()[0].norm))
        .collect();
    check_all("huge and tiny rows", &model, &of_normal_norm);
}

/// Where all rows are nearly alike, a full pass has to count; the other queries of the pass are not
/// affected.
fn with_too_many_rows_in_doubt() {
    let dim = 8;
    let mut numbers = Numbers::new(13);
    let (alike, other) = (vec![1.0; dim], vec![1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
    let rows: Vec<Vec<f32>> = (0..20_000)
        .map(|row| match row % 2 {
            0 => alike.clone(),
            _ => numbers.vector(dim),
        })
        .collect();
    let model = model(dim, &rows);
    let table = model.table();
    let query = |vector: &Vec<f32>, ranked| {
        let scoring = Scoring::vector(&table, vector.clone().into()).unwrap();
        FullPassQuery::new(scoring, 0, Filter::default(), vec![ranked])
    };
    let queries = [query(&alike, Row(10)), query(&other, Row(9)), query(&alike, Row(9))];
    let mut engine = engine(&model, Paths::default());
    check("too many in doubt", &model, &mut engine, &queries);
    // One of the first pass. Of the second, one that has some rows more than its first step, and
    // then too many again.
    assert!(engine.counters().fallbacks >= 2, "{:?}", engine.counters());
}

fn that_a_pass_does_not_take() {
    let mut numbers = Numbers::new(17);
    let rows: Vec<Vec<f32>> = (0..300).map(|_| numbers.vector(5)).collect();
    let model = model(5, &rows);
    let table = model.table();
    let cosine = || Scoring::vector(&table, QueryVector::Row(Row(1))).unwrap();
    let first = |n: u32| (0..n).map(Row).collect::<Vec<_>>();
    let formula = Scoring::three_cos_mul(&table, &[Row(1)], &[Row(2)]).unwrap();
    let queries = [
        FullPassQuery::new(cosine(), 0, Filter::default(), first(15)),
        FullPassQuery::new(cosine(), 1, Filter::default(), first(1)),
        FullPassQuery::new(cosine(), 0, Filter::default(), Vec::new()),
        FullPassQuery::new(cosine(), 0, Filter::excluding(first(17)), first(1)),
        FullPassQuery::new(formula, 0, Filter::default(), first(1)),
    ];
    let mut engine = engine(&model, Paths::default());
    assert_eq!(check("not taken", &model, &mut engine, &queries), [0; 2]);
}

/// Starts countings and searches before those before them are finished, as the scheduler does.
fn and_searches_that_overlap() {
    enum Started<'a> {
        Search(Vec<&'a Query>),
        Ranks(Vec<&'a FullPassQuery>),
    }
    let mut numbers = Numbers::new(19);
    let files =
        synth_in_memory(SynthOptions { rows: 60_000, dim: 100, seed: 6, ..Default::default() })
            .unwrap();
    let model = Arc::new(ModelStore::from_memory("synth", &files).unwrap());
    let ranked = queries(&model, 600, &mut numbers);
    let searched = support::queries(&model, 600, &[1, 10], &mut numbers);
    let mut host = FullScanEngine::new(model.clone(), 0).unwrap();
    let expected = host.full_pass(&ranked.iter().collect::<Vec<_>>()).unwrap();
    let expected_hits = reference(&model, &searched);
    let mut engine = engine(&model, Paths { certified_from_rows: 0, ..Paths::default() });
    let (mut ranks, mut hits, mut before) = (Vec::new(), Vec::new(), None);
    let mut finish = |engine: &mut CudaEngine, before: Option<Started<'_>>| match before {
        Some(Started::Ranks(queries)) => {
            let parts = engine.finish_ranks(&queries).unwrap();
            ranks.extend(parts.into_iter().map(FullPassPart::into_answer));
        }
        Some(Started::Search(batch)) => hits.extend(engine.finish_search(&batch).unwrap()),
        None => {}
    };
    let (mut next_rank, mut next_search) = (0, 0);
    while next_rank < ranked.len() || next_search < searched.len() {
        engine.wait_until_almost_over().unwrap();
        let size = [1, 20, 64, 128][numbers.below(4)];
        let is_rank = numbers.below(2) == 0;
        let started = if is_rank {
            let end = ranked.len().min(next_rank + size);
            let batch: Vec<&FullPassQuery> = ranked[next_rank..end].iter().collect();
            next_rank = end;
            engine.start_ranks(&batch).unwrap().then_some(Started::Ranks(batch))
        } else {
            let end = searched.len().min(next_search + size);
            let batch: Vec<&Query> = searched[next_search..end].iter().collect();
            next_search = end;
            engine.start_search(&batch).unwrap().then_some(Started::Search(batch))
        };
        finish(&mut engine, std::mem::replace(&mut before, started));
    }
    finish(&mut engine, before);
    assert_eq!(ranks, expected);
    let hits: Vec<_> = hits.into_iter().map(Option::unwrap).collect();
    assert_eq!(bits(&hits), expected_hits);

    let too_many: Vec<&FullPassQuery> = ranked[..129].iter().collect();
    assert_eq!(engine.start_ranks(&too_many), Ok(false));
    assert_eq!(engine.start_ranks(&[]), Ok(false));
    assert_eq!(engine.start_ranks(&too_many[..5]), Ok(true));
    // Dropping the engine waits for it.
}
