//! Sets of rows on the device: the reference's rows and bits, whatever rows a set has, however many
//! sets there are, and in every kind of pass.

use std::sync::Arc;

use contract::{
    Filter, FullPassEngine, FullPassQuery, Query, QueryVector, Row, RowBitmap, RowSet, Scoring,
    SearchEngine,
};
use cpu_core::FullScanEngine;
use gpu_core::search::Paths;
use model_store::ModelStore;

use crate::formulas;
use crate::full_pass::run;
use crate::support::{Numbers, bits, check, engine, model, queries, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("sets_of_every_kind", of_every_kind as fn()),
        ("sets_without_the_best_rows", without_the_best_rows),
        ("sets_with_ties_at_their_borders", with_ties_at_their_borders),
        ("sets_of_every_share_in_large_tables", of_every_share_in_large_tables),
        ("sets_that_a_batch_shares", that_a_batch_shares),
        ("sets_by_the_thousand", by_the_thousand),
        ("sets_of_formulas_ranks_and_full_passes", of_formulas_ranks_and_full_passes),
    ]
}

fn set(rows: usize, members: impl IntoIterator<Item = usize>) -> Arc<RowBitmap> {
    Arc::new(RowBitmap::of_rows(members.into_iter().map(|row| Row(row as u32)), rows, "v"))
}

/// Empty, one row, all but one, alternate rows, whole tiles in or out, ends of the table, and random
/// ones.
fn sets(rows: usize, numbers: &mut Numbers) -> Vec<Arc<RowBitmap>> {
    let one = numbers.below(rows);
    let mut sets = vec![
        set(rows, []),
        set(rows, [one]),
        set(rows, [0, rows - 1]),
        set(rows, 0..rows),
        set(rows, (0..rows).filter(|&row| row != one)),
        set(rows, (0..rows).step_by(2)),
        set(rows, (0..rows).filter(|row| row / 128 % 2 == 1)),
        set(rows, (0..rows).filter(|row| row / 32 % 5 == 0)),
        set(rows, 0..rows / 3),
        set(rows, rows - rows / 7..rows),
    ];
    for share in [2, 8, 100, 700] {
        sets.push(set(rows, (0..rows).filter(|_| numbers.below(share) == 0)));
    }
    sets
}

/// The same queries, each within a set, beside some without.
fn within(queries: Vec<Query>, sets: &[Arc<RowBitmap>], numbers: &mut Numbers) -> Vec<Query> {
    let with_set = |mut query: Query| {
        if numbers.below(8) > 0 {
            let set = sets[numbers.below(sets.len())].clone();
            query.filter.rows = std::mem::take(&mut query.filter.rows).within(set);
        }
        query
    };
    queries.into_iter().map(with_set).collect()
}

fn random(rows: usize, dim: usize, numbers: &mut Numbers) -> Arc<ModelStore> {
    let row = |row: usize, numbers: &mut Numbers| match row % 70 {
        // Rows of norm zero have no slot.
        69 => vec![0.0; dim],
        _ => numbers.vector(dim),
    };
    let rows: Vec<Vec<f32>> = (0..rows).map(|index| row(index, numbers)).collect();
    model(dim, &rows)
}

fn of_every_kind() {
    let mut numbers = Numbers::new(31);
    for (rows, dim) in [(1, 3), (31, 4), (129, 20), (1000, 33), (3000, 300), (2500, 400)] {
        let model = random(rows, dim, &mut numbers);
        let sets = sets(rows, &mut numbers);
        let asked = queries(&model, 150, &[1, 10, 100, 1000, 3000], &mut numbers);
        let asked = within(asked, &sets, &mut numbers);
        check(&format!("{rows} x {dim}"), &model, &asked);
    }
}

/// The half of the rows that is worst for a query, and the rows after its first thousand.
fn without_the_best_rows() {
    let mut numbers = Numbers::new(32);
    let model = random(20_000, 50, &mut numbers);
    let (rows, table) = (model.rows(), model.table());
    let mut asked = Vec::new();
    for row in [0u32, 4000, 19_000].map(Row) {
        let all = Query::new(&table, QueryVector::Row(row), rows, Filter::default()).unwrap();
        let ranked = &reference(&model, &[all])[0];
        for first in [ranked.len() / 2, 1000, ranked.len() - 3] {
            let worst = set(rows, ranked[first..].iter().map(|&(row, _)| row as usize));
            for k in [1, 10, 100, 1000] {
                let filter = Filter { rows: RowSet::of(worst.clone()), ..Filter::default() };
                asked.push(Query::new(&table, QueryVector::Row(row), k, filter).unwrap());
            }
        }
    }
    check("without the best rows", &model, &asked);
}

fn with_ties_at_their_borders() {
    let mut numbers = Numbers::new(33);
    let base: Vec<Vec<f32>> = (0..50).map(|_| numbers.vector(24)).collect();
    let rows: Vec<Vec<f32>> = (0..4000).map(|row| base[row % base.len()].clone()).collect();
    let model = model(24, &rows);
    let sets = sets(rows.len(), &mut numbers);
    let asked = queries(&model, 200, &[1, 10, 81, 1000], &mut numbers);
    check("ties", &model, &within(asked, &sets, &mut numbers));
}

/// Sets of few rows are read row by row if they come alone, and scanned in a larger batch.
fn of_every_share_in_large_tables() {
    let mut numbers = Numbers::new(34);
    for (rows, dim) in [(200_000, 40), (60_000, 320)] {
        let model = random(rows, dim, &mut numbers);
        let shares = [1, 2, 9, 100, 1000, 20_000];
        let sets = shares.map(|share| set(rows, (0..rows).filter(|_| numbers.below(share) == 0)));
        let asked = queries(&model, 300, &[1, 10, 16, 17, 100], &mut numbers);
        let asked = within(asked, &sets, &mut numbers);
        check(&format!("{rows} x {dim}"), &model, &asked);
        let mut engine = engine(&model, Paths::default());
        for query in &asked[..40] {
            let _ = engine.search(&[query]).unwrap();
        }
        assert!(engine.counters().gathered > 0, "{:?}", engine.counters());
    }
}

/// Of a pass whose queries have the same set, tiles without a member are not read. Batches that are
/// no multiple of a pass's width have empty queries, and one query without the set ends it.
fn that_a_batch_shares() {
    let mut numbers = Numbers::new(37);
    for (rows, dim) in [(30_000, 40), (9_000, 310), (9_000, 400)] {
        let model = random(rows, dim, &mut numbers);
        let mut sets = sets(rows, &mut numbers);
        sets.push(set(rows, (0..rows).filter(|row| row / 128 % 40 == 7)));
        let (table, mut engine) = (model.table(), engine(&model, Paths::default()));
        for (index, shared) in sets.iter().enumerate() {
            let query = |of: usize, numbers: &mut Numbers| {
                let set = if of == 299 { RowSet::all() } else { RowSet::of(shared.clone()) };
                let filter = Filter { rows: set, ..Filter::default() };
                let row = Row((numbers.below(rows) / 70 * 70) as u32);
                Query::new(&table, QueryVector::Row(row), 10, filter).unwrap()
            };
            let asked: Vec<Query> = (0..300).map(|of| query(of, &mut numbers)).collect();
            let expected = reference(&model, &asked);
            for count in [70, 256, 299, 300] {
                let batch: Vec<&Query> = asked[..count].iter().collect();
                let found = bits(&engine.search(&batch).unwrap());
                assert_eq!(found, expected[..count], "set {index}, {count} of {rows} x {dim}");
            }
        }
    }
}

/// More sets than the device keeps, in one batch and one by one, twice.
fn by_the_thousand() {
    let mut numbers = Numbers::new(35);
    let model = random(20_000, 30, &mut numbers);
    let rows = model.rows();
    let asked: Vec<Query> = queries(&model, 2500, &[10], &mut numbers)
        .into_iter()
        .map(|mut query| {
            let share = 2 + numbers.below(60);
            let own = set(rows, (0..rows).filter(|_| numbers.below(share) == 0));
            query.filter.rows = std::mem::take(&mut query.filter.rows).within(own);
            query
        })
        .collect();
    let expected = reference(&model, &asked);
    let mut engine = engine(&model, Paths::default());
    for _ in 0..2 {
        assert_eq!(bits(&engine.search(&asked.iter().collect::<Vec<_>>()).unwrap()), expected);
        for (query, expected) in asked.iter().zip(&expected) {
            assert_eq!(bits(&engine.search(&[query]).unwrap())[0], *expected, "{query:?}");
        }
    }
}

fn of_formulas_ranks_and_full_passes() {
    let mut numbers = Numbers::new(36);
    let model = random(30_000, 60, &mut numbers);
    let (rows, table) = (model.rows(), model.table());
    let sets = sets(rows, &mut numbers);
    let asked = within(formulas::formulas(&model, 150, &mut numbers), &sets, &mut numbers);
    let expected = reference(&model, &asked);
    let mut full = FullScanEngine::new(model.clone(), 0).unwrap();
    for portable in [false, true] {
        let mut engine = engine(&model, Paths { portable, ..Paths::default() });
        assert_eq!(bits(&engine.search(&asked.iter().collect::<Vec<_>>()).unwrap()), expected);
        let ranked: Vec<FullPassQuery> = (0..200)
            .filter_map(|index| {
                let vector = QueryVector::Row(Row(numbers.below(rows) as u32));
                let scoring = Scoring::vector(&table, vector).ok()?;
                let some = |most: usize, numbers: &mut Numbers| -> Vec<Row> {
                    (0..numbers.below(most)).map(|_| Row(numbers.below(rows) as u32)).collect()
                };
                let own = RowSet::of(sets[index % sets.len()].clone());
                let filter = Filter { rows: own.less(some(12, &mut numbers)), ..Filter::default() };
                // Some for hits as well, which the device does not count on tensor cores.
                let k = [0, 0, 0, 5000][index % 4];
                Some(FullPassQuery::new(scoring, k, filter, some(13, &mut numbers)))
            })
            .collect();
        let expected = full.full_pass(&ranked.iter().collect::<Vec<_>>()).unwrap();
        // Scans of each width.
        for size in [ranked.len(), 70, 40] {
            let (before, ranked) = (engine.counters().ranked, &ranked[..size]);
            for ((found, expected), query) in
                run(&mut engine, ranked, 3).iter().zip(&expected).zip(ranked)
            {
                assert_eq!(found.hits, expected.hits, "{query:?}");
                let of = |answer: &contract::FullPassAnswer| -> Vec<_> {
                    let ranks = answer.ranks.iter();
                    ranks.map(|one| (one.row, one.rank, one.score.map(f64::to_bits))).collect()
                };
                assert_eq!(of(found), of(expected), "{query:?}");
            }
            assert!(engine.counters().ranked > before, "{:?}", engine.counters());
        }
    }
}
