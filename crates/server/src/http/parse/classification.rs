//! The JSON body of `/classify`, whose options are also its query parameters.

use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::limits::{MAX_EXPLAINED_TEXTS, MAX_TEXTS, at_most};
use super::texts::{TextsRequest, UnreadText, text_or_texts, texts_body};
use super::{found, invalid};
use crate::http::ApiError;

texts_body! {
    /// The body of `POST /classify`.
    ClassifyBody<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
    }
    options {
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
    /// Checks the form of the request. `of_query` is the text, if that is a query parameter. Texts
    /// of the body stay unparsed JSON.
    pub(in crate::http) fn check(
        self,
        of_query: Option<String>,
    ) -> Result<TextsRequest<UnreadText<'a>, LabelOptions>, ApiError> {
        let (texts, is_single) = match of_query {
            Some(text) => (vec![UnreadText::Plain(text)], true),
            None => text_or_texts(self.text, self.texts)?,
        };
        let threshold = self.threshold.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&threshold) {
            return Err(invalid("threshold").with_found(Some(found::of_number(threshold))));
        }
        let top = match self.top {
            None => usize::MAX,
            Some(0) => return Err(invalid("top").with_found(Some("0".to_owned()))),
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
