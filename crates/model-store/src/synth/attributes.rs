//! Attributes of synthetic rows, for load tests with filters of any selectivity.

use super::{Purpose, Synth};
use crate::attributes::{AttributeFiles, AttributeType, ColumnBuilder, Value};

/// The values of `a` are the integers below.
const INTEGERS: u64 = 1000;

/// Number of keywords.
const KEYWORDS: u32 = 10_000;

impl Synth {
    /// Two attributes, which are independent of the vectors and of each other:
    ///
    /// - `a`, an integer that is uniform in 0 to 999, so `a < x` has x/1000 of the rows;
    /// - `keyword`, one of the texts `k1` to `k10000`, with Zipf frequencies: the probability of
    ///   the n-th is 1/(n H), where H = 1 + 1/2 + ... + 1/10000 = 9.79.
    pub(crate) fn attributes(&self) -> AttributeFiles {
        let mut integers = ColumnBuilder::new("a", AttributeType::Integer);
        let mut keywords = ColumnBuilder::new("keyword", AttributeType::Text);
        let names: Vec<String> = (1..=KEYWORDS).map(|n| format!("k{n}")).collect();
        let sums = harmonic_numbers();
        for row in 0..self.rows {
            integers.push(Some(Value::Integer(self.integer(row))));
            let keyword = self.keyword(row, &sums);
            keywords.push(Some(Value::Text((&*names[keyword]).into())));
        }
        let sources: Vec<Option<u32>> = (0..self.rows).map(Some).collect();
        AttributeFiles::of_columns(vec![integers, keywords], &sources)
    }

    /// The value of `a`: the product of a hash and a number of values, without its last 64 bits.
    fn integer(&self, row: u32) -> i64 {
        let hash = self.hash(Purpose::Integer, row, 0);
        ((u128::from(hash) * u128::from(INTEGERS)) >> 64) as i64
    }

    /// The index of a row's keyword.
    fn keyword(&self, row: u32, sums: &[f64]) -> usize {
        let total = sums[sums.len() - 1];
        let at = self.uniform(Purpose::Keyword, row) * total;
        // A product that is rounded up may be the total.
        sums.partition_point(|&sum| sum <= at).min(sums.len() - 1)
    }
}

/// 1 + 1/2 + ... + 1/n for each n to the number of keywords, from quotients and sums in one order,
/// which round the same everywhere.
fn harmonic_numbers() -> Vec<f64> {
    let added = |sum: &mut f64, n: u32| {
        *sum += 1.0 / f64::from(n);
        Some(*sum)
    };
    (1..=KEYWORDS).scan(0.0, added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of rows with each value.
    fn counts(rows: u32, length: usize, value: impl Fn(u32) -> usize) -> Vec<f64> {
        let mut counts = vec![0.0; length];
        (0..rows).for_each(|row| counts[value(row)] += 1.0);
        counts
    }

    /// The number of rows is within five standard deviations of the one that is expected.
    fn is_near(found: f64, rows: u32, probability: f64) -> bool {
        let expected = f64::from(rows) * probability;
        (found - expected).abs() < 5.0 * (expected * (1.0 - probability)).sqrt()
    }

    #[test]
    fn integers_are_uniform_and_keywords_have_zipf_frequencies() {
        const ROWS: u32 = 200_000;
        let (synth, sums) = (Synth::new(ROWS, 1, 7), harmonic_numbers());
        let integers = counts(ROWS, INTEGERS as usize, |row| synth.integer(row) as usize);
        assert!(integers.iter().all(|&found| is_near(found, ROWS, 1e-3)), "{integers:?}");
        let keywords = counts(ROWS, KEYWORDS as usize, |row| synth.keyword(row, &sums));
        assert!((sums[sums.len() - 1] - 9.787_606_036_044).abs() < 1e-9);
        for n in 1..=1000 {
            let probability = 1.0 / n as f64 / sums[sums.len() - 1];
            assert!(is_near(keywords[n - 1], ROWS, probability), "k{n}: {}", keywords[n - 1]);
        }
        let rare = keywords[1000..].iter().sum::<f64>();
        assert!(is_near(rare, ROWS, 1.0 - sums[999] / sums[sums.len() - 1]), "{rare}");
    }

    #[test]
    fn attributes_are_independent_of_each_other() {
        const ROWS: u32 = 200_000;
        let (synth, sums) = (Synth::new(ROWS, 1, 7), harmonic_numbers());
        let both = |row: &u32| synth.integer(*row) < 500 && synth.keyword(*row, &sums) == 0;
        let found = (0..ROWS).filter(both).count() as f64;
        assert!(is_near(found, ROWS, 0.5 / sums[sums.len() - 1]), "{found}");
    }

    #[test]
    fn the_same_seed_gives_the_same_attributes_for_ever() {
        let sum = |rows, seed| Synth::new(rows, 1, seed).attributes().checksum().to_string();
        assert_ne!(sum(1000, 7), sum(1000, 8));
        // As for the rows: published figures refer to it.
        assert_eq!(sum(1000, 7)[..16], *"blake3:9bcbe5bf6");
    }
}
