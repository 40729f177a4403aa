//! How a query scores rows: by one vector, or by a method that takes several.

use contract::analogy::analogy_sum;
use contract::{Metric, QueryVector, Row, Scoring, TableRows as _, WeightedWord};

use crate::error::zero_row;
use crate::rows::Rows;
use crate::{Error, Method};

/// Maximum number of words that 3CosMul multiplies. Without a certificate, every row is compared
/// with each of them.
pub const MAX_FACTORS: usize = 32;

/// How rows are scored, with all words looked up.
#[derive(Debug, Clone)]
pub enum Formula {
    /// The score of one vector, by the model's metric.
    Vector {
        /// The vector.
        vector: QueryVector,
        /// The words that it is the sum of, if it is a sum of words.
        words: Vec<WeightedWord>,
        /// What the sum was divided by, see [`contract::analogy::AnalogySum`].
        norm: f64,
    },
    /// 3CosMul.
    Product {
        /// The words that are multiplied.
        positive: Vec<Row>,
        /// The words that are divided by.
        negative: Vec<Row>,
    },
    /// PairDirection: from `a` to `b` as from `c` to the row.
    Direction {
        /// The end of the direction.
        b: Row,
        /// The start of the step to the row.
        c: Row,
        /// The start of the direction.
        a: Row,
    },
}

impl Formula {
    /// The score of a row of the table, or of a word that the question adds.
    ///
    /// # Errors
    /// If an added word has no direction.
    pub(super) fn of_row(model: &dyn Rows, row: Row) -> Result<Self, Error> {
        let (table, words) = (model.table(), vec![WeightedWord { row, weight: 1.0 }]);
        let vector = match table.beyond_engines(row) {
            None => QueryVector::Row(row),
            Some(_) if table.metric() == Metric::Cosine && table.norm(row) == 0.0 => {
                return Err(zero_row(model, row));
            }
            Some(components) => components.to_vec().into(),
        };
        Ok(Self::Vector { vector, words, norm: 1.0 })
    }

    /// The score of a vector of the caller.
    pub(super) fn of_vector(components: Vec<f32>) -> Self {
        Self::Vector { vector: components.into(), words: Vec::new(), norm: 1.0 }
    }

    /// The score of a sum of words.
    pub(super) fn of_sum(model: &dyn Rows, words: &[WeightedWord]) -> Result<Self, Error> {
        let sum = analogy_sum(&model.table(), words).map_err(|e| Error::of_analogy(model, e))?;
        let vector = sum.vector.into();
        Ok(Self::Vector { vector, words: sum.words, norm: sum.norm })
    }

    /// An analogy by a method.
    pub(super) fn of_analogy(
        model: &dyn Rows,
        words: &[WeightedWord],
        method: Method,
    ) -> Result<Self, Error> {
        if method == Method::ThreeCosAdd {
            return Self::of_sum(model, words);
        }
        check_form(method, words.iter().map(|word| (word.weight, model.word(word.row))))?;
        let rows = |weight| {
            let signed = words.iter().filter(move |word| word.weight == weight);
            signed.map(|word| word.row).collect::<Vec<Row>>()
        };
        let (positive, negative) = (rows(1.0), rows(-1.0));
        match (method, &positive[..], &negative[..]) {
            (Method::PairDirection, &[b, c], &[a]) => Ok(Self::Direction { b, c, a }),
            _ => Ok(Self::Product { positive, negative }),
        }
    }

    /// How many words it has: the terms of a neighbour's score.
    pub fn number_of_words(&self) -> usize {
        match self {
            Self::Vector { words, .. } => words.len(),
            Self::Product { positive, negative } => positive.len() + negative.len(),
            Self::Direction { .. } => 3,
        }
    }

    /// The formula as engines take it.
    pub(super) fn scoring(&self, model: &dyn Rows) -> Result<Scoring, Error> {
        let table = model.table();
        let scoring = match self {
            Self::Vector { vector, .. } => return Ok(Scoring::vector(&table, vector.clone())?),
            Self::Product { positive, negative } => {
                Scoring::three_cos_mul(&table, positive, negative)
            }
            Self::Direction { b, c, a } => Scoring::pair_direction(&table, *b, *c, *a),
        };
        scoring.map_err(|e| Error::of_scoring(model, e))
    }
}

/// Checks that these words, as weights and names, have the form that a method takes.
pub(super) fn check_form<'a>(
    method: Method,
    words: impl Iterator<Item = (f64, &'a str)> + Clone,
) -> Result<(), Error> {
    if method == Method::ThreeCosAdd {
        return Ok(());
    }
    let name = method.short_name();
    let mismatch = |reason| Err(Error::MethodMismatch { reason });
    if let Some((weight, word)) = words.clone().find(|(weight, _)| weight.abs() != 1.0) {
        return mismatch(format!(
            "`{name}` needs weights of 1 or -1, but `{word}` has {weight}; `3cosadd` allows any weight"
        ));
    }
    let found = words.clone().count();
    if method == Method::ThreeCosMul && found > MAX_FACTORS {
        return mismatch(format!("`{name}` takes at most {MAX_FACTORS} words, not {found}"));
    }
    let positive = words.filter(|(weight, _)| *weight > 0.0).count();
    if method == Method::PairDirection && (positive, found) != (2, 3) {
        return mismatch(format!(
            "`{name}` needs two positive words and one negative, as in king - man + woman, not {positive} and \
             {}",
            found - positive
        ));
    }
    Ok(())
}

/// The contract's query vector for a sum of words.
pub(super) fn sum(model: &dyn Rows, rows: &[Row]) -> Result<Vec<f32>, Error> {
    let words: Vec<_> = rows.iter().map(|&row| WeightedWord { row, weight: 1.0 }).collect();
    let sum = analogy_sum(&model.table(), &words);
    sum.map(|sum| sum.vector).map_err(|e| Error::of_analogy(model, e))
}
