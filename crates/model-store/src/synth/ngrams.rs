//! Vectors of n-grams of synthetic models, so that words that are no rows have vectors, too.

use rayon::prelude::*;

use super::{Purpose, Synth};
use crate::encoder::NgramLengths;

/// The lengths of n-grams, as fastText has them unless it is told others.
pub(super) fn lengths(buckets: u32) -> NgramLengths {
    NgramLengths { minn: 3, maxn: 6, buckets }
}

impl Synth {
    /// The vectors of the buckets from `first` on, as many as fit `out` `[buckets, dim]`, on all cores.
    /// Component `d` of bucket `b` is `scale(d) · (gram(b, d) + 0.35 · mean(d))`: they share the heavy
    /// components and the common direction of the rows, and nothing else.
    ///
    /// # Panics
    /// If `out` is no whole number of vectors.
    pub fn fill_ngrams(&self, first: u32, out: &mut [f32]) {
        assert!(out.len().is_multiple_of(self.dim()), "whole vectors only");
        let vectors = out.par_chunks_mut(self.dim()).zip(first..u32::MAX);
        vectors.for_each(|(vector, bucket)| {
            for (d, x) in (0..).zip(vector.iter_mut()) {
                let (scale, mean) = (self.scales[d as usize], self.means[d as usize]);
                *x = scale * (self.gaussian(Purpose::Ngram, bucket, d) + 0.35 * mean);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_vectors_for_ever_whoever_asks() {
        let of = |seed| {
            let mut vectors = vec![0.0; 300 * 20];
            Synth::new(1000, 20, seed).fill_ngrams(0, &mut vectors);
            vectors
        };
        let all = of(7);
        assert_ne!(all, of(8));
        let mut some = vec![0.0; 10 * 20];
        Synth::new(1000, 20, 7).fill_ngrams(200, &mut some);
        assert_eq!(all[200 * 20..210 * 20], some);
        assert!(all.chunks(20).all(|vector| vector.iter().any(|x| *x != 0.0)));
        // As for the rows: published figures may refer to it.
        assert_eq!(blake3::hash(bytemuck::cast_slice(&all)).to_hex()[..16], *"b540314c89a0ca3e");
    }
}
