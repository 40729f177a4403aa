//! Norms of many vectors, while they are copied: what an array of queries needs before it can wait
//! for an engine.

use contract::score::{LANES, fold};

use crate::InstructionSet;
use crate::instruction_set::{Kernel, Vectors, Work};

/// Copies vectors `[n, dim]` to `copy`, and returns the [norm](contract::score::norm) of each,
/// `[n]`, with the contract's bits.
///
/// # Panics
/// If `dim` is 0, the last vector is incomplete, or the copy has another length.
pub fn copy_with_norms(vectors: &[f32], dim: usize, copy: &mut [f32]) -> Vec<f64> {
    assert!(vectors.len().is_multiple_of(dim), "{} components of vectors [{dim}]", vectors.len());
    assert_eq!(vectors.len(), copy.len(), "a copy is as long as what is copied");
    let mut norms = Vec::with_capacity(vectors.len() / dim);
    InstructionSet::best().run(CopyWithNorms { vectors, dim, copy, norms: &mut norms });
    norms
}

/// See [`copy_with_norms`]. The copy is made vector by vector, so that each is still in the nearest
/// cache when its norm is taken.
struct CopyWithNorms<'a> {
    vectors: &'a [f32],
    dim: usize,
    copy: &'a mut [f32],
    norms: &'a mut Vec<f64>,
}

impl Kernel for CopyWithNorms<'_> {
    const WORK: Work = Work::Narrow;

    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, _: V) {
        let Self { vectors, dim, copy, norms } = self;
        for (vector, copy) in vectors.chunks_exact(dim).zip(copy.chunks_exact_mut(dim)) {
            copy.copy_from_slice(vector);
            norms.push(norm(vector));
        }
    }
}

/// The contract's norm, in whole chunks: with the contract's own loop, whose last chunk is shorter,
/// AVX2 would be no faster.
#[inline(always)]
fn norm(vector: &[f32]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (whole, rest) = vector.as_chunks();
    for chunk in whole {
        add_squares(&mut lanes, chunk);
    }
    if !rest.is_empty() {
        // Squares of zeros change no lane.
        let mut padded = [0.0; LANES];
        padded[..rest.len()].copy_from_slice(rest);
        add_squares(&mut lanes, &padded);
    }
    fold(lanes).sqrt()
}

#[inline(always)]
fn add_squares(lanes: &mut [f64; LANES], chunk: &[f32; LANES]) {
    for (lane, &x) in lanes.iter_mut().zip(chunk) {
        *lane += f64::from(x) * f64::from(x);
    }
}

#[cfg(test)]
mod tests {
    use contract::score;
    use proptest::prelude::*;

    use super::*;

    fn of_all_sets(vectors: &[f32], dim: usize) -> Vec<(Vec<f32>, Vec<f64>)> {
        let of_set = |set: InstructionSet| {
            let (mut copy, mut norms) = (vec![0.0; vectors.len()], Vec::new());
            set.run(CopyWithNorms { vectors, dim, copy: &mut copy, norms: &mut norms });
            (copy, norms)
        };
        let mut all: Vec<_> = InstructionSet::available().into_iter().map(of_set).collect();
        let mut copy = vec![0.0; vectors.len()];
        let norms = copy_with_norms(vectors, dim, &mut copy);
        all.push((copy, norms));
        all
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
            for (copy, norms) in of_all_sets(vectors, dim) {
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
