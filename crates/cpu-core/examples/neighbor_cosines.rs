//! How close a model's words are to their neighbours: quantiles of the cosines of 1,000 random words'
//! neighbours of rank 1, 5 and 10, as a table in Markdown. docs/synth.md has some.
//!
//!     cargo run --release -p cpu-core --example neighbor_cosines -- models/glove.6B.50d

use std::error::Error;
use std::sync::Arc;

use cpu_core::FullScanEngine;
use model_store::{Engine, Filter, ModelStore, Query, QueryVector, Row};

const WORDS: u64 = 1000;
const K: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: neighbor_cosines MODEL_DIR")?;
    let model = Arc::new(ModelStore::open(folder.as_ref())?);
    let (table, rows) = (model.table(), model.rows() as u64);
    // A step of about the golden ratio meets rows from everywhere, in no order.
    let anywhere = (1..=WORDS).map(|i| Row((i * (0x9e37_79b9 % rows) % rows) as u32));
    let queries: Vec<Query> = anywhere
        .filter_map(|row| {
            Query::new(&table, QueryVector::Row(row), K, Filter::excluding(vec![row])).ok()
        })
        .collect();
    let mut engine = FullScanEngine::new(model.clone(), 0)?;
    let answers = engine.search(&queries.iter().collect())?;
    println!("{}: {} rows x {}, {} words", model.name(), rows, model.dim(), answers.len());
    println!("| rank | 5 % | 25 % | median | 75 % | 95 % |");
    println!("|---|---|---|---|---|---|");
    for rank in [1, 5, 10] {
        let mut cosines: Vec<f64> =
            answers.iter().filter_map(|hits| hits.get(rank - 1)).map(|hit| hit.score).collect();
        cosines.sort_by(f64::total_cmp);
        let at = |percent: usize| cosines[(cosines.len() - 1) * percent / 100];
        let [a, b, c, d, e] = [5, 25, 50, 75, 95].map(at);
        println!("| {rank} | {a:.3} | {b:.3} | {c:.3} | {d:.3} | {e:.3} |");
    }
    let norms = [0, 9, 99, 999, 9_999, 99_999, 999_999].map(Row);
    let norms = norms.iter().filter(|row| u64::from(row.0) < rows);
    let norms: Vec<String> =
        norms.map(|row| format!("{:.2} (rank {})", table.norm(*row), row.0 + 1)).collect();
    println!("\nNorms: {}", norms.join(", "));
    let mut squares = vec![0.0; model.dim()];
    for row in (0..rows as u32).step_by(97).map(Row) {
        for (sum, x) in squares.iter_mut().zip(table.row(row)) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    }
    squares.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = squares.iter().sum();
    let heaviest: Vec<String> =
        squares.iter().take(3).map(|s| format!("{:.1} %", 100.0 * s / all)).collect();
    println!("Of all squares, in the heaviest components: {}", heaviest.join(", "));
    Ok(())
}
