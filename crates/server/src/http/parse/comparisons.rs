//! The JSON bodies of `/similarity` and `/odd-one-out`.

use std::fmt;

use kindred::Unknown;
use kindred::question::{MAX_COMPARED_WORDS, MAX_SET_WORDS, MIN_COMPARED_WORDS, Side};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::body::json_body;
use super::invalid;
use super::limits::MAX_PAIRS;
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
    pub(in crate::http) fn check(self) -> Result<(Vec<&'a RawValue>, Unknown), ApiError> {
        let pairs = self.pairs.and_then(AtMost::all).filter(|pairs| !pairs.is_empty());
        let pairs = pairs.ok_or_else(|| invalid("pairs"))?;
        Ok((pairs, self.unknown.unwrap_or(Unknown::Error)))
    }
}

/// Parses the pair with this index.
pub(in crate::http) fn read_pair(index: usize, pair: &RawValue) -> Result<[Side; 2], ApiError> {
    let sides: Option<[RawSide; 2]> = serde_json::from_str(pair.get()).ok();
    let read = |side| match side {
        RawSide::Word(word) => Some(Side::Word(word)),
        RawSide::Set(words) => words.all().filter(|words| !words.is_empty()).map(Side::Set),
    };
    let sides = sides.and_then(|[a, b]| Some([read(a)?, read(b)?]));
    sides.ok_or_else(|| invalid(&format!("pairs[{index}]")))
}

/// One side of a pair.
#[derive(Debug)]
enum RawSide {
    Word(String),
    Set(AtMost<String, MAX_SET_WORDS>),
}

impl<'de> Deserialize<'de> for RawSide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrSet;
        impl<'de> Visitor<'de> for WordOrSet {
            type Value = RawSide;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<RawSide, E> {
                Ok(RawSide::Word(word.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<RawSide, A::Error> {
                AtMost::deserialize(SeqAccessDeserializer::new(words)).map(RawSide::Set)
            }
        }
        deserializer.deserialize_any(WordOrSet)
    }
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
    pub(in crate::http) fn check(self) -> Result<(Vec<String>, Unknown), ApiError> {
        let words = self.words.and_then(AtMost::all);
        let words = words.filter(|words| words.len() >= MIN_COMPARED_WORDS);
        let words = words.ok_or_else(|| invalid("words"))?;
        Ok((words, self.unknown.unwrap_or(Unknown::Error)))
    }
}
