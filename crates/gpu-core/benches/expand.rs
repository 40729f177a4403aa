//! Compares random texts on the CUDA engine and on the CPU's with the formula.
//!
//! `cargo bench -p gpu-core --features cuda --bench expand -- [--texts=10000]`.
//! `bindings/python/benches/splade.py` measures the time of forward passes and gradients, and
//! PyTorch's.

use std::sync::Arc;

use contract::{Expansion, HeadEngine, Row, Term, TermExpander, TokenVectors};
use cpu_core::CpuEngine;
use gpu_core::Options;
use gpu_core::driver::Gpu;
use gpu_core::search::{CudaEngine, Paths};
use model_store::ModelStore;
use model_store::synth::split_mix;
use random_terms::{Plain, Terms, normal};
use rayon::prelude::*;

#[path = "../../../benches/random_terms.rs"]
mod random_terms;

/// Random texts, unless `--texts=COUNT` says otherwise.
const TEXTS: usize = 10_000;

fn main() {
    if let Err(reason) = Gpu::open(None) {
        return println!("skipped: {reason}");
    }
    let texts = std::env::args().find_map(|one| one.strip_prefix("--texts=").map(str::to_owned));
    compare(texts.map_or(TEXTS, |texts| texts.parse().expect("a number of texts")));
}

/// Compares random texts of 1 to 12 tokens, rows and vectors, on both engines with the formula:
/// rows, bits and positions.
fn compare(count: usize) {
    let dim = 50;
    let own = normal(3, 5_000 * dim, 1.0);
    let words: Vec<String> = (0..5_000).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(own.chunks_exact(dim));
    let own = Arc::new(ModelStore::from_rows("own", dim, rows).unwrap());
    let expander: Arc<dyn TermExpander> = Arc::new(Plain(Arc::new(Terms::new(20_000, dim, -3.0))));
    let table = own.table();
    let text = |text: usize| {
        let random = |what: u64| split_mix(what << 32 | text as u64) as usize;
        let tokens = 1 + random(1) % 12;
        let vectors = if text.is_multiple_of(2) {
            TokenVectors::Rows(
                (0..tokens).map(|at| Row((random(9 + at as u64) % 5_000) as u32)).collect(),
            )
        } else {
            TokenVectors::Vectors(normal(100 + text as u64, tokens * dim, 1.0))
        };
        let top = [1, 10, 50, 500, usize::MAX][random(2) % 5];
        let least = [0.0, 0.0, 0.5, 1.0][random(3) % 4];
        Expansion::new(expander.clone(), &table, vectors, top, least).unwrap()
    };
    let texts: Vec<Expansion> = (0..count).into_par_iter().map(text).collect();
    let expected: Vec<Vec<Term>> = texts.par_iter().map(|text| text.terms(&table)).collect();
    let portable = Paths { portable: true, ..Paths::default() };
    let cuda = |paths| CudaEngine::new(own.clone(), Options::default(), paths).expect("an engine");
    let engines: [(&str, Box<dyn HeadEngine>); 3] = [
        ("cuda", Box::new(cuda(Paths::default()))),
        ("cuda, portable kernels", Box::new(cuda(portable))),
        ("cpu", Box::new(CpuEngine::new(own.clone(), cpu_core::Options::default()).unwrap())),
    ];
    for (name, mut engine) in engines {
        let mut same = 0;
        for (texts, expected) in texts.chunks(512).zip(expected.chunks(512)) {
            let found = engine.expand(&texts.iter().collect::<Vec<_>>()).unwrap();
            let is_same = |(found, expected): &(&Vec<Term>, &Vec<Term>)| found == expected;
            same += found.iter().zip(expected).filter(is_same).count();
        }
        println!("{name}: {same} of {count} texts the same, rows, bits and positions");
    }
}
