//! Filters, and the products of words with all of them.

use contract::classifier::Convolution;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::numbers::Numbers;
use crate::InstructionSet;
use crate::heads::{BLOCK_FILTERS, FilterBlock, filter_columns};
use crate::instruction_set::{Kernel, Vectors, Work};

/// Words that are multiplied together.
const WORDS: usize = 4;

/// Random filters of one width.
pub(super) fn random(
    width: usize,
    padding: usize,
    channels: usize,
    dim: usize,
    numbers: &mut Numbers,
) -> Convolution {
    let bound = 1.0 / ((width * dim) as f32).sqrt();
    let weights = numbers.within(bound, channels * width * dim);
    let bias = numbers.within(bound, channels);
    Convolution { width, padding, weights, bias }
}

/// The products of these words with all filters: `[words, padded columns]`, and the number of the
/// latter.
pub(super) fn project(
    words: &[u32],
    vectors: &[f32],
    dim: usize,
    filters: &[Convolution],
    pool: &ThreadPool,
) -> (Vec<f32>, usize) {
    let packed = filter_columns(filters, dim, |channels| channels);
    let padded = packed.len() / dim * BLOCK_FILTERS;
    let mut products = vec![0.0; words.len() * padded];
    let instructions = InstructionSet::best();
    pool.install(|| {
        products.par_chunks_mut(WORDS * padded).zip(words.par_chunks(WORDS)).for_each(
            |(products, words)| {
                // If there are fewer, the last is multiplied again.
                let row = |i: usize| {
                    let word = words[i.min(words.len() - 1)] as usize;
                    &vectors[word * dim..][..dim]
                };
                let rows: [&[f32]; WORDS] = std::array::from_fn(row);
                let mut sums = [[0.0; BLOCK_FILTERS]; WORDS];
                for (block, filters) in packed.chunks_exact(dim).enumerate() {
                    instructions.run(ProjectBlock { rows, filters, products: &mut sums });
                    for (products, sums) in products.chunks_exact_mut(padded).zip(&sums) {
                        products[block * BLOCK_FILTERS..][..BLOCK_FILTERS].copy_from_slice(sums);
                    }
                }
            },
        );
    });
    (products, padded)
}

/// The products of rows with a block of filters. Without fused multiply-adds, so that the bits are
/// the same with all instructions.
struct ProjectBlock<'a> {
    rows: [&'a [f32]; WORDS],
    filters: &'a [FilterBlock],
    products: &'a mut [FilterBlock; WORDS],
}

impl Kernel for ProjectBlock<'_> {
    const WORK: Work = Work::Narrow;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, _: V) {
        let Self { mut rows, filters, products } = self;
        let mut sums = [[0.0f32; BLOCK_FILTERS]; WORDS];
        for row in &mut rows {
            *row = &row[..filters.len()];
        }
        for (component, weights) in filters.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let factor = row[component];
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += factor * weight;
                }
            }
        }
        *products = sums;
    }
}
