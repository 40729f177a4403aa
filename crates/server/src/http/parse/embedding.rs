//! The JSON body of `/embed`.

use kindred::Unknown;
use kindred::question::TEXT_MUST_BE;
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::json_body;
use super::limits::MAX_TEXTS;
use super::{found, invalid};
use crate::http::ApiError;

json_body! {
    /// The body of `POST /embed`.
    EmbedBody<'a> {
        #[serde(borrow)]
        texts: AtMost<&'a RawValue, MAX_TEXTS>,
        unknown: Unknown,
        timeout_ms: u64,
    }
}

impl<'a> EmbedBody<'a> {
    /// Checks its form. Returns its texts as unparsed JSON, and what to do about unknown words.
    pub(in crate::http) fn check(self) -> Result<(Vec<&'a RawValue>, Option<Unknown>), ApiError> {
        let texts = self.texts.and_then(AtMost::all).filter(|texts| !texts.is_empty());
        let texts = texts.ok_or_else(|| invalid("texts"))?;
        Ok((texts, self.unknown))
    }
}

/// Parses the text with this index.
pub(in crate::http) fn read_text(index: usize, text: &RawValue) -> Result<String, ApiError> {
    serde_json::from_str(text.get()).map_err(|_| {
        let field = format!("texts[{index}]");
        let found = found::of_json(text.get());
        ApiError::invalid_value(&field, TEXT_MUST_BE).with_found(Some(found))
    })
}
