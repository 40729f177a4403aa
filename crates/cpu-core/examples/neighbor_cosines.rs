//! Prints how close a model's words are to their neighbours, as Markdown tables: quantiles of the
//! cosines between 1,000 random words and their neighbours of rank 1, 5 and 10, then norms by rank
//! and the heaviest components. docs/synth.md shows some of them.
//!
//!     cargo run --release -p cpu-core --example neighbor_cosines -- models/glove.6B.50d

use std::error::Error;
use std::sync::Arc;

use contract::{Filter, Query, QueryVector, Row, SearchEngine};
use cpu_core::FullScanEngine;
use model_store::ModelStore;
use model_store::synth::split_mix;

const WORDS: u64 = 1000;
const K: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: neighbor_cosines MODEL_DIR")?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let (table, rows) = (model.table(), model.rows() as u64);
    let queries: Vec<Query> = (0..WORDS)
        // SplitMix64 from seed 0: its states are multiples of this number.
        .map(|i| Row((split_mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % rows) as u32))
        .filter_map(|row| {
            Query::new(&table, QueryVector::Row(row), K, Filter::excluding(vec![row])).ok()
        })
        .collect();
    let mut engine = FullScanEngine::new(model.clone(), 0)?;
    let answers = engine.search(&queries.iter().collect::<Vec<_>>())?;
    println!("{}: {} rows x {}, {} words", model.name(), rows, model.dim(), answers.len());
    println!("| rank | 5 % | 25 % | median | 75 % | 95 % |");
    println!("|---|---|---|---|---|---|");
    for rank in [1, 5, 10] {
        let cosines = answers.iter().filter_map(|hits| hits.get(rank - 1)).map(|hit| hit.score);
        row(rank, cosines.collect());
    }
    println!("\n| norms of ranks to | 5 % | 25 % | median | 75 % | 95 % |");
    println!("|---|---|---|---|---|---|");
    let mut first = 0;
    while first < model.rows() {
        let end = (10 * first).max(10).min(model.rows());
        row(end, table.norms()[first..end].to_vec());
        first = end;
    }
    let mut squares = vec![0.0; model.dim()];
    for row in (0..rows as u32).map(Row) {
        for (sum, x) in squares.iter_mut().zip(table.row(row)) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    squares.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = squares.iter().sum();
    let heaviest: Vec<String> =
        squares.iter().take(3).map(|s| format!("{:.1} %", 100.0 * s / all)).collect();
    println!("\nOf all squares, in the heaviest components: {}", heaviest.join(", "));
    Ok(())
}

/// A row of a table: quantiles of some values.
fn row(name: usize, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let at = |percent: usize| values[(values.len() - 1) * percent / 100];
    let [a, b, c, d, e] = [5, 25, 50, 75, 95].map(at);
    println!("| {name} | {a:.3} | {b:.3} | {c:.3} | {d:.3} | {e:.3} |");
}
