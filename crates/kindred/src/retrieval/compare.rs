//! Folds of queries for cross-validation, and the paired permutation test. Both follow from a seed.

use model_store::synth::split_mix;
use serde::Serialize;

/// The fold of each of `count` queries, at random; sizes differ by one at most.
pub fn folds(count: usize, folds: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut state = split_mix(seed);
    for last in (1..count).rev() {
        state = split_mix(state);
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    let mut fold_of = vec![0; count];
    for (place, query) in order.into_iter().enumerate() {
        fold_of[query] = place % folds;
    }
    fold_of
}

/// The difference between two runs, as a mean over queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The mean difference.
    pub mean: f64,
    /// How probable a mean at least as far from 0 is, if it is chance which of the two runs gave which figure of a query.
    pub p: f64,
}

impl Difference {
    /// The paired permutation test, two-sided, of these differences (Smucker, Allan and Carterette 2007): their signs are
    /// drawn again and again. The observed signs count as one of the draws, so that `p` is never 0.
    pub fn new(differences: &[f64], permutations: u32, seed: u64) -> Self {
        let sum: f64 = differences.iter().sum();
        // Sums in another order differ in their last bits; those are ties.
        let far = sum.abs() * (1.0 - 1e-9) - 1e-12;
        let mut state = split_mix(seed);
        let mut as_far = 1;
        for _ in 0..permutations {
            let mut drawn = 0.0;
            for part in differences.chunks(64) {
                state = split_mix(state);
                for (bit, difference) in part.iter().enumerate() {
                    // Without a branch, which would be mispredicted half of the time.
                    drawn += difference * (1.0 - 2.0 * ((state >> bit & 1) as f64));
                }
            }
            as_far += u32::from(drawn.abs() >= far);
        }
        let p = f64::from(as_far) / (f64::from(permutations) + 1.0);
        Self { mean: sum / differences.len() as f64, p }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_even_and_follow_from_the_seed() {
        let found = folds(23, 5, 1);
        let sizes: Vec<usize> =
            (0..5).map(|fold| found.iter().filter(|&&own| own == fold).count()).collect();
        assert_eq!(sizes, [5, 5, 5, 4, 4]);
        assert_eq!(found, folds(23, 5, 1));
        assert_ne!(found, folds(23, 5, 2));
        assert_eq!(folds(0, 5, 1), [0; 0]);
    }

    #[test]
    fn p_is_that_of_all_permutations() {
        // Of the 2^n signs, two have all differences on one side.
        let near = |difference: &[f64], expected: f64| {
            let found = Difference::new(difference, 100_000, 7);
            assert!((found.p - expected).abs() < 0.005, "{difference:?}: {found:?}");
        };
        near(&[1.0; 4], 2.0 / 16.0);
        near(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2.0 / 64.0);
        // |±1 ± 1 ± 3| is 3 or more for 6 of 8.
        near(&[1.0, -1.0, 3.0], 6.0 / 8.0);
        near(&[-0.1; 70], 0.0);
        assert_eq!(Difference::new(&[0.0; 9], 1000, 1), Difference { mean: 0.0, p: 1.0 });
        assert_eq!(Difference::new(&[0.5; 64], 999, 1), Difference { mean: 0.5, p: 0.001 });
        assert_eq!(Difference::new(&[2.0, -1.0], 10, 1).mean, 0.5);
    }
}
