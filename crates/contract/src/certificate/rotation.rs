//! The random rotation that derived tables and their queries go through.

use super::ROTATION_HASH;

/// A fixed random rotation of vectors of `dim` components: signs, then a Hadamard transform, over
/// the first `p` components and again over the last `p`, `p` being the largest power of two that is
/// at most `dim`.
///
/// It is orthogonal, so cosines do not change. It spreads heavy components over many others, so
/// that few bits represent the vector better. (A randomised Hadamard transform: Ailon and Chazelle
/// 2009, "The Fast Johnson–Lindenstrauss Transform".) The kernels do the same in
/// `kernels/include/rotation.cuh`.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// For each half, `[size]`: a sign times `1 / sqrt(size)`.
    halves: [Vec<f64>; 2],
    dim: usize,
}

impl Rotation {
    /// The rotation for vectors of `dim` components.
    ///
    /// # Panics
    /// If `dim` is 0.
    pub fn new(dim: usize) -> Self {
        assert!(dim > 0, "a vector has at least one component");
        let size = 1 << dim.ilog2();
        let scale = 1.0 / (size as f64).sqrt();
        let half = |half| (0..size as u32).map(|i| sign(i, half) * scale).collect();
        Self { halves: [half(1), half(2)], dim }
    }

    /// Rotates `LANES` vectors together, in place. `vectors` is `[dim]`; each element holds one
    /// component of every vector.
    ///
    /// Computes in float64. A component has at most 2 · (12 + 2) roundings, each of at most 2⁻⁵³ of
    /// the vector's norm, so the result for a unit vector is within 2⁻⁴⁷ of the exact one.
    ///
    /// # Panics
    /// If the vectors have a different number of components.
    #[inline(always)]
    pub fn apply<const LANES: usize>(&self, vectors: &mut [[f64; LANES]]) {
        assert_eq!(vectors.len(), self.dim, "a rotation is for vectors of one length");
        let size = self.halves[0].len();
        hadamard(&mut vectors[..size], &self.halves[0]);
        if size < self.dim {
            hadamard(&mut vectors[self.dim - size..], &self.halves[1]);
        }
    }
}

#[inline(always)]
fn hadamard<const LANES: usize>(values: &mut [[f64; LANES]], factors: &[f64]) {
    for (value, factor) in values.iter_mut().zip(factors) {
        for x in value {
            *x *= factor;
        }
    }
    let mut step = 1;
    while step < values.len() {
        for pair in values.chunks_exact_mut(2 * step) {
            let (low, high) = pair.split_at_mut(step);
            for (a, b) in low.iter_mut().zip(high) {
                for (a, b) in a.iter_mut().zip(b) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
        }
        step *= 2;
    }
}

fn sign(component: u32, half: u32) -> f64 {
    let [by_component, by_half, start, first, second] = ROTATION_HASH;
    let mut hash = component
        .wrapping_mul(by_component)
        .wrapping_add(half.wrapping_mul(by_half))
        .wrapping_add(start);
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(first);
    hash ^= hash >> 12;
    hash = hash.wrapping_mul(second);
    hash ^= hash >> 15;
    if hash & 1 == 1 { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(a: &[[f64; 2]], lane: usize, other: usize) -> f64 {
        a.iter().map(|x| x[lane] * x[other]).sum()
    }

    #[test]
    fn lengths_and_angles_stay_and_heavy_components_spread() {
        for dim in [1, 2, 3, 7, 8, 50, 100, 300, 768, 4096] {
            let rotation = Rotation::new(dim);
            let mut vectors: Vec<[f64; 2]> =
                (0..dim).map(|i| [f64::from(u8::from(i == dim / 2)), (i as f64).sin()]).collect();
            let before = [dot(&vectors, 0, 0), dot(&vectors, 0, 1), dot(&vectors, 1, 1)];
            rotation.apply(&mut vectors);
            let after = [dot(&vectors, 0, 0), dot(&vectors, 0, 1), dot(&vectors, 1, 1)];
            for (before, after) in before.into_iter().zip(after) {
                assert!((before - after).abs() < 1e-11 * before.abs().max(1.0), "{dim} components");
            }
            let heaviest = vectors.iter().map(|x| x[0].abs()).fold(0.0, f64::max);
            assert!(dim < 50 || heaviest < 0.55, "{dim} components: {heaviest}");
        }
    }
}
