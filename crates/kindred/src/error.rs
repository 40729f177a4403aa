//! Why a question has no answer.

use contract::{AnalogyError, QueryError, Row, ScoringError};
use encoders::{TextEncoder, text_encoder};
use filters::{FilterError, SetError};
use model_store::{mistaken_for, plus_in_url};

use crate::expression::{ExpressionError, spaced};
use crate::heads::ScoresNotFinite;
use crate::options;
use crate::queue::SubmitError;
use crate::rows::Rows;

/// Unknown words of one request that get suggestions.
pub const MAX_SUGGESTED_WORDS: usize = 16;

/// Why a question has no answer. Each message says what is wrong and what would be right.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// An expression that does not follow the grammar.
    #[error(transparent)]
    BadExpression(#[from] ExpressionError),
    /// A filter that does not follow its grammar, or names what the model does not have.
    #[error(transparent)]
    InvalidFilter(Box<FilterError>),
    /// The question as a whole is malformed.
    #[error("{reason}")]
    InvalidRequest {
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// An option or a part of the question with an impossible value. The texts are boxed slices, so
    /// that errors, which are a part of each answer's type, do not grow.
    #[error("{}", invalid_value_message(field, expected, found.as_deref()))]
    InvalidValue {
        /// Its name.
        field: Box<str>,
        /// What it must be.
        expected: Box<str>,
        /// The value that was given, in words, if it is short: `1001`, `the string "3"`, `null`.
        found: Option<Box<str>>,
    },
    /// A vector with the wrong number of components.
    #[error("{}", QueryError::Dimension { found: *found, expected: *expected })]
    DimensionMismatch {
        /// The caller's number of components.
        found: usize,
        /// The model's.
        expected: usize,
    },
    /// A query that is not a finite vector, or class scores that are not finite.
    #[error("{reason}")]
    NotFinite {
        /// What is not finite.
        reason: String,
    },
    /// A query without a direction.
    #[error("{reason}")]
    ZeroQuery {
        /// Why it has none.
        reason: String,
    },
    /// Words that do not have the form that an analogy's method takes.
    #[error("{reason}")]
    MethodMismatch {
        /// What does not fit, and what would.
        reason: String,
    },
    /// All words of the question that the model does not have.
    #[error("{}", unknown_words_message(unknown))]
    UnknownWord {
        /// In the order in which they were written.
        unknown: Vec<UnknownWord>,
    },
    /// The queue or the engine did not answer.
    #[error("{}", not_answered(.0))]
    NotAnswered(#[from] SubmitError),
    /// A fault of Kindred's own.
    #[error("internal error; the log has the details")]
    Internal,
}

/// A word that the model does not have.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UnknownWord {
    /// As it was written.
    pub word: String,
    /// Words of the model that resemble it, the likeliest first.
    pub suggestions: Vec<String>,
    /// The expression that it may stand for, written without spaces: `king-man+woman`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Whether it is a word of a text, which the words of another model encode.
    #[serde(skip)]
    is_of_encoder: bool,
}

impl UnknownWord {
    /// A word for which nothing is suggested yet.
    pub fn new(word: String) -> Self {
        Self { word, suggestions: Vec::new(), expression: None, is_of_encoder: false }
    }

    /// Suggests what the model has instead; of a table that changes, words of the base that it still
    /// has; for a text of a model of documents, words of the model that encodes it. Takes up to
    /// several milliseconds.
    #[must_use]
    pub fn suggested(self, rows: &dyn Rows) -> Self {
        let rows = match text_encoder(rows.base()) {
            Ok(Some(TextEncoder::Words(words))) if self.is_of_encoder => &**words as &dyn Rows,
            _ => rows,
        };
        let suggestions = rows.suggestions(&self.word).into_iter().map(str::to_owned).collect();
        let expression = spaced(&self.word, |word| rows.row_of(word).is_some());
        Self { suggestions, expression, ..self }
    }

    /// The suggestions, as messages name them.
    pub fn meant(&self) -> String {
        let named = self.suggestions.iter().map(|meant| match mistaken_for(&self.word, meant) {
            Some(why) => format!("{meant} ({why})"),
            None => meant.clone(),
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

/// The message for words that the model does not have.
pub fn unknown_words_message(unknown: &[UnknownWord]) -> String {
    if matches!(unknown, [only] if only.word.is_empty()) {
        return "the word is empty; give a word that the model has".to_owned();
    }
    let named = |UnknownWord { word, .. }: &UnknownWord| match &word[..] {
        "" => "an empty word".to_owned(),
        word => format!("`{word}`"),
    };
    let words: Vec<_> = unknown.iter().map(named).collect();
    let mut detail = format!("the model does not have {}", words.join(", "));
    let [one @ UnknownWord { word, suggestions, expression, .. }] = unknown else { return detail };
    if !suggestions.is_empty() {
        detail += &format!("; did you mean {}?", one.meant());
    }
    if word.ends_with(' ') && !detail.contains("%2B") {
        detail += concat!("; ", plus_in_url!());
    }
    if let Some(expression) = expression {
        detail += &format!(
            "; signs inside a word belong to it: did you mean the expression {expression}?"
        );
    }
    detail
}

/// The message for a value that is not what it must be. A field that is `null` should be left out;
/// in a list, `null` stands for a number that JSON does not have.
fn invalid_value_message(field: &str, expected: &str, found: Option<&str>) -> String {
    match found {
        None => format!("`{field}` must be {expected}"),
        Some("null") if !field.ends_with(']') => {
            format!("`{field}` must be {expected}, not null; leave it out if it has no value")
        }
        Some(found) => format!("`{field}` must be {expected}, not {found}"),
    }
}

fn not_answered(why: &SubmitError) -> String {
    match why {
        SubmitError::Full { retry_after, .. } => {
            format!("the queue is full: {why}; retry in {:.1} s", retry_after.as_secs_f64())
        }
        SubmitError::DeadlinePassed => {
            "the deadline passed before the answer was ready; ask for less at once, or raise `timeout_ms`".to_owned()
        }
        SubmitError::EngineFailed => {
            "the engine failed during this question; retry".to_owned()
        }
        SubmitError::EngineRestarting { retry_after } => format!(
            "the engine failed and is restarting; retry in {:.1} s",
            retry_after.as_secs_f64()
        ),
        SubmitError::EngineGone => {
            "the engine has stopped; the log has the details; start another".to_owned()
        }
    }
}

impl Error {
    /// The code that the HTTP API has for it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadExpression(_) => "bad_expression",
            Self::InvalidFilter(_) => "invalid_filter",
            Self::InvalidRequest { .. } => "invalid_request",
            Self::InvalidValue { .. } => "invalid_value",
            Self::DimensionMismatch { .. } => "dimension_mismatch",
            Self::NotFinite { .. } => "not_finite",
            Self::ZeroQuery { .. } => "zero_query",
            Self::MethodMismatch { .. } => "method_mismatch",
            Self::UnknownWord { .. } => "unknown_word",
            Self::NotAnswered(SubmitError::Full { .. }) => "queue_full",
            Self::NotAnswered(SubmitError::DeadlinePassed) => "deadline_passed",
            Self::NotAnswered(SubmitError::EngineFailed) => "engine_failed",
            Self::NotAnswered(SubmitError::EngineRestarting { .. }) => "engine_restarting",
            Self::NotAnswered(SubmitError::EngineGone) => "engine_gone",
            Self::Internal => "internal",
        }
    }

    /// An option or a part of a question that is not what it must be.
    pub(crate) fn invalid(field: &str, must_be: &str) -> Self {
        Self::InvalidValue { field: field.into(), expected: must_be.into(), found: None }
    }

    /// The error of a text without a known word; `unknown` are its words.
    pub fn no_known_word(unknown: Vec<String>) -> Self {
        if unknown.is_empty() {
            return Self::invalid("text", "a text with at least one word");
        }
        Self::UnknownWord { unknown: unknown.into_iter().map(UnknownWord::new).collect() }
    }

    /// The same error, about words of a text that another model encodes.
    pub(crate) fn of_encoder(mut self) -> Self {
        if let Self::UnknownWord { unknown } = &mut self {
            unknown.iter_mut().for_each(|word| word.is_of_encoder = true);
        }
        self
    }

    /// The same error, with suggestions for unknown words: for the first
    /// [`MAX_SUGGESTED_WORDS`] of them. Of a table that changes, they are words of the base that it
    /// still has.
    #[must_use]
    pub fn with_suggestions(mut self, model: &dyn Rows) -> Self {
        if let Self::UnknownWord { unknown } = &mut self {
            for unknown in unknown.iter_mut().take(MAX_SUGGESTED_WORDS) {
                *unknown = unknown.clone().suggested(model);
            }
        }
        self
    }

    /// An option whose value is out of bounds, and that value in words.
    pub(crate) fn out_of_bounds((option, found): (&options::Declaration, String)) -> Self {
        let (field, expected) = (option.name.into(), option.must_be.into());
        Self::InvalidValue { field, expected, found: Some(found.into()) }
    }

    pub(crate) fn of_analogy(model: &dyn Rows, error: AnalogyError) -> Self {
        match error {
            AnalogyError::ZeroRow { row } => zero_row(model, row),
            AnalogyError::NothingLeft | AnalogyError::ZeroSum => {
                Self::ZeroQuery { reason: error.to_string() }
            }
            AnalogyError::NotFinite => Self::NotFinite { reason: error.to_string() },
        }
    }

    pub(crate) fn of_scoring(model: &dyn Rows, error: ScoringError) -> Self {
        match error {
            ScoringError::ZeroRow { row } => zero_row(model, row),
            ScoringError::SameDirection { a, b } => {
                let [a, b] = [a, b].map(|row| model.word(row));
                let reason = format!(
                    "`{a}` and `{b}` have the same direction, so there is no step from one to the other; \
                     give two different words"
                );
                Self::ZeroQuery { reason }
            }
            ScoringError::NoWords => Self::ZeroQuery { reason: error.to_string() },
            ScoringError::TooManyWords { .. } | ScoringError::NotUnderDot { .. } => {
                Self::MethodMismatch { reason: error.to_string() }
            }
            // Rows come from the model's own words, never from a caller.
            ScoringError::NoSuchRow { .. } => Self::Internal,
        }
    }
}

/// The error for a word that can't be compared with anything.
pub(crate) fn zero_row(model: &dyn Rows, row: Row) -> Error {
    let word = model.word(row);
    let reason = format!(
        "the vector of `{word}` is zero: it has no direction, so it can't be compared or added"
    );
    Error::ZeroQuery { reason }
}

impl From<SetError> for Error {
    fn from(error: SetError) -> Self {
        match error {
            SetError::Invalid(error) => error.into(),
            SetError::Unwanted => Self::NotAnswered(SubmitError::DeadlinePassed),
        }
    }
}

impl From<FilterError> for Error {
    fn from(error: FilterError) -> Self {
        Self::InvalidFilter(Box::new(error))
    }
}

impl From<ScoresNotFinite> for Error {
    fn from(error: ScoresNotFinite) -> Self {
        Self::NotFinite { reason: error.to_string() }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Dimension { found, expected } => {
                Self::DimensionMismatch { found, expected }
            }
            QueryError::NotFinite { .. } => Self::NotFinite { reason: error.to_string() },
            QueryError::Zero => Self::ZeroQuery { reason: error.to_string() },
            // Rows come from the model's own words, never from a caller.
            QueryError::NoSuchRow { .. } => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_empty_or_end_with_a_space_are_explained() {
        let message = |words: &[&str]| {
            let unknown = words.iter().map(|&word| UnknownWord::new(word.to_owned()));
            unknown_words_message(&unknown.collect::<Vec<_>>())
        };
        assert_eq!(message(&[""]), "the word is empty; give a word that the model has");
        assert!(
            message(&["c  "])
                .ends_with("`c  `; in a URL a plus is written %2B, because + is a space there")
        );
        assert_eq!(message(&["x", ""]), "the model does not have `x`, an empty word");
    }

    #[test]
    fn a_suggestion_that_looks_like_the_word_is_told_from_it() {
        let unknown = |word: &str, suggestions: &[&str]| {
            let suggestions = suggestions.iter().map(|&word| word.to_owned()).collect();
            [UnknownWord { suggestions, ..UnknownWord::new(word.to_owned()) }]
        };
        assert_eq!(
            unknown_words_message(&unknown("cafe\u{301}", &["caf\u{e9}", "cafe"])),
            "the model does not have `cafe\u{301}`; did you mean caf\u{e9} (the same letters, as \
             other code points), cafe?"
        );
        let other = unknown_words_message(&unknown("FROG", &["frog"]));
        assert!(other.ends_with("; did you mean frog?"), "{other}");
    }

    #[test]
    fn only_a_field_of_its_own_is_left_out_for_null() {
        let message = |field| invalid_value_message(field, "a finite number", Some("null"));
        assert!(message("min_score").ends_with("not null; leave it out if it has no value"));
        // In a list it stands for NaN, and the others would move up.
        assert_eq!(message("vector[0]"), "`vector[0]` must be a finite number, not null");
    }
}
