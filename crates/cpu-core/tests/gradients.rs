//! Gradients against finite differences of the formula and PyTorch.

use contract::Table;
use model_store::synth::split_mix;
use proptest::prelude::*;

use formulas::{Entry, Gradients, TextVectors, Touched, gradients, touched};

mod formulas;

/// Random numbers in [−1, 1).
fn random(count: usize, seed: u64) -> Vec<f32> {
    let number = |i: u64| (split_mix(seed << 32 | i) >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
    (0..count as u64).map(number).collect()
}

/// Texts, terms and what is left out.
#[derive(Debug, Clone)]
struct Case {
    dim: usize,
    vectors: Vec<f32>,
    ends: Vec<usize>,
    left_out: Vec<bool>,
    terms: Vec<f32>,
    biases: Vec<f32>,
}

impl Case {
    fn random(dim: usize, lengths: &[usize], terms: usize, bias: f32, seed: u64) -> Self {
        let mut end = 0;
        let ends = lengths.iter().map(|length| {
            end += length;
            end
        });
        let ends: Vec<usize> = ends.collect();
        let biases = random(terms, seed + 2).iter().map(|x| 0.25 * x + bias).collect();
        Self {
            dim,
            vectors: random(end * dim, seed),
            left_out: (0..end as u64).map(|i| split_mix(seed + 3 + i).is_multiple_of(5)).collect(),
            ends,
            terms: random(terms * dim, seed + 1),
            biases,
        }
    }

    fn norms(&self) -> Vec<f64> {
        vec![0.0; self.biases.len()]
    }

    fn texts(&self) -> TextVectors<'_> {
        TextVectors::new(&self.vectors, self.dim, &self.ends).without(&self.left_out)
    }

    fn table<'a>(&'a self, norms: &'a [f64]) -> Table<'a> {
        Table::new(&self.terms, norms, self.dim).under_dot(Some(&self.biases))
    }

    fn touched(&self) -> Vec<Touched> {
        touched(self.texts(), &self.table(&self.norms()))
    }

    fn entries(&self, seed: u64) -> Vec<Entry> {
        let touched = self.touched();
        let gradients = random(touched.len(), seed);
        touched.into_iter().zip(gradients).map(|(one, gradient)| one.with(gradient)).collect()
    }

    fn gradients(&self, entries: &[Entry]) -> Gradients {
        gradients(self.texts(), &self.table(&self.norms()), entries)
    }
}

#[test]
fn all_terms_of_all_texts_or_none() {
    for bias in [100.0, -100.0] {
        let mut case = Case::random(6, &[5, 3, 8], 70, bias, 3);
        case.left_out.fill(false);
        let entries = case.entries(5);
        assert_eq!(entries.len(), if bias > 0.0 { 3 * 70 } else { 0 });
        let found = case.gradients(&entries);
        assert_eq!(found.biases.iter().any(|&sum| sum != 0.0), bias > 0.0);
    }
    let none = Case::random(6, &[], 10, 0.0, 3).gradients(&[]);
    assert_eq!((none.vectors, none.tokens.len()), (vec![0.0; 60], 0));
}

#[test]
fn the_lowest_of_equal_positions_gets_the_gradient() {
    let case = Case {
        dim: 1,
        // The first position of the second text is left out.
        vectors: vec![1.0, 3.0, 3.0, 9.0, 3.0, 3.0],
        ends: vec![3, 3, 6],
        left_out: vec![false, false, false, true, false, false],
        terms: vec![2.0, -1.0],
        biases: vec![0.0, 2.0],
    };
    let one = |text, term, position, value| Touched { text, term, position, value };
    let touched = case.touched();
    assert_eq!(touched, [one(0, 0, 1, 6.0), one(0, 1, 0, 1.0), one(2, 0, 1, 6.0)]);
    let entries: Vec<Entry> = touched.into_iter().map(|one| one.with(0.5)).collect();
    let found = case.gradients(&entries);
    assert_eq!(found.tokens, [-0.5, 1.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(found.vectors, [3.0, 0.5]);
    assert_eq!(found.biases, [1.0, 0.5]);
}

/// `Σ c[b, v] · f[b, v]` in float64, for the derivatives `c` of some entries; the others are zero.
fn loss(case: &Case, vectors: &[f64], terms: &[f64], biases: &[f64], entries: &[Entry]) -> f64 {
    let (dim, texts) = (case.dim, case.texts());
    let of = |entry: &Entry| {
        let term = entry.term as usize;
        let score = |token: usize| {
            let (x, w) = (&vectors[token * dim..][..dim], &terms[term * dim..][..dim]);
            x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + biases[term]
        };
        let tokens = texts.range(entry.text as usize).filter(|&token| !case.left_out[token]);
        f64::from(entry.gradient) * tokens.map(score).fold(0.0, f64::max)
    };
    entries.iter().map(of).sum()
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let case = Case::random(4, &[3, 0, 5, 1, 6], 25, 0.1, 21);
    let (texts, norms) = (case.texts(), case.norms());
    // Every term of every text, touched or not, so that the gate is tested as well.
    let gradients = random(5 * 25, 31);
    let all: Vec<Entry> = (0..5 * 25u32)
        .zip(gradients)
        .map(|(i, gradient)| Entry { text: i / 25, term: i % 25, position: 0, gradient })
        .collect();
    let of = |one: Touched| one.with(all[(one.text * 25 + one.term) as usize].gradient);
    let touched = touched(texts, &case.table(&norms));
    assert!((30..115).contains(&touched.len()), "{}", touched.len());
    let entries: Vec<Entry> = touched.into_iter().map(of).collect();
    let found = case.gradients(&entries);

    let wide = |all: &[f32]| -> Vec<f64> { all.iter().map(|&x| f64::from(x)).collect() };
    let mut parts = [wide(&case.vectors), wide(&case.terms), wide(&case.biases)];
    // Smaller than the distance of any maximum from the next, and of any from zero.
    const STEP: f64 = 1e-7;
    let of_parts = [&found.tokens, &found.vectors, &found.biases];
    for (part, gradients) in of_parts.into_iter().enumerate() {
        for (index, &gradient) in gradients.iter().enumerate() {
            let around = [STEP, -2.0 * STEP].map(|step| {
                parts[part][index] += step;
                loss(&case, &parts[0], &parts[1], &parts[2], &all)
            });
            parts[part][index] += STEP;
            let slope = (around[0] - around[1]) / (2.0 * STEP);
            assert!((slope - f64::from(gradient)).abs() < 1e-6, "{slope} and {gradient}");
        }
    }
}

/// `tests/pytorch/expander.py` wrote what is expected.
#[test]
fn gradients_are_those_of_pytorch() {
    let expected = include_str!("../../../tests/pytorch/recorded/expander.json");
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    let floats = |list: &serde_json::Value| -> Vec<f32> {
        let number = |number: &serde_json::Value| number.as_f64().expect("a number") as f32;
        list.as_array().expect("a list").iter().map(number).collect()
    };
    let dim = expected["dim"].as_u64().unwrap() as usize;
    let cases = expected["cases"].as_array().unwrap();
    for recorded in cases {
        let ends = floats(&recorded["ends"]).iter().map(|&end| end as usize).collect();
        let case = Case {
            dim,
            vectors: floats(&recorded["vectors"]),
            ends,
            left_out: floats(&recorded["left_out"]).iter().map(|&x| x == 1.0).collect(),
            terms: floats(&recorded["terms"]),
            biases: floats(&recorded["biases"]),
        };
        let terms = case.biases.len();
        let touched = case.touched();
        let mut values = vec![0.0; case.ends.len() * terms];
        let upstream = floats(&recorded["upstream"]);
        let saturates = recorded["log1p"].as_bool().unwrap();
        let of = |one: Touched| {
            let at = one.text as usize * terms + one.term as usize;
            let slope = if saturates { 1.0 / (1.0 + one.value) } else { 1.0 };
            values[at] = if saturates { one.value.ln_1p() } else { one.value } as f32;
            one.with((f64::from(upstream[at]) * slope) as f32)
        };
        let entries: Vec<Entry> = touched.into_iter().map(of).collect();
        let found = case.gradients(&entries);
        for (found, name) in [
            (&values, "values"),
            (&found.vectors, "terms_gradient"),
            (&found.biases, "biases_gradient"),
            (&found.tokens, "vectors_gradient"),
        ] {
            let expected = floats(&recorded[name]);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-5, "{name}: {found}, PyTorch {expected}");
            }
        }
    }
    assert_eq!(cases.len(), 4);
}

#[test]
#[should_panic(expected = "ordered by text and term")]
fn entries_out_of_order_are_refused() {
    let case = Case::random(2, &[2], 3, 0.0, 1);
    let entry = |term| Entry { text: 0, term, position: 0, gradient: 1.0 };
    let _ = case.gradients(&[entry(1), entry(1)]);
}

#[test]
#[should_panic(expected = "positions that exist")]
fn positions_that_do_not_exist_are_refused() {
    let case = Case::random(2, &[2, 1], 3, 0.0, 1);
    let entry = Entry { text: 1, term: 0, position: 1, gradient: 1.0 };
    let _ = case.gradients(&[entry]);
}

/// Components of a few values, so that scores tie and are zero.
fn cases() -> impl Strategy<Value = Case> {
    (1usize..6, prop::collection::vec(0usize..5, 0..6), 1usize..40).prop_flat_map(
        |(dim, lengths, terms)| {
            let tokens: usize = lengths.iter().sum();
            let numbers = |count: usize| {
                prop::collection::vec((-2i8..3).prop_map(|x| f32::from(x) * 0.5), count)
            };
            let left_out = prop::collection::vec(prop::bool::weighted(0.2), tokens);
            (numbers(tokens * dim), left_out, numbers(terms * dim), numbers(terms)).prop_map(
                move |(vectors, left_out, terms, biases)| {
                    let ends = lengths.iter().scan(0, |end, length| {
                        *end += length;
                        Some(*end)
                    });
                    Case { dim, vectors, ends: ends.collect(), left_out, terms, biases }
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_position_that_is_left_out_is_touched(case in cases()) {
        for one in case.touched() {
            let token = case.texts().range(one.text as usize).start + one.position as usize;
            prop_assert!(!case.left_out[token]);
        }
    }
}
