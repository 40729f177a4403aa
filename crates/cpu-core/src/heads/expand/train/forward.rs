//! Which terms the texts of a batch touch, exactly: float32 products find the few scores that float64 must decide.
//!
//! Of a block of terms, the products of all words with all its terms are made once, and each text takes its maxima from them. With
//! the bound of [`error`], a text whose largest product stays below the bias does not touch the term. Otherwise
//! those positions are scored by the contract's formula whose products may be the largest.

use contract::score;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::InstructionSet;
use crate::heads::expand::gradients::Touched;
use crate::instruction_set::dispatched;

/// Terms of a block.
const TERMS: usize = 16;
/// Words that are multiplied together: with [`TERMS`] terms, their sums fill the registers of AVX2.
const WORDS: usize = 6;

/// What is multiplied with what.
#[derive(Clone, Copy)]
pub(super) struct Forward<'a> {
    /// The texts' distinct words, `[words, dim]`.
    pub(super) words: &'a [f32],
    /// Each text's words, by their index.
    pub(super) texts: &'a [Vec<u32>],
    /// The terms' vectors, `[terms, dim]`.
    pub(super) terms: &'a [f32],
    pub(super) biases: &'a [f32],
    pub(super) dim: usize,
}

/// How far a float32 sum of `dim` products may be from the contract's dot product, for norms with this product: each product and
/// sum is rounded once (2⁻²⁴ each), and products may be below the smallest float32. A little more, for the roundings of norms,
/// bounds and the contract's own sum. Infinite if a float32 could overflow: then nothing is skipped.
fn error(dim: usize, norms: f64) -> f64 {
    let unit = 1.0 / f64::from(1u32 << 24);
    match norms < 1e37 {
        true => (dim as f64 + 4.0) * (unit * norms + 1e-44) * 1.02,
        false => f64::INFINITY,
    }
}

impl Forward<'_> {
    /// The terms that each text touches, ordered by text, and those of a text by term; and where each text's end. Positions are
    /// those of the text's words.
    pub(super) fn touched(&self, pool: &ThreadPool) -> (Vec<Touched>, Vec<usize>) {
        let (dim, instructions) = (self.dim, InstructionSet::best());
        let norms: Vec<f64> = self.words.chunks_exact(dim).map(score::norm).collect();
        let longest =
            |text: &Vec<u32>| text.iter().map(|&word| norms[word as usize]).fold(0.0, f64::max);
        let longest: Vec<f64> = self.texts.iter().map(longest).collect();
        let blocks = self.biases.len().div_ceil(TERMS);
        let found: Vec<Vec<Touched>> = pool.install(|| {
            (0..blocks)
                .into_par_iter()
                .map_init(Vec::new, |products: &mut Vec<[f32; TERMS]>, block| {
                    let columns = self.columns(block * TERMS);
                    products.clear();
                    products.resize(self.words.len() / dim, [0.0; TERMS]);
                    instructions.products_of_words(self.words, &columns, products);
                    self.block(block * TERMS, products, &longest)
                })
                .collect()
        });
        by_text(&found, self.texts.len())
    }

    /// The vectors of a block's terms, `[dim, TERMS]`; zero where there are no more terms.
    fn columns(&self, first: usize) -> Vec<[f32; TERMS]> {
        let mut columns = vec![[0.0; TERMS]; self.dim];
        let rows = self.terms[first * self.dim..].chunks_exact(self.dim).take(TERMS);
        for (term, row) in rows.enumerate() {
            columns.iter_mut().zip(row).for_each(|(column, x)| column[term] = *x);
        }
        columns
    }

    /// What the texts touch of a block.
    fn block(&self, first: usize, products: &[[f32; TERMS]], longest: &[f64]) -> Vec<Touched> {
        let mut found = Vec::new();
        let terms = TERMS.min(self.biases.len() - first);
        let row = |term: usize| &self.terms[(first + term) * self.dim..][..self.dim];
        let norms: Vec<f64> = (0..terms).map(|term| score::norm(row(term))).collect();
        for (text, words) in self.texts.iter().enumerate() {
            let mut most = [f32::NEG_INFINITY; TERMS];
            for &word in words {
                for (most, product) in most.iter_mut().zip(products[word as usize]) {
                    *most = if product < *most { *most } else { product };
                }
            }
            for term in 0..terms {
                let bias = f64::from(self.biases[first + term]);
                let error = error(self.dim, norms[term] * longest[text]);
                let most = f64::from(most[term]);
                if most + error + bias <= 0.0 {
                    continue;
                }
                let mut best = 0.0;
                let mut position = None;
                for (at, &word) in words.iter().enumerate() {
                    if f64::from(products[word as usize][term]) < most - 2.0 * error {
                        continue;
                    }
                    let x = &self.words[word as usize * self.dim..][..self.dim];
                    let score = score::dot(x, row(term)) + bias;
                    if score > best {
                        (best, position) = (score, Some(at as u32));
                    }
                }
                if let Some(position) = position {
                    let (text, term) = (text as u32, (first + term) as u32);
                    found.push(Touched { text, term, position, value: best });
                }
            }
        }
        found
    }
}

/// What was found in blocks of terms, by text; the blocks' order keeps a text's terms in order.
fn by_text(found: &[Vec<Touched>], texts: usize) -> (Vec<Touched>, Vec<usize>) {
    let mut ends = vec![0; texts];
    found.iter().flatten().for_each(|one| ends[one.text as usize] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let none = Touched { text: 0, term: 0, position: 0, value: 0.0 };
    let mut all = vec![none; start];
    for one in found.iter().flatten() {
        let next = &mut ends[one.text as usize];
        all[*next] = *one;
        *next += 1;
    }
    (all, ends)
}

dispatched! {
    /// The float32 products of words `[words, dim]` with the terms of a block `[dim]`, `[words]`.
    fn products_of_words(words: &[f32], columns: &[[f32; TERMS]], products: &mut [[f32; TERMS]]) =
        amx avx512, vnni512 avx512, avx512 avx512, vnni avx2, avx2 avx2, portable portable;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn avx512(words: &[f32], columns: &[[f32; TERMS]], products: &mut [[f32; TERMS]]) {
    multiply(words, columns, products, f32::mul_add);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(words: &[f32], columns: &[[f32; TERMS]], products: &mut [[f32; TERMS]]) {
    multiply(words, columns, products, f32::mul_add);
}

fn portable(words: &[f32], columns: &[[f32; TERMS]], products: &mut [[f32; TERMS]]) {
    multiply(words, columns, products, |a, b, sum| sum + a * b);
}

/// Fused additions round less, so the bound holds for both.
#[inline(always)]
fn multiply(
    words: &[f32],
    columns: &[[f32; TERMS]],
    products: &mut [[f32; TERMS]],
    add: impl Fn(f32, f32, f32) -> f32 + Copy,
) {
    let dim = columns.len();
    for (products, words) in products.chunks_mut(WORDS).zip(words.chunks(WORDS * dim)) {
        // If there are fewer, the last is multiplied again.
        let row = |i: usize| &words[i.min(products.len() - 1) * dim..][..dim];
        let rows: [&[f32]; WORDS] = std::array::from_fn(row);
        let mut sums = [[0.0f32; TERMS]; WORDS];
        for (component, column) in columns.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let factor = row[component];
                for (sum, x) in sums.iter_mut().zip(column) {
                    *sum = add(factor, *x, *sum);
                }
            }
        }
        products.copy_from_slice(&sums[..products.len()]);
    }
}
