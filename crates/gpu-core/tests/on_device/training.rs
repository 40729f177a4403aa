//! What PyTorch trains expanders with: forward passes and sums of rows in another library's memory,
//! against the formulas on the CPU.

use contract::{HasTable, Table, score};
use gpu_core::GpuError;
use gpu_core::driver::Array;
use gpu_core::resident::BorrowedTable;
use gpu_core::search::{BorrowedTerms, SumsOfRows};

use crate::support::Numbers;
use formulas::{TextVectors, touched};

#[path = "../../../cpu-core/tests/gradients/formulas.rs"]
mod formulas;

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        (
            "training_borrowed_terms_are_searched_as_they_are",
            borrowed_terms_are_searched_as_they_are as fn(),
        ),
        ("training_borrowed_rows_are_summed", borrowed_rows_are_summed),
        ("training_borrowed_terms_that_are_not_finite", borrowed_terms_that_are_not_finite),
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

/// The default stream.
const DEFAULT_STREAM: u64 = 0;

/// Terms and tokens in device memory that is not the library's.
struct OnDevice {
    components: Array<f32>,
    biases: Array<f32>,
    table: BorrowedTable,
}

impl OnDevice {
    fn new(terms: &Terms, with_biases: bool) -> Self {
        let components = Array::from_slice(&terms.components).unwrap();
        let biases = Array::from_slice(&terms.biases).unwrap();
        let table = BorrowedTable {
            components: components.address(),
            biases: with_biases.then(|| biases.address()),
            rows: terms.biases.len(),
            dim: terms.dim,
        };
        Self { components, biases, table }
    }

    fn write(&mut self, terms: &Terms) {
        self.components.write(&terms.components).unwrap();
        self.biases.write(&terms.biases).unwrap();
    }
}

/// Also after changes that are small, and after some by which rows become much longer, or shorter.
#[allow(unsafe_code)]
fn borrowed_terms_are_searched_as_they_are() {
    let mut numbers = Numbers::new(65);
    let mut device = BorrowedTerms::new(0).unwrap();
    for (rows, dim, bias, with_biases) in [
        (3000, 20, -6.5, true),
        (900, 64, 0.0, false),
        (2000, 300, -22.0, true),
        (50, 7, 0.0, true),
    ] {
        let mut terms = Terms::random(rows, dim, bias, &mut numbers);
        let mut there = OnDevice::new(&terms, with_biases);
        let largest = terms.biases.iter().fold(0.0f64, |most, &b| most.max(f64::from(b).abs()));
        let mut rounded = 0;
        for factor in [1.0f32, 0.99, 1.1, 3.0, 1.0, 0.01] {
            terms.components.iter_mut().for_each(|x| *x = *x * factor + 0.01 * numbers.real());
            terms.biases.iter_mut().for_each(|x| *x *= factor);
            terms = Terms::new(terms.components, terms.biases, dim);
            there.write(&terms);
            let (vectors, ends) = texts(60, dim, &mut numbers);
            let tokens = Array::from_slice(&vectors).unwrap();
            // SAFETY: `write` and `from_slice` wait for their copies; the arrays have the table's
            // sizes, and stay.
            let (found, over) = unsafe {
                if !device.round_again(there.table, DEFAULT_STREAM).unwrap() {
                    rounded += 1;
                    device.round(there.table, (largest * 3.0, 1.0), DEFAULT_STREAM).unwrap();
                }
                device.touched(tokens.address(), &ends, DEFAULT_STREAM).unwrap()
            };
            let table = Table::new(&terms.components, &terms.norms, dim);
            let table = table.under_dot(with_biases.then_some(&terms.biases));
            let mut expected = touched(TextVectors::new(&vectors, dim, &ends), &table);
            expected.retain(|one| !over.contains(&one.text));
            let found = found.iter().map(|one| (one.text, one.term, one.position, one.value));
            let expected = expected.iter().map(|one| (one.text, one.term, one.position, one.value));
            let bits = |(text, term, position, value): (_, _, _, f64)| {
                (text, term, position, value.to_bits())
            };
            assert!(found.map(bits).eq(expected.map(bits)), "{rows} x {dim}, {factor}");
        }
        assert!((2..6).contains(&rounded), "{rounded}");
    }
}

#[allow(unsafe_code)]
fn borrowed_rows_are_summed() {
    let mut numbers = Numbers::new(66);
    let mut device = BorrowedTerms::new(0).unwrap();
    for (rows, dim, groups) in [(40, 3, 9), (500, 300, 70), (9, 33, 1)] {
        let components: Vec<f32> = numbers.vector(rows * dim);
        let mut begins = vec![0u32];
        begins.extend((0..groups).scan(0, |end, _| {
            *end += numbers.below(30) as u32;
            Some(*end)
        }));
        let entries = *begins.last().unwrap() as usize;
        let indices: Vec<u32> = (0..entries).map(|_| numbers.below(rows) as u32).collect();
        let weights: Vec<f32> = numbers.vector(entries);
        let [on_device, of_weights] =
            [&components, &weights].map(|all| Array::from_slice(all).unwrap());
        let [of_indices, of_begins] =
            [&indices, &begins].map(|all| Array::from_slice(all).unwrap());
        let sums = Array::<f32>::zeroed(groups * dim).unwrap();
        let totals = Array::<f32>::zeroed(groups).unwrap();
        let of = SumsOfRows {
            rows: on_device.address(),
            indices: of_indices.address(),
            weights: of_weights.address(),
            begins: of_begins.address(),
            sums: sums.address(),
            totals: totals.address(),
            dim,
            groups,
        };
        // SAFETY: the arrays are as they say.
        unsafe { device.sum(of, DEFAULT_STREAM).unwrap() };
        // Waits for the sums.
        drop(std::mem::replace(&mut device, BorrowedTerms::new(0).unwrap()));
        let (sums, totals) = (sums.read().unwrap(), totals.read().unwrap());
        for group in 0..groups {
            let of =
                || (begins[group] as usize..begins[group + 1] as usize).map(|at| (at, weights[at]));
            for i in 0..dim {
                let row = |at: usize| f64::from(components[indices[at] as usize * dim + i]);
                let sum = of().fold(0.0, |sum, (at, w)| f64::from(w).mul_add(row(at), sum));
                assert_eq!(sums[group * dim + i].to_bits(), (sum as f32).to_bits());
            }
            let total = of().fold(0.0, |sum, (_, w)| sum + f64::from(w));
            assert_eq!(totals[group].to_bits(), (total as f32).to_bits());
        }
    }
}

#[allow(unsafe_code)]
fn borrowed_terms_that_are_not_finite() {
    let mut numbers = Numbers::new(67);
    let mut device = BorrowedTerms::new(0).unwrap();
    for bad in [f32::NAN, f32::INFINITY] {
        let mut terms = Terms::random(700, 20, 0.0, &mut numbers);
        let mut there = OnDevice::new(&terms, true);
        // SAFETY: the arrays have the table's sizes.
        unsafe { device.round(there.table, (9.0, 1.0), DEFAULT_STREAM).unwrap() };
        terms.components[333] = bad;
        there.write(&terms);
        // SAFETY: the arrays still have the table's sizes, and stay.
        let again = unsafe { device.round_again(there.table, DEFAULT_STREAM).unwrap() };
        assert!(!again);
        // SAFETY: the arrays still have the table's sizes, and stay.
        let error = unsafe { device.round(there.table, (9.0, 1.0), DEFAULT_STREAM) };
        assert!(matches!(error, Err(GpuError::NotFinite)), "{error:?}");
    }
}
