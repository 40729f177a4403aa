//! The JSON bodies of `/similarity`, `/odd-one-out` and `/count`.

use kindred::Unknown;
use kindred::question::{MAX_COMPARED_WORDS, MAX_SET_WORDS, MIN_COMPARED_WORDS, Side};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::json_body;
use super::limits::MAX_PAIRS;
use super::texts::TextOrWords;
use super::{found, invalid, list_of_words};
use crate::http::ApiError;

json_body! {
    /// The body of `POST /similarity`.
    SimilarityBody<'a> {
        #[serde(borrow)]
        pairs: AtMost<&'a RawValue, MAX_PAIRS>,
        unknown: Unknown,
    }
}

impl<'a> SimilarityBody<'a> {
    /// Checks its form. Returns its pairs as unparsed JSON, and what to do about unknown words.
    pub(in crate::http) fn check(self) -> Result<(Vec<&'a RawValue>, Option<Unknown>), ApiError> {
        let pairs = self.pairs.and_then(AtMost::all).filter(|pairs| !pairs.is_empty());
        let pairs = pairs.ok_or_else(|| invalid("pairs"))?;
        Ok((pairs, self.unknown))
    }
}

/// Parses the pair with this index.
pub(in crate::http) fn read_pair(index: usize, pair: &RawValue) -> Result<[Side; 2], ApiError> {
    let sides: Option<[TextOrWords<MAX_SET_WORDS>; 2]> = serde_json::from_str(pair.get()).ok();
    let read = |side| match side {
        TextOrWords::Text(word) => Some(Side::Word(word)),
        TextOrWords::Words(words) => (!words.is_empty()).then_some(Side::Set(words)),
    };
    let sides = sides.and_then(|[a, b]| Some([read(a)?, read(b)?]));
    sides.ok_or_else(|| {
        invalid(&format!("pairs[{index}]")).with_found(Some(found::of_json(pair.get())))
    })
}

json_body! {
    /// The body of `POST /odd-one-out`.
    OddOneOutBody {
        words: AtMost<String, MAX_COMPARED_WORDS>,
        unknown: Unknown,
    }
}

impl OddOneOutBody {
    /// Checks its form. Returns its words, and what to do about unknown words.
    pub(in crate::http) fn check(self) -> Result<(Vec<String>, Option<Unknown>), ApiError> {
        let words = list_of_words(self.words, MIN_COMPARED_WORDS, "compare")?;
        Ok((words, self.unknown))
    }
}

json_body! {
    /// The body of `POST /count`.
    CountBody {
        filter: String,
        timeout_ms: u64,
    }
}

impl CountBody {
    /// Checks its form. Returns the filter, and the request's own timeout.
    pub(in crate::http) fn check(self) -> Result<(String, Option<u64>), ApiError> {
        let missing = || ApiError::invalid_request("the field `filter` is missing");
        Ok((self.filter.ok_or_else(missing)?, self.timeout_ms))
    }
}
