//! Norms of many vectors, while they are copied: what an array of queries needs before it can wait
//! for an engine.

use contract::score::{LANES, fold};

use crate::InstructionSet;
use crate::instruction_set::dispatched;

dispatched! {
    /// See [`copy_with_norms`].
    fn copy_with_norms(vectors: &[f32], dim: usize, copy: &mut [f32], norms: &mut Vec<f64>) =
        portable, compiled for avx512 "avx2", avx2 "avx2";
}

/// Copies vectors `[n, dim]` to `copy`, and returns the [norm](contract::score::norm) of each,
/// `[n]`, with the contract's bits.
///
/// # Panics
/// If `dim` is 0, the last vector is incomplete, or the copy has another length.
pub fn copy_with_norms(vectors: &[f32], dim: usize, copy: &mut [f32]) -> Vec<f64> {
    assert!(vectors.len().is_multiple_of(dim), "{} components of vectors [{dim}]", vectors.len());
    assert_eq!(vectors.len(), copy.len(), "a copy is as long as what is copied");
    let mut norms = Vec::with_capacity(vectors.len() / dim);
    InstructionSet::best().copy_with_norms(vectors, dim, copy, &mut norms);
    norms
}

/// The copy is made vector by vector, so that each is still in the nearest cache when its norm is
/// taken.
#[inline(always)]
fn portable(vectors: &[f32], dim: usize, copy: &mut [f32], norms: &mut Vec<f64>) {
    for (vector, copy) in vectors.chunks_exact(dim).zip(copy.chunks_exact_mut(dim)) {
        copy.copy_from_slice(vector);
        norms.push(norm(vector));
    }
}

/// The contract's norm, in whole chunks: with the contract's own loop, whose last chunk is shorter,
/// AVX2 would be no faster.
#[inline(always)]
fn norm(vector: &[f32]) -> f64 {
    let mut lanes = [0.0; LANES];
    let mut add = |chunk: &[f32; LANES]| {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(x) * f64::from(x);
        }
    };
    let (whole, rest) = vector.as_chunks();
    whole.iter().for_each(&mut add);
    if !rest.is_empty() {
        // Squares of zeros change no lane.
        let mut padded = [0.0; LANES];
        padded[..rest.len()].copy_from_slice(rest);
        add(&padded);
    }
    fold(lanes).sqrt()
}

#[cfg(test)]
mod tests {
    use contract::score;
    use proptest::prelude::*;

    use super::*;

    fn of_both(vectors: &[f32], dim: usize) -> [(Vec<f32>, Vec<f64>); 2] {
        let mut plain = (vec![0.0; vectors.len()], Vec::new());
        portable(vectors, dim, &mut plain.0, &mut plain.1);
        let mut copy = vec![0.0; vectors.len()];
        let norms = copy_with_norms(vectors, dim, &mut copy);
        [plain, (copy, norms)]
    }

    proptest! {
        #[test]
        fn norms_have_the_contracts_bits(
            dim in 1usize..140,
            count in 0usize..5,
            seed in prop::collection::vec(any::<f32>(), 700),
        ) {
            let vectors = &seed[..dim * count];
            let expected: Vec<u64> =
                vectors.chunks(dim).map(|vector| score::norm(vector).to_bits()).collect();
            for (copy, norms) in of_both(vectors, dim) {
                let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                prop_assert_eq!(bits(&copy), bits(vectors));
                let norms: Vec<u64> = norms.into_iter().map(f64::to_bits).collect();
                // A norm of a vector with a NaN is one, but which is not said.
                for (norm, expected) in norms.iter().zip(&expected) {
                    let both_nan = f64::from_bits(*norm).is_nan() && f64::from_bits(*expected).is_nan();
                    prop_assert!(both_nan || norm == expected);
                }
                prop_assert_eq!(norms.len(), count);
            }
        }
    }

    #[test]
    #[should_panic(expected = "5 components of vectors [2]")]
    fn an_incomplete_vector_is_refused() {
        copy_with_norms(&[0.0; 5], 2, &mut [0.0; 5]);
    }
}
