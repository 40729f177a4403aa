//! What answers: a model in this process, or a service behind a URL.

use kindred::heads::HeadKind;
use kindred::{ModelDescription, Options, Side, Target, Unknown};
use serde::Deserialize;

use super::answer::{ModelAnswer, OddAnswer, RankAnswer, SimilarityAnswer, TextAnswer};
use crate::error::CommandError;

/// The most words that are offered to complete a prefix.
pub(super) const MAX_OFFERED: usize = 50;

/// A result, or why there is none.
pub(super) type Outcome<T> = Result<T, CommandError>;

/// An answer, and where its time went.
pub(super) struct Reply<T> {
    pub(super) answer: T,
    /// `None` if nothing was searched.
    pub(super) times: Option<Times>,
}

/// Where a question's time went, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    pub(super) queue: f64,
    pub(super) engine: f64,
    /// The total time where the question was answered.
    pub(super) total: f64,
    /// The total time for the client, if there is a network in between.
    pub(super) round_trip: Option<f64>,
}

impl Times {
    /// The time that was neither waiting nor searching: looking up words and writing the answer. At
    /// least 0, because the times of parallel passes may add up to more than the total.
    pub(super) fn look_up(&self) -> f64 {
        (self.total - self.queue - self.engine).max(0.0)
    }
}

/// A head of the model.
#[derive(Debug, Deserialize)]
pub(super) struct ListedHead {
    pub(super) name: String,
    pub(super) kind: HeadKind,
}

/// The refusal to ask a head of a kind for which the console has no command.
pub(super) fn no_command(kind: HeadKind) -> CommandError {
    CommandError::Refused(format!("the console has no command for {}", kind.with_article()))
}

/// What answers, wherever it is.
pub(super) trait Service {
    /// The neighbours that a question asks for.
    fn ask(&self, target: &Target, options: &Options) -> Outcome<Reply<ModelAnswer<'_>>>;

    /// The similarity of two words or sets of words.
    fn similarity(
        &self,
        sides: [Side; 2],
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<SimilarityAnswer<'_>>>;

    /// The odd one of some words.
    fn odd_one_out(
        &self,
        words: Vec<String>,
        unknown: Option<Unknown>,
    ) -> Outcome<Reply<OddAnswer<'_>>>;

    /// The ranks of some words among the neighbours of a target.
    fn rank(
        &self,
        words: Vec<String>,
        target: &Target,
        options: &Options,
    ) -> Outcome<Reply<RankAnswer<'_>>>;

    /// The labels of a text, or its terms with their tokens. The head has this name and kind, or is
    /// the only one of this kind.
    fn ask_head<'a>(
        &'a self,
        kind: HeadKind,
        head: Option<&str>,
        text: &'a str,
        options: &Options,
    ) -> Outcome<Reply<TextAnswer<'a>>>;

    /// The model and its engine.
    fn facts(&self) -> Outcome<ModelDescription<'_>>;

    /// The heads of the model.
    fn heads(&self) -> Outcome<Vec<ListedHead>>;

    /// The most frequent words with this prefix, at most [`MAX_OFFERED`], for people who type: they
    /// do not wait long.
    fn words_with_prefix(&self, prefix: &str) -> Outcome<Vec<String>>;

    /// Whether the model has this word, by its exact bytes.
    fn has_word(&self, word: &str) -> Outcome<bool>;

    /// Its name in messages.
    fn name(&self) -> String;
}
