//! Full passes on the device: the host's hits, ranks and score bits, whatever the formula, the
//! filter and the slices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::full_pass::Groups;
use contract::{
    Filter, FullPassAnswer, FullPassEngine, FullPassPart, FullPassQuery, QueryVector, Row,
    RowBitmap, RowSet, Scoring,
};
use cpu_core::FullScanEngine;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

use crate::support::{Numbers, check, engine, model, queries};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("full_passes_over_tables_of_every_shape", over_tables_of_every_shape as fn()),
        ("full_passes_over_synthetic_words", over_synthetic_words),
        ("full_passes_over_rows_that_are_alike", over_rows_that_are_alike),
        ("full_passes_for_very_many_hits", for_very_many_hits),
    ]
}

fn some_rows(most: usize, rows: usize, numbers: &mut Numbers) -> Vec<Row> {
    (0..numbers.below(most + 1)).map(|_| Row(numbers.below(rows) as u32)).collect()
}

fn scoring(model: &ModelStore, numbers: &mut Numbers) -> Option<Scoring> {
    let (table, rows) = (model.table(), model.rows());
    let mut row = || Row(numbers.below(rows) as u32);
    // A zero row makes no formula, nor do two equal ones of a pair.
    match row().0 % 4 {
        0 => Scoring::vector(&table, QueryVector::Row(row())).ok(),
        1 => Scoring::pair_direction(&table, row(), row(), row()).ok(),
        2 => Scoring::vector(&table, numbers.vector(model.dim()).into()).ok(),
        _ => {
            let (positive, negative) = (some_rows(6, rows, numbers), some_rows(6, rows, numbers));
            Scoring::three_cos_mul(&table, &positive, &negative).ok()
        }
    }
}

/// Groups of rows, the first of which has about half of them; some rows are in none.
fn groups(rows: usize, count: u64) -> Arc<dyn Groups> {
    let group = |row: u64| match row % 7 {
        0 => None,
        1..4 => Some(0),
        _ => Some(row / 7 % count),
    };
    Arc::new((0..rows as u64).map(group).collect::<Vec<_>>())
}

/// Queries by every formula; a row may be ranked, excluded, and a word of the formula.
fn passes(model: &ModelStore, count: usize, numbers: &mut Numbers) -> Vec<FullPassQuery> {
    let rows = model.rows();
    let mut passes = Vec::new();
    for tries in 0.. {
        if passes.len() == count || tries == 100 * count {
            break;
        }
        let Some(scoring) = scoring(model, numbers) else { continue };
        let now_and_then = |numbers: &mut Numbers| numbers.below(4) == 0;
        let many = [0, 1, 20, rows.min(3000)];
        let filter = Filter {
            rows: RowSet::all()
                .less(some_rows(many[numbers.below(4)], rows, numbers))
                .limited(now_and_then(numbers).then(|| 1 + numbers.below(rows) as u32)),
            min_score: now_and_then(numbers).then(|| f64::from(numbers.real())),
            max_score: now_and_then(numbers).then(|| f64::from(2.0 * numbers.real())),
        };
        let filter = match numbers.below(3) {
            0 => {
                let of = 1 + numbers.below(9);
                let members = (0..rows as u32).step_by(of).map(Row);
                let bitmap = Arc::new(RowBitmap::of_rows(members, rows, "v"));
                Filter { rows: filter.rows.within(bitmap), ..filter }
            }
            _ => filter,
        };
        let k = [0, 1, 10, 300, 2 * rows][numbers.below(5)];
        let ranked = some_rows(many[numbers.below(4)], rows, numbers);
        let pass = FullPassQuery::new(scoring, k, filter, ranked);
        let groups = now_and_then(numbers).then(|| groups(rows, 1 + numbers.below(100) as u64));
        passes.push(FullPassQuery { groups, ..pass });
    }
    passes
}

/// Runs a full pass whose slices may take n pieces each.
pub(crate) fn run(
    engine: &mut CudaEngine,
    queries: &[FullPassQuery],
    pieces: usize,
) -> Vec<FullPassAnswer> {
    let mut parts: Vec<FullPassPart> =
        queries.iter().map(|query| FullPassPart::new(query.clone())).collect();
    let mut next = Some(0);
    while let Some(from) = next {
        let asked = AtomicUsize::new(1);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < pieces;
        next = engine.full_pass_part(&mut parts, from, &go_on).unwrap();
    }
    parts.into_iter().map(FullPassPart::into_answer).collect()
}

/// Row, bits of the score, and rank: of hits, then of ranked rows.
fn bits(answer: &FullPassAnswer) -> Vec<(Row, Option<u64>, Option<u32>)> {
    let hits = answer.hits.iter().map(|hit| (hit.row, Some(hit.score.to_bits()), None));
    let ranks = answer.ranks.iter().map(|one| (one.row, one.score.map(f64::to_bits), one.rank));
    hits.chain(ranks).collect()
}

fn compare(what: &str, model: &Arc<ModelStore>, queries: &[FullPassQuery], pieces: &[usize]) {
    let mut host = FullScanEngine::new(model.clone(), 0).unwrap();
    let expected = host.full_pass(&queries.iter().collect::<Vec<_>>()).unwrap();
    let mut engine = engine(model, Paths::default());
    for &pieces in pieces {
        let found = run(&mut engine, queries, pieces);
        for ((found, expected), query) in found.iter().zip(&expected).zip(queries) {
            assert_eq!(bits(found), bits(expected), "{what}, {pieces} pieces: {query:?}");
        }
    }
    // Ranks that the device counts in another way are in between.
    let found = engine.full_pass(&queries.iter().collect::<Vec<_>>()).unwrap();
    for ((found, expected), query) in found.iter().zip(&expected).zip(queries) {
        assert_eq!(bits(found), bits(expected), "{what}: {query:?}");
    }
}

fn over_tables_of_every_shape() {
    let mut numbers = Numbers::new(51);
    for (rows, dim) in
        [(1, 1), (3, 2), (40, 7), (257, 33), (1000, 300), (5000, 64), (700, 1031), (120, 5000)]
    {
        // Few distinct components in some tables, so that ties and zero rows are common.
        let few = dim < 50;
        let table: Vec<Vec<f32>> = (0..rows)
            .map(|_| match few {
                true => (0..dim).map(|_| numbers.below(3) as f32 - 1.0).collect(),
                false => numbers.vector(dim),
            })
            .collect();
        let model = model(dim, &table);
        let queries = passes(&model, 90, &mut numbers);
        compare(&format!("{rows} x {dim}"), &model, &queries, &[1, 3, usize::MAX]);
    }
}

fn over_synthetic_words() {
    let mut numbers = Numbers::new(52);
    let files =
        synth_in_memory(SynthOptions { rows: 60_000, dim: 300, seed: 5, ..Default::default() })
            .unwrap();
    let model = Arc::new(ModelStore::from_memory("synth", &files).unwrap());
    // More vectors than a step takes.
    compare("synthetic", &model, &passes(&model, 400, &mut numbers), &[2, usize::MAX]);
}

/// More rows reach the lowest score of the hits than a step has room for.
fn over_rows_that_are_alike() {
    let mut numbers = Numbers::new(53);
    let alike = vec![1.0, 2.0, -1.0, 0.5];
    let mut table = vec![alike; 300_000];
    table[299_999] = vec![1.0, 0.0, 0.0, 0.0];
    let model = model(4, &table);
    let mut queries = passes(&model, 12, &mut numbers);
    let of_row = Scoring::vector(&model.table(), QueryVector::Row(Row(1))).unwrap();
    let ranked = vec![Row(299_999), Row(299_998), Row(0)];
    queries.push(FullPassQuery::new(of_row, 5, Filter::default(), ranked));
    compare("alike", &model, &queries, &[1, usize::MAX]);

    // Ranks alone: all rows are in doubt. Their cosines with 40 vectors do not fit the scratch
    // memory at once.
    let ranks = |row| {
        let scoring = Scoring::vector(&model.table(), QueryVector::Row(Row(row))).unwrap();
        FullPassQuery::new(scoring, 0, Filter::default(), vec![Row(299_999), Row(2 * row)])
    };
    let queries: Vec<FullPassQuery> = (0..40).map(ranks).collect();
    compare("ranks of rows that are alike", &model, &queries, &[1, usize::MAX]);
}

/// More hits than the device's lists hold: a search becomes a full pass.
fn for_very_many_hits() {
    let mut numbers = Numbers::new(54);
    let table: Vec<Vec<f32>> = (0..20_000).map(|_| numbers.vector(30)).collect();
    let model = model(30, &table);
    check("many hits", &model, &queries(&model, 12, &[1, 1500, 30_000], &mut numbers));
}
