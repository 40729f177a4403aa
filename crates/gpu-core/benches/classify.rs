//! Texts classified in a second: token ids on the host to class scores on the host.
//!
//! `cargo bench -p gpu-core --features cuda --bench classify -- [--check] [SHAPE]`. `--check` also compares the scores of 200 texts of each
//! shape with the formula in float64. `benches/textcnn_torch.py` measures PyTorch at the same shapes.

use std::sync::Arc;
use std::time::Instant;

use contract::classifier::{Classifier, Layer};
use contract::{Engine, Token, TokenClassifier, TokenText};
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{Options, Precision};
use model_store::ModelStore;
use random_head::{Random, convolution, model, values};
use rayon::prelude::*;

#[path = "../../../benches/random_head.rs"]
mod random_head;

/// Texts of a batch.
const BATCH: usize = 16_384;

/// Batches of a measurement.
const BATCHES: usize = 40;

struct Shape {
    name: &'static str,
    rows: usize,
    dim: usize,
    tokens: usize,
    widths: &'static [usize],
    channels: usize,
    layers: &'static [usize],
}

const SHAPES: [Shape; 2] = [
    Shape {
        name: "Kim: 400,000 x 300, widths 3 4 5 x 100, 20 tokens",
        rows: 400_000,
        dim: 300,
        tokens: 20,
        widths: &[3, 4, 5],
        channels: 100,
        layers: &[2],
    },
    Shape {
        name: "21,635 x 4,096, widths 3 5 7 9 x 1,024, layers 2,048 1,024 512 2, 16 tokens",
        rows: 21_635,
        dim: 4096,
        tokens: 16,
        widths: &[3, 5, 7, 9],
        channels: 1024,
        layers: &[2048, 1024, 512, 2],
    },
];

fn head(shape: &Shape) -> Arc<dyn TokenClassifier> {
    let convolution = |&width: &usize| convolution(width, shape.channels, shape.dim, 0.02);
    let mut inputs = shape.channels * shape.widths.len();
    let layer = |&outputs: &usize| {
        let weights = values(1000 + outputs, inputs * outputs, 1.7 / (inputs as f32).sqrt());
        inputs = outputs;
        Layer { weights, bias: values(2000 + outputs, outputs, 0.1) }
    };
    let layers = shape.layers.iter().map(layer).collect();
    let convolutions = shape.widths.iter().map(convolution).collect();
    let classifier = Classifier::new(shape.dim, convolutions, layers).expect("shapes that fit");
    Arc::new(Random { classifier, rows: shape.rows, longest: shape.tokens })
}

/// Token ids of a batch: uniform, or by Zipf's law.
fn tokens(shape: &Shape, zipf: bool) -> Vec<u32> {
    let harmonic = (shape.rows as f64).ln();
    let one = |x: f32| {
        let uniform = f64::from(x / 2.0 + 0.5);
        let rank =
            if zipf { (uniform * harmonic).exp() - 1.0 } else { uniform * shape.rows as f64 };
        (rank as u32).min(shape.rows as u32 - 1)
    };
    values(11, BATCH * shape.tokens, 1.0).into_iter().map(one).collect()
}

fn main() {
    let check = std::env::args().any(|argument| argument == "--check");
    if let Err(reason) = gpu_core::driver::Gpu::open(None) {
        println!("skipped: {reason}");
        return;
    }
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_wanted =
        |shape: &Shape| wanted.as_ref().is_none_or(|wanted| shape.name.contains(wanted));
    for shape in SHAPES.into_iter().filter(is_wanted) {
        println!("{}", shape.name);
        let (model, head) = (model(shape.rows, shape.dim), head(&shape));
        for precision in [Precision::Float16, Precision::Float32] {
            let options = Options { precision, ..Options::default() };
            let engine =
                CudaEngine::with_paths(&model, options, Paths { int8: false, ..Paths::default() });
            let mut engine = engine.expect("an engine");
            load(&mut engine, &head);
            for zipf in [false, true] {
                let mut rates: Vec<f64> = (0..3)
                    .map(|_| rate(&mut engine, &head, &tokens(&shape, zipf), shape.tokens))
                    .collect();
                rates.sort_by(f64::total_cmp);
                let name = if zipf { "Zipf" } else { "uniform" };
                println!("  {precision:?}, {name} tokens: {:.2} M texts/s", rates[1] / 1e6);
            }
            if check {
                println!(
                    "  {precision:?}: largest error {:.1e}",
                    error(&mut engine, &model, &head, &shape)
                );
            }
        }
    }
}

/// Has the products of all tokens computed.
fn load(engine: &mut CudaEngine, head: &Arc<dyn TokenClassifier>) {
    let began = Instant::now();
    let all: Vec<Token> = (0..head.tokens() as u32).map(Token).collect();
    for some in all.chunks(head.longest_text() * 4096) {
        let texts: Vec<TokenText> = some
            .chunks(head.longest_text())
            .map(|text| TokenText::new(head.clone(), text.to_vec()))
            .collect();
        engine.classify(&texts.iter().collect::<Vec<_>>()).expect("scores");
    }
    println!("  all products in {:.2} s", began.elapsed().as_secs_f64());
}

/// Texts a second, two passes under way.
fn rate(
    engine: &mut CudaEngine,
    head: &Arc<dyn TokenClassifier>,
    tokens: &[u32],
    length: usize,
) -> f64 {
    let ends: Vec<u32> = (1..=BATCH).map(|text| (text * length) as u32).collect();
    let start = |engine: &mut CudaEngine| {
        assert!(
            engine.start_tokens(head, tokens, &ends).expect("a pass"),
            "all products are there"
        );
    };
    for _ in 0..2 {
        start(engine);
        engine.finish_tokens().expect("scores");
    }
    let began = Instant::now();
    start(engine);
    for _ in 1..BATCHES {
        start(engine);
        engine.finish_tokens().expect("scores");
    }
    engine.finish_tokens().expect("scores");
    (BATCH * BATCHES) as f64 / began.elapsed().as_secs_f64()
}

/// The largest difference of a class score from the formula, of 200 texts.
fn error(
    engine: &mut CudaEngine,
    model: &ModelStore,
    head: &Arc<dyn TokenClassifier>,
    shape: &Shape,
) -> f64 {
    let tokens = tokens(shape, false);
    let texts: Vec<TokenText> = tokens
        .chunks(shape.tokens)
        .take(200)
        .map(|text| TokenText::new(head.clone(), text.iter().map(|&token| Token(token)).collect()))
        .collect();
    let scores = engine.classify(&texts.iter().collect::<Vec<_>>()).expect("scores");
    let error = |(text, scores): (&TokenText, &Vec<f64>)| {
        let expected = text.scores(&model.table());
        scores
            .iter()
            .zip(expected)
            .map(|(score, expected)| (score - expected).abs())
            .fold(0.0, f64::max)
    };
    texts.par_iter().zip(&scores).map(error).reduce(|| 0.0, f64::max)
}
