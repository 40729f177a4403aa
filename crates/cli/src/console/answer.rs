//! The service's JSON answers, parsed.

use kindred::heads::Explanation;
use serde::Deserialize;

/// An answer to `/nearest` or `/analogy`: the fields that are shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Answer {
    pub(super) model: String,
    pub(super) version: String,
    pub(super) neighbors: Vec<Neighbor>,
    /// The ranks of the question's own words, if an explanation was requested.
    #[serde(default)]
    pub(super) inputs: Vec<Input>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Neighbor {
    pub(super) word: String,
    /// Bit-identical to the service's score.
    pub(super) score: f64,
    pub(super) row: u32,
    #[serde(default)]
    pub(super) terms: Vec<ScorePart>,
}

/// A word's part in a score: either a contribution or a factor.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ScorePart {
    pub(super) word: String,
    pub(super) contribution: Option<f64>,
    pub(super) factor: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Input {
    pub(super) word: String,
    pub(super) score: Option<f64>,
    pub(super) rank: Option<u32>,
}

/// An answer to `/classify` or `/expand`: the fields that are shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct OfText {
    pub(super) model: String,
    pub(super) version: String,
    pub(super) head: String,
    #[serde(flatten)]
    pub(super) found: Found,
    /// Words that were left out.
    #[serde(default)]
    pub(super) unknown: Vec<String>,
    /// Whether the text was too long.
    #[serde(default)]
    pub(super) cut: bool,
}

/// What a head found in a text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Found {
    Labels { labels: Vec<Label>, explanation: Option<Explanation<'static>> },
    Terms { terms: Vec<ImpliedTerm> },
}

/// A term that a text implies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ImpliedTerm {
    pub(super) term: String,
    pub(super) weight: f64,
    pub(super) token: Token,
}

/// The token of the text that gave a term.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Token {
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Label {
    pub(super) label: String,
    pub(super) probability: f64,
}

/// A problem document: the fields that are shown.
#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    detail: String,
    #[serde(default)]
    unknown: Vec<UnknownWord>,
}

#[derive(Debug, Deserialize)]
struct UnknownWord {
    word: String,
    suggestions: Vec<String>,
}

impl Problem {
    /// The message for a person. If only one word is unknown, `detail` already has its suggestions.
    pub(super) fn message(self) -> String {
        let mut message = self.detail;
        if self.unknown.len() > 1 {
            for UnknownWord { word, suggestions } in self.unknown {
                if !suggestions.is_empty() {
                    message +=
                        &format!("; instead of `{word}`, did you mean {}?", suggestions.join(", "));
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
}
