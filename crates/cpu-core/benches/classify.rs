//! Texts classified in a second by the CPU's threads, and whether their labels are those of the
//! formula.
//!
//! `cargo bench -p cpu-core --bench classify -- [--check | --check-large]`. Kim's shape: 400,000
//! words × 300 components, widths 3, 4, 5 × 100 channels, two classes, 20 uniform tokens. `--check`
//! compares the labels of a million random texts, with 50 components, with those of float64 sums of
//! float64 products, which are first compared with the formula's plain loops. `--check-large`
//! compares 200 texts at the large shape, four widths and four dense layers, with these loops.
//! `benches/textcnn_torch.py --cpu` measures PyTorch at the same shape.

use std::sync::Arc;
use std::time::Instant;

use contract::classifier::{Classifier, Layer};
use contract::{Precision, Table, Token, TokenClassifier, TokenText};
use cpu_core::InstructionSet;
use cpu_core::heads::classify::Classifying;
use random_head::{
    Compared, KIM, LARGE, Random, balanced, compare, convolution, formula, model, tokens, values,
};
use rayon::prelude::*;

#[path = "../../../benches/random_head.rs"]
mod random_head;

const CHANNELS: usize = KIM.channels;
const CLASSES: usize = KIM.layers[0];
const LENGTH: usize = KIM.tokens;

/// A head of Kim's shape but for these.
fn head(rows: usize, dim: usize) -> Arc<dyn TokenClassifier> {
    let inputs = CHANNELS * KIM.widths.len();
    let layer = Layer { weights: values(200, CLASSES * inputs, 0.1), bias: vec![0.0; CLASSES] };
    let convolutions =
        KIM.widths.iter().map(|&width| convolution(width, CHANNELS, dim, 0.1)).collect();
    let classifier = Classifier::new(dim, convolutions, vec![layer]).expect("shapes that fit");
    Arc::new(Random { classifier, rows, longest: LENGTH })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let pool = rayon::ThreadPoolBuilder::new().build().expect("threads");
    if arguments.iter().any(|argument| argument == "--check") {
        check(&pool);
    } else if arguments.iter().any(|argument| argument == "--check-large") {
        check_large(&pool);
    } else {
        measure(&pool);
    }
}

fn measure(pool: &rayon::ThreadPool) {
    const ROWS: usize = KIM.rows;
    const COUNT: usize = 100_000;
    let (model, head) = (model(ROWS, KIM.dim), head(ROWS, KIM.dim));
    for precision in [Precision::Float16, Precision::Float32] {
        let mut engine = Classifying::new(head.clone(), 4 << 30, precision, InstructionSet::best());
        let began = Instant::now();
        let all: Vec<Token> = (0..ROWS as u32).map(Token).collect();
        for some in all.chunks(LENGTH * 512) {
            let texts: Vec<&[Token]> = some.chunks(LENGTH).collect();
            engine.scores(&model.table(), &texts, pool);
        }
        println!("{precision:?}: all products in {:.1} s", began.elapsed().as_secs_f64());
        let tokens = tokens(ROWS, COUNT * LENGTH, 3);
        let texts: Vec<&[Token]> = tokens.chunks_exact(LENGTH).collect();
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let began = Instant::now();
                for some in texts.chunks(1024) {
                    engine.scores(&model.table(), some, pool);
                }
                COUNT as f64 / began.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        println!(
            "{precision:?}: {:.3} M texts/s on {} threads",
            rates[2] / 1e6,
            pool.current_num_threads()
        );
    }
}

/// A token's products in float64: `[taps of all widths, CHANNELS]`.
fn projected(head: &dyn TokenClassifier, table: &Table<'_>, token: Token) -> Vec<f64> {
    let vector = head.vector(table, token);
    let dim = vector.len();
    let mut products = Vec::new();
    for one in head.classifier().convolutions() {
        for tap in 0..one.width {
            for channel in 0..CHANNELS {
                let weights = &one.weights[(channel * one.width + tap) * dim..][..dim];
                products.push(
                    weights.iter().zip(&*vector).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum(),
                );
            }
        }
    }
    products
}

/// The class scores of a text, as float64 sums of such products.
fn scores(head: &dyn TokenClassifier, products: &[Vec<f64>], text: &[Token]) -> Vec<f64> {
    let (mut features, mut first) = (Vec::new(), 0);
    for one in head.classifier().convolutions() {
        let mut best = [0.0f64; CHANNELS];
        for window in text.windows(one.width) {
            let mut sums: [f64; CHANNELS] =
                std::array::from_fn(|channel| f64::from(one.bias[channel]));
            for (tap, token) in window.iter().enumerate() {
                let own = &products[token.0 as usize][first + tap * CHANNELS..][..CHANNELS];
                sums.iter_mut().zip(own).for_each(|(sum, product)| *sum += product);
            }
            best.iter_mut().zip(sums).for_each(|(best, sum)| *best = best.max(sum));
        }
        first += one.width * CHANNELS;
        features.extend(best);
    }
    let layer = &head.classifier().layers()[0];
    let rows = layer.weights.chunks_exact(features.len()).zip(&layer.bias);
    let score = |(weights, &bias): (&[f32], &f32)| {
        f64::from(bias) + weights.iter().zip(&features).map(|(&w, x)| f64::from(w) * x).sum::<f64>()
    };
    rows.map(score).collect()
}

fn check(pool: &rayon::ThreadPool) {
    const ROWS: usize = 20_000;
    const COUNT: usize = 1_000_000;
    let (model, head) = (model(ROWS, 50), head(ROWS, 50));
    let table = model.table();
    let products: Vec<Vec<f64>> = (0..ROWS as u32)
        .into_par_iter()
        .map(|token| projected(&*head, &table, Token(token)))
        .collect();
    let tokens = tokens(ROWS, COUNT * LENGTH, 5);
    let texts: Vec<&[Token]> = tokens.chunks_exact(LENGTH).collect();
    let from_loops = |text: &&[Token]| {
        let plain = TokenText::new(head.clone(), text.to_vec()).scores(&table);
        plain
            .iter()
            .zip(scores(&*head, &products, text))
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max)
    };
    let farthest = texts[..1000].par_iter().map(from_loops).reduce(|| 0.0, f64::max);
    println!(
        "float64 sums of products are within {farthest:.1e} of the plain loops, in 1,000 texts"
    );
    assert!(farthest < 1e-12);
    for precision in [Precision::Float16, Precision::Float32] {
        let mut engine = Classifying::new(head.clone(), 1 << 30, precision, InstructionSet::best());
        let mut found = Vec::with_capacity(COUNT * CLASSES);
        for some in texts.chunks(4096) {
            found.extend(engine.scores(&table, some, pool));
        }
        let judged = texts.par_iter().zip(found.par_chunks_exact(CLASSES)).map(|(text, found)| {
            let expected = scores(&*head, &products, text);
            Compared::of(found, &expected, precision)
        });
        judged.reduce(Compared::default, Compared::and).check(precision, COUNT);
    }
}

fn check_large(pool: &rayon::ThreadPool) {
    const COUNT: usize = 200;
    let (model, head) = (model(LARGE.rows, LARGE.dim), random_head::head(&LARGE));
    let tokens = tokens(LARGE.rows, COUNT * LARGE.tokens, 11);
    let texts: Vec<&[Token]> = tokens.chunks_exact(LARGE.tokens).collect();
    let checked: Vec<TokenText> =
        texts.iter().map(|text| TokenText::new(head.clone(), text.to_vec())).collect();
    let (head, expected) = balanced(&*head, formula(&checked, &model));
    println!("{}", LARGE.name);
    for precision in [Precision::Float16, Precision::Float32] {
        let mut engine = Classifying::new(head.clone(), 2 << 30, precision, InstructionSet::best());
        let scores = engine.scores(&model.table(), &texts, pool);
        let found: Vec<Vec<f64>> = scores.chunks_exact(CLASSES).map(<[f64]>::to_vec).collect();
        compare(&found, &expected, precision).check(precision, COUNT);
    }
}
