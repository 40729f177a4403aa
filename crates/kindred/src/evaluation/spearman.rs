//! Spearman's rank correlation.

/// Spearman's ρ of pairs of numbers: Pearson's correlation of their ranks, where equal numbers
/// share the average of their ranks. `None` for fewer than two pairs, or if all numbers of one side
/// are equal.
///
/// # Panics
/// If a number is NaN.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (left, right) = (ranks(&left), ranks(&right));
    // The mean of the ranks, with or without ties.
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (product(&left, &left) * product(&right, &right)).sqrt();
    (spread > 0.0).then(|| product(&left, &right) / spread)
}

/// The rank of each number, from 1; equal ones share the average.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].partial_cmp(&numbers[b]).expect("numbers are not NaN"));
    let mut ranks = vec![0.0; numbers.len()];
    let mut next = 1;
    for equal in order.chunk_by(|&a, &b| numbers[a] == numbers[b]) {
        let last = next + equal.len() - 1;
        for &index in equal {
            ranks[index] = (next + last) as f64 / 2.0;
        }
        next = last + 1;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_share_their_average_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
        assert_eq!(ranks(&[0.0, -0.0]), [1.5, 1.5]);
    }

    #[test]
    fn rho_is_what_textbooks_give() {
        let rho = |pairs: &[(f64, f64)]| spearman(pairs).unwrap();
        assert_eq!(rho(&[(1.0, 10.0), (2.0, 100.0), (3.0, 1000.0)]), 1.0);
        assert_eq!(rho(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        // Without ties: 1 − 6 Σd² / n(n² − 1), d = 1, 1, 1, 1 and 0.
        let pairs = [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0), (5.0, 5.0)];
        assert!((rho(&pairs) - (1.0 - 6.0 * 4.0 / 120.0)).abs() < 1e-15);
        // With a tie: ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4, so 4.5 / √(4.5 · 5) = √0.9.
        let pairs = [(1.0, 1.0), (2.0, 2.0), (2.0, 3.0), (3.0, 4.0)];
        assert!((rho(&pairs) - 0.9f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn what_does_not_vary_correlates_with_nothing() {
        assert_eq!(spearman(&[]), None);
        assert_eq!(spearman(&[(1.0, 2.0)]), None);
        assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
