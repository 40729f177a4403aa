//! Compares the CPU engines with each other and with the time to read their tables, as ratios
//! within one run.
//!
//! `cargo bench -p cpu-core --bench search`; parts of names as argument select benchmarks, such as
//! `400000x50` or `certified|AVX2`. `BENCH_MODEL=DIR` uses the model in that folder instead of
//! synthetic ones.

use std::sync::Arc;

use contract::{Filter, Hit, Query, QueryVector, Row, SearchEngine};
use cpu_core::{
    CpuEngine, FirstLook, FullScanEngine, InstructionSet, Options, Paths, ReferenceEngine,
};
use medians::Medians;
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};
use read::read;

#[path = "timing/medians.rs"]
mod medians;
#[path = "floor/read.rs"]
mod read;

const ROWS: u32 = 400_000;
const DIMENSIONS: [usize; 2] = [50, 300];
const BATCHES: [usize; 3] = [1, 64, 256];
const K: usize = 10;

fn main() {
    let mut medians = Medians::open();
    let models: Vec<Arc<ModelStore>> = match std::env::var_os("BENCH_MODEL") {
        Some(folder) => vec![ModelStore::open(folder.as_ref()).expect("BENCH_MODEL is a model")],
        None => DIMENSIONS.map(synthetic).into(),
    }
    .into_iter()
    .map(Arc::new)
    .collect();
    for model in &models {
        bench_table(&mut medians, model);
    }
    print_ratios(&models, &medians);
}

fn synthetic(dim: usize) -> ModelStore {
    let files = synth_in_memory(SynthOptions { rows: ROWS, dim, seed: 1, ..Default::default() });
    ModelStore::from_memory("synth", &files.expect("it fits into memory")).expect("it is a model")
}

fn group_name(model: &ModelStore) -> String {
    format!("{}x{}", model.rows(), model.dim())
}

fn bench_table(medians: &mut Medians, model: &Arc<ModelStore>) {
    let group = group_name(model);
    let components: &[u8] = bytemuck::cast_slice(model.table().components());
    medians.measure(&format!("{group}/read-float32"), || read(components));

    let queries_asked = 512;
    let all: Vec<Query> = (0..queries_asked).map(|i| query(model, i)).collect();
    let mut certified = CpuEngine::new(model.clone(), Options::default()).expect("threads start");
    certified.wait_for_tables();
    if let Some(table) = certified.table() {
        medians.measure(&format!("{group}/read-8-bit"), || read(&table));
    }
    let paths = Paths { first_look: Some(FirstLook::EightBits), ..Paths::default() };
    let options = Options { paths, ..Options::default() };
    let mut eight_bits = CpuEngine::new(model.clone(), options).expect("threads start");
    eight_bits.wait_for_tables();
    let mut full = FullScanEngine::new(model.clone(), 0).expect("threads start");
    let mut reference = ReferenceEngine::new(model.clone());

    let mut by_set: Vec<(String, CpuEngine)> = Vec::new();
    for set in InstructionSet::available() {
        let options = Options { instructions: Some(set), ..Options::default() };
        let mut engine = CpuEngine::new(model.clone(), options).expect("threads start");
        engine.wait_for_tables();
        by_set.push((set.to_string(), engine));
    }

    let expected = answers(&mut full, &all[..BATCHES[2]]);
    let mut engines: Vec<(&str, &mut dyn SearchEngine, &[usize])> = vec![
        ("certified", &mut certified, &BATCHES),
        ("eight-bits", &mut eight_bits, &BATCHES),
        ("full-scan", &mut full, &BATCHES[..2]),
        ("reference", &mut reference, &BATCHES[..1]),
    ];
    for (set, engine) in &mut by_set {
        engines.push((set, engine, &BATCHES[..2]));
    }
    for (name, engine, batches) in engines {
        for &batch in batches {
            let id = format!("{group}/{name}/{batch}");
            if !medians.selects(&id) {
                continue;
            }
            assert!(answers(engine, &all[..batch]) == expected[..batch], "{name} is wrong");
            let starts = 0..=queries_asked - batch;
            let mut starts = starts.cycle();
            medians.measure(&id, || {
                // Other words each time: some take longer than others.
                let start = starts.next().unwrap_or(0);
                answers(engine, &all[start..start + batch])
            });
        }
    }
}

fn answers(engine: &mut dyn SearchEngine, queries: &[Query]) -> Vec<Vec<Hit>> {
    engine.search(&queries.iter().collect::<Vec<_>>()).expect("it answers")
}

fn query(model: &ModelStore, i: usize) -> Query {
    let row = Row((i * 6151 % model.rows()) as u32);
    Query::new(&model.table(), QueryVector::Row(row), K, Filter::excluding(vec![row]))
        .expect("no row is zero")
}

/// Prints ratios of the medians of this run and, where it left any out, of an earlier one.
fn print_ratios(models: &[Arc<ModelStore>], medians: &Medians) {
    for model in models {
        let median = |name: &str| medians.seconds(&format!("{}/{name}", group_name(model)));
        let read_all = median("read-float32");
        let read_8_bit = median("read-8-bit");
        println!("\n{}: reading takes", group_name(model));
        for (what, seconds) in [("the float32 table", read_all), ("the 8-bit table", read_8_bit)] {
            println!("  {what:<18} {:>9.3} ms", seconds.unwrap_or(f64::NAN) * 1e3);
        }
        println!(
            "{:<12} {:>6} {:>12} {:>12} {:>17} {:>15} {:>13}",
            "engine",
            "batch",
            "time",
            "queries/s",
            "× reads of 8 bits",
            "× full scan's",
            "× reference's"
        );
        let full = median("full-scan/1");
        let full_batch = median("full-scan/64");
        let reference = median("reference/1");
        let sets = InstructionSet::available().into_iter().map(|set| set.to_string());
        let engines = ["certified", "eight-bits", "full-scan", "reference"].map(String::from);
        for engine in engines.into_iter().chain(sets) {
            for batch in BATCHES {
                let Some(seconds) = median(&format!("{engine}/{batch}")) else { continue };
                let each = seconds / batch as f64;
                let full = if batch == 1 { full } else { full_batch.map(|all| all / 64.0) };
                let ratio = |other: Option<f64>| other.map_or(f64::NAN, |other| other / each);
                println!(
                    "{engine:<12} {batch:>6} {:>9.3} ms {:>12.1} {:>17.2} {:>15.1} {:>13.1}",
                    seconds * 1e3,
                    1.0 / each,
                    seconds / read_8_bit.unwrap_or(f64::NAN),
                    ratio(full),
                    ratio(reference)
                );
            }
        }
    }
}
