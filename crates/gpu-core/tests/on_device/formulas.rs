//! Formulas of several cosines, in batches with plain queries: certified passes give the host's
//! bits.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Filter, Query, Row, Scoring, SearchEngine};
use gpu_core::search::Paths;
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

use crate::support::{Numbers, engine, model, queries, reference};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("formulas_of_synthetic_words", of_synthetic_words as fn()),
        ("formulas_of_ties_zero_rows_and_opposites", of_ties_zero_rows_and_opposites),
        ("formulas_with_every_number_of_words", with_every_number_of_words),
    ]
}

fn synthetic(rows: u32, dim: usize) -> Arc<ModelStore> {
    let files = synth_in_memory(SynthOptions { rows, dim, seed: 5, ..Default::default() }).unwrap();
    Arc::new(ModelStore::from_memory("synth", &files).unwrap())
}

/// Queries by 3CosMul and PairDirection, of random words.
pub(crate) fn formulas(model: &ModelStore, count: usize, numbers: &mut Numbers) -> Vec<Query> {
    let table = model.table();
    let mut formulas = Vec::new();
    while formulas.len() < count {
        let mut words = |count| -> Vec<Row> {
            (0..count).map(|_| Row(numbers.below(model.rows()) as u32)).collect()
        };
        let own = words(3);
        let scoring = match formulas.len() % 3 {
            0 => Scoring::pair_direction(&table, own[0], own[1], own[2]),
            1 => Scoring::three_cos_mul(&table, &own[..2], &own[2..]),
            _ => Scoring::three_cos_mul(&table, &own[..1], &own[1..2]),
        };
        let Ok(scoring) = scoring else { continue };
        let mut filter = Filter::excluding(if numbers.below(4) == 0 { Vec::new() } else { own });
        filter.min_score = (numbers.below(8) == 0).then(|| f64::from(numbers.real()));
        filter.max_score = (numbers.below(8) == 0).then(|| f64::from(numbers.real()));
        let limit = 1 + numbers.below(model.rows()) as u32;
        filter.rows = filter.rows.limited((numbers.below(4) == 0).then_some(limit));
        let k = if numbers.below(8) == 0 { 100 } else { 16 };
        formulas.push(Query::by(scoring, 1 + numbers.below(k), filter));
    }
    formulas
}

/// Compares the answers of certified passes with the host's. Prints how many formulas had no
/// certificate, by their numbers of words, and returns their share of the formulas with three
/// words.
fn check(what: &str, model: &Arc<ModelStore>, queries: &[Query]) -> f64 {
    let expected = reference(model, queries);
    let (mut uncertified, mut three_words) = (BTreeMap::<usize, usize>::new(), 0);
    for portable in [false, true] {
        let mut engine = engine(model, Paths { portable, ..Paths::default() });
        for size in [1, 5, 60, 400, queries.len()] {
            let batch: Vec<&Query> = queries.iter().take(size).collect();
            let found = engine.search_overlapped(&batch, &mut || ()).unwrap();
            for (i, (hits, expected)) in found.iter().zip(&expected).enumerate() {
                three_words += usize::from(queries[i].vectors().len() == 3);
                match hits {
                    Some(hits) => {
                        let bits: Vec<_> =
                            hits.iter().map(|h| (h.row.0, h.score.to_bits())).collect();
                        assert_eq!(
                            &bits, expected,
                            "{what}, {size} queries, query {i}: {:?}",
                            queries[i]
                        );
                    }
                    None => *uncertified.entry(queries[i].vectors().len()).or_default() += 1,
                }
            }
        }
    }
    println!("{what}: without a certificate, by the number of words: {uncertified:?}");
    uncertified.get(&3).copied().unwrap_or_default() as f64 / three_words.max(1) as f64
}

fn of_synthetic_words() {
    // Small tables leave few rows for the first floors, and each query little room in large
    // batches.
    for (rows, dim, limit) in [(200_000, 64, 0.6), (600_000, 300, 0.1)] {
        let model = synthetic(rows, dim);
        let numbers = &mut Numbers::new(7);
        let mut mixed = formulas(&model, 350, numbers);
        for (i, plain) in queries(&model, 250, &[1, 10, 16], numbers).into_iter().enumerate() {
            mixed.insert(2 * i, plain);
        }
        let uncertified = check("synthetic words", &model, &mixed);
        println!("{rows} x {dim}: {uncertified:.3} of the formulas without a certificate");
        assert!(uncertified <= limit, "{rows} x {dim}: {uncertified}");
    }
}

fn of_ties_zero_rows_and_opposites() {
    // Few different rows, many times; some are zero, and some point in opposite directions.
    let numbers = &mut Numbers::new(8);
    let different: Vec<Vec<f32>> = (0..20_000).map(|_| numbers.vector(24)).collect();
    let row = |i: usize| {
        let own = &different[i * 7919 % different.len()];
        match i % 11 {
            0 => vec![0.0; 24],
            1 => own.iter().map(|x| -x).collect(),
            _ => own.clone(),
        }
    };
    let model = model(24, &(0..160_000).map(row).collect::<Vec<_>>());
    let mixed = formulas(&model, 90, numbers);
    check("ties", &model, &mixed);
}

fn with_every_number_of_words() {
    let model = synthetic(200_000, 40);
    let table = model.table();
    let row = |i: usize| Row((i * 7919 % model.rows()) as u32);
    let queries: Vec<Query> = (1..30)
        .flat_map(|count| [(count, 0), (count, 1)])
        .map(|(positive, negative)| {
            let words: Vec<Row> =
                (0..positive + negative).map(|i| row(31 * positive + i)).collect();
            let (positive, negative) = words.split_at(positive);
            let scoring = Scoring::three_cos_mul(&table, positive, negative).unwrap();
            Query::by(scoring, 10, Filter::default())
        })
        .collect();
    check("1 to 29 words", &model, &queries);
}
