//! Tests tables designed to break a certificate.

use std::sync::Arc;

use contract::{Filter, Query, QueryVector, Row, SearchEngine};
use gpu_core::search::Paths;
use model_store::ModelStore;

use crate::support::{Numbers, bits, check, engine, model, queries, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("near_ties", near_ties),
        ("one_huge_component", one_huge_component),
        ("identical_rows", identical_rows),
        ("rows_one_bit_apart", rows_one_bit_apart),
        ("zero_rows", zero_rows),
        ("only_zero_rows_but_one", only_zero_rows_but_one),
        ("subnormals_and_extremes", subnormals_and_extremes),
        ("all_rows_inside_the_bound", all_rows_inside_the_bound),
        ("every_block_of_the_4_bit_scan_overflows", every_block_of_the_4_bit_scan_overflows),
        ("all_rows_equal", all_rows_equal),
        ("all_scores_negative", all_scores_negative),
        ("sparse_signs", sparse_signs),
        ("minimum_and_maximum_scores_at_ties", minimum_and_maximum_scores_at_ties),
    ]
}

const ROWS: usize = 3000;

/// Every score is shared by several rows, and both ends of the filter's range are such scores or
/// the next float64 to them.
fn minimum_and_maximum_scores_at_ties() {
    let dim = 20;
    let base: Vec<Vec<f32>> =
        (0..ROWS / 6).map(|i| Numbers::new(i as u64 + 5).vector(dim)).collect();
    let model = table(dim, 20, |row, _| base[row % base.len()].clone());
    let view = model.table();
    let mut queries = Vec::new();
    for row in [0u32, 77, 499].map(Row) {
        let mut scores: Vec<f64> = (0..base.len() as u32)
            .filter_map(|other| view.score(view.row(row), view.norm(row), Row(other)))
            .collect();
        scores.sort_by(f64::total_cmp);
        for (low, high) in [(0, 499), (100, 450), (250, 250), (480, 498), (498, 100)] {
            let (low, high) = (scores[low], scores[high]);
            for (min_score, max_score) in [
                (Some(low), Some(high)),
                (None, Some(high)),
                (None, Some(high.next_down())),
                (Some(low.next_up()), Some(high.next_up())),
                (Some(high), Some(high.next_down())),
            ] {
                let filter = Filter { min_score, max_score, ..Filter::excluding(vec![row]) };
                for k in [1, 10, 200] {
                    let filter = filter.clone();
                    queries.push(Query::new(&view, QueryVector::Row(row), k, filter).unwrap());
                }
            }
        }
    }
    check("ties at both ends", &model, &queries);
}

fn table(
    dim: usize,
    seed: u64,
    mut make: impl FnMut(usize, &mut Numbers) -> Vec<f32>,
) -> Arc<ModelStore> {
    let mut numbers = Numbers::new(seed);
    let rows: Vec<Vec<f32>> = (0..ROWS).map(|row| make(row, &mut numbers)).collect();
    assert!(rows.iter().all(|row| row.len() == dim));
    model(dim, &rows)
}

fn attack(what: &str, model: &Arc<ModelStore>, seed: u64) {
    let mut numbers = Numbers::new(seed ^ 0xabcd);
    check(what, model, &queries(model, 80, &[1, 10, 100, 1000], &mut numbers));
}

/// Directions within 1e-7 of one another: the first stage can't tell the rows apart.
fn near_ties() {
    for dim in [7, 50, 300] {
        let base = Numbers::new(11).vector(dim);
        let model = table(dim, 11, |_, numbers| {
            base.iter().map(|x| x * (1.0 + 1e-7 * numbers.real())).collect()
        });
        attack("near ties", &model, 11);
    }
}

fn one_huge_component() {
    for dim in [33, 300] {
        let model = table(dim, 12, |row, numbers| {
            let mut v = numbers.vector(dim);
            v[row % dim] *= 1e6;
            v
        });
        attack("one huge component", &model, 12);
    }
}

fn identical_rows() {
    let model = table(64, 13, |row, _| Numbers::new(row as u64 % 5 + 1).vector(64));
    attack("five distinct rows", &model, 13);
}

fn rows_one_bit_apart() {
    let base = Numbers::new(14).vector(100);
    let model = table(100, 14, |row, _| {
        let mut v = base.clone();
        v[row % 100] = f32::from_bits(v[row % 100].to_bits() ^ 1);
        v
    });
    attack("one bit apart", &model, 14);
}

fn zero_rows() {
    let model =
        table(
            40,
            15,
            |row, numbers| {
                if row % 3 == 0 && row > 0 { vec![0.0; 40] } else { numbers.vector(40) }
            },
        );
    attack("zero rows", &model, 15);
}

fn only_zero_rows_but_one() {
    let model =
        table(20, 16, |row, numbers| if row == 1234 { numbers.vector(20) } else { vec![0.0; 20] });
    let query = Query::new(&model.table(), QueryVector::Row(Row(1234)), 10, Filter::default());
    check("one row with a direction", &model, &[query.unwrap()]);
}

fn subnormals_and_extremes() {
    let model = table(50, 17, |row, numbers| {
        let scale = [f32::from_bits(1), 1e-40, 1e-20, 1.0, 1e20, 3e38][row % 6];
        (0..50)
            .map(|_| {
                let x = numbers.real() * scale;
                if scale < 1e-44 { f32::from_bits((numbers.next() % 3) as u32) } else { x }
            })
            .collect()
    });
    attack("subnormals and extremes", &model, 17);
}

/// Nothing can be ruled out, so the fallback must run.
fn all_rows_inside_the_bound() {
    let base = Numbers::new(18).vector(300);
    let rows: Vec<Vec<f32>> = {
        let mut numbers = Numbers::new(18);
        (0..300_000 / 8).map(|_| base.iter().map(|x| x + 1e-3 * numbers.real()).collect()).collect()
    };
    let model = model(300, &rows);
    let mut numbers = Numbers::new(19);
    let asked = queries(&model, 30, &[1, 10, 100], &mut numbers);
    check("all inside the bound", &model, &asked);
    let mut engine = engine(&model, Paths { certified_from_rows: 0, ..Paths::default() });
    engine.search(&asked.iter().collect::<Vec<_>>()).unwrap();
    assert!(engine.counters().fallbacks > 0, "{:?}", engine.counters());
}

/// Most blocks of the 4-bit rescore have more rows in doubt than fit: exactly 512 blocks on GPUs of
/// 128 to 143 multiprocessors, another number on others. Their overflow marks must not add up to a
/// valid count.
fn every_block_of_the_4_bit_scan_overflows() {
    let model = synthetic_around_one_row(512 * 17 * 128, 8);
    let table = model.table();
    let mut engine = engine(&model, Paths::default());
    let asked: Vec<Query> = (0..8u32)
        .map(|i| {
            let row = Row(i * 131_071);
            Query::new(&table, QueryVector::Row(row), 10, Filter::excluding(vec![row])).unwrap()
        })
        .collect();
    let expected = reference(&model, &asked);
    for (query, expected) in asked.iter().zip(expected) {
        let found = bits(&engine.search(&[query]).unwrap());
        assert_eq!(found, [expected], "{:?}", engine.counters());
    }
    assert!(engine.counters().retried > 0, "{:?}", engine.counters());
}

/// Rows around one vector, with noise of a fifth of its components' size.
fn synthetic_around_one_row(rows: usize, dim: usize) -> Arc<ModelStore> {
    let mut numbers = Numbers::new(23);
    let mut nearly_gaussian = || (0..4).map(|_| numbers.real()).sum::<f32>() * 0.866;
    let base: Vec<f32> = (0..dim).map(|_| nearly_gaussian()).collect();
    let rows: Vec<Vec<f32>> =
        (0..rows).map(|_| base.iter().map(|x| x + 0.2 * nearly_gaussian()).collect()).collect();
    model(dim, &rows)
}

fn all_rows_equal() {
    let model = table(37, 20, |_, _| Numbers::new(5).vector(37));
    attack("all rows equal", &model, 20);
}

/// An empty slot scores 0, which would be the best of all here.
fn all_scores_negative() {
    let model = table(24, 21, |_, numbers| (0..24).map(|_| 1.0 + 0.3 * numbers.real()).collect());
    let query =
        |k| Query::new(&model.table(), vec![-1.0; 24].into(), k, Filter::default()).unwrap();
    check("negative scores", &model, &[query(1), query(10), query(1000)]);
}

fn sparse_signs() {
    let model = table(128, 22, |_, numbers| {
        (0..128).map(|_| [0.0, 0.0, 0.0, 1.0, -1.0][numbers.below(5)]).collect()
    });
    attack("sparse signs", &model, 22);
}
