//! Compares the CPU engine with the plain reference on a model folder, and reports how many rows it
//! scored. Half of the queries are words, half random vectors; k = 1, 10, 100 and 1000; one by one
//! and in batches.
//!
//!     cargo run --release -p cpu-core --example exactness -- MODEL_DIR [QUERIES]
//!
//! The reference is slow: on two cores, 2,000 queries (the default) over 2.2 million rows × 300
//! take about a quarter of an hour.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use contract::{Device, Filter, Hit, Query, QueryError, QueryVector, Row, SearchEngine};
use cpu_core::{Counters, CpuEngine, Options, ReferenceEngine};
use model_store::ModelStore;
use model_store::synth::split_mix;
use rayon::prelude::*;

const KS: [usize; 4] = [1, 10, 100, 1000];
const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: exactness MODEL_DIR [QUERIES]")?;
    let number: usize = arguments.next().map_or(Ok(2000), |text| text.parse())?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let queries = |k| (0..number).map(|i| query(&model, i, k)).collect::<Result<Vec<_>, _>>();

    let started = Instant::now();
    let expected = by_reference(&model, &queries(KS[3])?)?;
    eprintln!("the reference took {:.0} s", started.elapsed().as_secs_f64());

    let mut engine = CpuEngine::new(model.clone(), Options::default())?;
    engine.wait_for_tables();
    println!(
        "{}: {} rows × {}, {}",
        model.name(),
        model.rows(),
        model.dim(),
        engine.description().detail
    );
    println!(
        "| k | the same, one by one | the same, in batches of {BATCH} | second looks, median / 99 % / most | survivors | by the full scan |"
    );
    println!("|---|---|---|---|---|---|");
    let mut wrong = 0;
    for k in KS {
        let queries = queries(k)?;
        let same = |found: &[Hit], expected: &[Hit]| {
            bits(found) == bits(&expected[..k.min(expected.len())])
        };
        let before = engine.counted();
        let (mut alone, mut second_looks, mut survivors) = (0, Vec::new(), Vec::new());
        for (query, expected) in queries.iter().zip(&expected) {
            let Counters { second_looks: looks, survivors: scored, .. } = engine.counted();
            let found = engine.search(&[query])?;
            alone += usize::from(same(&found[0], expected));
            second_looks.push(engine.counted().second_looks - looks);
            survivors.push(engine.counted().survivors - scored);
        }
        let full =
            engine.counted().full + engine.counted().fallbacks - before.full - before.fallbacks;
        let mut together = 0;
        for (queries, expected) in queries.chunks(BATCH).zip(expected.chunks(BATCH)) {
            let found = engine.search(&queries.iter().collect::<Vec<_>>())?;
            together += found.iter().zip(expected).filter(|(f, e)| same(f, e)).count();
        }
        wrong += 2 * number - alone - together;
        println!(
            "| {k} | {alone} of {number} | {together} of {number} | {} | {} | {full} |",
            spread(second_looks),
            spread(survivors)
        );
    }
    if wrong > 0 { Err(format!("{wrong} answers are wrong").into()) } else { Ok(()) }
}

/// The best of all rows by the obvious loop, one query per thread.
fn by_reference(model: &Arc<ModelStore>, queries: &[Query]) -> Result<Vec<Vec<Hit>>, String> {
    let done = AtomicUsize::new(0);
    let answer = |query: &Query| {
        let mut engine = ReferenceEngine::new(model.clone());
        let found = engine.search(&[query]).map_err(|e| e.to_string())?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("reference: {done} of {}", queries.len());
        }
        found.into_iter().next().ok_or_else(|| "no answer".to_owned())
    };
    queries.par_iter().map(answer).collect()
}

/// The same query for every k: a random word, or a random vector.
fn query(model: &ModelStore, i: usize, k: usize) -> Result<Query, QueryError> {
    let random = |j: usize| split_mix(((i as u64) << 32) + j as u64);
    let row = Row((random(0) % model.rows() as u64) as u32);
    let (vector, filter) = if i.is_multiple_of(2) {
        (QueryVector::Row(row), Filter::excluding(vec![row]))
    } else {
        // The sum of two words' vectors, as analogies are, and some noise.
        let other = Row((random(1) % model.rows() as u64) as u32);
        let pairs = model.table().row(row).iter().zip(model.table().row(other));
        let noisy = pairs.enumerate().map(|(j, (a, b))| {
            a + b + 0.1 * ((random(j + 2) >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
        });
        (QueryVector::from(noisy.collect::<Vec<f32>>()), Filter::default())
    };
    Query::new(&model.table(), vector, k, filter)
}

fn bits(hits: &[Hit]) -> Vec<(Row, u64)> {
    hits.iter().map(|hit| (hit.row, hit.score.to_bits())).collect()
}

fn spread(mut values: Vec<u64>) -> String {
    values.sort_unstable();
    let at = |percent: usize| {
        values.get((values.len().max(1) - 1) * percent / 100).copied().unwrap_or(0)
    };
    format!("{} / {} / {}", at(50), at(99), at(100))
}
