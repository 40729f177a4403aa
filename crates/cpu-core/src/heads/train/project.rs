//! Filters, and the products of words with all of them.

use contract::classifier::Convolution;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::numbers::Numbers;

/// Columns of a block: as many sums as vector registers hold for a few words.
const COLUMNS: usize = 32;
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

/// The number of columns: one for each tap of each channel.
pub(super) fn columns(filters: &[Convolution]) -> usize {
    filters.iter().map(|one| one.width * one.channels()).sum()
}

/// All filters as columns in blocks, `[blocks, dim, COLUMNS]`: those of a width tap by tap, channel
/// by channel.
fn pack(filters: &[Convolution], dim: usize) -> Vec<f32> {
    let blocks = columns(filters).div_ceil(COLUMNS);
    let mut packed = vec![0.0; blocks * dim * COLUMNS];
    let mut column = 0;
    for one in filters {
        for tap in 0..one.width {
            for channel in 0..one.channels() {
                let from = (channel * one.width + tap) * dim;
                let block = &mut packed[column / COLUMNS * dim * COLUMNS..][..dim * COLUMNS];
                for (component, weight) in one.weights[from..from + dim].iter().enumerate() {
                    block[component * COLUMNS + column % COLUMNS] = *weight;
                }
                column += 1;
            }
        }
    }
    packed
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
    let packed = pack(filters, dim);
    let padded = packed.len() / dim;
    let mut products = vec![0.0; words.len() * padded];
    pool.install(|| {
        products.par_chunks_mut(WORDS * padded).zip(words.par_chunks(WORDS)).for_each(
            |(products, words)| {
                // If there are fewer, the last is multiplied again.
                let row = |i: usize| {
                    let word = words[i.min(words.len() - 1)] as usize;
                    &vectors[word * dim..][..dim]
                };
                let rows: [&[f32]; WORDS] = std::array::from_fn(row);
                for (block, filters) in packed.chunks_exact(dim * COLUMNS).enumerate() {
                    let sums = multiply(rows, filters);
                    for (products, sums) in products.chunks_exact_mut(padded).zip(&sums) {
                        products[block * COLUMNS..][..COLUMNS].copy_from_slice(sums);
                    }
                }
            },
        );
    });
    (products, padded)
}

fn multiply(rows: [&[f32]; WORDS], filters: &[f32]) -> [[f32; COLUMNS]; WORDS] {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        #[allow(unsafe_code)]
        return unsafe { multiply_avx2(rows, filters) };
    }
    multiply_plain(rows, filters)
}

/// The same code, with wider registers. Without fused multiply-adds, so that the bits are the same.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_avx2(rows: [&[f32]; WORDS], filters: &[f32]) -> [[f32; COLUMNS]; WORDS] {
    multiply_plain(rows, filters)
}

#[inline(always)]
fn multiply_plain(rows: [&[f32]; WORDS], filters: &[f32]) -> [[f32; COLUMNS]; WORDS] {
    let mut sums = [[0.0f32; COLUMNS]; WORDS];
    let dim = filters.len() / COLUMNS;
    let rows = rows.map(|row| &row[..dim]);
    for (component, weights) in filters.as_chunks::<COLUMNS>().0.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let factor = row[component];
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += factor * weight;
            }
        }
    }
    sums
}
