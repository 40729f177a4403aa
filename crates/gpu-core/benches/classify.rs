//! Texts classified in a second: token ids on the host to class scores on the host.
//!
//! `cargo bench -p gpu-core --features cuda --bench classify -- [--check] [--gpus=0,1] [SHAPE]`.
//! `--check` also compares the scores and labels of 200 texts of each shape with the formula in
//! float64. `--gpus`: an engine on each of these GPUs, first each alone, then all together.
//! `benches/textcnn_torch.py` measures PyTorch at the same shapes.

use std::sync::Arc;
use std::time::Instant;

use contract::{HeadEngine, Token, TokenClassifier, TokenText};
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{Options, Precision};
use model_store::ModelStore;
use random_head::{KIM, LARGE, Shape, balanced, compare, formula, head, model, values};

#[path = "../../../benches/random_head.rs"]
mod random_head;
mod together;

/// Texts of a batch.
const BATCH: usize = 16_384;

/// Batches of a measurement.
const BATCHES: usize = 40;

/// Measurements of several GPUs are longer: they are at work at the same time for all of it but the
/// ends.
const BATCHES_OF_SEVERAL: usize = 600;

const SHAPES: [Shape; 2] = [KIM, LARGE];

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
    let gpus = std::env::args().find_map(|argument| {
        let gpus = argument.strip_prefix("--gpus=")?.split(',');
        Some(gpus.map(|gpu| gpu.parse().expect("a GPU's index")).collect::<Vec<u32>>())
    });
    for shape in SHAPES.into_iter().filter(is_wanted) {
        println!("{}", shape.name);
        let (model, head) = (model(shape.rows, shape.dim), head(&shape));
        if let Some(gpus) = &gpus {
            several(gpus, &model, &head, &shape);
            continue;
        }
        for precision in [Precision::Float16, Precision::Float32] {
            let options = Options { precision, ..Options::default() };
            let engine =
                CudaEngine::new(model.clone(), options, Paths { int8: false, ..Paths::default() });
            let mut engine = engine.expect("an engine");
            load(&mut engine, &head);
            for zipf in [false, true] {
                let mut rates: Vec<f64> = (0..3)
                    .map(|_| rate(&mut engine, &head, &tokens(&shape, zipf), shape.tokens, BATCHES))
                    .collect();
                rates.sort_by(f64::total_cmp);
                let name = if zipf { "Zipf" } else { "uniform" };
                println!("  {precision:?}, {name} tokens: {:.2} M texts/s", rates[1] / 1e6);
            }
            if check {
                compared(&mut engine, &model, &head, &shape, precision);
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
    batches: usize,
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
    for _ in 1..batches {
        start(engine);
        engine.finish_tokens().expect("scores");
    }
    engine.finish_tokens().expect("scores");
    (BATCH * batches) as f64 / began.elapsed().as_secs_f64()
}

/// An engine on each GPU, with uniform tokens.
fn several(gpus: &[u32], model: &Arc<ModelStore>, head: &Arc<dyn TokenClassifier>, shape: &Shape) {
    let make = |_, gpu| {
        let options =
            Options { ordinal: Some(gpu), precision: Precision::Float16, ..Options::default() };
        let paths = Paths { int8: false, ..Paths::default() };
        let mut engine = CudaEngine::new(model.clone(), options, paths).expect("an engine");
        load(&mut engine, head);
        engine
    };
    let asked = tokens(shape, false);
    let rate =
        |engine: &mut CudaEngine| rate(engine, head, &asked, shape.tokens, BATCHES_OF_SEVERAL);
    together::report(&together::rates(gpus, make, rate), "texts");
}

/// Compares 200 texts with the formula.
fn compared(
    engine: &mut CudaEngine,
    model: &ModelStore,
    head: &Arc<dyn TokenClassifier>,
    shape: &Shape,
    precision: Precision,
) {
    const COUNT: usize = 200;
    let tokens = random_head::tokens(shape.rows, COUNT * shape.tokens, 11);
    let texts = |head: &Arc<dyn TokenClassifier>| -> Vec<TokenText> {
        let text = |text: &[Token]| TokenText::new(head.clone(), text.to_vec());
        tokens.chunks(shape.tokens).map(text).collect()
    };
    let (head, expected) = balanced(&**head, formula(&texts(head), model));
    let texts = texts(&head);
    let scores = engine.classify(&texts.iter().collect::<Vec<_>>()).expect("scores");
    compare(&scores, &expected, precision).check(precision, COUNT);
}
