//! The interface to the engine in this process, or to anything else that answers rows, such as a
//! service behind a URL.

use std::ops::ControlFlow;

use kindred::heads::Form;
use kindred::{Answer, Classified, ImpliedTerms};
use serde_json::Value;

use super::Fault;
use super::json_answer::JsonAnswer;
use super::work::WantedLabels;
use crate::error::JobError;

/// Whether a thread that waits goes on.
pub type GoOn<'a> = &'a dyn Fn() -> ControlFlow<()>;

/// An answer or an error for each text, in order; `None` if the caller does not go on.
pub type RowAnswers<'a> = Option<Vec<Result<RowAnswer<'a>, Fault>>>;

/// An engine, or anything else that answers rows. Several threads ask it at the same time.
pub trait Answerer: Sync {
    /// The model's name, and the version of its content, which must not change during the work.
    fn model(&self) -> (&str, &str);

    /// An object with all that decides the answers, except the model and the question: such as the
    /// head. Work that was begun with another is not resumed.
    fn about(&self) -> Value;

    /// An answer or an error for each text, in order. `None` soon after `go_on` breaks.
    ///
    /// # Errors
    /// If there are no answers to any of them. [`JobError::NotAnswered`] for a full queue and a
    /// failed pass: then the same is asked again, with fewer texts at once if need be.
    fn answers(&self, texts: &[&str], go_on: GoOn<'_>) -> Result<RowAnswers<'_>, JobError>;
}

/// The answer to a row.
#[derive(Debug)]
pub enum RowAnswer<'a> {
    /// The labels of a text.
    Labels(Classified, WantedLabels),
    /// The terms of a text.
    Terms(ImpliedTerms, Form),
    /// The neighbours of a word, a text or an expression.
    Neighbors(Answer<'a>),
    /// Any of these, as a service wrote it.
    Json(JsonAnswer),
}
