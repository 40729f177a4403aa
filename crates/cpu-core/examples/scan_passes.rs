//! Passes of every instruction set over tables of two sizes, for `scripts/count-instructions`,
//! which counts the instructions of each.
//!
//!     cargo run --release -p cpu-core --example scan_passes -- [ROWS]
//!
//! The tables have ROWS rows of 300 components, 8,192 unless the argument says otherwise, and twice
//! as many. Each pass stands between two calls of `getppid`, which emulators can notice, and prints
//! a line: instruction set, bits, queries, rows, components.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use contract::{Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::{CpuEngine, FirstLook, InstructionSet, Options, Paths};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

const DIM: usize = 300;
const QUERIES: [usize; 2] = [1, 32];
const K: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let rows: u32 = std::env::args().nth(1).map_or(Ok(1 << 13), |text| text.parse())?;
    // Derived once for all sets.
    let tables = tempfile::tempdir()?;
    let mut models = Vec::new();
    for rows in [rows, 2 * rows] {
        let options = SynthOptions { rows, dim: DIM, seed: 1, ..SynthOptions::default() };
        models.push(Arc::new(ModelStore::from_memory("synth", &synth_in_memory(options)?)?));
    }
    for set in InstructionSet::available() {
        for (look, bits) in [(FirstLook::EightBits, 8), (FirstLook::FourBits, 4)] {
            for model in &models {
                let paths =
                    Paths { always_certify: true, first_look: Some(look), ..Paths::default() };
                let options = Options {
                    threads: 1,
                    instructions: Some(set),
                    paths,
                    keep_in: Some(tables.path().join(model.rows().to_string())),
                    ..Options::default()
                };
                let mut engine = CpuEngine::new(model.clone(), options)?;
                engine.wait_for_tables();
                for number in QUERIES {
                    let queries = queries(model, number)?;
                    let queries: Vec<&Query> = queries.iter().collect();
                    // The first time, memory is new.
                    engine.search(&queries)?;
                    mark();
                    black_box(engine.search(&queries)?);
                    mark();
                    println!("{set}\t{bits}\t{number}\t{}\t{DIM}", model.rows());
                }
            }
        }
    }
    Ok(())
}

/// The neighbours of rows that both tables have.
fn queries(model: &ModelStore, number: usize) -> Result<Vec<Query>, contract::QueryError> {
    let query = |i: usize| {
        let row = Row((i * 97 + 11) as u32);
        Query::new(&model.table(), QueryVector::Row(row), K, Filter::excluding(vec![row]))
    };
    (0..number).map(query).collect()
}

/// A system call that changes nothing.
fn mark() {
    #[cfg(unix)]
    black_box(std::os::unix::process::parent_id());
}
