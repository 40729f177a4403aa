//! Texts expanded on a device, from token vectors on the host to terms on the host, and the gradients of what was found, on the device.
//!
//! `cargo bench -p gpu-core --features cuda --bench expand -- [TERMS]`. Shapes are texts × tokens of a text × components × terms.
//! `benches/splade_torch.py` measures PyTorch at the same shapes.

use std::sync::Arc;
use std::time::Instant;

use contract::{HasTable, Table, score};
use cpu_core::heads::expand::gradients::{Entry, Touched, Way};
use gpu_core::Options;
use gpu_core::driver::Gpu;
use gpu_core::search::DeviceTerms;
use random_head::values;
use rayon::prelude::*;

#[allow(dead_code)]
#[path = "../../../benches/random_head.rs"]
mod random_head;

struct Shape {
    texts: usize,
    tokens: usize,
    dim: usize,
    terms: usize,
    bias: f32,
}

const SHAPES: [(usize, usize, usize, usize, f32); 6] = [
    (64, 16, 300, 2_196_016, -4.6),
    (64, 16, 300, 400_000, -4.2),
    (1_024, 16, 300, 400_000, -4.2),
    (32, 64, 768, 30_522, -3.6),
    (32, 64, 768, 250_000, -4.2),
    (64, 640, 640, 640, 0.0),
];

/// Repetitions, of which the median is printed.
const TIMES: usize = 9;

#[derive(Debug)]
struct Terms {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Vec<f32>,
    dim: usize,
}

impl Terms {
    fn new(shape: &Shape) -> Self {
        // Scores of a token have about unit variance.
        let size = (3.0 / shape.dim as f32).sqrt();
        let components = values(1, shape.terms * shape.dim, size);
        let norms = components.par_chunks_exact(shape.dim).map(score::norm).collect();
        Self { components, norms, biases: vec![shape.bias; shape.terms], dim: shape.dim }
    }
}

impl HasTable for Terms {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(Some(&self.biases))
    }
}

fn main() {
    let gpu = match Gpu::open(None) {
        Ok(gpu) => gpu,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!(
        "| texts x tokens x components x terms | terms of a text | upload, ms | forward, ms | gradients by term, by component, ms | step, ms \
         | all, ms | memory beside the terms, GiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (texts, tokens, dim, terms, bias) in SHAPES {
        if wanted.as_ref().is_none_or(|wanted| *wanted == terms.to_string()) {
            measure(&gpu, &Shape { texts, tokens, dim, terms, bias });
        }
    }
}

fn milliseconds(mut work: impl FnMut()) -> f64 {
    work();
    let time = |_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e3
    };
    let mut times: Vec<f64> = (0..TIMES).map(time).collect();
    times.sort_by(f64::total_cmp);
    times[TIMES / 2]
}

/// The whole of float32 and 8-bit tables, in GiB: float64 norms, float32 biases and slots beside.
fn of_terms(shape: &Shape) -> f64 {
    let row = 5 * shape.dim.next_multiple_of(16) + 8 + 4 + 4;
    (shape.terms * row) as f64 / f64::from(1 << 30)
}

fn measure(gpu: &Gpu, shape: &Shape) {
    let Shape { texts, tokens, dim, terms, .. } = *shape;
    let before = gpu.free_memory().unwrap();
    let table: Arc<dyn HasTable> = Arc::new(Terms::new(shape));
    let mut device = DeviceTerms::new(table, (dim as f64).sqrt(), Options::default()).unwrap();
    let vectors = values(2, texts * tokens * dim, 3f32.sqrt());
    let ends: Vec<usize> = (1..=texts).map(|text| text * tokens).collect();
    let is_dense = shape.bias == 0.0;
    let touched: Vec<Touched> = if is_dense {
        // Every term of every text, at a random position.
        device.upload(&vectors, &ends).unwrap();
        let all = values(3, texts * terms, 1.0);
        let touched = |(at, x): (usize, f32)| Touched {
            text: (at / terms) as u32,
            term: (at % terms) as u32,
            position: ((x / 2.0 + 0.5) * tokens as f32) as u32 % tokens as u32,
            value: 1.0,
        };
        all.into_iter().enumerate().map(touched).collect()
    } else {
        device.touched(&vectors, &ends).unwrap()
    };
    let forward = if is_dense {
        f64::NAN
    } else {
        milliseconds(|| drop(device.touched_by_uploaded().unwrap()))
    };
    let upload = milliseconds(|| device.upload(&vectors, &ends).unwrap());
    let entries: Vec<Entry> = touched.iter().map(|one| one.with(0.5)).collect();
    let by = Way::ALL.map(|way| milliseconds(|| device.gradients(&entries, way).unwrap()));
    let step = milliseconds(|| device.step(1e-6).unwrap());
    let all = if is_dense {
        f64::NAN
    } else {
        milliseconds(|| {
            let touched = device.touched_by_uploaded().unwrap();
            let entries: Vec<Entry> = touched.iter().map(|one| one.with(0.5)).collect();
            device.gradients(&entries, Way::ByTerm).unwrap();
            device.step(1e-6).unwrap();
        })
    };
    let used = (before - gpu.free_memory().unwrap()) as f64 / f64::from(1 << 30);
    println!(
        "| {texts} x {tokens} x {dim} x {terms} | {:.0} | {upload:.2} | {forward:.2} | {:.2}, {:.2} | {step:.2} | {all:.2} | {:.2} |",
        touched.len() as f64 / texts as f64,
        by[0],
        by[1],
        used - of_terms(shape),
    );
    println!("  {:?}", device.counters());
}
