//! The bias with which a text touches a given number of terms at the start.

use contract::score;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Data;

/// Texts and terms of the sample.
const TEXTS: usize = 64;
const TERMS: usize = 4096;

/// The bias with which a relevant text touches about `wanted` terms, by a sample of texts and terms: as many of the sample's maxima
/// are above its negative.
pub(super) fn bias(data: Data<'_>, terms: &[f32], wanted: f32, pool: &ThreadPool) -> f32 {
    let (dim, count) = (data.dim, terms.len() / data.dim);
    let every = |count: usize, most: usize| (0..count).step_by(count.div_ceil(most).max(1));
    let texts: Vec<&[u32]> =
        every(data.train.len(), TEXTS).map(|at| &data.train[at].relevant[..]).collect();
    let sample: Vec<usize> = every(count, TERMS).collect();
    let of_term = |&term: &usize| -> Vec<f64> {
        let row = &terms[term * dim..][..dim];
        let dot = |&word: &u32| score::dot(&data.vectors[word as usize * dim..][..dim], row);
        let most = |text: &&[u32]| text.iter().map(dot).fold(f64::NEG_INFINITY, f64::max);
        texts.iter().map(most).collect()
    };
    let mut maxima: Vec<f64> =
        pool.install(|| sample.par_iter().map(of_term).collect::<Vec<_>>().concat());
    // Empty texts touch nothing, whatever the bias.
    maxima.retain(|most| most.is_finite());
    maxima.sort_unstable_by(|a, b| b.total_cmp(a));
    let part = f64::from(wanted) / count.max(1) as f64;
    let rank = ((part * maxima.len() as f64) as usize).min(maxima.len().saturating_sub(1));
    maxima.get(rank).map_or(0.0, |most| -most as f32)
}
