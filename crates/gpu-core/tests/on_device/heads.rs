//! Class scores of texts against the formula in float64, and with themselves: in every batch, and
//! with products in turns.

use std::sync::Arc;

use contract::classifier::{Classifier, Convolution, Layer};
use contract::{Device, HeadEngine, Row, Token, TokenClassifier, TokenText, VectorSource};
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{Options, Precision};
use model_store::ModelStore;

use crate::support::{Numbers, model};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("heads::scores_are_near_the_formula_and_the_same_in_every_batch", near_and_the_same),
        ("heads::products_take_turns_where_memory_is_short", products_take_turns),
        ("heads::passes_that_overlap_have_the_same_scores", overlapped),
        ("heads::what_overflows_float16_is_classified_on_the_host", overflow),
        ("heads::several_classifiers_in_one_pass", several),
    ]
}

const ROWS: usize = 3000;
const LONGEST: usize = 40;

/// A classifier over a table's rows; every seventh is its own vector, and there are ten more
/// tokens.
#[derive(Debug)]
struct Random {
    classifier: Classifier,
    own: Vec<Vec<f32>>,
}

impl TokenClassifier for Random {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        ROWS + 10
    }

    fn longest_text(&self) -> usize {
        LONGEST
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        let index = token.0 as usize;
        match index < ROWS && !index.is_multiple_of(7) {
            true => VectorSource::Row { row: Row(token.0), scale: 0.5 },
            false => VectorSource::Own(&self.own[index % self.own.len()]),
        }
    }
}

/// Convolutions as (width, padding, channels), and the outputs of hidden layers.
pub(crate) fn random(
    dim: usize,
    shapes: &[(usize, usize, usize)],
    hidden: &[usize],
    classes: usize,
    size: f32,
) -> Arc<dyn TokenClassifier> {
    let mut numbers = Numbers::new((dim + shapes.len() + hidden.len()) as u64);
    let mut values = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|_| numbers.real() * size).collect()
    };
    let convolutions = shapes
        .iter()
        .map(|&(width, padding, channels)| Convolution {
            width,
            padding,
            weights: values(channels * width * dim, size / (dim as f32).sqrt()),
            bias: values(channels, 0.1),
        })
        .collect();
    let mut inputs = shapes.iter().map(|(_, _, channels)| channels).sum::<usize>();
    let mut layers = Vec::new();
    for &outputs in hidden.iter().chain([&classes]) {
        let weights = values(inputs * outputs, 1.0 / (inputs as f32).sqrt());
        layers.push(Layer { weights, bias: values(outputs, 0.1) });
        inputs = outputs;
    }
    let own = (0..50).map(|_| values(dim, 1.0)).collect();
    Arc::new(Random { classifier: Classifier::new(dim, convolutions, layers).unwrap(), own })
}

fn rows(dim: usize) -> Arc<ModelStore> {
    let mut numbers = Numbers::new(3);
    model(dim, &(0..ROWS).map(|_| numbers.vector(dim)).collect::<Vec<_>>())
}

pub(crate) fn texts(head: &Arc<dyn TokenClassifier>, count: usize, seed: u64) -> Vec<TokenText> {
    let mut numbers = Numbers::new(seed);
    let text = |_| {
        let length = numbers.below(LONGEST + 1);
        let tokens = (0..length).map(|_| Token(numbers.below(head.tokens()) as u32)).collect();
        TokenText::new(head.clone(), tokens)
    };
    (0..count).map(text).collect()
}

fn engine(
    model: &Arc<ModelStore>,
    precision: Precision,
    products: Option<u64>,
    portable: bool,
) -> CudaEngine {
    let options = Options { precision, products, ..Options::default() };
    CudaEngine::new(model.clone(), options, Paths { portable, ..Paths::default() }).unwrap()
}

fn classify(engine: &mut CudaEngine, texts: &[TokenText]) -> Vec<Vec<f64>> {
    engine.classify(&texts.iter().collect::<Vec<_>>()).unwrap()
}

fn bits(scores: &[Vec<f64>]) -> Vec<u64> {
    scores.iter().flatten().map(|score| score.to_bits()).collect()
}

fn assert_near(
    model: &ModelStore,
    texts: &[TokenText],
    scores: &[Vec<f64>],
    bound: f64,
    what: &str,
) {
    for (text, scores) in texts.iter().zip(scores) {
        for (score, expected) in scores.iter().zip(text.scores(&model.table())) {
            let error = (score - expected).abs();
            assert!(
                error < bound,
                "{what}: {score} and {expected}, {} tokens",
                text.tokens().len()
            );
        }
    }
}

type Head = (Vec<(usize, usize, usize)>, Vec<usize>, usize);

fn shapes() -> Vec<Head> {
    vec![
        (vec![(3, 0, 100), (4, 0, 100), (5, 0, 100)], vec![], 2),
        (vec![(1, 0, 3), (2, 1, 8), (9, 4, 17), (12, 11, 5)], vec![], 7),
        (vec![(3, 2, 256), (5, 0, 256)], vec![300, 64], 3),
        (vec![(7, 3, 65)], vec![130, 10, 200], 40),
    ]
}

fn near_and_the_same() {
    for (dim, (shapes, hidden, classes)) in [50, 64, 30, 33].into_iter().zip(shapes()) {
        let model = rows(dim);
        let head = random(dim, &shapes, &hidden, classes, 1.0);
        let texts = texts(&head, 5000, dim as u64);
        for precision in [Precision::Float16, Precision::Float32] {
            for portable in [false, true] {
                let what = format!("{shapes:?} {hidden:?} {precision:?} portable {portable}");
                let mut engine = engine(&model, precision, None, portable);
                let scores = classify(&mut engine, &texts);
                assert_near(&model, &texts[..300], &scores, precision.score_error(), &what);
                for size in [1, 2, 127, 300] {
                    let some = 40.max(size);
                    let parts =
                        texts[..some].chunks(size).flat_map(|part| classify(&mut engine, part));
                    let parts: Vec<Vec<f64>> = parts.collect();
                    assert_eq!(bits(&parts), bits(&scores[..some]), "{what}, {size} together");
                }
            }
        }
    }
}

fn products_take_turns() {
    let (dim, (shapes, hidden, classes)) = (50, shapes().remove(0));
    let model = rows(dim);
    let head = random(dim, &shapes, &hidden, classes, 1.0);
    let texts = texts(&head, 3000, 8);
    let whole = classify(&mut engine(&model, Precision::Float16, None, false), &texts);
    let row_bytes = 2 * (3 + 4 + 5) * 104;
    for slots in [1, 100, 2000] {
        let mut engine = engine(&model, Precision::Float16, Some(slots * row_bytes), false);
        let scores = classify(&mut engine, &texts);
        assert_eq!(bits(&scores), bits(&whole), "{slots} slots");
    }
}

fn overlapped() {
    let (dim, (shapes, hidden, classes)) = (30, shapes().remove(2));
    let model = rows(dim);
    let head = random(dim, &shapes, &hidden, classes, 1.0);
    let texts = texts(&head, 4000, 9);
    let mut engine = engine(&model, Precision::Float16, None, false);
    let parts: Vec<Vec<&TokenText>> =
        texts.chunks(1000).map(|part| part.iter().collect()).collect();
    assert!(!engine.start_classify(&parts[0]).unwrap(), "nothing is loaded");
    let expected = bits(&classify(&mut engine, &texts));
    let mut scores = Vec::new();
    for pair in parts.chunks(2) {
        assert!(pair.iter().all(|part| engine.start_classify(part).unwrap()));
        assert!(!engine.start_classify(&pair[0]).unwrap(), "two are under way");
        for part in pair {
            engine.wait_until_almost_over().unwrap();
            scores.extend(engine.finish_classify(part).unwrap());
        }
    }
    assert_eq!(bits(&scores), expected);
}

fn overflow() {
    let (dim, (shapes, hidden, classes)) = (30, shapes().remove(2));
    let model = rows(dim);
    for (size, bound) in [(20_000.0, 3e3), (1e30, f64::INFINITY)] {
        let head = random(dim, &shapes, &hidden, classes, size);
        let texts = texts(&head, 500, 10);
        for precision in [Precision::Float16, Precision::Float32] {
            let scores = classify(&mut engine(&model, precision, None, false), &texts);
            assert!(scores.iter().flatten().all(|score| score.is_finite()), "{size}");
            assert_near(&model, &texts[..100], &scores, bound, "large weights");
        }
    }
}

fn several() {
    let model = rows(30);
    let [one, other] = [shapes().remove(0), shapes().remove(3)]
        .map(|(shapes, hidden, classes)| random(30, &shapes, &hidden, classes, 1.0));
    let mixed: Vec<TokenText> = texts(&one, 300, 1)
        .into_iter()
        .zip(texts(&other, 300, 2))
        .flat_map(|(a, b)| [a, b])
        .collect();
    let mut engine = engine(&model, Precision::Float16, None, false);
    let scores = classify(&mut engine, &mixed);
    assert_near(&model, &mixed, &scores, Precision::Float16.score_error(), "two classifiers");
    assert!(!engine.start_classify(&mixed.iter().collect::<Vec<_>>()).unwrap());
}
