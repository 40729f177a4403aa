//! Measures the CPU engine's cost per query by batch size: CPU time of all threads, wall time, and
//! the engine's counters.
//!
//!     cargo run --release -p cpu-core --example time_batches -- MODEL_DIR [SECONDS [BATCH[:K]...]]
//!
//! Uses random words, k = 10 unless given, each excluding itself, like `scripts/load-http`. Needs
//! Linux, which counts each thread's time in nanoseconds.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Device, Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::{Counters, CpuEngine, Options};
use model_store::ModelStore;
use model_store::synth::split_mix;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder =
        arguments.next().ok_or("usage: time_batches MODEL_DIR [SECONDS [BATCH[:K]...]]")?;
    let seconds = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let batch = |text: String| -> Result<(usize, usize), std::num::ParseIntError> {
        let (batch, k) = text.split_once(':').unwrap_or((&text, "10"));
        Ok((batch.parse()?, k.parse()?))
    };
    let batches: Vec<(usize, usize)> = arguments.map(batch).collect::<Result<_, _>>()?;
    let batches =
        if batches.is_empty() { [1, 8, 16, 32, 64].map(|n| (n, 10)).to_vec() } else { batches };
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let mut engine = CpuEngine::new(model.clone(), Options::default())?;
    engine.wait_for_tables();
    println!("{} rows × {}: {}", model.rows(), model.dim(), engine.description().detail);
    println!(
        "| batch | k | CPU, µs a query | wall, µs a query | queries/s | second looks | candidates | survivors |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut asked = 0;
    for (batch, k) in batches {
        let mut queries = || -> Result<Vec<Query>, Box<dyn Error>> {
            let query = |_| {
                asked += 1;
                let row = Row((split_mix(asked) % model.rows() as u64) as u32);
                let filter = Filter::excluding(vec![row]);
                Ok(Query::new(&model.table(), QueryVector::Row(row), k, filter)?)
            };
            (0..batch).map(query).collect()
        };
        engine.search(&queries()?.iter().collect::<Vec<_>>())?;
        let (before, cpu, started) = (engine.counted(), cpu_time()?, Instant::now());
        let mut number = 0;
        while started.elapsed().as_secs_f64() < seconds {
            engine.search(&queries()?.iter().collect::<Vec<_>>())?;
            number += batch;
        }
        let (wall, cpu) = (started.elapsed(), cpu_time()? - cpu);
        let Counters { second_looks, candidates, survivors, .. } = engine.counted();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / number as f64;
        let count = |now: u64, before: u64| (now - before) as f64 / number as f64;
        println!(
            "| {batch} | {k} | {:.1} | {:.1} | {:.0} | {:.0} | {:.1} | {:.1} |",
            each(cpu),
            each(wall),
            number as f64 / wall.as_secs_f64(),
            count(second_looks, before.second_looks),
            count(candidates, before.candidates),
            count(survivors, before.survivors),
        );
    }
    Ok(())
}

/// The CPU time of all threads that this process has now.
fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().ok_or("no time")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
