//! How rows are scored for what a query names: by one vector, or by a method that takes several.

use contract::analogy::{analogy_sum, analogy_vector};
use contract::{
    AnalogyError, FullPassQuery, Query, QueryVector, Row, Scoring, ScoringError, WeightedWord,
};
use model_store::ModelStore;

use super::ApiError;
use kindred::method::Method;

/// Most words that 3CosMul multiplies. Each takes a pass over the table's rows of its own.
pub const MAX_FACTORS: usize = 32;

/// Most words that the queries of one request may have together where their method multiplies or points: a
/// pass over all rows compares each row with each of them.
pub const MAX_FULL_PASS_WORDS: usize = 4096;

/// How rows are scored, all words looked up.
#[derive(Debug, Clone)]
pub(super) enum Formula {
    /// The cosine similarity to a vector.
    Cosine {
        /// The vector.
        vector: QueryVector,
        /// The words that it is the sum of, if it is known as one, and the sum's norm.
        words: Vec<WeightedWord>,
        norm: f64,
    },
    /// 3CosMul.
    Product { positive: Vec<Row>, negative: Vec<Row> },
    /// PairDirection: from `a` to `b` as from `c` to the row.
    Direction { b: Row, c: Row, a: Row },
}

impl Formula {
    /// A row of the table as it is.
    pub(super) fn of_row(row: Row) -> Self {
        let words = vec![WeightedWord { row, weight: 1.0 }];
        Self::Cosine { vector: QueryVector::Row(row), words, norm: 1.0 }
    }

    /// A vector of the caller's.
    pub(super) fn of_vector(components: Vec<f32>) -> Self {
        Self::Cosine { vector: QueryVector::Components(components), words: Vec::new(), norm: 1.0 }
    }

    /// A sum of words.
    pub(super) fn of_sum(model: &ModelStore, words: &[WeightedWord]) -> Result<Self, ApiError> {
        let sum = analogy_sum(&model.table(), words).map_err(|e| analogy_fault(model, e))?;
        let vector = QueryVector::Components(sum.vector);
        Ok(Self::Cosine { vector, words: sum.words, norm: sum.norm })
    }

    /// An analogy by a method.
    pub(super) fn of_analogy(
        model: &ModelStore,
        words: &[WeightedWord],
        method: Method,
    ) -> Result<Self, ApiError> {
        if method == Method::ThreeCosAdd {
            return Self::of_sum(model, words);
        }
        check_form(method, words.iter().map(|word| (word.weight, model.words().word(word.row))))?;
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
    pub(super) fn number_of_words(&self) -> usize {
        match self {
            Self::Cosine { words, .. } => words.len(),
            Self::Product { positive, negative } => positive.len() + negative.len(),
            Self::Direction { .. } => 3,
        }
    }

    /// How an engine scores by it, row by row.
    pub(super) fn scoring(&self, model: &ModelStore) -> Result<Scoring, ApiError> {
        let table = model.table();
        let scoring = match self {
            Self::Cosine { vector, .. } => return Ok(Scoring::cosine(&table, vector.clone())?),
            Self::Product { positive, negative } => {
                Scoring::three_cos_mul(&table, positive, negative)
            }
            Self::Direction { b, c, a } => Scoring::pair_direction(&table, *b, *c, *a),
        };
        scoring.map_err(|e| scoring_fault(model, e))
    }
}

/// A query of one of the two kinds that engines answer.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Search(Query),
    FullPass(Box<FullPassQuery>),
}

impl Ask {
    /// How many hits at most.
    pub(super) fn k(&self) -> usize {
        match self {
            Self::Search(query) => query.k(),
            Self::FullPass(query) => query.k(),
        }
    }

    /// The same for another number of hits.
    pub(super) fn with_k(self, k: usize) -> Self {
        match self {
            Self::Search(query) => Self::Search(query.with_k(k)),
            Self::FullPass(query) => Self::FullPass(Box::new(query.with_k(k))),
        }
    }
}

/// Whether these words, as weights and names, have the form that a method takes.
pub(super) fn check_form<'a>(
    method: Method,
    words: impl Iterator<Item = (f64, &'a str)> + Clone,
) -> Result<(), ApiError> {
    if method == Method::ThreeCosAdd {
        return Ok(());
    }
    let name = method.short_name();
    let mismatch = |reason| Err(ApiError::MethodMismatch { reason });
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
pub(super) fn sum(model: &ModelStore, rows: &[Row]) -> Result<Vec<f32>, ApiError> {
    let words: Vec<_> = rows.iter().map(|&row| WeightedWord { row, weight: 1.0 }).collect();
    analogy_vector(&model.table(), &words).map_err(|e| analogy_fault(model, e))
}

/// The error for a word that can't be compared with anything.
pub(super) fn zero_row(model: &ModelStore, row: Row) -> ApiError {
    let word = model.words().word(row);
    let reason = format!(
        "the vector of `{word}` is zero: it has no direction, so it can't be compared or added"
    );
    ApiError::ZeroQuery { reason }
}

fn analogy_fault(model: &ModelStore, error: AnalogyError) -> ApiError {
    match error {
        AnalogyError::ZeroRow { row } => zero_row(model, row),
        AnalogyError::NothingLeft | AnalogyError::ZeroSum => {
            ApiError::ZeroQuery { reason: error.to_string() }
        }
        AnalogyError::NotFinite => ApiError::NotFinite { reason: error.to_string() },
    }
}

fn scoring_fault(model: &ModelStore, error: ScoringError) -> ApiError {
    match error {
        ScoringError::ZeroRow { row } => zero_row(model, row),
        ScoringError::SameDirection { a, b } => {
            let [a, b] = [a, b].map(|row| model.words().word(row));
            let reason = format!(
                "`{a}` and `{b}` have the same direction, so there is no step from one to the other; give two \
                 different words"
            );
            ApiError::ZeroQuery { reason }
        }
        ScoringError::NoWords => ApiError::ZeroQuery { reason: error.to_string() },
        ScoringError::TooManyWords { .. } => ApiError::MethodMismatch { reason: error.to_string() },
        // Rows come from the model's own words, never from a client.
        ScoringError::NoSuchRow { .. } => ApiError::Internal,
    }
}
