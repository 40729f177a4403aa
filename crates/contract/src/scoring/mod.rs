//! The formulas: from a row's cosine similarities to its score.
//!
//! Source: Levy and Goldberg 2014, "Linguistic Regularities in Sparse and Explicit Word
//! Representations". Everything is evaluated in float64, from the contract's scores, in the order
//! written here and without fused multiply-adds. So the bits are the same everywhere.

mod cover;

pub use cover::{Curve, HalfSpace, stretch};

use crate::{Metric, QueryError, QueryVector, Row, ScoringVector, TableRows};

/// The maximum number of words of a [`Scoring`]. A product of this many factors, none below 0.001,
/// is far inside the range of float64, so no score is infinite or NaN.
pub const MAX_SCORING_WORDS: usize = 100;

/// Levy and Goldberg's ε, which keeps 3CosMul from dividing by zero.
pub const EPSILON: f64 = 0.001;

/// The smallest squared distance between two unit vectors at which their difference has a
/// direction. Below it, the difference is mostly rounding error.
pub const LEAST_SQUARE: f64 = 1e-12;

/// A formula that computes a row's score from its cosine similarities to some vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoring {
    vectors: Vec<ScoringVector>,
    formula: Formula,
}

/// What a formula does with its vectors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Formula {
    /// The score is that of the only vector.
    Cosine,
    /// 3CosMul.
    ThreeCosMul {
        /// The number of words that are multiplied, which are the first vectors.
        positive: usize,
    },
    /// PairDirection: what it subtracts and divides by.
    PairDirection {
        /// cos(b, c) − cos(a, c).
        at_c: f64,
        /// √(2 − 2 cos(a, b)).
        length: f64,
    },
}

/// Why words have no scoring.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScoringError {
    /// There are no words.
    #[error("no words to score by; give at least one")]
    NoWords,
    /// There are more words than the formula allows.
    #[error("{found} words to multiply are too many; give at most {MAX_SCORING_WORDS}")]
    TooManyWords {
        /// The number of words given.
        found: usize,
    },
    /// A word whose vector is zero has no direction.
    #[error("row {row} is a zero vector: it has no direction, so it can't be compared")]
    ZeroRow {
        /// The word's row.
        row: Row,
    },
    /// There is no such row.
    #[error("row {row} does not exist; the model has {rows} rows, numbered from 0")]
    NoSuchRow {
        /// The row asked for.
        row: Row,
        /// The table's number of rows.
        rows: usize,
    },
    /// The formula is one of cosine similarities.
    #[error(
        "{formula} is a formula of cosine similarities, but this model's metric is `dot`; ask for nearest words, or \
         prepare the vectors with `--metric cosine`"
    )]
    NotUnderDot {
        /// Its name.
        formula: &'static str,
    },
    /// The two words of a pair have the same direction, so there is no step from one to the other.
    #[error(
        "rows {a} and {b} have the same direction, so there is no step from one to the other; give two \
         different words"
    )]
    SameDirection {
        /// The row that is subtracted.
        a: Row,
        /// The row that is added.
        b: Row,
    },
}

impl Scoring {
    /// The score of one vector by the table's metric: what a search ranks by.
    ///
    /// # Errors
    /// A vector of the wrong dimension, not finite or zero; a row that does not exist.
    pub fn vector(table: &dyn TableRows, vector: QueryVector) -> Result<Self, QueryError> {
        Ok(Self::of_vector(ScoringVector::new(table, vector)?))
    }

    /// The score of one checked vector.
    pub fn of_vector(vector: ScoringVector) -> Self {
        Self { vectors: vec![vector], formula: Formula::Cosine }
    }

    /// What the formula does with its vectors.
    pub fn formula(&self) -> Formula {
        self.formula
    }

    /// The vector, if the score is that of one vector.
    pub fn single_vector(&self) -> Option<&ScoringVector> {
        matches!(self.formula, Formula::Cosine).then(|| &self.vectors[0])
    }

    /// 3CosMul: for `b − a + c`, positive `[b, c]` and negative `[a]`,
    ///
    /// `((s_b + 1)/2) · ((s_c + 1)/2) / ((s_a + 1)/2 + 0.001)`,
    ///
    /// where `s_x` is the row's cosine similarity to the row `x`. More words are further factors:
    /// the score is the product of the positive factors, in order, divided by the product of the
    /// negative ones, in order. An empty product is 1. A repeated word counts each time. The score
    /// is at least 0.
    ///
    /// # Errors
    /// No words, more than [`MAX_SCORING_WORDS`], a zero row, or one that does not exist.
    pub fn three_cos_mul(
        table: &dyn TableRows,
        positive: &[Row],
        negative: &[Row],
    ) -> Result<Self, ScoringError> {
        needs_cosines(table, "3CosMul")?;
        let found = positive.len() + negative.len();
        if found == 0 {
            return Err(ScoringError::NoWords);
        }
        if found > MAX_SCORING_WORDS {
            return Err(ScoringError::TooManyWords { found });
        }
        let rows = positive.iter().chain(negative);
        let vectors = rows.map(|&row| vector_of_row(table, row)).collect::<Result<_, _>>()?;
        Ok(Self { vectors, formula: Formula::ThreeCosMul { positive: positive.len() } })
    }

    /// PairDirection: for `b − a + c`, how parallel the step from `c` to a row is to the step from
    /// `a` to `b`, over unit vectors:
    ///
    /// `((s_b − s_a) − (cos(b, c) − cos(a, c))) / (√(2 − 2 s_c) · √(2 − 2 cos(a, b)))`,
    ///
    /// where `s_x` is the row's cosine similarity to the row `x`. This is the cosine similarity of
    /// the two differences, not clamped. A row with `2 − 2 s_c < 1e-12` coincides with `c`, so
    /// there is no step to it, and it is skipped.
    ///
    /// # Errors
    /// A zero row or one that does not exist, or if `2 − 2 cos(a, b) < 1e-12`.
    pub fn pair_direction(
        table: &dyn TableRows,
        b: Row,
        c: Row,
        a: Row,
    ) -> Result<Self, ScoringError> {
        needs_cosines(table, "PairDirection")?;
        let vectors = [b, c, a].map(|row| vector_of_row(table, row));
        let vectors: Vec<ScoringVector> = vectors.into_iter().collect::<Result<_, _>>()?;
        let cosine = |of: &ScoringVector, with: Row| {
            table
                .score(of.vector.components_in(table), of.norm, with)
                .expect("zero rows were refused above")
        };
        let square = 2.0 - 2.0 * cosine(&vectors[2], b);
        if square < LEAST_SQUARE {
            return Err(ScoringError::SameDirection { a, b });
        }
        let at_c = cosine(&vectors[0], c) - cosine(&vectors[2], c);
        Ok(Self { vectors, formula: Formula::PairDirection { at_c, length: square.sqrt() } })
    }

    /// The same formula with other sources of the same vectors.
    #[must_use]
    pub fn moved(&self, vector: impl Fn(&ScoringVector) -> ScoringVector) -> Self {
        Self { vectors: self.vectors.iter().map(vector).collect(), formula: self.formula }
    }

    /// The vectors whose cosine similarities to a row the formula needs, at least one, in the order
    /// that [`score`](Self::score) expects. Some may be equal.
    pub fn vectors(&self) -> &[ScoringVector] {
        &self.vectors
    }

    /// The score of a row, given the contract's scores of that row against
    /// [`vectors`](Self::vectors). `None` if the row is skipped. Never NaN, infinite or −0.0.
    ///
    /// # Panics
    /// If there are fewer cosines than vectors.
    pub fn score(&self, cosines: &[f64]) -> Option<f64> {
        let (mut score, mut space) = (0.0, 0.0);
        let (scores, space) = (std::slice::from_mut(&mut score), std::slice::from_mut(&mut space));
        self.scores(|vector| std::slice::from_ref(&cosines[vector]), scores, space);
        (!score.is_nan()).then_some(score)
    }

    /// The score of one row. `None` if the row is zero or the formula skips it.
    ///
    /// # Panics
    /// If a vector does not fit the table, or there is no such row.
    pub fn score_of_row(&self, table: &dyn TableRows, row: Row) -> Option<f64> {
        let cosine =
            |asked: &ScoringVector| table.score(asked.vector.components_in(table), asked.norm, row);
        let cosines: Option<Vec<f64>> = self.vectors.iter().map(cosine).collect();
        self.score(&cosines?)
    }

    /// Like [`score`](Self::score), for several rows together. `cosines(i)` are the scores of the
    /// rows against the vector `i`, NaN for zero rows. The score of a skipped row, such as a zero
    /// row, is NaN. `space` is scratch memory.
    ///
    /// # Panics
    /// If a vector has fewer cosines than there are scores, or `space` is smaller.
    #[inline]
    pub fn scores<'a>(
        &self,
        cosines: impl Fn(usize) -> &'a [f64],
        scores: &mut [f64],
        space: &mut [f64],
    ) {
        let rows = scores.len();
        let of = |vector| &cosines(vector)[..rows];
        match self.formula {
            Formula::Cosine => add_zero(scores, of(0)),
            Formula::ThreeCosMul { positive } => {
                let below = &mut space[..rows];
                scores.fill(1.0);
                below.fill(1.0);
                (0..positive).for_each(|vector| multiply(scores, of(vector), 0.0));
                (positive..self.vectors.len())
                    .for_each(|vector| multiply(below, of(vector), EPSILON));
                divide(scores, below);
            }
            Formula::PairDirection { at_c, length } => {
                directions(scores, [of(0), of(1), of(2)], at_c, length);
            }
        }
    }
}

fn needs_cosines(table: &dyn TableRows, formula: &'static str) -> Result<(), ScoringError> {
    match table.metric() {
        Metric::Cosine => Ok(()),
        Metric::Dot => Err(ScoringError::NotUnderDot { formula }),
    }
}

fn vector_of_row(table: &dyn TableRows, row: Row) -> Result<ScoringVector, ScoringError> {
    let components = table.beyond_engines(row).map(|components| components.to_vec().into());
    ScoringVector::new(table, components.unwrap_or(QueryVector::Row(row))).map_err(|error| {
        match error {
            QueryError::NoSuchRow { row, rows } => ScoringError::NoSuchRow { row, rows },
            _ => ScoringError::ZeroRow { row },
        }
    })
}

// Loops over slices instead of arrays, which the compiler would split into scalars. Each adds 0.0
// at the end: that turns −0.0 into +0.0 and changes nothing else.

fn add_zero(scores: &mut [f64], cosines: &[f64]) {
    for (score, cosine) in scores.iter_mut().zip(cosines) {
        *score = cosine + 0.0;
    }
}

/// Factors of 3CosMul. They are not negative, so adding an `epsilon` of 0.0 changes nothing.
fn multiply(products: &mut [f64], cosines: &[f64], epsilon: f64) {
    for (product, cosine) in products.iter_mut().zip(cosines) {
        *product *= (cosine + 1.0) / 2.0 + epsilon;
    }
}

fn divide(scores: &mut [f64], below: &[f64]) {
    for (score, below) in scores.iter_mut().zip(below) {
        *score = *score / below + 0.0;
    }
}

fn directions(scores: &mut [f64], [b, c, a]: [&[f64]; 3], at_c: f64, length: f64) {
    for (((score, b), c), a) in scores.iter_mut().zip(b).zip(c).zip(a) {
        let square = 2.0 - 2.0 * c;
        let direction = ((b - a) - at_c) / (square.sqrt() * length);
        *score = if square < LEAST_SQUARE { f64::NAN } else { direction + 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, score};
    use proptest::prelude::*;

    const COMPONENTS: [f32; 12] = [1.0, 0.0, 0.0, 2.0, -3.0, 0.0, 0.0, 0.0, 4.0, 3.0, 2.0, 0.0];

    fn with_table<T>(ask: impl FnOnce(&Table<'_>) -> T) -> T {
        let norms: Vec<f64> = COMPONENTS.chunks(2).map(score::norm).collect();
        ask(&Table::new(&COMPONENTS, &norms, 2))
    }

    fn rows<const N: usize>(rows: [u32; N]) -> [Row; N] {
        rows.map(Row)
    }

    #[test]
    fn three_cos_mul_is_the_formula() {
        with_table(|table| {
            let scoring = Scoring::three_cos_mul(table, &rows([0, 1]), &rows([4])).unwrap();
            let (b, c, a) = (0.25, -0.5, 0.75);
            let expected = ((b + 1.0) / 2.0) * ((c + 1.0) / 2.0) / ((a + 1.0) / 2.0 + 0.001);
            assert_eq!(scoring.score(&[b, c, a]), Some(expected));
            let positive: Vec<_> = scoring.vectors().iter().map(|v| v.vector.clone()).collect();
            assert_eq!(positive, rows([0, 1, 4]).map(QueryVector::Row));
            // No positive words: the product 1. Equal words count twice.
            let scoring = Scoring::three_cos_mul(table, &[], &rows([4, 4])).unwrap();
            assert_eq!(scoring.score(&[0.0, 0.0]), Some(1.0 / (0.501 * 0.501)));
            let scoring = Scoring::three_cos_mul(table, &rows([0, 0]), &[]).unwrap();
            assert_eq!(scoring.score(&[0.0, 0.0]), Some(0.25));
        });
    }

    #[test]
    fn pair_direction_is_the_cosine_of_the_two_differences() {
        with_table(|table| {
            // From a = (1, 0) to b = (0, 1); from c = (−1, 0) to the row (0.8, 0.6).
            let scoring = Scoring::pair_direction(table, Row(1), Row(2), Row(0)).unwrap();
            let score = scoring.score(&[0.6, -0.8, 0.8]).unwrap();
            let expected = (0.6 - 1.8) / (2.0f64.sqrt() * (1.8f64 * 1.8 + 0.36).sqrt());
            assert!((score - expected).abs() < 1e-15, "{score} {expected}");
            assert_eq!(scoring.score(&[0.0, 1.0, -1.0]), None, "the row is where c is");
            assert_eq!(scoring.score(&[0.0, 1.0 - 1e-13, -1.0]), None);
            assert!(scoring.score(&[0.0, 1.0 - 1e-12, -1.0]).is_some());
        });
    }

    #[test]
    fn what_has_no_score_is_refused() {
        with_table(|table| {
            let mul = |positive: &[Row], negative: &[Row]| {
                Scoring::three_cos_mul(table, positive, negative).unwrap_err()
            };
            assert_eq!(mul(&[], &[]), ScoringError::NoWords);
            assert_eq!(mul(&rows([0, 3]), &[]), ScoringError::ZeroRow { row: Row(3) });
            assert_eq!(mul(&[], &rows([6])), ScoringError::NoSuchRow { row: Row(6), rows: 6 });
            assert_eq!(
                mul(&[Row(0); 60], &[Row(1); 41]),
                ScoringError::TooManyWords { found: 101 }
            );
            let pair =
                |b, c, a| Scoring::pair_direction(table, Row(b), Row(c), Row(a)).unwrap_err();
            assert_eq!(pair(3, 0, 1), ScoringError::ZeroRow { row: Row(3) });
            assert_eq!(pair(0, 9, 1), ScoringError::NoSuchRow { row: Row(9), rows: 6 });
            let same = ScoringError::SameDirection { a: Row(5), b: Row(0) };
            assert_eq!(pair(0, 1, 5), same, "rows of other lengths, but one direction");
            let zero = Scoring::vector(table, QueryVector::Row(Row(3))).unwrap_err();
            assert_eq!(zero, QueryError::Zero);
            assert_eq!(
                Scoring::vector(table, vec![1.0].into()).unwrap_err(),
                QueryError::Dimension { found: 1, expected: 2 }
            );
        });
    }

    proptest! {
        #[test]
        fn scores_are_finite_and_never_negative_zero(
            cosines in prop::collection::vec(
                prop_oneof![-1.0f64..1.0, Just(-1.0), Just(1.0), Just(0.0)], MAX_SCORING_WORDS,
            ),
            negative in 0usize..=MAX_SCORING_WORDS,
        ) {
            with_table(|table| -> Result<(), TestCaseError> {
                let words = [Row(0); MAX_SCORING_WORDS];
                let (minus, plus) = words.split_at(negative);
                let scorings = [
                    Scoring::three_cos_mul(table, plus, minus).unwrap(),
                    Scoring::pair_direction(table, Row(1), Row(2), Row(0)).unwrap(),
                    Scoring::vector(table, QueryVector::Row(Row(0))).unwrap(),
                ];
                for scoring in scorings {
                    let score = scoring.score(&cosines);
                    prop_assert!(score.is_none_or(f64::is_finite), "{score:?}");
                    prop_assert!(score.is_none_or(|s| s != 0.0 || s.is_sign_positive()));
                }
                Ok(())
            })?;
        }
    }
}
