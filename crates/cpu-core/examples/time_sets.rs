//! Measures searches for rows of sets of several sizes, on one thread.
//!
//!     kindred synth --rows 400000 --dim 300 --out MODEL_DIR
//!     cargo run --release -p cpu-core --example time_sets -- MODEL_DIR [BATCH [gather|scan]]
//!
//! Members are random, so the sets say nothing of the vectors; but the last set is the half of the
//! rows that is worst for each query. Prints the part of the rows that are members, the median time
//! of a batch of queries for 10 neighbours that share a set, one query unless given, in
//! milliseconds and as a multiple of that without a set, measured in turns; queries per second; and
//! the counters for a query. The third argument forces the sets' rows to be gathered, or never.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use contract::{Filter, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cpu_core::{CpuEngine, Options, Paths};
use model_store::ModelStore;
use model_store::synth::split_mix;

const PARTS: [f64; 11] = [1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0002];
const BATCHES: usize = 41;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: time_sets MODEL_DIR [BATCH [gather|scan]]")?;
    let batch = arguments.next().map_or(Ok(1), |text| text.parse::<usize>())?;
    let gather = arguments.next().map(|text| text == "gather");
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let (table, rows) = (model.table(), model.rows());
    let set = |members: &mut dyn Iterator<Item = u32>| {
        RowSet::of(Arc::new(RowBitmap::of_rows(members.map(Row), rows, model.version())))
    };
    let random = |part: f64| {
        let is_member = |row: &u32| (split_mix(u64::from(*row)) as f64) < part * u64::MAX as f64;
        set(&mut (0..rows as u32).filter(is_member))
    };
    let mut sets = vec![("no set".to_owned(), RowSet::all())];
    sets.extend(PARTS.map(|part| (format!("{:6.2} %", part * 100.0), random(part))));
    let paths = Paths { gather, ..Paths::default() };
    let options = Options { threads: 1, paths, by_rows: true, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options)?;
    engine.wait_for_tables();
    let mut time = |set: &RowSet, row: usize| -> Result<[f64; 4], Box<dyn Error>> {
        let query = |i: usize| {
            let row = Row((row + i * 31) as u32 % rows as u32);
            Query::new(&table, QueryVector::Row(row), 10, Filter::of(set.clone()))
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
    let mut measured = vec![Vec::new(); sets.len() + 1];
    for number in 0..BATCHES {
        let row = number * 97 % rows;
        for ((_, set), measured) in sets.iter().zip(&mut measured) {
            measured.push(time(set, row)?);
        }
        let score = |other: u32| {
            let own = Row(row as u32);
            table.score(table.row(own), table.norm(own), Row(other)).unwrap_or(-1.0)
        };
        // Each query of a batch would have its own worst half.
        if batch == 1 && number < BATCHES / 4 {
            let scores: Vec<f64> = (0..rows as u32).map(score).collect();
            let mut sorted = scores.clone();
            let (_, median, _) = sorted.select_nth_unstable_by(rows / 2, f64::total_cmp);
            let worst = (0..rows as u32).filter(|&row| scores[row as usize] < *median);
            measured[sets.len()].push(time(&set(&mut { worst }), row)?);
        }
    }
    sets.push(("worst half".to_owned(), RowSet::all()));
    let median = |measured: &[[f64; 4]], i: usize| {
        let mut all: Vec<f64> = measured.iter().map(|one| one[i]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let plain = median(&measured[0], 0);
    for ((name, _), measured) in sets.iter().zip(&measured).filter(|(_, all)| !all.is_empty()) {
        let [time, looks, candidates, survivors] = [0, 1, 2, 3].map(|i| median(measured, i));
        println!(
            "{name:>10}: {time:8.3} ms, {:.3} x, {:7.0} queries/s, {looks:.0} second looks, \
             {candidates:.0} candidates, {survivors:.0} survivors",
            time / plain,
            batch as f64 / time * 1e3,
        );
    }
    Ok(())
}
