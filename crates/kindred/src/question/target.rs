//! The target of a query: its form is checked, its words are not yet looked up.

use crate::Error;
use crate::expression::{self, MAX_TERMS};

/// A word of a query and its weight.
pub type WordWithWeight = expression::Term;

/// The target of a query. Its words are not looked up yet.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A word, by its exact bytes.
    Word(String),
    /// A row of the model, from 0: for models whose rows have no words of their own.
    Row(u32),
    /// A vector, `[dim]`, rounded to float32 before it is searched.
    Vector(Vec<f64>),
    /// A vector, `[dim]`, that is float32 already.
    Components(Vec<f32>),
    /// A text: the sum of its words.
    Text(String),
    /// A sum of words, or an analogy by another method: `b − a + c` has `a` with the weight −1.
    Words(Vec<WordWithWeight>),
}

impl From<&str> for Target {
    fn from(word: &str) -> Self {
        Self::word(word)
    }
}

impl From<String> for Target {
    fn from(word: String) -> Self {
        Self::Word(word)
    }
}

impl From<&[f32]> for Target {
    fn from(components: &[f32]) -> Self {
        Self::Components(components.to_vec())
    }
}

impl From<Vec<f32>> for Target {
    fn from(components: Vec<f32>) -> Self {
        Self::Components(components)
    }
}

impl From<Vec<f64>> for Target {
    fn from(components: Vec<f64>) -> Self {
        Self::Vector(components)
    }
}

impl Target {
    /// A word, by its exact bytes.
    pub fn word(word: impl Into<String>) -> Self {
        Self::Word(word.into())
    }

    /// A text of 1 to [`MAX_TEXT_WORDS`](super::MAX_TEXT_WORDS) words. Words that the model does
    /// not have are left out unless [`Unknown::Error`](crate::Unknown) is asked for.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An expression, in the grammar of [`expression`].
    ///
    /// ```
    /// use kindred::Target;
    ///
    /// let Target::Words(words) = Target::expression("king - man + woman")? else { unreachable!() };
    /// assert_eq!(words[1].weight, -1.0);
    /// # Ok::<(), kindred::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadExpression`], with the first column where it can't be read.
    pub fn expression(text: &str) -> Result<Self, Error> {
        Ok(Self::Words(expression::parse(text)?))
    }

    /// Words that are added, and words that are taken away.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if there are more than [`MAX_TERMS`] together.
    pub fn sum(
        mut positive: Vec<WordWithWeight>,
        negative: Vec<WordWithWeight>,
    ) -> Result<Self, Error> {
        Self::check_terms(positive.len() + negative.len())?;
        let negative = negative.into_iter();
        positive.extend(negative.map(|w| WordWithWeight { weight: -w.weight, ..w }));
        Ok(Self::Words(positive))
    }

    /// Checks that a sum may have n words.
    ///
    /// # Errors
    /// [`Error::InvalidRequest`] if they are more than [`MAX_TERMS`].
    pub fn check_terms(found: usize) -> Result<(), Error> {
        if found <= MAX_TERMS {
            return Ok(());
        }
        let reason = format!(
            "`positive` and `negative` have {found} words together; the maximum is {MAX_TERMS}",
        );
        Err(Error::InvalidRequest { reason })
    }
}
