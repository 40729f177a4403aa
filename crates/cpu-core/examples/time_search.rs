//! Measures the CPU engine on a model folder, for `benches/peers/compare`, which runs the same on
//! other programs.
//!
//!     cargo run --release -p cpu-core --example time_search -- MODEL_DIR THREADS ROWS...
//!
//! ROWS are word queries, k = 10. Prints one JSON object: `one`, the seconds of each query alone;
//! `batch`, the seconds of a pass for all of them, five times; `read_float32` and `read_8_bit`, the
//! seconds that the same number of threads takes to read the table and the engine's derived table;
//! `rows`, the answers.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use contract::{Device, Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::{CpuEngine, Options};
use model_store::ModelStore;
use serde_json::json;

#[path = "../benches/floor/read.rs"]
mod read;
use read::read;

const K: usize = 10;
const PASSES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, threads, rows @ ..] = arguments.as_slice() else {
        return Err("usage: time_search MODEL_DIR THREADS ROWS...".into());
    };
    let threads: usize = threads.parse()?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let table = model.table();
    let queries = rows
        .iter()
        .map(|row| {
            let row = Row(row.parse()?);
            Ok(Query::new(&table, QueryVector::Row(row), K, Filter::excluding(vec![row]))?)
        })
        .collect::<Result<Vec<Query>, Box<dyn Error>>>()?;

    let readers = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let components: &[u8] = bytemuck::cast_slice(table.components());
    let read_float32 = times(|| readers.install(|| read(components)));

    let options = Options { threads, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options)?;
    engine.wait_for_tables();
    let read_8_bit =
        engine.table().map_or_else(Vec::new, |table| times(|| readers.install(|| read(&table))));
    engine.search(&queries.iter().take(1).collect::<Vec<_>>())?;
    let (mut one, mut answers) = (Vec::new(), Vec::new());
    for query in &queries {
        let started = Instant::now();
        answers.extend(engine.search(&[query])?);
        one.push(started.elapsed().as_secs_f64());
    }
    let mut together = Vec::new();
    let batch =
        times(|| together = engine.search(&queries.iter().collect::<Vec<_>>()).unwrap_or_default());
    if together != answers {
        return Err("a batch has other answers than its queries alone".into());
    }
    let rows: Vec<Vec<u32>> =
        answers.iter().map(|hits| hits.iter().map(|hit| hit.row.0).collect()).collect();
    let detail = engine.description().detail;
    println!(
        "{}",
        json!({ "name": format!("Kindred ({detail})"), "one": one, "batch": batch,
            "read_float32": read_float32, "read_8_bit": read_8_bit, "rows": rows })
    );
    Ok(())
}

fn times<T>(mut work: impl FnMut() -> T) -> Vec<f64> {
    black_box(work());
    let timed = |_| {
        let started = Instant::now();
        black_box(work());
        started.elapsed().as_secs_f64()
    };
    (0..PASSES).map(timed).collect()
}
