//! Scores against the formula in float64, and with themselves: in every batch, cache and
//! instruction set.

use contract::Row;
use contract::classifier::{Classifier, Layer};
use model_store::ModelStore;
use model_store::head::{
    Cut, Description, HEAD_VERSION, Head, HeadKind, MadeFor, Parts, Probabilities, Tokeniser,
    Tokens,
};
use proptest::prelude::*;

use super::*;

const WORDS: usize = 60;

/// Numbers that look random.
fn numbers(seed: u32, count: usize, size: f32) -> Vec<f32> {
    let mut state = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((state >> 33) as f32 / (1u64 << 30) as f32 - 1.0) * size
    };
    (0..count).map(|_| next()).collect()
}

fn head(shapes: &[(usize, usize, usize)], hidden: &[usize]) -> (Arc<ModelStore>, Arc<Head>) {
    let dim = 12;
    let rows: Vec<(String, Vec<f32>)> =
        (0..WORDS).map(|n| (format!("w{n}"), numbers(n as u32, dim, 1.0))).collect();
    let rows = rows.iter().map(|(word, row)| (word.as_str(), &row[..]));
    let model = ModelStore::from_rows("m", dim, rows).unwrap();
    let convolutions = shapes
        .iter()
        .map(|&(width, padding, channels)| Convolution {
            width,
            padding,
            weights: numbers(width as u32, channels * width * dim, 0.3),
            bias: numbers(7, channels, 0.1),
        })
        .collect();
    let mut inputs: usize = shapes.iter().map(|(_, _, channels)| channels).sum();
    let layers = hidden
        .iter()
        .chain(&[3])
        .map(|&outputs| {
            let weights = numbers(outputs as u32, inputs * outputs, 0.2);
            inputs = outputs;
            Layer { weights, bias: numbers(5, outputs, 0.1) }
        })
        .collect();
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(&model),
        tokens: Tokens { tokeniser: Tokeniser::Words, lower_case: true, limit: 16, cut: Cut::End },
        labels: ["a", "b", "c"].map(str::to_owned).into(),
        probabilities: Probabilities::Softmax,
        temperature: 1.0,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: vec!["own".to_owned()],
        other_words: 0.5,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let parts = Parts {
        description,
        classifier: Classifier::new(dim, convolutions, layers).unwrap(),
        tuned: (vec![Row(3), Row(50)], numbers(99, 2 * dim, 1.0)),
        added: numbers(98, dim, 1.0),
        unknown: Some(numbers(97, dim, 1.0)),
    };
    let head = Head::from_memory(&parts, &model).unwrap();
    (Arc::new(model), Arc::new(head))
}

fn texts() -> impl Strategy<Value = Vec<Vec<Token>>> {
    let token = (0..WORDS as u32 + 2).prop_map(Token);
    prop::collection::vec(prop::collection::vec(token, 0..=16), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn scores_are_near_the_formula_and_have_the_same_bits_in_every_batch(
        texts in texts(),
        shapes in prop::collection::vec((1usize..6, 0usize..5, 1usize..70), 1..4),
        hidden in prop::collection::vec(1usize..20, 0..3),
        memory in prop_oneof![Just(0usize), 10_000usize..100_000, Just(1 << 24)],
    ) {
        let shapes: Vec<_> = shapes
            .into_iter()
            .map(|(width, padding, channels)| (width, padding.min(width - 1), channels))
            .collect();
        let (model, head) = head(&shapes, &hidden);
        let table = model.table();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let all: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
        for precision in [Precision::Float16, Precision::Float32] {
        let mut whole = Classifying::new(head.clone(), memory, precision, InstructionSet::best());
        let scores = whole.scores(&table, &all, &pool);
        for (text, scores) in all.iter().zip(scores.chunks_exact(3)) {
            for (score, expected) in scores.iter().zip(TokenText::new(head.clone(), text.to_vec()).scores(&table)) {
                prop_assert!((score - expected).abs() < precision.score_error(), "{score} {expected}");
            }
        }
        for set in InstructionSet::available() {
            let mut other = Classifying::new(head.clone(), 1 << 24, precision, set);
            let alone: Vec<f64> = all.iter().flat_map(|&text| other.scores(&table, &[text], &pool)).collect();
            prop_assert!(alone.iter().map(|x| x.to_bits()).eq(scores.iter().map(|x| x.to_bits())), "{}", set);
        }
        }
    }
}

#[test]
fn weights_too_large_for_float32_give_the_scores_of_the_formula() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let text: Vec<Token> = (0..9).map(|n| Token(n * 7 % (WORDS as u32 + 2))).collect();
    // Of filters, of hidden layers.
    for (filters, dense, fits) in
        [(1.0, 1.0, true), (1e38, 1.0, false), (1e20, 1e10, true), (1.0, 1e38, false)]
    {
        let (model, plain) = head(&[(3, 2, 20), (1, 0, 9)], &[6]);
        let of = plain.classifier();
        let scaled = |all: &[f32], by: f32| -> Vec<f32> { all.iter().map(|x| x * by).collect() };
        let convolutions = of
            .convolutions()
            .iter()
            .map(|one| Convolution { weights: scaled(&one.weights, filters), ..one.clone() });
        let layers = of
            .layers()
            .iter()
            .map(|one| Layer { weights: scaled(&one.weights, dense), bias: one.bias.clone() });
        let classifier = Classifier::new(12, convolutions.collect(), layers.collect()).unwrap();
        let large = Arc::new(Large { of: plain.clone(), classifier });
        let table = model.table();
        assert_eq!(float16::float32_holds(&*large, &table), fits, "{filters} {dense}");
        let expected = formula(&*large, &table, &text);
        let texts = [&text[..], &text[..1], &text[..]];
        let found = Classifying::new(large, 1 << 20, Precision::Float32, InstructionSet::best())
            .scores(&table, &texts, &pool);
        assert_eq!(found[..3], found[6..]);
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                found.is_finite() && (found - expected).abs() <= 1e-5 * expected.abs().max(1.0)
            );
        }
    }
}

/// The tokens of a head with other weights.
#[derive(Debug)]
struct Large {
    of: Arc<Head>,
    classifier: Classifier,
}

impl TokenClassifier for Large {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        self.of.tokens()
    }

    fn longest_text(&self) -> usize {
        self.of.longest_text()
    }

    fn source(&self, token: Token) -> contract::VectorSource<'_> {
        self.of.source(token)
    }
}
