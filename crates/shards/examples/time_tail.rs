//! Measures what rows behind a base cost: searches on the CPU, with tails of 0, 1 and 5 percent of
//! the rows, beside those of the base's engine alone, with and without the rows that the tail
//! replaced.
//!
//!     cargo run --release -p shards --example time_tail -- ROWS DIM THREADS
//!
//! Of the rows of a tail, half replace rows of the base. For single queries and for batches of 64,
//! k = 10, prints the median of the time of each, and its ratio to the base's engine alone. All are
//! measured in turn.

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use changes::{BatchBuilder, ChangeOptions, Changes, Durability, Snapshot, Upsert};
use contract::{
    Engine, Filter, HasTable, Metric, Query, QueryVector, Row, RowBitmap, RowSet, Table,
};
use cpu_core::{CpuEngine, Options};
use model_store::synth::{SynthOptions, split_mix, synth_folder};
use shards::Segments;

const BATCHES: [usize; 2] = [1, 64];
const TURNS: usize = 401;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, dim, threads] = arguments.as_slice() else {
        return Err("usage: time_tail ROWS DIM THREADS".into());
    };
    let [rows, dim, threads] = [rows, dim, threads].map(|number| number.parse::<usize>());
    let (rows, dim, threads) = (rows?, dim?, threads?);
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("m");
    let metric = Metric::Cosine;
    let options =
        SynthOptions { rows: rows as u32, dim, seed: 1, metric, ..SynthOptions::default() };
    synth_folder(options, &folder, false, &mut |_| ControlFlow::Continue(()))?;
    let changes = Changes::open(&folder, ChangeOptions::default())?;
    let model = changes.base();
    let of: Arc<dyn HasTable> = model.clone();

    let mut snapshots = vec![changes.snapshot()];
    let words = |row: usize| model.words().word(Row(row as u32)).to_owned();
    let mut put = 0;
    for percent in [1, 5] {
        while put < rows * percent / 100 {
            let mut batch = BatchBuilder::new(changes.schema());
            for _ in 0..1000 {
                let source = split_mix(put as u64) as usize % rows;
                let key = match put % 2 {
                    0 => words(put * 7 % rows),
                    _ => format!("new row {put}"),
                };
                let vector = changed(&model.table(), source);
                batch.upsert(Upsert { key: &key, vector: &vector, bias: None, attributes: &[] });
                put += 1;
            }
            let batch = batch.finish()?.ok_or("it has rows")?;
            changes.commit(batch, Durability::None, None)?;
        }
        snapshots.push(changes.snapshot());
    }

    let cpu = || -> Result<CpuEngine, Box<dyn Error>> {
        let mut engine = CpuEngine::over(of.clone(), Options { threads, ..Options::default() })?;
        engine.wait_for_tables();
        Ok(engine)
    };
    let mut engines: Vec<(String, Box<dyn Engine>, RowSet)> =
        vec![("the base's engine alone".to_owned(), Box::new(cpu()?), RowSet::all())];
    for snapshot in snapshots {
        let (rows, base) = (snapshot.rows(), snapshot.base_rows());
        if rows > base {
            let name = "the base's engine, without the rows that were replaced";
            engines.push((name.to_owned(), Box::new(cpu()?), live(&snapshot, base)));
        }
        let name = format!("a tail of {} rows", rows - base);
        let set = live(&snapshot, rows);
        let now = Arc::new(move || snapshot.clone());
        let segments = Segments::new(Box::new(cpu()?), of.clone(), now, threads)?;
        engines.push((name, Box::new(segments), set));
    }
    for count in BATCHES {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); engines.len()];
        for turn in 0..TURNS {
            for ((_, engine, set), times) in engines.iter_mut().zip(&mut times) {
                let queries: Vec<Query> = (0..count)
                    .map(|number| {
                        let seed = (turn * count + number) as u64;
                        let row = Row((split_mix(seed) % rows as u64) as u32);
                        let filter = Filter::of(set.clone().less(vec![row]));
                        Query::new(&model.table(), QueryVector::Row(row), 10, filter)
                    })
                    .collect::<Result<_, _>>()?;
                let batch: Vec<&Query> = queries.iter().collect();
                let started = Instant::now();
                engine.search(&batch)?;
                times.push(started.elapsed().as_secs_f64());
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        for ((name, ..), time) in engines.iter().zip(&medians) {
            let (milliseconds, ratio) = (time * 1e3, time / medians[0]);
            println!("{count:3} together: {milliseconds:8.3} ms, {ratio:.3}: {name}");
        }
    }
    Ok(())
}

/// A row like one of the base.
fn changed(table: &Table<'_>, row: usize) -> Vec<f32> {
    let other = split_mix(row as u64) as usize % table.rows();
    let (own, other) = (table.row(Row(row as u32)), table.row(Row(other as u32)));
    own.iter().zip(other).map(|(a, b)| a + 0.3 * b).collect()
}

/// Those of the first rows that live.
fn live(snapshot: &Snapshot, rows: usize) -> RowSet {
    if snapshot.dead().is_empty() {
        return RowSet::first(rows as u32);
    }
    RowSet::of(Arc::new(RowBitmap::new(snapshot.dead().live_bits(rows), rows, "v")))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
