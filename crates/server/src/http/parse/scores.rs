//! The JSON body of `/score`.

use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::json_body;
use super::limits::MAX_TEXTS;
use super::texts::{TextsRequest, text_or_texts};
use crate::http::ApiError;

json_body! {
    /// The body of `POST /score`.
    ScoreBody<'a> {
        #[serde(borrow)]
        text: &'a RawValue,
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
        head: String,
        timeout_ms: u64,
    }
}

impl<'a> ScoreBody<'a> {
    /// Checks the form of the body. The texts stay unparsed JSON.
    pub(in crate::http) fn check(self) -> Result<TextsRequest<&'a RawValue, ()>, ApiError> {
        let (texts, is_single) = text_or_texts(self.text, self.texts)?;
        Ok(TextsRequest { texts, is_single, head: self.head, options: () })
    }
}
