//! A label of a text, and scores that give none.

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
