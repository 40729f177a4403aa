//! What a graph costs beside the search: an engine that makes up its answers, so that only the
//! host's part is left.
//!
//!     cargo run --release -p jobs --example graph_host_cost -- 2196016 10 16 0 FOLDER
//!
//! Rows, k, jobs in flight, microseconds of a pass (in which the engine sleeps, as the host does
//! while a GPU works), and a folder for the file. Prints the time, and the time of all cores, for a
//! row, and how full passes were.

use std::path::Path;
use std::time::{Duration, Instant};

use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, HeadEngine, Hit, Query, QueryVector,
    Row, SearchEngine,
};
use jobs::graph::{self, GraphOptions};
use kindred::queue::Limits;
use kindred::{Kindred, Model, Settings};

struct Instantly {
    rows: u32,
    pass: Duration,
}

impl Device for Instantly {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "instant", detail: "made-up answers".into() }
    }
}

impl SearchEngine for Instantly {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(1024)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        if !self.pass.is_zero() {
            std::thread::sleep(self.pass);
        }
        let hits = |first: u32, k: u32| {
            let row = |index: u32| Row(first.wrapping_add(index.wrapping_mul(7919)) % self.rows);
            let hit = |index| Hit { row: row(index), score: 1.0 / (1.7 + f64::from(index)) };
            (1..=k).map(hit).collect()
        };
        let answers = batch.iter().map(|query| match &query.vectors()[0].vector {
            QueryVector::Row(row) => hits(row.0, query.k as u32),
            QueryVector::Components(_) => Vec::new(),
        });
        Ok(answers.collect())
    }
}

impl FullPassEngine for Instantly {}

impl HeadEngine for Instantly {}

/// The time of all cores that this process has used, in seconds.
fn cpu_seconds() -> f64 {
    /// The kernel's unit in `/proc`, on all usual systems.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name, in brackets, may have spaces.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, k, jobs, pass, folder] = &arguments[..] else {
        return Err("usage: graph_host_cost ROWS K JOBS MICROSECONDS FOLDER".into());
    };
    let (rows, k, jobs): (u32, usize, usize) = (rows.parse()?, k.parse()?, jobs.parse()?);
    let pass = Duration::from_micros(pass.parse()?);
    let words: Vec<(String, [f32; 1])> = (0..rows).map(|row| (format!("w{row}"), [1.0])).collect();
    let model = Model::from_rows("made-up", &words)?;
    drop(words);
    let limits = Limits { capacity_slots: 65_536, ..Settings::default().limits };
    let settings = Settings { limits, ..Settings::default() };
    let kindred =
        Kindred::with_engine(model, settings, move |_| Ok(Box::new(Instantly { rows, pass })))?;
    let options = GraphOptions { k, jobs, replace: true, ..GraphOptions::default() };
    let (started, before) = (Instant::now(), cpu_seconds());
    let file = Path::new(folder).join("made-up.npz");
    let made = graph::make(&kindred, &file, &options, |_| std::ops::ControlFlow::Continue(()))?;
    let (all, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - before);
    let per_row = |seconds: f64| seconds * 1e6 / f64::from(rows);
    let passes = kindred.statistics().searches.passes;
    println!(
        "{rows} rows, k = {k}, {jobs} jobs, {passes} passes: asked in {:.3} s, complete in {all:.3} s; for a row {:.3} µs, of all cores {:.3} µs",
        made.asking_seconds,
        per_row(made.asking_seconds),
        per_row(cpu)
    );
    std::fs::remove_file(file)?;
    Ok(())
}
