//! Answers with who gave them, as over HTTP: JSON has these names, in this order.

use std::borrow::Cow;

use kindred::heads::Explanation;
use kindred::{Answer, Error, ImpliedTerm, Placed, SubwordsOf, TextTokens, UnknownWord};
use serde::{Deserialize, Serialize};

use crate::error::CommandError;

/// The part of an error that is for people who write URLs. It is removed here.
const FOR_URLS: &str = concat!(" ", kindred::plus_in_url!(), ";");

/// An answer to `/nearest` or `/analogy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelAnswer<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// The position of the rows that were asked about, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<u64>,
    #[serde(flatten)]
    pub(super) found: Answer<'a>,
}

/// An answer to `/similarity`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SimilarityAnswer<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// One for each pair.
    pub(super) results: Vec<PairScore>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PairScore {
    pub(super) score: f64,
    /// The words that were left out, if words may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subwords: Option<Vec<SubwordsOf>>,
}

/// An answer to `/odd-one-out`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OddAnswer<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) odd_one_out: Cow<'a, str>,
    /// The words by their cosine to the sum of all, highest first.
    pub(super) ranked: Vec<RankedWord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subwords: Option<Vec<SubwordsOf>>,
}

/// A word that was compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RankedWord<'a> {
    pub(super) word: Cow<'a, str>,
    pub(super) score: f64,
    /// Of a word of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) row: Option<u32>,
}

/// An answer to `/rank`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RankAnswer<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// The position of the rows that were asked about, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<u64>,
    pub(super) ranked: Vec<Placed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<Vec<Cow<'a, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<Vec<String>>,
    /// The words that have the vectors of their subwords, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subwords: Option<Vec<SubwordsOf>>,
    /// The tokens of a text that the model's encoder has made a vector of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<TextTokens>,
}

/// An answer to `/classify` or `/expand`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TextAnswer<'a> {
    pub(super) model: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) head: Cow<'a, str>,
    #[serde(flatten)]
    pub(super) found: Found,
    /// Words that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unknown: Vec<String>,
    /// Whether the text was too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
    /// The n-grams that decided, if an explanation was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explanation: Option<Explanation<'a>>,
}

/// The labels or terms of a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Found {
    Labels(Vec<Label>),
    Terms(Vec<ImpliedTerm>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) label: String,
    pub(super) probability: f64,
}

/// A problem document: the fields that are shown.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    #[serde(default)]
    pub(super) code: String,
    detail: String,
    #[serde(default)]
    unknown: Vec<UnknownWord>,
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        let unknown = match error {
            Error::UnknownWord { unknown } => unknown,
            _ => Vec::new(),
        };
        Self::Refused(Problem { code: String::new(), detail, unknown }.message())
    }
}

impl Problem {
    /// The message for a person. If only one word is unknown, `detail` already has its suggestions.
    pub(super) fn message(self) -> String {
        let mut message = self.detail.replace(FOR_URLS, "");
        if self.unknown.len() > 1 {
            for unknown in self.unknown {
                let meant = Some(unknown.meant()).filter(|_| !unknown.suggestions.is_empty());
                let meant: Vec<String> = meant.into_iter().chain(unknown.expression).collect();
                if !meant.is_empty() {
                    let (word, meant) = (unknown.word, meant.join(", "));
                    message += &format!("; instead of `{word}`, did you mean {meant}?");
                }
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_what_the_model_has_for_each_unknown_word() {
        let of = |text: &str| serde_json::from_str::<Problem>(text).unwrap().message();
        let one =
            r#"{"detail":"no `a`; did you mean b?","unknown":[{"word":"a","suggestions":["b"]}]}"#;
        assert_eq!(of(one), "no `a`; did you mean b?");
        let two = r#"{"detail":"no `a`, `x`","unknown":[{"word":"a","suggestions":["b","c"]},
            {"word":"x","suggestions":[]}]}"#;
        assert_eq!(of(two), "no `a`, `x`; instead of `a`, did you mean b, c?");
        assert_eq!(of(r#"{"detail":"bad","code":"x"}"#), "bad");
    }

    #[test]
    fn answers_are_written_as_they_are_read() {
        let neighbors = r#"{"model":"m","version":"v","neighbors":[{"word":"a\"","score":0.30000000000000004,"row":7,"terms":[{"word":"b","weight":-1.0,"cosine":-0.0,"contribution":0.25}]}],"used":["b"],"skipped":[],"inputs":[{"word":"b","row":1,"score":null,"rank":null}]}"#;
        let answer: ModelAnswer<'_> = serde_json::from_str(neighbors).unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap(), neighbors);
        let labels = r#"{"model":"m","version":"v","head":"h","labels":[{"label":"l","probability":0.1}],"unknown":["x"],"cut":true,"explanation":{"label":"l","score":1.5,"base":0.1,"ngrams":[{"text":"a b","start":0,"end":3,"share":-0.2}],"others":0.0,"exact":true}}"#;
        let terms = r#"{"model":"m","version":"v","head":"h","terms":[{"term":"t","weight":0.1,"token":{"position":0,"text":"x","start":0,"end":1}}]}"#;
        for json in [labels, terms] {
            let answer: TextAnswer<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), json);
        }
    }
}
