//! Class scores of a text, the labels that they give, and scores that give none.

/// A label and how probable it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// Its position among the head's labels.
    pub class: usize,
    /// Its probability.
    pub probability: f64,
    /// The class score that the probability was computed from.
    pub score: f64,
}

/// Class scores that are no numbers, or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the class scores of this text are not finite, because the head's weights are too large; \
     train it again with a lower \
     --learning-rate, or scale the weights down and import them again"
)]
pub struct ScoresNotFinite;

/// The class scores of a text, from which labels are made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClassScores {
    /// One for each label; none if nothing of the text is known.
    pub scores: Vec<f64>,
    /// Unknown words that were found as the text was read, each once; the first of them.
    pub unknown: Vec<String>,
}
