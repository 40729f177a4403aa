//! What expanders are trained with: forward passes, gradients and changed rows on the device against the formulas on the CPU.

use std::sync::Arc;

use contract::{HasTable, Table, score};
use cpu_core::heads::expand::gradients::{
    Entry, Rows, TextVectors, Touched, Way, gradients, touched,
};
use gpu_core::Options;
use gpu_core::search::DeviceTerms;

use crate::support::Numbers;

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("training_forward_is_the_formula", forward_is_the_formula as fn()),
        ("training_gradients_have_the_bits_of_the_cpu", gradients_have_the_bits_of_the_cpu),
        ("training_forward_after_steps_is_the_formula", forward_after_steps_is_the_formula),
    ]
}

#[derive(Debug, Clone)]
struct Terms {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Vec<f32>,
    dim: usize,
}

impl Terms {
    fn new(components: Vec<f32>, biases: Vec<f32>, dim: usize) -> Self {
        let norms = components.chunks_exact(dim).map(score::norm).collect();
        Self { components, norms, biases, dim }
    }

    fn random(rows: usize, dim: usize, bias: f32, numbers: &mut Numbers) -> Self {
        let biases = (0..rows).map(|_| bias + numbers.real()).collect();
        Self::new(numbers.vector(rows * dim), biases, dim)
    }
}

impl HasTable for Terms {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim).under_dot(Some(&self.biases))
    }
}

/// Texts of up to 30 tokens: vectors and ends.
fn texts(count: usize, dim: usize, numbers: &mut Numbers) -> (Vec<f32>, Vec<usize>) {
    let mut tokens = 0;
    let mut end = || {
        tokens += numbers.below(31);
        tokens
    };
    let ends: Vec<usize> = (0..count).map(|_| end()).collect();
    // Few distinct numbers, so that several tokens have a text's maximum.
    let number = |_| [0.0, 0.5, -1.0, 1.0, 2.0][numbers.below(5)];
    ((0..tokens * dim).map(number).collect(), ends)
}

fn device(terms: &Terms) -> DeviceTerms {
    DeviceTerms::new(Arc::new(terms.clone()), 1.0, Options::default()).unwrap()
}

fn bits(touched: &[Touched]) -> Vec<(u32, u32, u32, u64)> {
    touched.iter().map(|one| (one.text, one.term, one.position, one.value.to_bits())).collect()
}

fn forward_is_the_formula() {
    let mut numbers = Numbers::new(61);
    for (rows, dim, bias) in [(3000, 20, -6.5), (700, 64, -9.0), (2000, 300, -22.0), (50, 7, 0.0)] {
        let terms = Terms::random(rows, dim, bias, &mut numbers);
        let mut device = device(&terms);
        for count in [1, 40, 300] {
            let (vectors, ends) = texts(count, dim, &mut numbers);
            let expected = touched(TextVectors::new(&vectors, dim, &ends), &terms.table());
            let found = device.touched(&vectors, &ends).unwrap();
            assert!(bits(&found) == bits(&expected), "{rows} x {dim}, {count} texts");
            assert!(count == 1 || !expected.is_empty());
        }
    }
}

/// A derivative for each touched term; some are zero.
fn entries(touched: &[Touched], numbers: &mut Numbers) -> Vec<Entry> {
    touched
        .iter()
        .map(|one| one.with(if one.term % 9 == 0 { 0.0 } else { numbers.real() }))
        .collect()
}

fn gradients_have_the_bits_of_the_cpu() {
    let mut numbers = Numbers::new(62);
    let pool = rayon::ThreadPoolBuilder::new().build().unwrap();
    for (rows, dim, bias) in [(2000, 20, -6.5), (300, 65, -5.0), (1000, 300, -22.0)] {
        let terms = Terms::random(rows, dim, bias, &mut numbers);
        let mut device = device(&terms);
        let (vectors, ends) = texts(60, dim, &mut numbers);
        let found = device.touched(&vectors, &ends).unwrap();
        let entries = entries(&found, &mut numbers);
        let of = TextVectors::new(&vectors, dim, &ends);
        let expected = gradients(of, &terms.table(), &entries, Rows::Touched, &pool);
        for way in Way::ALL {
            device.gradients(&entries, Some(way)).unwrap();
            let found = device.read_gradients().unwrap();
            assert_eq!(found.terms.terms, expected.terms.terms, "{way:?}");
            for (found, expected) in [
                (&found.terms.vectors, &expected.terms.vectors),
                (&found.terms.biases, &expected.terms.biases),
                (&found.tokens, &expected.tokens),
            ] {
                let same =
                    found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()));
                assert!(same, "{way:?}, {rows} x {dim}");
            }
        }
        device.gradients(&[], None).unwrap();
        let none = device.read_gradients().unwrap();
        assert!(none.terms.vectors.is_empty() && none.tokens.iter().all(|&x| x == 0.0));
    }
}

/// Small steps, and large ones, after which rows are longer than any was at first.
fn forward_after_steps_is_the_formula() {
    let mut numbers = Numbers::new(63);
    let (rows, dim) = (2500, 48);
    for rate in [1e-3f32, 0.02, 0.4] {
        let terms = Terms::random(rows, dim, -9.5, &mut numbers);
        let mut device = device(&terms);
        let (mut components, mut biases) = device.read().unwrap();
        assert_eq!((&components, &biases), (&terms.components, &terms.biases));
        for _ in 0..6 {
            let (vectors, ends) = texts(20, dim, &mut numbers);
            let found = device.touched(&vectors, &ends).unwrap();
            let entries = entries(&found, &mut numbers);
            device.gradients(&entries, None).unwrap();
            let of = device.read_gradients().unwrap().terms;
            for (i, &term) in of.terms.as_ref().unwrap().iter().enumerate() {
                let term = term as usize;
                for (w, g) in components[term * dim..][..dim].iter_mut().zip(&of.vectors[i * dim..])
                {
                    *w = (-rate).mul_add(*g, *w);
                }
                biases[term] = (-rate).mul_add(of.biases[i], biases[term]);
            }
            device.step(rate).unwrap();
            assert!(device.read().unwrap() == (components.clone(), biases.clone()), "rate {rate}");
            let changed = Terms::new(components.clone(), biases.clone(), dim);
            let (vectors, ends) = texts(20, dim, &mut numbers);
            let expected = touched(TextVectors::new(&vectors, dim, &ends), &changed.table());
            // Long steps make texts touch more terms than are merged.
            match device.touched(&vectors, &ends) {
                Ok(found) => assert!(bits(&found) == bits(&expected), "rate {rate}"),
                Err(error) => {
                    assert!(
                        rate > 0.1 && error.to_string().contains("touches more terms"),
                        "{error}"
                    );
                    break;
                }
            }
        }
    }
}
