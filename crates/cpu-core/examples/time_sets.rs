//! Measures searches for rows of sets of several sizes and kinds, on one thread.
//!
//!     kindred synth --rows 400000 --dim 300 --out MODEL_DIR
//!     cargo run --release -p cpu-core --example time_sets -- MODEL_DIR [BATCH [K [PATH]]]
//!
//! The members of the first sets are random, so they say nothing of the vectors; those of the
//! others depend on the scores, or are alike. Prints the part of the rows that are members, the
//! median time of a batch of queries for `K` neighbours that share a set, one query for 10 unless
//! given, in milliseconds and as a multiple of that without a set, measured in turns; queries per
//! second; and the counters for a query. `PATH` forces the rows of sets to be gathered (`gather`),
//! or scanned (`scan`), or all passes to read 8 bits (`eight`) or 4 (`four`) first.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use contract::{Filter, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cpu_core::{CpuEngine, FirstLook, Options, Paths};
use model_store::ModelStore;
use model_store::synth::split_mix;

const PARTS: [f64; 12] = [1.0, 0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0002];

/// Sets by scores: from and up to this part of the rows, those with the lowest scores first.
const BY_SCORES: [(&str, f64, f64); 8] = [
    ("worst 10 %", 0.0, 0.1),
    ("worst 30 %", 0.0, 0.3),
    ("worst half", 0.0, 0.5),
    ("worst 70 %", 0.0, 0.7),
    ("worst 90 %", 0.0, 0.9),
    ("worst 99 %", 0.0, 0.99),
    ("middle 10 %", 0.45, 0.55),
    ("best half", 0.5, 1.0),
];

/// Sets of the rows that are nearest to another row, in parts of all rows.
const CLUSTERS: [f64; 2] = [0.1, 0.5];

const BATCHES: usize = 41;
/// Those with sets that are made for each query take longer.
const BATCHES_BY_SCORES: usize = 11;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: time_sets MODEL_DIR [BATCH [K [PATH]]]")?;
    let batch = arguments.next().map_or(Ok(1), |text| text.parse::<usize>())?;
    let k = arguments.next().map_or(Ok(10), |text| text.parse::<usize>())?;
    let paths = paths(arguments.next().as_deref())?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let (table, rows) = (model.table(), model.rows());
    let set = |members: &mut dyn Iterator<Item = u32>| {
        RowSet::of(Arc::new(RowBitmap::of_rows(members.map(Row), rows, model.version())))
    };
    let random = |part: f64| {
        let is_member = |row: &u32| (split_mix(u64::from(*row)) as f64) < part * u64::MAX as f64;
        set(&mut (0..rows as u32).filter(is_member))
    };
    let by_score = |row: usize| -> Vec<u32> {
        let query = Query::new(&table, QueryVector::Row(Row(row as u32)), 1, Filter::default());
        let score = |other: u32| query.as_ref().ok()?.score(&table, Row(other));
        let scores: Vec<f64> = (0..rows as u32).map(|row| score(row).unwrap_or(-1.0)).collect();
        let mut rows: Vec<u32> = (0..rows as u32).collect();
        rows.sort_by(|&a, &b| scores[a as usize].total_cmp(&scores[b as usize]));
        rows
    };
    let part = |rows: &[u32], [from, to]: [f64; 2]| {
        let [from, to] = [from, to].map(|part| (part * rows.len() as f64) as usize);
        set(&mut rows[from..to].iter().copied())
    };
    let mut sets = vec![("no set".to_owned(), RowSet::all())];
    sets.extend(PARTS.map(|part| (format!("{:.2} %", part * 100.0), random(part))));
    let ordered = by_score(rows / 3);
    for of_all in CLUSTERS {
        let name = format!("cluster {:.0} %", of_all * 100.0);
        sets.push((name, part(&ordered, [1.0 - of_all, 1.0])));
    }
    let options = Options { threads: 1, paths, by_rows: true, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options)?;
    engine.wait_for_tables();
    let mut time = |set: &RowSet, row: usize| -> Result<[f64; 4], Box<dyn Error>> {
        let query = |i: usize| {
            let row = Row((row + i * 31) as u32 % rows as u32);
            Query::new(&table, QueryVector::Row(row), k, Filter::of(set.clone()))
        };
        let queries = (0..batch).map(query).collect::<Result<Vec<_>, _>>()?;
        let queries: Vec<&Query> = queries.iter().collect();
        let before = engine.counted();
        let started = Instant::now();
        engine.search(&queries)?;
        let time = started.elapsed().as_secs_f64() * 1e3;
        let now = engine.counted();
        let each = |now: u64, before: u64| (now - before) as f64 / batch as f64;
        Ok([
            time,
            each(now.second_looks, before.second_looks),
            each(now.candidates, before.candidates),
            each(now.survivors, before.survivors),
        ])
    };
    let random_sets = sets.len();
    // Each query of a batch would have its own sets by scores.
    if batch == 1 {
        sets.extend(BY_SCORES.map(|(name, _, _)| (name.to_owned(), RowSet::all())));
    }
    let mut measured = vec![Vec::new(); sets.len()];
    for number in 0..BATCHES {
        let row = number * 97 % rows;
        for ((_, set), measured) in sets[..random_sets].iter().zip(&mut measured) {
            measured.push(time(set, row)?);
        }
        if batch == 1 && number < BATCHES_BY_SCORES {
            let ordered = by_score(row);
            for ((_, from, to), measured) in BY_SCORES.iter().zip(&mut measured[random_sets..]) {
                let set = part(&ordered, [*from, *to]);
                // Making the set has displaced the engine's tables from the caches.
                time(&RowSet::all(), row)?;
                measured.push(time(&set, row)?);
            }
        }
    }
    let median = |measured: &[[f64; 4]], i: usize| {
        let mut all: Vec<f64> = measured.iter().map(|one| one[i]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let plain = median(&measured[0], 0);
    for ((name, _), measured) in sets.iter().zip(&measured) {
        let [time, looks, candidates, survivors] = [0, 1, 2, 3].map(|i| median(measured, i));
        println!(
            "{name:>12}: {time:8.3} ms, {:.3} x, {:7.0} queries/s, {looks:.0} second looks, \
             {candidates:.0} candidates, {survivors:.0} survivors",
            time / plain,
            batch as f64 / time * 1e3,
        );
    }
    Ok(())
}

/// The paths that an argument forces.
fn paths(name: Option<&str>) -> Result<Paths, Box<dyn Error>> {
    let usual = Paths::default();
    Ok(match name {
        None => usual,
        Some("gather") => Paths { gather: Some(true), ..usual },
        Some("scan") => Paths { gather: Some(false), ..usual },
        Some("eight") => Paths { first_look: Some(FirstLook::EightBits), ..usual },
        Some("four") => Paths { first_look: Some(FirstLook::FourBits), ..usual },
        Some(other) => return Err(format!("no path is named {other}").into()),
    })
}
