//! Texts expanded on a device, and the gradients of what was found. Token vectors are on the device, terms come to the host.
//!
//! `cargo bench -p gpu-core --features cuda --bench expand -- [TERMS | --growth | --texts=10000]`: all shapes, or that with this number
//! of terms; `--growth`: how forward passes grow with the terms, with those that texts touch and with tokens; `--texts`: compares
//! this number of random texts on the CUDA engine and on the CPU's with the formula, and times nothing. Shapes are texts × tokens
//! of a text × components × terms. `benches/splade_torch.py` measures PyTorch at the same shapes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Engine, Expansion, HasTable, Row, Term, TermExpander, TokenVectors};
use cpu_core::CpuEngine;
use cpu_core::heads::expand::gradients::{Entry, Touched, Way};
use gpu_core::Options;
use gpu_core::driver::Gpu;
use gpu_core::search::{CudaEngine, DeviceTerms, Paths};
use model_store::ModelStore;
use model_store::synth::split_mix;
use random_terms::{Plain, Shape, Terms, normal, shape};
use rayon::prelude::*;

#[path = "../../../benches/random_terms.rs"]
mod random_terms;

/// A bias of 0: all terms of all texts are touched, for gradients only.
const SHAPES: [Shape; 6] = [
    shape(64, 16, 300, 2_196_016, -4.6),
    shape(64, 16, 300, 400_000, -4.2),
    shape(1_024, 16, 300, 400_000, -4.2),
    shape(32, 64, 768, 30_522, -3.6),
    shape(32, 64, 768, 250_000, -4.2),
    shape(64, 640, 640, 640, 0.0),
];

/// Repetitions, of which the median is printed.
const TIMES: usize = 9;

fn main() {
    let gpu = match Gpu::open(None) {
        Ok(gpu) => gpu,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let arguments: Vec<String> = std::env::args().skip(1).filter(|one| one != "--bench").collect();
    let texts = arguments.iter().find_map(|one| one.strip_prefix("--texts="));
    if let Some(texts) = texts {
        return compare(texts.parse().expect("a number of texts"));
    }
    if arguments.iter().any(|one| one == "--growth") {
        return growth();
    }
    println!(
        "| texts x tokens x components x terms | terms of a text | upload, ms | forward, ms | gradients by term, by component, ms \
         | on the device, ms (share of the memory's rate) | step, ms | all but upload, ms | memory beside the terms, GiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for shape in SHAPES {
        if arguments.first().is_none_or(|wanted| *wanted == shape.terms.to_string()) {
            measure(&gpu, &shape);
        }
    }
}

fn milliseconds(mut work: impl FnMut()) -> f64 {
    work();
    median((0..TIMES).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed()
    }))
}

fn median(times: impl Iterator<Item = Duration>) -> f64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// The terms on the device, and texts of random tokens there.
fn device(shape: &Shape) -> (DeviceTerms, Vec<f32>, Vec<usize>) {
    let Shape { texts, tokens, dim, .. } = *shape;
    let table: Arc<dyn HasTable> = Arc::new(Terms::new(shape));
    let mut device = DeviceTerms::new(table, (dim as f64).sqrt(), Options::default()).unwrap();
    let vectors = normal(2, texts * tokens * dim, 1.0);
    let ends: Vec<usize> = (1..=texts).map(|text| text * tokens).collect();
    device.upload(&vectors, &ends).unwrap();
    (device, vectors, ends)
}

/// Every term of every text, at a random position.
fn all_touched(shape: &Shape) -> Vec<Touched> {
    let touched = |at: usize| Touched {
        text: (at / shape.terms) as u32,
        term: (at % shape.terms) as u32,
        position: (split_mix(at as u64) % shape.tokens as u64) as u32,
        value: 1.0,
    };
    (0..shape.texts * shape.terms).map(touched).collect()
}

fn measure(gpu: &Gpu, shape: &Shape) {
    let Shape { texts, tokens, dim, terms, .. } = *shape;
    let before = gpu.free_memory().unwrap();
    let (mut device, vectors, ends) = device(shape);
    let is_dense = shape.bias == 0.0;
    let touched = if is_dense { all_touched(shape) } else { device.touched_by_uploaded().unwrap() };
    let upload = milliseconds(|| device.upload(&vectors, &ends).unwrap());
    let entries: Vec<Entry> = touched.iter().map(|one| one.with(0.5)).collect();
    let by = Way::ALL.map(|way| milliseconds(|| device.gradients(&entries, Some(way)).unwrap()));
    let on_device = Way::ALL.map(|way| {
        median((0..TIMES).map(|_| {
            device.gradients(&entries, Some(way)).unwrap();
            device.gradients_time()
        }))
    });
    let read = device.read_gradients().unwrap();
    // Each entry reads a token's vector and a term's; sums are written, those of tokens after zeros.
    let moved = 2 * entries.len() * dim + read.terms.vectors.len() + 2 * read.tokens.len();
    let rate = (moved * size_of::<f32>()) as f64 / (on_device[0].min(on_device[1]) * 1e-3);
    let step = milliseconds(|| device.step(1e-6).unwrap());
    let (mut forward, mut all) = (f64::NAN, f64::NAN);
    if !is_dense {
        forward = milliseconds(|| drop(device.touched_by_uploaded().unwrap()));
        all = milliseconds(|| {
            let touched = device.touched_by_uploaded().unwrap();
            let entries: Vec<Entry> = touched.iter().map(|one| one.with(0.5)).collect();
            device.gradients(&entries, None).unwrap();
            device.step(1e-6).unwrap();
        });
    }
    let used = (before - gpu.free_memory().unwrap()) as f64 / f64::from(1 << 30);
    println!(
        "| {texts} x {tokens} x {dim} x {terms} | {:.0} | {upload:.2} | {forward:.2} | {:.2}, {:.2} | {:.3}, {:.3} ({:.2}) | {step:.2} \
         | {all:.2} | {:.2} |",
        touched.len() as f64 / texts as f64,
        by[0],
        by[1],
        on_device[0],
        on_device[1],
        rate / MEMORY_RATE,
        used - of_terms(shape),
    );
}

/// What an H200's memory was seen to read, in bytes a second (`--bench search`).
const MEMORY_RATE: f64 = 4.4e12;

/// The terms' float32 and 8-bit tables, in GiB: float64 norms, float32 biases and slots beside.
fn of_terms(shape: &Shape) -> f64 {
    let row = 4 * shape.dim + (shape.dim + 1).next_multiple_of(16) + 8 + 4 + 4;
    (shape.terms * row) as f64 / f64::from(1 << 30)
}

/// How forward passes grow: one line of comma-separated values for each point.
fn growth() {
    println!("what,terms,tokens,touched,forward_ms");
    let of = |what: &str, shape: Shape| {
        let (mut device, ..) = device(&shape);
        let touched = device.touched_by_uploaded().unwrap().len() as f64 / shape.texts as f64;
        let time = milliseconds(|| drop(device.touched_by_uploaded().unwrap()));
        println!("{what},{},{},{touched:.1},{time:.3}", shape.terms, shape.tokens);
    };
    // About 100 terms of a text each time.
    for (terms, bias) in [
        (30_522, -3.53),
        (65_536, -3.73),
        (131_072, -3.90),
        (262_144, -4.07),
        (524_288, -4.22),
        (1_048_576, -4.37),
        (2_196_016, -4.52),
    ] {
        of("terms", shape(64, 16, 300, terms, bias));
    }
    for bias in [-5.5, -5.0, -4.6, -4.2, -3.9, -3.6] {
        of("touched", shape(64, 16, 300, 400_000, bias));
    }
    for tokens in [4, 8, 16, 32, 64, 128] {
        of("tokens", shape(64, tokens, 300, 400_000, -4.4));
    }
}

/// Compares random texts of 1 to 12 tokens, rows and vectors, on both engines with the formula: rows, bits and positions.
fn compare(count: usize) {
    let shape = shape(1, 1, 50, 20_000, -3.0);
    let own = normal(3, 5_000 * shape.dim, 1.0);
    let words: Vec<String> = (0..5_000).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(own.chunks_exact(shape.dim));
    let own = Arc::new(ModelStore::from_rows("own", shape.dim, rows).unwrap());
    let expander: Arc<dyn TermExpander> = Arc::new(Plain(Arc::new(Terms::new(&shape))));
    let table = own.table();
    let text = |text: usize| {
        let random = |what: u64| split_mix(what << 32 | text as u64) as usize;
        let tokens = 1 + random(1) % 12;
        let vectors = if text.is_multiple_of(2) {
            TokenVectors::Rows(
                (0..tokens).map(|at| Row((random(9 + at as u64) % 5_000) as u32)).collect(),
            )
        } else {
            TokenVectors::Vectors(normal(100 + text as u64, tokens * shape.dim, 1.0))
        };
        let top = [1, 10, 50, 500, usize::MAX][random(2) % 5];
        let least = [0.0, 0.0, 0.5, 1.0][random(3) % 4];
        Expansion::new(expander.clone(), &table, vectors, top, least).unwrap()
    };
    let texts: Vec<Expansion> = (0..count).into_par_iter().map(text).collect();
    let expected: Vec<Vec<Term>> = texts.par_iter().map(|text| text.terms(&table)).collect();
    let portable = Paths { portable: true, ..Paths::default() };
    let cuda = |paths| CudaEngine::with_paths(&own, Options::default(), paths).expect("an engine");
    let engines: [(&str, Box<dyn Engine>); 3] = [
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
