//! The JSON body of `/classify`.

use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::invalid;
use super::json::json_body;
use super::limits::{MAX_EXPLAINED_TEXTS, MAX_TEXTS, at_most};
use super::texts::{TextsRequest, text_or_texts};
use crate::http::ApiError;

json_body! {
    /// The body of `POST /classify`.
    ClassifyBody<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
        head: String,
        explain: bool,
        explain_label: String,
        scores: bool,
        threshold: f64,
        top: u64,
        timeout_ms: u64,
    }
}

/// What is asked of a classifier.
#[derive(Debug)]
pub(in crate::http) struct LabelOptions {
    pub(in crate::http) shown: Shown,
    /// The label to explain; otherwise the most probable one.
    pub(in crate::http) explained: Option<String>,
}

/// What answers say.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Shown {
    /// At most this number of labels.
    pub(in crate::http) top: usize,
    /// Only labels of at least this probability.
    pub(in crate::http) threshold: f64,
    /// The class score beside each probability.
    pub(in crate::http) scores: bool,
    /// Which n-grams decided.
    pub(in crate::http) explain: bool,
}

impl<'a> ClassifyBody<'a> {
    /// Checks the form of the body. The texts stay unparsed JSON.
    pub(in crate::http) fn check(
        self,
    ) -> Result<TextsRequest<&'a RawValue, LabelOptions>, ApiError> {
        let (texts, is_single) = text_or_texts(self.text, self.texts)?;
        let threshold = self.threshold.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(invalid("threshold"));
        }
        let top = match self.top {
            None => usize::MAX,
            Some(0) => return Err(invalid("top")),
            Some(top) => usize::try_from(top).unwrap_or(usize::MAX),
        };
        let explained = self.explain_label;
        let explain = self.explain.unwrap_or(explained.is_some());
        let explained_texts = if explain { texts.len() } else { 0 };
        at_most(explained_texts, MAX_EXPLAINED_TEXTS, |n| format!("{n} texts with `explain`"))?;
        let shown = Shown { top, threshold, scores: self.scores.unwrap_or(false), explain };
        let options = LabelOptions { shown, explained };
        Ok(TextsRequest { texts, is_single, head: self.head, options })
    }
}
