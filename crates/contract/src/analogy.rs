//! Turns word arithmetic into one query vector: one function, on the host, for all engines.
//!
//! "king − man + woman" is 3CosAdd (Mikolov, Yih and Zweig 2013, "Linguistic Regularities in
//! Continuous Space Word Representations"): the neighbours of the sum of weighted unit vectors.
//!
//! Under [`Metric::Dot`] the vectors are not unit vectors, and the sum is not normalised.
//!
//! The sum is rounded to float32 once, at the end. So the analogy of a single word can differ from
//! the word's neighbours in the last bits of their scores.

use indexmap::IndexMap;

use super::score::{LANES, fold};
use super::{Metric, Row, TableRows};

/// A word of an analogy, after look-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedWord {
    /// The word's row.
    pub row: Row,
    /// The word's weight, finite; negative moves away from the word.
    pub weight: f64,
}

/// Why an analogy has no query vector.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnalogyError {
    /// There are no words, or their weights cancel out.
    #[error("the analogy is empty: it has no words, or their weights cancel out")]
    NothingLeft,
    /// A word whose vector is zero has no direction to add.
    #[error("row {row} is a zero vector: it has no direction, so it can't be part of an analogy")]
    ZeroRow {
        /// The word's row.
        row: Row,
    },
    /// The weighted unit vectors sum to zero.
    #[error("the weighted vectors of the analogy sum to zero: the result has no direction")]
    ZeroSum,
    /// A sum or its norm left the range of float64, or a component that of float32.
    #[error("the weights of the analogy are too large: the sum is not finite")]
    NotFinite,
}

/// The sum of an analogy's words.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalogySum {
    /// The query vector, `[dim]`.
    pub vector: Vec<f32>,
    /// What `Σ weight · (x / norm(x))` was divided by: its norm, above zero. 1 under
    /// [`Metric::Dot`].
    pub norm: f64,
    /// The distinct words, in order of first appearance, with their weights in the sum; no weight
    /// is 0.
    pub words: Vec<WeightedWord>,
}

/// Computes the sum of an analogy. Equal words are merged (weights are added in order of first
/// appearance) and weights of 0 are dropped. `Σ weight · (x / norm(x))` is computed in float64 in
/// that order, divided by its norm, and rounded to float32 once. Under [`Metric::Dot`] it is
/// `Σ weight · x`, and not divided.
///
/// The norm of the sum uses the contract's order of summation, without fused multiply-adds.
///
/// ```
/// use contract::analogy::{WeightedWord, analogy_sum};
/// use contract::{Row, Table};
///
/// // 3 · (1, 0) + 4 · (0, 1), normalised to length 1.
/// let table = Table::new(&[2.0, 0.0, 0.0, 5.0], &[2.0, 5.0], 2);
/// let words = [(0, 3.0), (1, 4.0)].map(|(row, weight)| WeightedWord { row: Row(row), weight });
/// assert_eq!(analogy_sum(&table, &words)?.vector, [0.6, 0.8]);
/// # Ok::<(), contract::AnalogyError>(())
/// ```
///
/// # Errors
/// If the sum has no direction; see [`AnalogyError`].
///
/// # Panics
/// If a row does not exist in the table.
pub fn analogy_sum(
    table: &dyn TableRows,
    words: &[WeightedWord],
) -> Result<AnalogySum, AnalogyError> {
    let mut merged: IndexMap<Row, f64> = IndexMap::with_capacity(words.len());
    for word in words {
        *merged.entry(word.row).or_insert(0.0) += word.weight;
    }
    merged.retain(|_, weight| *weight != 0.0);
    if merged.is_empty() {
        return Err(AnalogyError::NothingLeft);
    }
    let mut sum = vec![0.0f64; table.dim()];
    for (&row, &weight) in &merged {
        let norm = match table.metric() {
            Metric::Cosine => table.norm(row),
            Metric::Dot => 1.0,
        };
        if norm == 0.0 {
            return Err(AnalogyError::ZeroRow { row });
        }
        for (sum, &x) in sum.iter_mut().zip(table.row(row)) {
            *sum += weight * (f64::from(x) / norm);
        }
    }
    let norm = norm_of_sum(&sum);
    if !norm.is_finite() {
        return Err(AnalogyError::NotFinite);
    }
    if norm == 0.0 {
        return Err(AnalogyError::ZeroSum);
    }
    let norm = match table.metric() {
        Metric::Cosine => norm,
        Metric::Dot => 1.0,
    };
    let vector: Vec<f32> = sum.iter().map(|s| (s / norm) as f32).collect();
    if !vector.iter().all(|component| component.is_finite()) {
        return Err(AnalogyError::NotFinite);
    }
    let words = merged.into_iter().map(|(row, weight)| WeightedWord { row, weight }).collect();
    Ok(AnalogySum { vector, norm, words })
}

fn norm_of_sum(sum: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in sum.chunks(LANES) {
        for (lane, s) in lanes.iter_mut().zip(chunk) {
            *lane += s * s;
        }
    }
    fold(lanes).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, score};

    const COMPONENTS: [f32; 8] = [2.0, 0.0, 0.0, 3.0, 0.0, 0.0, -5.0, 0.0];

    fn vector(words: &[(u32, f64)]) -> Result<Vec<f32>, AnalogyError> {
        let norms: Vec<f64> = COMPONENTS.chunks(2).map(score::norm).collect();
        let words: Vec<_> =
            words.iter().map(|&(row, weight)| WeightedWord { row: Row(row), weight }).collect();
        analogy_sum(&Table::new(&COMPONENTS, &norms, 2), &words).map(|sum| sum.vector)
    }

    #[test]
    fn unit_vectors_are_weighted_and_the_sum_is_normalised() {
        assert_eq!(vector(&[(0, 3.0), (1, 4.0)]).unwrap(), [0.6, 0.8]);
        assert_eq!(vector(&[(0, 1.0)]).unwrap(), [1.0, 0.0]);
        assert_eq!(vector(&[(0, -0.5)]).unwrap(), [-1.0, 0.0]);
    }

    #[test]
    fn equal_words_merge_and_cancelled_ones_are_dropped() {
        assert_eq!(vector(&[(0, 1.0), (1, 4.0), (0, 2.0)]).unwrap(), [0.6, 0.8]);
        // The zero row would be an error, but its weight cancels first.
        assert_eq!(vector(&[(2, 1.0), (1, 1.0), (2, -1.0)]).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn the_sum_is_told_with_its_words_and_its_length() {
        let norms: Vec<f64> = COMPONENTS.chunks(2).map(score::norm).collect();
        let words = [(1, 4.0), (0, 1.0), (2, 1.0), (0, 2.0), (2, -1.0)]
            .map(|(row, weight)| WeightedWord { row: Row(row), weight });
        let sum = analogy_sum(&Table::new(&COMPONENTS, &norms, 2), &words).unwrap();
        assert_eq!((sum.vector, sum.norm), (vec![0.6, 0.8], 5.0));
        let told: Vec<_> = sum.words.iter().map(|word| (word.row.0, word.weight)).collect();
        assert_eq!(told, [(1, 4.0), (0, 3.0)]);
    }

    #[test]
    fn under_dot_the_vectors_are_as_long_as_they_are() {
        let norms: Vec<f64> = COMPONENTS.chunks(2).map(score::norm).collect();
        let table = Table::new(&COMPONENTS, &norms, 2).under_dot(None);
        let sum = |words: &[(u32, f64)]| {
            let words: Vec<_> =
                words.iter().map(|&(row, weight)| WeightedWord { row: Row(row), weight }).collect();
            analogy_sum(&table, &words)
        };
        // The zero row is a vector like others.
        let found = sum(&[(0, 1.5), (1, -2.0), (2, 1.0)]).unwrap();
        assert_eq!((found.vector, found.norm), (vec![3.0, -6.0], 1.0));
        assert_eq!(sum(&[(2, 1.0)]).unwrap_err(), AnalogyError::ZeroSum);
        assert_eq!(sum(&[(0, 1e39)]).unwrap_err(), AnalogyError::NotFinite);
    }

    #[test]
    fn what_points_nowhere_is_refused() {
        assert_eq!(vector(&[]).unwrap_err(), AnalogyError::NothingLeft);
        assert_eq!(vector(&[(0, 1.0), (0, -1.0)]).unwrap_err(), AnalogyError::NothingLeft);
        assert_eq!(vector(&[(2, 1.0)]).unwrap_err(), AnalogyError::ZeroRow { row: Row(2) });
        assert_eq!(vector(&[(0, 1.0), (3, 1.0)]).unwrap_err(), AnalogyError::ZeroSum);
        assert_eq!(vector(&[(0, 1e300), (1, 1.0)]).unwrap_err(), AnalogyError::NotFinite);
        assert_eq!(vector(&[(0, 1e308), (0, 1e308)]).unwrap_err(), AnalogyError::NotFinite);
    }
}
