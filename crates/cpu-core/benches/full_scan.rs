//! The multi-threaded engine against the plain reference and against the time that reading the table
//! takes, as ratios within one run.
//!
//! `cargo bench -p cpu-core --bench full_scan`; a name as argument runs the groups that contain it,
//! such as `400000x50`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cpu_core::{FullScanEngine, ReferenceEngine};
use criterion::{BenchmarkId, Criterion, SamplingMode};
use model_store::{Engine, Filter, ModelStore, Query, QueryVector, Row};

#[path = "floor/read.rs"]
mod read;
use read::read;

const ROWS: usize = 400_000;
const DIMENSIONS: [usize; 2] = [50, 300];
const BATCHES: [usize; 2] = [1, 64];
const K: usize = 10;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    for dim in DIMENSIONS {
        bench_table(&mut criterion, dim);
    }
    criterion.final_summary();
    print_ratios();
}

fn group_name(dim: usize) -> String {
    format!("{ROWS}x{dim}")
}

fn bench_table(criterion: &mut Criterion, dim: usize) {
    let model = Arc::new(random_model(dim));
    let mut reference = ReferenceEngine::new(model.clone());
    let mut engine = FullScanEngine::new(model.clone(), 0).expect("threads start");
    let mut group = criterion.benchmark_group(group_name(dim));
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function("read", |bencher| bencher.iter(|| read(model.table().components())));
    for batch in BATCHES {
        let queries: Vec<Query> = (0..batch).map(|i| query(&model, i)).collect();
        let mut search = |name: &str, engine: &mut dyn Engine| {
            group.bench_function(BenchmarkId::new(name, batch), |bencher| {
                bencher.iter(|| engine.search(&queries.iter().collect()).expect("it answers"));
            });
        };
        search("full-scan", &mut engine);
        search("reference", &mut reference);
    }
}

/// Uniform components from a small generator (SplitMix64, Steele et al. 2014): speed does not depend
/// on what they are.
fn random_model(dim: usize) -> ModelStore {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let components: Vec<f32> = (0..ROWS * dim).map(|_| next()).collect();
    let words: Vec<String> = (0..ROWS).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(components.chunks(dim));
    ModelStore::from_rows("random", dim, rows).expect("it fits into memory")
}

fn query(model: &ModelStore, i: usize) -> Query {
    let row = Row((i * 6151 % ROWS) as u32);
    Query::new(&model.table(), QueryVector::Row(row), K, Filter::excluding(vec![row]))
        .expect("no row is zero")
}

/// Medians of what this run, or an earlier one, left in Criterion's folder.
fn print_ratios() {
    println!(
        "\n{:<12} {:>5} {:>12} {:>12} {:>14} {:>14}",
        "table", "batch", "full scan", "reference", "× reference", "× one read"
    );
    for dim in DIMENSIONS {
        for batch in BATCHES {
            let median = |name: String| median_seconds(&group_name(dim), &name);
            let (Some(read), Some(scan), Some(reference)) = (
                median("read".into()),
                median(format!("full-scan/{batch}")),
                median(format!("reference/{batch}")),
            ) else {
                continue;
            };
            println!(
                "{:<12} {batch:>5} {:>9.2} ms {:>9.1} ms {:>12.1} × {:>12.2} ×",
                group_name(dim),
                scan * 1e3,
                reference * 1e3,
                reference / scan,
                scan / read
            );
        }
        if let Some(read) = median_seconds(&group_name(dim), "read") {
            println!("{:<12} one read of the table: {:.2} ms", group_name(dim), read * 1e3);
        }
    }
}

fn median_seconds(group: &str, name: &str) -> Option<f64> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let file = target.join("criterion").join(group).join(name).join("new/estimates.json");
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    Some(estimates["median"]["point_estimate"].as_f64()? * 1e-9)
}
