//! A table under the metric `dot` as a table of cosines.
//!
//! With x' = (x, bias / β) and q' = (q, β), `q · x + bias = q' · x'`, which is |q'| · N times the product of the unit vector
//! q' / |q'| and x' / N. N is the largest norm of all x', so these rows are at most 1 long, and everything that is proved of
//! dot products of unit vectors holds for them (docs/certificate.md, theorem 7). A score of 1 in the pass means |q'| · N: the
//! query's *unit*.
//!
//! Under the metric `cosine` rows are unit vectors already, and the unit is 1.

use contract::{Metric, Row, Table};

/// Covers the roundings of norms, and those of a score: (dim + 8) · 2⁻⁵² of the unit.
const ROUNDING: f64 = 1e-11;

/// How rows and queries are lifted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lift {
    metric: Metric,
    /// N, increased to cover roundings.
    longest: f64,
    /// β, if there are biases.
    beta: Option<f64>,
}

impl Lift {
    pub(crate) fn of(table: &Table<'_>) -> Self {
        let none = Self { metric: table.metric(), longest: 1.0, beta: None };
        if table.metric() == Metric::Cosine {
            return none;
        }
        let biases = table.biases().unwrap_or_default().iter();
        let largest_bias = biases.fold(0.0, |most: f64, &bias| most.max(f64::from(bias).abs()));
        // The error is in proportion to |q'| · N, which is least at this β if queries are as long as rows.
        let lift = Self { beta: (largest_bias > 0.0).then(|| largest_bias.sqrt()), ..none };
        let square = |row: Row| {
            let (norm, last) = (table.norm(row), lift.last_component(table.bias(row)));
            norm * norm + last * last
        };
        let rows = (0..table.rows() as u32).map(Row);
        let longest = rows.map(square).fold(0.0, f64::max).sqrt();
        // If all rows are zero, any length will do.
        let longest = if longest > 0.0 { longest * (1.0 + ROUNDING) } else { 1.0 };
        Self { longest, ..lift }
    }

    /// The components of lifted vectors.
    pub(crate) fn dim(&self, dim: usize) -> usize {
        dim + usize::from(self.beta.is_some())
    }

    /// β: the last component of a lifted query.
    pub(crate) fn beta(&self) -> Option<f64> {
        self.beta
    }

    /// The norm of a lifted query.
    pub(crate) fn query_norm(&self, norm: f64) -> f64 {
        self.beta.map_or(norm, |beta| (norm * norm + beta * beta).sqrt())
    }

    /// What the components of a row of this norm are divided by; `None` if the row has no score.
    pub(crate) fn divisor(&self, norm: f64) -> Option<f64> {
        match self.metric {
            Metric::Cosine => (norm > 0.0).then_some(norm),
            Metric::Dot => Some(self.longest),
        }
    }

    /// The last component of a lifted row, before it is divided.
    pub(crate) fn last_component(&self, bias: f32) -> f64 {
        self.beta.map_or(0.0, |beta| f64::from(bias) / beta)
    }

    /// The unit of a query of this norm; zero if all rows have the same score.
    pub(crate) fn unit(&self, norm: f64) -> Unit {
        Unit(match self.metric {
            Metric::Cosine => 1.0,
            Metric::Dot => self.query_norm(norm) * self.longest,
        })
    }
}

/// The score that a product of 1 in the pass means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit(f64);

impl Unit {
    /// Whether scores can be told apart by products.
    pub(crate) fn is_useful(self) -> bool {
        self.0 > 0.0 && self.0.is_finite()
    }

    /// A lower bound of the product that a score means.
    pub(crate) fn at_least(self, score: f64) -> f64 {
        if self.0 == 1.0 { score } else { score / self.0 - (score / self.0).abs() * ROUNDING }
    }

    /// An upper bound of the product that a score means.
    pub(crate) fn at_most(self, score: f64) -> f64 {
        -self.at_least(-score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::score;

    #[test]
    fn products_of_lifted_vectors_are_scores() {
        let components = [3.0f32, -4.0, 1e6, 2.0, 0.0, 0.0];
        let norms: Vec<f64> = components.chunks(2).map(score::norm).collect();
        let biases = [-7.5f32, 100.0, 3e4];
        let query = [0.5f32, -2.0];
        let table = Table::new(&components, &norms, 2);
        for biases in [None, Some(&biases[..])] {
            let table = table.under_dot(biases);
            let lift = Lift::of(&table);
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
                product += lift.last_component(table.bias(row)) * lift.beta().unwrap_or(0.0);
                product /= divisor * lift.query_norm(norm);
                let score = table.score(&query, norm, row).unwrap();
                assert!(
                    unit.at_least(score) <= product && product <= unit.at_most(score),
                    "{product} {score}"
                );
                assert!((unit.at_most(score) - unit.at_least(score)).abs() < 1e-10);
                let length =
                    (table.norm(row).powi(2) + lift.last_component(table.bias(row)).powi(2)).sqrt();
                assert!(length / divisor <= 1.0);
            }
        }
        let lift = Lift::of(&table);
        assert_eq!(
            (lift.divisor(0.0), lift.divisor(5.0), lift.unit(3.0)),
            (None, Some(5.0), Unit(1.0))
        );
        assert_eq!(Unit(1.0).at_least(0.3), 0.3);
        let nothing = Lift::of(&Table::new(&[0.0; 2], &[0.0; 2], 1).under_dot(None));
        assert!(!nothing.unit(0.0).is_useful() && nothing.unit(1.0).is_useful());
    }
}
