//! Times an expander's gradients (each way of summing those of terms, and those of tokens), and steps of its training.
//!
//! `cargo run --release -p cpu-core --example time_expander -- [THREADS]`. Shapes are texts × tokens of a text × components ×
//! terms, and the terms that a text touches; positions and terms are random. A step of training has 64 queries of 8 tokens and texts
//! of 60, of Zipf's distribution, that touch about 100 terms at the start.

use std::ops::ControlFlow;
use std::time::Instant;

use contract::Table;
use cpu_core::heads::expand::gradients::{
    Entry, Rows, TextVectors, Way, term_gradients_by, token_gradients,
};
use cpu_core::heads::expand::train::{Data, Example, Settings, Terms, train};
use model_store::synth::split_mix;

const SHAPES: [[usize; 5]; 9] = [
    [64, 16, 50, 20_000, 100],
    [64, 64, 50, 20_000, 1_000],
    [32, 64, 768, 30_522, 319],
    [64, 16, 300, 400_000, 102],
    [1_024, 16, 300, 400_000, 104],
    [256, 64, 300, 5_000, 1_000],
    [64, 640, 640, 640, 64],
    [64, 640, 640, 640, 320],
    [64, 640, 640, 640, 640],
];

fn main() {
    let threads = std::env::args().nth(1).map_or(0, |threads| threads.parse().expect("threads"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    println!("{} threads; milliseconds, median", pool.current_num_threads());
    for [texts, tokens, dim, terms, touched] in SHAPES {
        let vectors = values(texts * tokens * dim, 1);
        let ends: Vec<usize> = (1..=texts).map(|text| text * tokens).collect();
        let (rows, norms) = (values(terms * dim, 2), vec![0.0; terms]);
        let table = Table::new(&rows, &norms, dim).under_dot(None);
        let mut entries = Vec::new();
        for text in 0..texts as u32 {
            // Of each `terms / touched` terms one is touched.
            let mut own: Vec<u32> = (0..touched as u64)
                .map(|i| {
                    let (from, to) =
                        ((i as usize * terms) / touched, (i as usize + 1) * terms / touched);
                    let random = split_mix(u64::from(text) << 32 | i) as usize;
                    (from + random % (to - from)) as u32
                })
                .collect();
            own.dedup();
            entries.extend(own.into_iter().map(|term| {
                let random = split_mix(u64::from(term) << 32 | u64::from(text));
                let position = (random % tokens as u64) as u32;
                Entry { text, term, position, gradient: 0.5 }
            }));
        }
        let texts_of = TextVectors::new(&vectors, dim, &ends);
        let time = |work: &dyn Fn()| {
            let mut times: Vec<f64> = (0..9)
                .map(|_| {
                    let began = Instant::now();
                    work();
                    began.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let ways = Way::ALL.map(|way| {
            let of = || {
                let rows = Rows::Touched;
                std::hint::black_box(term_gradients_by(
                    Some(way),
                    texts_of,
                    terms,
                    &entries,
                    rows,
                    &pool,
                ));
            };
            format!("{way:?} {:.2}", time(&of))
        });
        let of_tokens = time(&|| {
            std::hint::black_box(token_gradients(texts_of, &table, &entries, &pool));
        });
        println!(
            "{texts} × {tokens} × {dim} × {terms} ({touched}): {}; tokens {of_tokens:.2}",
            ways.join(", ")
        );
    }
    for (terms, dim, own_vectors) in
        [(20_000, 50, false), (20_000, 50, true), (20_000, 300, false), (400_000, 50, false)]
    {
        println!(
            "a step with {terms} terms × {dim}{}: {:.0}",
            if own_vectors { ", own vectors" } else { "" },
            time_step(terms, dim, own_vectors, &pool)
        );
    }
}

/// The median of some steps, in milliseconds.
fn time_step(terms: usize, dim: usize, own_vectors: bool, pool: &rayon::ThreadPool) -> f64 {
    const EXAMPLES: u64 = 64 * 9;
    let vectors = values(terms * dim, 3);
    let text = |seed: u64, tokens: u64| -> Vec<u32> {
        let uniform = |n: u64| (split_mix(seed << 20 | n) >> 11) as f64 / (1u64 << 53) as f64;
        (0..tokens).map(|n| (terms as f64).powf(uniform(n)) as u32 - 1).collect()
    };
    let example =
        |n: u64| Example { query: text(2 * n, 8), relevant: text(2 * n + 1, 60), irrelevant: None };
    let examples: Vec<Example> = (0..EXAMPLES).map(example).collect();
    let data =
        Data { train: &examples, dev: &[], vectors: &vectors, dim, terms: Terms::First(terms) };
    let settings = Settings { own_vectors, epochs: 1, ..Settings::default() };
    let (mut times, mut began) = (Vec::new(), None::<Instant>);
    train(data, &settings, pool, &mut |_| {
        times.extend(began.map(|began| began.elapsed().as_secs_f64() * 1e3));
        began = Some(Instant::now());
        ControlFlow::Continue(())
    })
    .expect("it does not diverge");
    // The last call was the epoch's, without a step.
    times.pop();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Random numbers in [−1, 1).
fn values(count: usize, seed: u64) -> Vec<f32> {
    let value = |i: u64| (split_mix(seed << 40 | i) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    (0..count as u64).map(value).collect()
}
