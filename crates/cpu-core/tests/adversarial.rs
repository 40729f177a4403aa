//! Tables designed to break the certificate of the CPU engine: tests every path against the plain
//! reference.

use std::f32::consts::FRAC_1_SQRT_2;
use std::sync::Arc;

use crate::support::{
    self, ask, bits, certified, expected, model, model_under_dot, repeating_model,
};
use contract::{Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::{Counters, FirstLook, InstructionSet, Paths, ReferenceEngine};
use model_store::ModelStore;
use model_store::synth::split_mix;

/// A number in [−1, 1) for an index.
fn number(index: u64) -> f32 {
    (split_mix(index) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

fn random_row(row: usize, dim: usize) -> Vec<f32> {
    (0..dim).map(|i| number((row * 4099 + i) as u64)).collect()
}

/// Checks every instruction set and every first look, with all queries in one batch. Returns the
/// last engine's counters.
fn holds(model: &Arc<ModelStore>, queries: &[Query], room: Option<usize>) -> Counters {
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = expected(model, &batch);
    let mut counted = Counters::default();
    for instructions in InstructionSet::available() {
        for first_look in [FirstLook::FourBits, FirstLook::EightBits] {
            let paths = Paths {
                always_certify: true,
                first_look: Some(first_look),
                room,
                gather: None,
                all_threads: true,
            };
            let mut engine = certified(model, 2, instructions, paths);
            let found = bits(&engine.search(&batch).unwrap());
            assert_eq!(found, expected, "{instructions}, {first_look:?}");
            // Queries alone take other loops, and their floors are not shared.
            for (query, expected) in queries.iter().zip(&expected).step_by(7) {
                let found = engine.search(&[query]).unwrap();
                assert_eq!(bits(&found), std::slice::from_ref(expected), "{instructions}, alone");
            }
            counted = engine.counted();
        }
    }
    counted
}

fn words(model: &ModelStore, rows: impl IntoIterator<Item = usize>, k: usize) -> Vec<Query> {
    rows.into_iter().map(|row| ask(model, row, k)).collect()
}

#[test]
fn many_near_ties() {
    // Rows around one direction that differ from it by less than an 8-bit step.
    let base = random_row(0, 60);
    let near = |row: usize| {
        let wobble = |(i, x): (usize, &f32)| x * (1.0 + 1e-5 * number((row * 977 + i) as u64));
        base.iter().enumerate().map(wobble).collect()
    };
    let rows: Vec<Vec<f32>> =
        (0..3000).map(|row| if row % 3 == 0 { random_row(row, 60) } else { near(row) }).collect();
    let model = Arc::new(model(60, &rows));
    let counted = holds(&model, &words(&model, (0..40).map(|i| i * 73), 10), None);
    assert!(counted.candidates > 20 * 1900, "the near rows can't be told apart by 8 bits");
}

fn under_dot(rows: &[Vec<f32>], biases: Option<&[f32]>) -> Arc<ModelStore> {
    Arc::new(model_under_dot(rows[0].len(), rows, biases))
}

/// Nearest words of words, without limits, and within limits that are scores.
fn words_under_dot(model: &ModelStore, k: usize) -> Vec<Query> {
    let table = model.table();
    let ask = |row: usize| {
        let vector = QueryVector::Row(Row(row as u32));
        let plain = Query::new(&table, vector.clone(), k, Filter::default()).unwrap();
        let scores = [row / 2, row / 3].map(|row| plain.score(&table, Row(row as u32)));
        let mut filter = Filter::excluding(vec![Row(row as u32)]);
        (filter.min_score, filter.max_score) = (scores[0], scores[1]);
        [plain, Query::new(&table, vector, k, filter).unwrap()]
    };
    (0..30).map(|i| i * model.rows() / 31).flat_map(ask).collect()
}

#[test]
fn norms_over_12_orders_of_magnitude_under_dot() {
    let norm = |row: usize| 10f32.powf(6.0 * number(row as u64 * 31));
    let rows: Vec<Vec<f32>> =
        (0..2500).map(|row| random_row(row, 50).iter().map(|x| x * norm(row)).collect()).collect();
    let biases: Vec<f32> = (0..2500).map(|row| norm(row * 7) * number(row as u64)).collect();
    for biases in [None, Some(&biases[..])] {
        let model = under_dot(&rows, biases);
        for k in [1, 10, 200] {
            holds(&model, &words_under_dot(&model, k), None);
        }
    }
}

#[test]
fn huge_biases_under_dot() {
    let rows: Vec<Vec<f32>> = (0..2000).map(|row| random_row(row, 40)).collect();
    for size in [1e3, 1e10, 3e38] {
        // Many with the same, so that only the dot product tells them apart, and rounding may hide
        // it.
        let bias =
            |row: usize| if row.is_multiple_of(3) { size } else { size * number(row as u64) };
        let biases: Vec<f32> = (0..2000).map(bias).collect();
        let model = under_dot(&rows, Some(&biases));
        holds(&model, &words_under_dot(&model, 10), None);
    }
}

#[test]
fn negative_maxima_under_dot() {
    // No score is above zero, and zero rows and rows past the end must not count as better.
    let rows: Vec<Vec<f32>> =
        (0..2001).map(|row| random_row(row, 33).iter().map(|x| x.abs()).collect()).collect();
    let biases: Vec<f32> = (0..2001).map(|row| -500.0 - number(row as u64)).collect();
    let model = under_dot(&rows, Some(&biases));
    let counted = holds(&model, &words_under_dot(&model, 10), None);
    assert!(counted.certified > 0);
    let opposite: Vec<f32> = vec![-1.0; 33];
    let model = under_dot(&rows, None);
    let table = model.table();
    let query = Query::new(&table, opposite.into(), 10, Filter::default());
    holds(&model, &[query.unwrap()], None);
}

#[test]
fn rows_and_queries_of_zeros_under_dot() {
    let rows: Vec<Vec<f32>> = (0..1200)
        .map(|row| if row % 4 == 0 { vec![0.0; 20] } else { random_row(row, 20) })
        .collect();
    let biases: Vec<f32> = (0..1200).map(|row| if row % 8 < 4 { 0.0 } else { -0.25 }).collect();
    for biases in [None, Some(&biases[..])] {
        let model = under_dot(&rows, biases);
        holds(&model, &words_under_dot(&model, 7), None);
    }
    let zeros = under_dot(&vec![vec![0.0; 20]; 700], None);
    holds(&zeros, &words_under_dot(&zeros, 7), None);
}

#[test]
fn usual_rows_under_dot_are_certified() {
    let rows: Vec<Vec<f32>> = (0..6000).map(|row| random_row(row, 64)).collect();
    let biases: Vec<f32> = (0..6000).map(|row| number(row as u64)).collect();
    for biases in [None, Some(&biases[..])] {
        let model = under_dot(&rows, biases);
        let queries: Vec<Query> = words(&model, (0..40).map(|i| i * 149), 10);
        let counted = holds(&model, &queries, None);
        assert_eq!((counted.full, counted.fallbacks), (0, 0));
        assert!(counted.candidates < counted.certified * 600, "{counted:?}");
    }
}

#[test]
fn rows_identical_up_to_one_bit() {
    let base = random_row(5, 33);
    let rows: Vec<Vec<f32>> = (0..2000)
        .map(|row| {
            let mut copy = base.clone();
            let bits = copy[row % 33].to_bits() ^ (row as u32 / 33 % 2);
            copy[row % 33] = f32::from_bits(bits);
            copy
        })
        .collect();
    let model = Arc::new(model(33, &rows));
    for k in [1, 7, 1500] {
        holds(&model, &words(&model, [0, 32, 33, 66, 1999], k), None);
    }
}

#[test]
fn huge_outliers_in_one_component() {
    let rows: Vec<Vec<f32>> = (0..2500)
        .map(|row| {
            let mut values = random_row(row, 100);
            values[17] = 1e4 * (1.0 + number(row as u64));
            values
        })
        .collect();
    let model = Arc::new(model(100, &rows));
    holds(&model, &words(&model, (0..20).map(|i| i * 111), 10), None);
}

#[test]
fn one_component_alone() {
    // Unit vectors along axes, and their opposites: rotation spreads each over all components.
    for dim in [1, 2, 8, 9, 64] {
        let rows: Vec<Vec<f32>> = (0..600)
            .map(|row| {
                let mut values = vec![0.0; dim];
                values[row % dim] = if row % 5 == 0 { -1.0 } else { 1.0 };
                values
            })
            .collect();
        let model = Arc::new(model(dim, &rows));
        holds(&model, &words(&model, [0, 1, 2, 299, 598], 50), None);
    }
}

#[test]
fn zero_rows_and_subnormal_components() {
    let rows: Vec<Vec<f32>> = (0..1500)
        .map(|row| match row % 4 {
            0 => vec![0.0; 40],
            1 => (0..40).map(|i| f32::from_bits(((row * 31 + i * 7) % 100) as u32 + 1)).collect(),
            2 => random_row(row, 40).iter().map(|x| x * 3e38).collect(),
            _ => random_row(row, 40),
        })
        .collect();
    let model = Arc::new(model(40, &rows));
    let queries = words(&model, (0..30).map(|i| i * 4 + 1 + i % 3), 20);
    holds(&model, &queries, None);
    let only_zero_rows_but_one: Vec<Vec<f32>> =
        (0..100).map(|row| vec![if row == 77 { 1.0 } else { 0.0 }; 3]).collect();
    let lonely = Arc::new(support::model(3, &only_zero_rows_but_one));
    let query =
        Query::new(&lonely.table(), QueryVector::Row(Row(77)), 5, Filter::default()).unwrap();
    holds(&lonely, &[query], None);
}

#[test]
fn without_room_for_all_rows_in_doubt_the_full_scan_answers() {
    // All rows are copies or opposites of one another, so all have the same bounds.
    let rows: Vec<Vec<f32>> = (0..4000)
        .map(|row| vec![if row % 2 == 0 { FRAC_1_SQRT_2 } else { -FRAC_1_SQRT_2 }; 20])
        .collect();
    let model = Arc::new(model(20, &rows));
    let queries = words(&model, [0, 1, 2000, 3999], 10);
    let counted = holds(&model, &queries, Some(300));
    assert_eq!((counted.certified, counted.fallbacks), (0, 5), "a batch of four and one alone");
    let counted = holds(&model, &queries, None);
    assert_eq!((counted.certified, counted.fallbacks), (5, 0));
}

#[test]
fn k_past_1000_and_past_the_table() {
    let rows: Vec<Vec<f32>> = (0..3000).map(|row| random_row(row, 24)).collect();
    let model = Arc::new(model(24, &rows));
    for k in [1001, 2999, 3000, 10_000] {
        holds(&model, &words(&model, [0, 1500], k), None);
    }
}

#[test]
fn filters_of_one_batch_do_not_meet() {
    let rows: Vec<Vec<f32>> = (0..3000).map(|row| random_row(row, 48)).collect();
    let model = Arc::new(model(48, &rows));
    let queries: Vec<Query> = (0..60usize)
        .map(|i| {
            // The best rows are excluded; the limits are within and at the ends of blocks, strips
            // and tasks.
            let mut filter =
                Filter::excluding((0..i as u32 * 40).map(|row| Row(row * 7 % 3000)).collect());
            let limits = [None, Some(1), Some(16), Some(31), Some(32), Some(1025), Some(2999)];
            filter.rows = filter.rows.limited(limits[i % 7]);
            filter.min_score = [None, Some(0.3), Some(-1.0), Some(1.0), Some(f64::NAN)][i % 5];
            filter.max_score =
                [None, Some(0.9), None, Some(0.2), Some(-0.5), Some(f64::NAN), Some(1.0)][i % 7];
            let vector = QueryVector::Row(Row((i * 49) as u32));
            Query::new(&model.table(), vector, 1 + i, filter).unwrap()
        })
        .collect();
    holds(&model, &queries, None);
}

#[test]
fn every_dimension_around_the_widths_of_lines() {
    for dim in (1..=40).chain([63, 64, 65, 127, 128, 129, 300, 4095, 4096]) {
        let number_of_rows = if dim > 1000 { 100 } else { 300 };
        let rows: Vec<Vec<f32>> = (0..number_of_rows).map(|row| random_row(row, dim)).collect();
        let model = Arc::new(model(dim, &rows));
        holds(&model, &words(&model, [0, 50, 99], 3), None);
    }
}

/// Every score of these rows is shared by many rows. A range that ends at such a score includes all
/// of its rows or none, and rows above a maximum do not take the places of those below.
#[test]
fn minimum_and_maximum_scores_are_inclusive_at_ties() {
    let model = Arc::new(repeating_model());
    let asked = [0u32, 100, 616].map(Row);
    let mut queries = Vec::new();
    for row in asked {
        let table = model.table();
        let mut scores: Vec<f64> = (0..617)
            .filter_map(|other| table.score(table.row(row), table.norm(row), Row(other)))
            .collect();
        scores.sort_by(f64::total_cmp);
        let at = |part: f64| scores[(part * (scores.len() - 1) as f64) as usize];
        let next = |score: f64, up: bool| if up { score.next_up() } else { score.next_down() };
        for (low, high) in [(0.0, 1.0), (0.2, 0.9), (0.5, 0.5), (0.9, 0.99), (0.99, 0.2)] {
            let (low, high) = (at(low), at(high));
            let limits = [
                (Some(low), Some(high)),
                (None, Some(high)),
                (None, Some(next(high, false))),
                (Some(next(low, true)), Some(next(high, true))),
                (Some(high), Some(next(high, false))),
            ];
            for (min_score, max_score) in limits {
                let filter = Filter { min_score, max_score, ..Filter::excluding(vec![row]) };
                for k in [1, 9, 200] {
                    let vector = QueryVector::Row(row);
                    queries.push(Query::new(&table, vector, k, filter.clone()).unwrap());
                }
            }
        }
    }
    holds(&model, &queries, None);
    let counted = |query: &Query| {
        let mut engine = ReferenceEngine::new(model.clone());
        engine.search(&[query]).unwrap().remove(0).len()
    };
    assert_eq!(counted(&queries[14]), 0, "a minimum above the maximum admits nothing");
    assert!(counted(&queries[5]) == 200 && counted(&queries[8]) == 200);
}

/// Thousands of rows just above the maximum: none of them may raise the floor, nor stay a
/// candidate.
#[test]
fn rows_above_the_maximum_raise_no_floor() {
    let dim = 40;
    let rows: Vec<Vec<f32>> = (0..6000)
        .map(|row| {
            let far = random_row(row, dim);
            // Two thirds lie close to the query, and a few of the others at the maximum itself.
            let near = if row % 3 == 0 { 0.3 } else { 20.0 };
            far.iter().enumerate().map(|(i, x)| if i == 0 { near + x } else { *x }).collect()
        })
        .collect();
    let model = Arc::new(model(dim, &rows));
    let mut east = vec![0.0; dim];
    east[0] = 1.0;
    let queries: Vec<Query> = [0.99, 0.9, 0.5, 0.1, 0.0, -0.2, -0.9]
        .into_iter()
        .flat_map(|max| [1, 10, 100].map(|k| (max, k)))
        .map(|(max, k)| {
            let filter = Filter { max_score: Some(max), ..Filter::default() };
            let vector = QueryVector::from(east.clone());
            Query::new(&model.table(), vector, k, filter).unwrap()
        })
        .collect();
    holds(&model, &queries, None);
}
