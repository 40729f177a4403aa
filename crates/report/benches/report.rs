//! Reproduces the tables of the 2020 report on this GPU: its four versions beside a sequential
//! search on the CPU and today's engine. The answers of all versions are compared with the CPU's.
//!
//! `report [MODEL_DIR | ROWS DIM]`: a folder, or a synthetic table in memory (2,196,016 x 300).
//! Without a device it says so and exits with 0, because measurements can't fail.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::{FullScanEngine, ReferenceEngine};
use gpu_core::Options;
use gpu_core::driver::Gpu;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};
use report::{Report, Times, Version};

const K: usize = 10;

/// Queries of each version; the sequential search answers the first three.
const QUERIES: usize = 50;

/// Rows whose float32 scores are closer than this may be swapped.
const TIE: f64 = 1e-6;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    if let Err(e) = Gpu::open(None) {
        println!("report: skipped: {e}");
        return;
    }
    let synthetic = |rows, dim| {
        let files = synth_in_memory(SynthOptions { rows, dim, seed: 1, ..Default::default() })
            .expect("memory");
        ModelStore::from_memory("synth", &files).expect("a model")
    };
    let model = Arc::new(match arguments.as_slice() {
        [folder] => ModelStore::open(folder.as_ref()).expect("a model folder"),
        [rows, dim] => synthetic(rows.parse().expect("rows"), dim.parse().expect("components")),
        _ => synthetic(2_196_016, 300),
    });
    let rows = asked(&model);
    let (expected, sequential) = on_the_cpu(&model, &rows);
    println!("{} rows x {}, k = {K}, medians of {QUERIES} queries, ms", model.rows(), model.dim());
    println!(
        "| | speed-up over CPU | over previous | distances per ms | DotProduct | FirstMerge | BotchedMergeSort | overhead | total | same words |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let per_ms = |total: Duration| model.rows() as f64 / milliseconds(total);
    println!(
        "| sequential CPU | 1 | | {:.1} | | | | | {:.1} | |",
        per_ms(sequential),
        milliseconds(sequential)
    );
    let mut previous = sequential;
    for version in Version::ALL {
        let (times, same) = measure_version(&model, version, &rows, &expected);
        println!(
            "| {version:?} | {:.1} | {:.2} | {:.0} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {same} of {} |",
            milliseconds(sequential) / milliseconds(times.total),
            milliseconds(previous) / milliseconds(times.total),
            per_ms(times.total),
            milliseconds(times.dot_product),
            milliseconds(times.first_merge),
            milliseconds(times.merge_sort),
            milliseconds(times.overhead()),
            milliseconds(times.total),
            rows.len(),
        );
        previous = times.total;
    }
    let (device, host, same) = today(&model, &rows, &expected);
    println!(
        "| engine, one query | {:.1} | {:.2} | {:.0} | | | | {:.3} | {:.3} | {same} of {} |",
        milliseconds(sequential) / milliseconds(host),
        milliseconds(previous) / milliseconds(host),
        per_ms(host),
        milliseconds(host.saturating_sub(device)),
        milliseconds(host),
        rows.len(),
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The report's words that the model has, then rows from all over the table.
fn asked(model: &ModelStore) -> Vec<Row> {
    let words = ["ring", "key", "king", "barca", "messi"];
    let known = words.iter().filter_map(|word| model.words().row(word));
    let anywhere = (1..).map(|i: u64| Row((i * 0x9e37_79b9 % model.rows() as u64) as u32));
    known.chain(anywhere).filter(|row| model.table().norm(*row) > 0.0).take(QUERIES).collect()
}

type Words = Vec<(Row, f64)>;

fn on_the_cpu(model: &Arc<ModelStore>, rows: &[Row]) -> (Vec<Words>, Duration) {
    let queries =
        |rows: &[Row]| -> Vec<Query> { rows.iter().map(|row| query(model, *row)).collect() };
    let mut reference = ReferenceEngine::new(model.clone());
    let few = queries(&rows[..3]);
    let mut sequential: Vec<Duration> = few
        .iter()
        .map(|query| {
            let started = Instant::now();
            let _ = reference.search(&[query]).expect("an answer");
            started.elapsed()
        })
        .collect();
    sequential.sort_unstable();
    let mut engine = FullScanEngine::new(model.clone(), 0).expect("threads");
    let all = queries(rows);
    let answers = engine.search(&all.iter().collect::<Vec<_>>()).expect("answers");
    let words = |hits: &Vec<contract::Hit>| hits.iter().map(|hit| (hit.row, hit.score)).collect();
    (answers.iter().map(words).collect(), sequential[1])
}

/// A query for a row's neighbours, including the row itself, as in the report.
fn query(model: &ModelStore, row: Row) -> Query {
    Query::new(&model.table(), QueryVector::Row(row), K, Filter::default()).expect("a query")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// One version's times, each the median over all queries, and the number of queries with the CPU's
/// answer.
fn measure_version(
    model: &ModelStore,
    version: Version,
    rows: &[Row],
    expected: &[Words],
) -> (Times, usize) {
    let mut report = Report::new(model, version, K).expect("a table on the device");
    // The first search is slower, because the driver loads what it needs.
    report.search(rows[0]).expect("an answer");
    let mut all = Vec::new();
    let mut same = 0;
    for (row, expected) in rows.iter().zip(expected) {
        let (found, times) = report.search(*row).expect("an answer");
        let found: Vec<Row> = found.into_iter().map(|(row, _)| row).collect();
        same += usize::from(is_same(model, *row, &found, expected));
        all.push(times);
    }
    let of = |part: fn(&Times) -> Duration| median(all.iter().map(part).collect());
    let times = Times {
        dot_product: of(|t| t.dot_product),
        first_merge: of(|t| t.first_merge),
        merge_sort: of(|t| t.merge_sort),
        total: of(|t| t.total),
    };
    (times, same)
}

/// Whether the words are the same in the same order, except for neighbours whose scores are closer
/// than [`TIE`].
fn is_same(model: &ModelStore, query: Row, found: &[Row], expected: &Words) -> bool {
    let table = model.table();
    let score = |row: Row| table.score(table.row(query), table.norm(query), row).unwrap_or(-2.0);
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, (row, expected))| found == row || (score(*found) - expected).abs() < TIE)
}

/// Device time and host time of the engine for the same queries, one by one.
fn today(model: &Arc<ModelStore>, rows: &[Row], expected: &[Words]) -> (Duration, Duration, usize) {
    let mut engine =
        CudaEngine::new(model.clone(), Options::default(), Paths::default()).expect("an engine");
    engine.measure().expect("events");
    let (mut device, mut host, mut same) = (Vec::new(), Vec::new(), 0);
    for (i, row) in rows[..1].iter().chain(rows).enumerate() {
        let query = query(model, *row);
        let started = Instant::now();
        let found = engine.search(&[&query]).expect("an answer");
        let took = started.elapsed();
        if i > 0 {
            host.push(took);
            device.push(engine.device_time());
            let found: Vec<(Row, f64)> = found[0].iter().map(|hit| (hit.row, hit.score)).collect();
            same += usize::from(found == expected[i - 1]);
        }
    }
    (median(device), median(host), same)
}
