//! The score, and the only order in which its sums may be taken.
//!
//! `score(q, x) = dot(q, x) / (norm(q) · norm(x))`, clamped to [−1, 1], in float64 from float32
//! components: one product, one division, one square root, each rounded once (IEEE 754).

/// The number of partial sums of a dot product. Component `i` goes to lane `i mod LANES`.
///
/// A GPU warp has this many lanes; four AVX-512 registers hold as many float64.
pub const LANES: usize = 32;

/// Dot product of two float32 vectors of equal length, in float64.
///
/// The lanes start at +0.0 and take their components in ascending order; then they fold by 16, 8,
/// 4, 2 and 1. The product of two float32 is exact in float64 (24 + 24 ≤ 53 bits, and the exponents
/// fit), so a fused multiply-add gives the same bits as a product and a sum.
///
/// # Panics
/// If the lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "a dot product needs two vectors of one length");
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += f64::from(a) * f64::from(b);
        }
    }
    fold(lanes)
}

/// The sum of the lanes, folded by halves: all [`LANES`] by 16, 8, 4, 2 and 1,
/// `lanes[l] += lanes[l + step]`. Fewer lanes, a power of two, are the result of earlier folds.
pub fn fold<const N: usize>(mut lanes: [f64; N]) -> f64 {
    const { assert!(N.is_power_of_two(), "halves of halves down to one lane") };
    let mut step = N / 2;
    while step > 0 {
        for l in 0..step {
            lanes[l] += lanes[l + step];
        }
        step /= 2;
    }
    lanes[0]
}

/// Euclidean norm: `sqrt(dot(v, v))`. Zero only if every component is zero: the square of the
/// smallest float32, 2⁻²⁹⁸, is an ordinary float64.
pub fn norm(v: &[f32]) -> f64 {
    dot(v, v).sqrt()
}

/// Cosine similarity from a dot product and two norms, neither of them zero.
#[inline]
pub fn cosine(dot: f64, query_norm: f64, row_norm: f64) -> f64 {
    (dot / (query_norm * row_norm)).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The contract's definition, word for word, without chunks.
    fn dot_by_the_sentence(a: &[f32], b: &[f32]) -> f64 {
        let mut lanes = vec![0.0f64; 32];
        for i in 0..a.len() {
            lanes[i % 32] += a[i] as f64 * b[i] as f64;
        }
        for s in [16, 8, 4, 2, 1] {
            for l in 0..s {
                lanes[l] += lanes[l + s];
            }
        }
        lanes[0]
    }

    proptest! {
        #[test]
        fn dot_is_the_contracts_sum(pairs in prop::collection::vec((-1e3f32..1e3, -1e3f32..1e3), 1..200)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            prop_assert_eq!(dot(&a, &b).to_bits(), dot_by_the_sentence(&a, &b).to_bits());
        }
    }

    #[test]
    fn the_order_of_summation_matters_and_is_the_lanes() {
        // In plain order, the 1.0 vanishes beside 2⁵³; in its own lane it survives until the fold.
        let big = (2.0f32).powi(53);
        let mut a = vec![0.0f32; 33];
        (a[0], a[1], a[32]) = (big, 1.0, -big);
        assert_eq!(dot(&a, &[1.0; 33]), 1.0);
    }

    #[test]
    fn norms_of_the_smallest_and_the_largest_vectors_are_ordinary_numbers() {
        let smallest = f32::from_bits(1);
        assert!(norm(&[smallest]) > 0.0);
        assert!(norm(&[f32::MAX; 4096]).is_finite());
        assert_eq!(norm(&[0.0, -0.0]), 0.0);
        assert_eq!(
            cosine(dot(&[smallest], &[smallest]), norm(&[smallest]), norm(&[smallest])),
            1.0
        );
    }

    #[test]
    fn cosines_are_clamped() {
        assert_eq!(cosine(1.0 + 1e-15, 1.0, 1.0), 1.0);
        assert_eq!(cosine(-1.0 - 1e-15, 1.0, 1.0), -1.0);
    }
}
