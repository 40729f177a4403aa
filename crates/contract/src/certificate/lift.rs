//! A table under the metric `dot` as a table of cosines.
//!
//! With x' = (x, bias / β) and q' = (q, β), `q · x + bias = q' · x'`, which is |q'| · N times the
//! product of the unit vector q' / |q'| and x' / N. N is the largest norm of all x', so these rows
//! are at most 1 long, and everything that is proved of dot products of unit vectors holds for them
//! (docs/certificate.md, theorem 7). A score of 1 in the pass means |q'| · N: the query's *unit*.
//!
//! Under the metric `cosine` rows are unit vectors already, and the unit is 1.

use crate::{Metric, Row, Table};

/// Covers the roundings of norms, and those of a score: (dim + 8) · 2⁻⁵² of the unit.
const ROUNDING: f64 = 1e-11;

/// The most by which queries are taken to be longer or shorter than rows.
const MOST_RATIO: f64 = 1e9;

/// How rows and queries are lifted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lift {
    /// The table's metric.
    pub metric: Metric,
    /// N, increased to cover roundings: no lifted row is longer. 1 under the metric `cosine`.
    pub longest: f64,
    /// β, the last component of a lifted query, if there are biases.
    pub beta: Option<f64>,
}

impl Lift {
    /// How the rows of a table are lifted, for queries whose norm is about this, or that are as
    /// long as the longest row; for others the certificate holds as well, but rules out fewer rows.
    pub fn of(table: &Table<'_>, norm: Option<f64>) -> Self {
        let none = Self { metric: table.metric(), longest: 1.0, beta: None };
        if table.metric() == Metric::Cosine {
            return none;
        }
        let biases = table.biases().unwrap_or_default().iter();
        let largest_bias = biases.fold(0.0, |most: f64, &bias| most.max(f64::from(bias).abs()));
        let of_rows = table.norms().iter().fold(0.0, |most: f64, &norm| most.max(norm));
        let lift = Self { beta: beta((of_rows, largest_bias), norm), ..none };
        let square = |row: Row| {
            let (norm, last) = (table.norm(row), lift.last_component(table.bias(row)));
            norm * norm + last * last
        };
        let rows = (0..table.rows() as u32).map(Row);
        let longest = rows.map(square).fold(0.0, f64::max).sqrt();
        lift.with_longest(longest)
    }

    /// The lift for a table under the metric `dot` with norms of at most `norm` and biases of at
    /// most `bias` in magnitude, for queries whose norm is about `query_norm`.
    pub fn of_largest(norm: f64, bias: f64, query_norm: f64) -> Self {
        let beta = beta((norm, bias), Some(query_norm));
        let last = beta.map_or(0.0, |beta| bias / beta);
        Self { metric: Metric::Dot, longest: 1.0, beta }.with_longest(norm.hypot(last))
    }

    fn with_longest(self, longest: f64) -> Self {
        // If all rows are zero, any length will do.
        let longest = if longest > 0.0 { longest * (1.0 + ROUNDING) } else { 1.0 };
        Self { longest, ..self }
    }

    /// The same for rows that may become longer by this factor, at least 1.
    pub fn with_room(self, factor: f64) -> Self {
        match self.metric {
            Metric::Cosine => self,
            Metric::Dot => Self { longest: self.longest * factor, ..self },
        }
    }

    /// The components of lifted vectors.
    pub fn dim(&self, dim: usize) -> usize {
        dim + usize::from(self.beta.is_some())
    }

    /// The norm of a lifted query.
    pub fn query_norm(&self, norm: f64) -> f64 {
        self.beta.map_or(norm, |beta| (norm * norm + beta * beta).sqrt())
    }

    /// What the components of a row of this norm are divided by; `None` if the row has no score.
    pub fn divisor(&self, norm: f64) -> Option<f64> {
        match self.metric {
            Metric::Cosine => (norm > 0.0).then_some(norm),
            Metric::Dot => Some(self.longest),
        }
    }

    /// The last component of a lifted row, before it is divided.
    pub fn last_component(&self, bias: f32) -> f64 {
        self.beta.map_or(0.0, |beta| f64::from(bias) / beta)
    }

    /// The unit of a query of this norm; zero if all rows have the same score.
    pub fn unit(&self, norm: f64) -> Unit {
        Unit(match self.metric {
            Metric::Cosine => 1.0,
            Metric::Dot => self.query_norm(norm) * self.longest,
        })
    }
}

/// β for rows with these largest norms and biases, and queries of this norm; `None` if all biases
/// are zero.
///
/// The error is in proportion to |q'| · N. This β is where that is least for a row that has the
/// largest norm and bias.
fn beta((norm, bias): (f64, f64), query_norm: Option<f64>) -> Option<f64> {
    let ratio = query_norm.map_or(1.0, |query_norm| query_norm / norm);
    let ratio = if ratio.is_nan() { 1.0 } else { ratio.clamp(1.0 / MOST_RATIO, MOST_RATIO) };
    (bias > 0.0).then(|| (bias * ratio).sqrt())
}

/// The score that a product of 1 in the pass means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit(f64);

/// The factor by which a device scales the scores of a query into [-1, 1]: a power of two. The
/// products are exact: scores are multiples of 2⁻²⁹⁸ below 2²⁷⁰, as sums of products of
/// two float32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor(f64);

impl Unit {
    /// Whether scores can be told apart by products.
    pub fn is_useful(self) -> bool {
        self.0 > 0.0 && self.0.is_finite()
    }

    /// A lower bound of the product that a score means.
    pub fn at_least(self, score: f64) -> f64 {
        if self.0 == 1.0 { score } else { score / self.0 - (score / self.0).abs() * ROUNDING }
    }

    /// An upper bound of the product that a score means.
    pub fn at_most(self, score: f64) -> f64 {
        -self.at_least(-score)
    }

    /// A power of two that leaves no score outside [-1, 1], if the unit is
    /// [useful](Self::is_useful), but the longest near 1.
    pub fn factor(self) -> Factor {
        if self.0 == 1.0 {
            return Factor::ONE;
        }
        // Units are normal numbers, between 2^-300 and 2^300.
        let exponent = (self.0.to_bits() >> 52) as i32 - 1023;
        Factor(2f64.powi(-exponent - 1))
    }
}

impl Factor {
    /// Leaves scores as they are.
    pub const ONE: Self = Self(1.0);

    /// The factor.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The score that became `product`.
    pub fn score(self, product: f64) -> f64 {
        product / self.0
    }

    /// The least product of a score that is at least `limit`.
    pub fn minimum(self, limit: f64) -> f64 {
        let product = limit * self.0;
        // Below the normal range it may be rounded.
        if product / self.0 < limit { product.next_up() } else { product }
    }

    /// The largest product of a score that is at most `limit`.
    pub fn maximum(self, limit: f64) -> f64 {
        -self.minimum(-limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score;

    #[test]
    fn the_largest_norm_and_bias_are_enough() {
        let components = [3.0f32, -4.0, 1e6, 2.0, 0.0, 0.0];
        let norms: Vec<f64> = components.chunks(2).map(score::norm).collect();
        for (biases, largest) in [([-7.5f32, 100.0, 3e4], 3e4), ([0.0; 3], 0.0)] {
            let table = Table::new(&components, &norms, 2).under_dot(Some(&biases));
            for query_norm in [0.0, 1e-3, 1e4, f64::NAN] {
                let of_table = Lift::of(&table, Some(query_norm));
                let lift = Lift::of_largest(norms[1], largest, query_norm);
                assert_eq!(lift.beta, of_table.beta);
                assert!(lift.longest >= of_table.longest);
            }
        }
        assert_eq!(Lift::of_largest(0.0, 0.0, 1.0).longest, 1.0);
    }

    #[test]
    fn products_of_lifted_vectors_are_scores() {
        let components = [3.0f32, -4.0, 1e6, 2.0, 0.0, 0.0];
        let norms: Vec<f64> = components.chunks(2).map(score::norm).collect();
        let biases = [-7.5f32, 100.0, 3e4];
        let query = [0.5f32, -2.0];
        let table = Table::new(&components, &norms, 2);
        for biases in [None, Some(&biases[..])] {
            let table = table.under_dot(biases);
            for queries in [None, Some(0.0), Some(1e-3), Some(1e4), Some(f64::NAN)] {
                let lift = Lift::of(&table, queries);
                assert_eq!(lift.dim(2), if biases.is_some() { 3 } else { 2 });
                let norm = score::norm(&query);
                let unit = lift.unit(norm);
                for row in (0..3).map(Row) {
                    let divisor = lift.divisor(table.norm(row)).unwrap();
                    let mut product: f64 = table
                        .row(row)
                        .iter()
                        .zip(query)
                        .map(|(&x, q)| f64::from(x) * f64::from(q))
                        .sum();
                    product += lift.last_component(table.bias(row)) * lift.beta.unwrap_or(0.0);
                    product /= divisor * lift.query_norm(norm);
                    let score = table.score(&query, norm, row).unwrap();
                    assert!(
                        unit.at_least(score) <= product && product <= unit.at_most(score),
                        "{product} {score}"
                    );
                    let width = unit.at_most(score) - unit.at_least(score);
                    assert!(width.abs() < 1e-10);
                    let length = (table.norm(row).powi(2)
                        + lift.last_component(table.bias(row)).powi(2))
                    .sqrt();
                    assert!(length / divisor <= 1.0);
                }
            }
        }
        let lift = Lift::of(&table, None);
        assert_eq!(
            (lift.divisor(0.0), lift.divisor(5.0), lift.unit(3.0)),
            (None, Some(5.0), Unit(1.0))
        );
        assert_eq!(Unit(1.0).at_least(0.3), 0.3);
        let nothing = Lift::of(&Table::new(&[0.0; 2], &[0.0; 2], 1).under_dot(None), None);
        assert!(!nothing.unit(0.0).is_useful() && nothing.unit(1.0).is_useful());
    }

    #[test]
    fn factors_keep_scores_and_what_limits_admit() {
        let tiny = f64::from_bits(1);
        let units = [2f64.powi(-298), 1e-30, 0.7, 1.0, 1.5, 4.0, 1e30, 2f64.powi(268)];
        let parts = [-1.0, -0.5, -1e-9, 0.0, 1e-9, 0.3, 0.999, 1.0];
        for unit in units.map(Unit) {
            let factor = unit.factor();
            let scores = parts.map(|part| part * unit.0);
            for score in scores {
                let product = score * factor.get();
                assert!(product.abs() <= 1.0 && factor.score(product) == score);
            }
            let limits = scores.into_iter().flat_map(|x| [x.next_down(), x, x.next_up()]);
            let others = [tiny, -tiny, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY];
            for limit in limits.chain(others) {
                for score in scores {
                    let product = score * factor.get();
                    assert_eq!(product >= factor.minimum(limit), score >= limit, "{score} {limit}");
                    assert_eq!(product <= factor.maximum(limit), score <= limit, "{score} {limit}");
                }
            }
        }
    }
}
