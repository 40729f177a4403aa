//! Measures searches for rows of sets, for `benches/peers/filters`, which runs the same on other
//! programs.
//!
//!     cargo run --release -p cpu-core --example time_members -- MODEL_DIR VALUES LIMITS ROWS...
//!
//! VALUES is a file with an unsigned number of 16 bits for each row, little-endian; LIMITS are
//! numbers between commas. A row is in the set of a limit if its number is lower. ROWS are the
//! queries, k = 10, on one thread. Prints one JSON object: `name`, and `sets`, for each limit:
//! `one`, the seconds of each query alone; `batch`, the seconds of a pass for all of them, five
//! times; `rows`, the answers.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use contract::{Device, Filter, Hit, Query, QueryVector, Row, RowBitmap, RowSet, SearchEngine};
use cpu_core::{CpuEngine, Options};
use model_store::ModelStore;
use serde_json::{Value, json};

const K: usize = 10;
const PASSES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, values, limits, rows @ ..] = arguments.as_slice() else {
        return Err("usage: time_members MODEL_DIR VALUES LIMITS ROWS...".into());
    };
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let values = std::fs::read(values)?;
    let values: Vec<u16> =
        values.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes)).collect();
    if values.len() != model.rows() {
        return Err(format!("{} values for {} rows", values.len(), model.rows()).into());
    }
    let rows = rows.iter().map(|row| row.parse()).collect::<Result<Vec<u32>, _>>()?;
    let options = Options { threads: 1, by_rows: true, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options)?;
    engine.wait_for_tables();
    let sets = limits
        .split(',')
        .map(|limit| {
            let limit: u16 = limit.parse()?;
            let members = (0u32..).zip(&values).filter(|&(_, &value)| value < limit);
            let members = members.map(|(row, _)| Row(row));
            let set =
                RowSet::of(Arc::new(RowBitmap::of_rows(members, values.len(), model.version())));
            timed(&mut engine, &model, &set, &rows)
        })
        .collect::<Result<Vec<Value>, Box<dyn Error>>>()?;
    let name = format!("Kindred ({})", engine.description().detail);
    println!("{}", json!({ "name": name, "sets": sets }));
    Ok(())
}

fn timed(
    engine: &mut CpuEngine,
    model: &ModelStore,
    set: &RowSet,
    rows: &[u32],
) -> Result<Value, Box<dyn Error>> {
    let query = |&row: &u32| {
        let (vector, filter) = (QueryVector::Row(Row(row)), Filter::of(set.clone()));
        Query::new(&model.table(), vector, K, filter)
    };
    let queries = rows.iter().map(query).collect::<Result<Vec<Query>, _>>()?;
    let together: Vec<&Query> = queries.iter().collect();
    engine.search(&together)?;
    let mut answers: Vec<Vec<Hit>> = Vec::new();
    let mut one = Vec::new();
    for query in &queries {
        let started = Instant::now();
        answers.extend(engine.search(&[query])?);
        one.push(started.elapsed().as_secs_f64());
    }
    let mut batch = Vec::new();
    for _ in 0..PASSES {
        let started = Instant::now();
        let found = engine.search(&together)?;
        batch.push(started.elapsed().as_secs_f64());
        if found != answers {
            return Err("a batch has other answers than its queries alone".into());
        }
    }
    let rows: Vec<Vec<u32>> =
        answers.iter().map(|hits| hits.iter().map(|hit| hit.row.0).collect()).collect();
    Ok(json!({ "one": one, "batch": batch, "rows": rows }))
}
