//! A question to a model.

use kindred::question::WordWithWeight;
use kindred::{Error, Target};

/// A question to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// The nearest neighbours of a word, by its exact bytes.
    Nearest(String),
    /// The nearest neighbours of an expression, in the grammar of [`kindred::expression`].
    Analogy(String),
    /// The nearest neighbours of a weighted sum of words.
    Sum(Vec<(String, f64)>),
}

impl Question {
    /// Its target, for the facade.
    pub(super) fn target(&self) -> Result<Target, Error> {
        match self {
            Self::Nearest(word) => Ok(Target::word(word)),
            Self::Analogy(expression) => Target::expression(expression),
            Self::Sum(words) => {
                let word = |(word, weight): &(String, f64)| WordWithWeight {
                    word: word.clone(),
                    weight: *weight,
                };
                Target::sum(words.iter().map(word).collect(), Vec::new())
            }
        }
    }
}
