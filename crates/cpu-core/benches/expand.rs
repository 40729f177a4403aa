//! Texts expanded on the CPU: token vectors to all terms above zero.
//! `cargo bench -p cpu-core --bench expand -- [THREADS]`; `benches/splade_torch.py --cpu` measures
//! PyTorch at the same shape.

use std::sync::Arc;
use std::time::Instant;

use contract::{Expansion, HasTable, HeadEngine, TermExpander, TokenVectors};
use cpu_core::{CpuEngine, InstructionSet, Options};
use model_store::ModelStore;
use random_terms::{Plain, Terms, normal};

#[path = "../../../benches/random_terms.rs"]
mod random_terms;

/// Texts, tokens of each, components, and terms, whose bias makes few of them touched.
const SHAPE: [usize; 4] = [8, 16, 300, 400_000];
const BIAS: f32 = -4.2;

/// Repetitions, of which the median is printed.
const TIMES: usize = 9;

fn main() {
    let threads = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(0);
    let [texts, tokens, dim, terms] = SHAPE;
    let row = vec![1.0; dim];
    let own = ModelStore::from_rows("own", dim, [("word", &row[..])]).expect("a row that fits");
    let own = Arc::new(own);
    let table: Arc<dyn HasTable> = Arc::new(Terms::new(terms, dim, BIAS));
    let expander: Arc<dyn TermExpander> = Arc::new(Plain(table));
    let vectors = normal(2, texts * tokens * dim, 1.0);
    let text = |vectors: &[f32]| {
        let vectors = TokenVectors::Vectors(vectors.to_vec());
        Expansion::new(expander.clone(), &own.table(), vectors, usize::MAX, 0.0).expect("a text")
    };
    let all: Vec<Expansion> = vectors.chunks_exact(tokens * dim).map(text).collect();
    let all: Vec<&Expansion> = all.iter().collect();
    println!("{texts} texts x {tokens} tokens x {dim} components x {terms} terms");
    for instructions in InstructionSet::available() {
        let options = Options { threads, instructions: Some(instructions), ..Options::default() };
        let mut engine = CpuEngine::new(own.clone(), options).expect("threads");
        // The first time waits for the terms' table.
        let touched: usize = engine.expand(&all).expect("terms").iter().map(Vec::len).sum();
        let mut times: Vec<f64> = (0..TIMES)
            .map(|_| {
                let began = Instant::now();
                engine.expand(&all).expect("terms");
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!(
            "{instructions}: {:.1} ms; {:.0} terms of a text; {:?}",
            times[TIMES / 2],
            touched as f64 / texts as f64,
            engine.counted()
        );
    }
}
