//! Measures searches for rows of sets of several sizes, on one thread.
//!
//!     kindred synth --rows 400000 --dim 300 --out MODEL_DIR
//!     cargo run --release -p cpu-core --example time_sets -- MODEL_DIR
//!
//! Members are random, so the sets say nothing of the vectors. Prints the part of the rows that are
//! members, and the median time of a query for 10 neighbours alone, in milliseconds and as a
//! multiple of that for all rows, measured in turns.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use contract::{Filter, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cpu_core::{CpuEngine, Options};
use model_store::ModelStore;
use model_store::synth::split_mix;

const PARTS: [f64; 9] = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001];
const QUERIES: usize = 41;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: time_sets MODEL_DIR")?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let rows = model.rows();
    let sets = PARTS.map(|part| {
        let is_member = |row: &u32| (split_mix(u64::from(*row)) as f64) < part * u64::MAX as f64;
        let members = (0..rows as u32).filter(is_member).map(Row);
        match part {
            1.0 => RowSet::all(),
            _ => RowSet::of(Arc::new(RowBitmap::of_rows(members, rows, model.version()))),
        }
    });
    let mut engine = CpuEngine::new(model.clone(), Options { threads: 1, ..Options::default() })?;
    let mut time = |set: &RowSet, row: usize| -> Result<f64, Box<dyn Error>> {
        let (vector, filter) = (QueryVector::Row(Row(row as u32)), Filter::of(set.clone()));
        let query = Query::new(&model.table(), vector, 10, filter)?;
        let started = Instant::now();
        engine.search(&[&query])?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    // The table is derived beside the first searches.
    for row in 0..100 {
        time(&RowSet::all(), row)?;
    }
    let mut times = vec![Vec::new(); sets.len()];
    for query in 0..QUERIES {
        for (set, times) in sets.iter().zip(&mut times) {
            times.push(time(set, query * 97 % rows)?);
        }
    }
    let medians = times.into_iter().map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[QUERIES / 2]
    });
    let medians: Vec<f64> = medians.collect();
    for (part, median) in PARTS.iter().zip(&medians) {
        println!("{:5.1} %: {median:7.3} ms, {:.2} x", part * 100.0, median / medians[0]);
    }
    Ok(())
}
