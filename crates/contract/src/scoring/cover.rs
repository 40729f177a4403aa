//! Half-spaces that contain every row with a high score: with them, a scan for dot products finds
//! the best rows by a formula of several cosines (docs/certificate.md, theorem 5).
//!
//! Both formulas can be written as `X ≥ φ(Y)`, where `X` and `Y` are dot products of the row's unit
//! vector with sums of the formula's vectors, and `φ` is concave:
//!
//! - 3CosMul with `P` positive words and at most one negative: the geometric mean of the positive
//!   factors is at most their arithmetic mean. So with `X` the mean of the positive cosines and `Y`
//!   the negative one, a score of at least `F` needs `X ≥ −1 + (2^P · F · ((1 + Y)/2 + ε))^(1/P)`.
//! - PairDirection with `X = (s_b − s_a)/L` and `Y = s_c`: a score of at least `F ≥ 0` needs
//!   `X ≥ (cos(b, c) − cos(a, c))/L + F · √(2 − 2 Y)`, with `L = √(2 − 2 cos(a, b))`.
//!
//! `[−1, 1]` is cut into pieces. If `Y` is in the piece `[y₀, y₁]`, then for every slope `σ` the
//! concave function `φ(Y) − σ Y` is at least the smaller of its values at `y₀` and `y₁`, and so is
//! `X − σ Y`: the row is in a half-space with the normal `X − σ Y`. Any slope is correct. The best
//! is the chord's at the actual `F`, which must be guessed: the normals are needed before most rows
//! are scored.

use super::{EPSILON, Formula, Scoring};
use crate::Table;

/// Where the pieces of `Y` meet. More pieces leave fewer rows in doubt, and each is one more vector
/// to scan for.
const MUL_PIECES: [f64; 4] = [-1.0, -0.3, 0.2, 1.0];
const DIRECTION_PIECES: [f64; 3] = [-1.0, 0.3, 1.0];

/// Guesses of the `k`-th best score, if nothing is known. Of 3CosMul: typical factors of a positive
/// and of a negative word.
const LIKELY_POSITIVE: f64 = 0.8;
const LIKELY_NEGATIVE: f64 = 0.7;
const LIKELY_DIRECTION: f64 = 0.5;

/// The least guess: a slope of zero would leave only one of the two dot products.
const LEAST_LIKELY: f64 = 0.01;
/// Covers the roundings of the contract's cosines (10⁻¹² each), of its formula, of the normal and
/// of the threshold.
const ROUNDING: f64 = 1e-9;

/// A half-space `n · x ≥ t` of unit vectors `x`, for each score `F` that a row must reach.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfSpace {
    /// The weight of each of the formula's unit vectors in the normal.
    weights: Vec<f64>,
    /// At both ends of the piece: the threshold is the smaller of `offset + (factor · F)^power`.
    ends: [End; 2],
    power: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    offset: f64,
    factor: f64,
}

impl HalfSpace {
    /// A lower bound of `n · x` for every row whose score is at least `floor`. `−∞` if there is
    /// none: for a negative floor.
    pub fn threshold(&self, floor: f64) -> f64 {
        if floor.is_nan() || floor <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let at = |end: End| end.offset + (end.factor * floor).powf(self.power) * (1.0 - ROUNDING);
        at(self.ends[0]).min(at(self.ends[1])) - ROUNDING
    }

    /// The normal, `[dim]`.
    pub fn normal(&self, scoring: &Scoring, table: &Table<'_>) -> Vec<f64> {
        let mut normal = vec![0.0; table.dim()];
        for (vector, weight) in scoring.vectors().iter().zip(&self.weights) {
            let scale = weight / vector.norm;
            for (sum, &x) in normal.iter_mut().zip(vector.components(table)) {
                *sum += scale * f64::from(x);
            }
        }
        normal
    }
}

impl Scoring {
    /// The number of half-spaces of the formula's [`cover`](Self::cover). `None` if it has none:
    /// 3CosMul without positive words, or with several negative ones.
    pub fn cover_len(&self) -> Option<usize> {
        match self.formula {
            Formula::Cosine => None,
            Formula::ThreeCosMul { positive: 0 } => None,
            Formula::ThreeCosMul { positive } => match self.vectors.len() - positive {
                0 => Some(1),
                1 => Some(MUL_PIECES.len() - 1),
                _ => None,
            },
            Formula::PairDirection { .. } => Some(DIRECTION_PIECES.len() - 1),
        }
    }

    /// Half-spaces such that every row whose score is at least `F` is in one of them, for every
    /// `F > 0`; always the same number. `likely` is a guess of the `k`-th best score: the closer it
    /// is, the fewer other rows are in a half-space.
    pub fn cover(&self, likely: Option<f64>) -> Option<Vec<HalfSpace>> {
        let curve = self.curve()?;
        let likely = likely.map_or(curve.likely, |score| score.max(LEAST_LIKELY));
        Some(curve.half_spaces(likely))
    }

    /// The curve behind the [`cover`](Self::cover), for engines that make the half-spaces on a
    /// device.
    pub fn curve(&self) -> Option<Curve> {
        self.cover_len()?;
        match self.formula {
            Formula::Cosine => None,
            Formula::ThreeCosMul { positive } => {
                let words = positive as i32;
                let has_negative = self.vectors.len() > positive;
                let weights = |x: f64, y: f64| {
                    let weight = move |i| if i < positive { x } else { y };
                    (0..self.vectors.len()).map(weight).collect()
                };
                let scale = 2f64.powi(words);
                let factor =
                    |y: f64| scale * if has_negative { (1.0 + y) / 2.0 + EPSILON } else { 1.0 };
                let cuts: &[f64] = if has_negative { &MUL_PIECES } else { &[-1.0, 1.0] };
                let likely = LIKELY_POSITIVE.powi(words);
                Some(Curve {
                    x: weights(1.0 / f64::from(words), 0.0),
                    y: weights(0.0, 1.0),
                    offset: -1.0,
                    power: 1.0 / f64::from(words),
                    cuts: cuts.iter().map(|&y| (y, factor(y))).collect(),
                    likely: if has_negative { likely / LIKELY_NEGATIVE } else { likely },
                })
            }
            Formula::PairDirection { at_c, length } => Some(Curve {
                x: vec![1.0 / length, 0.0, -1.0 / length],
                y: vec![0.0, 1.0, 0.0],
                offset: at_c / length,
                power: 1.0,
                cuts: DIRECTION_PIECES.iter().map(|&y| (y, (2.0 - 2.0 * y).sqrt())).collect(),
                likely: LIKELY_DIRECTION,
            }),
        }
    }

    /// Guesses the `k`-th best score of `rows` rows by the score of this `rank` in a sample of
    /// `size` rows. It assumes that scores are spread about the score of a row with all cosines
    /// zero as normal deviates are: the `j`-th best of `n` is about `√(2 ln (n/j))` deviations
    /// above it.
    pub fn extrapolate(&self, score: f64, [rank, size]: [usize; 2], [k, rows]: [usize; 2]) -> f64 {
        let center = self.center();
        center + (score - center) * stretch([rank, size], [k, rows])
    }

    /// The score of a row with all cosines zero.
    pub fn center(&self) -> f64 {
        self.score(&vec![0.0; self.vectors.len()]).unwrap_or_default()
    }
}

/// By how much the `k`-th best of `rows` scores is further from the [center](Scoring::center) than
/// the score of this `rank` in a sample of `size` rows, see [`Scoring::extrapolate`].
pub fn stretch([rank, size]: [usize; 2], [k, rows]: [usize; 2]) -> f64 {
    let deviations = |n: usize, j: usize| (n as f64 / j as f64).max(1.1).ln().sqrt();
    deviations(rows, k) / deviations(size, rank)
}

/// A formula as `X ≥ φ(Y)`, with `φ(y) = offset + (factor(y) · F)^power`.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The weights of [`Scoring::vectors`] in `X`.
    pub x: Vec<f64>,
    /// Their weights in `Y`.
    pub y: Vec<f64>,
    /// See above.
    pub offset: f64,
    /// See above.
    pub power: f64,
    /// Where the pieces of `Y` meet, ascending, and the factor there.
    pub cuts: Vec<(f64, f64)>,
    /// A guess of the `k`-th best score, if nothing is known.
    pub likely: f64,
}

impl Curve {
    /// A half-space for each piece of `Y` between two cuts, with the slope of the chord at the
    /// score `likely`.
    fn half_spaces(&self, likely: f64) -> Vec<HalfSpace> {
        let at_likely = |factor: f64| (factor * likely).powf(self.power);
        let piece = |ends: &[(f64, f64)]| {
            let [(low, low_factor), (high, high_factor)] = [ends[0], ends[1]];
            let slope = (at_likely(high_factor) - at_likely(low_factor)) / (high - low);
            let end = |y: f64, factor| End { offset: self.offset - slope * y, factor };
            HalfSpace {
                weights: self.x.iter().zip(&self.y).map(|(x, y)| x - slope * y).collect(),
                ends: [end(low, low_factor), end(high, high_factor)],
                power: self.power,
            }
        };
        self.cuts.windows(2).map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Row, score};
    use proptest::prelude::*;

    /// Few distinct components make ties, zero rows, and cosines of −1 and 1 common.
    fn component() -> impl Strategy<Value = f32> {
        prop_oneof![(-2i8..=2).prop_map(f32::from), -1.0f32..1.0]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_row_is_in_a_half_space_for_its_own_score(
            components in prop::collection::vec(component(), 60),
            words in prop::collection::vec(0u32..20, 1..7),
            negative in prop::option::of(0u32..20),
            likely in prop::option::of(-1.0f64..3.0),
        ) {
            let dim = 3;
            let norms: Vec<f64> = components.chunks(dim).map(score::norm).collect();
            let table = Table::new(&components, &norms, dim);
            let rows = |words: &[u32]| words.iter().copied().map(Row).collect::<Vec<_>>();
            let negative: Vec<Row> = negative.into_iter().map(Row).collect();
            let mut scorings = vec![Scoring::three_cos_mul(&table, &rows(&words), &negative)];
            if let [b, c, a, ..] = rows(&words)[..] {
                scorings.push(Scoring::pair_direction(&table, b, c, a));
            }
            for scoring in scorings.into_iter().flatten() {
                let cover = scoring.cover(likely).expect("it has at most one negative word");
                prop_assert_eq!(scoring.cover_len(), Some(cover.len()));
                for row in (0..norms.len() as u32).map(Row) {
                    let Some(score) = scoring.score_of_row(&table, row) else { continue };
                    let is_inside = |half_space: &HalfSpace| {
                        let normal = half_space.normal(&scoring, &table);
                        let row_norm = table.norm(row);
                        let unit = table.row(row).iter().map(|&x| f64::from(x) / row_norm);
                        let dot: f64 = unit.zip(&normal).map(|(x, n)| x * n).sum();
                        // The same margin as an engine's: far below what a scan's own bounds add.
                        dot >= half_space.threshold(score)
                    };
                    prop_assert!(cover.iter().any(is_inside), "{scoring:?} {row} {score}");
                }
            }
        }
    }

    #[test]
    fn thresholds_rise_with_the_floor() {
        let components: Vec<f32> = (0..40u8).map(|i| f32::from(i).sin()).collect();
        let norms: Vec<f64> = components.chunks(4).map(score::norm).collect();
        let table = Table::new(&components, &norms, 4);
        let scorings = [
            Scoring::three_cos_mul(&table, &[Row(1), Row(2)], &[Row(3)]).unwrap(),
            Scoring::three_cos_mul(&table, &[Row(1)], &[]).unwrap(),
            Scoring::pair_direction(&table, Row(1), Row(2), Row(3)).unwrap(),
        ];
        for half_space in scorings.iter().flat_map(|scoring| scoring.cover(None).unwrap()) {
            let floors = [f64::NAN, -0.5, 0.0, 1e-300, 0.2, 0.5, 0.9, 1.5, 1e6];
            let thresholds = floors.map(|floor| half_space.threshold(floor));
            assert!(thresholds[..3].iter().all(|&threshold| threshold == f64::NEG_INFINITY));
            assert!(thresholds[3..].windows(2).all(|two| two[0] <= two[1]), "{thresholds:?}");
        }
        assert!(Scoring::three_cos_mul(&table, &[], &[Row(1)]).unwrap().cover(None).is_none());
        let two = Scoring::three_cos_mul(&table, &[Row(1)], &[Row(2), Row(3)]).unwrap();
        assert!(two.cover(None).is_none());
    }
}
