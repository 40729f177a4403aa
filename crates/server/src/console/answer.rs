//! The JSON of HTTP, read again.

use serde::Deserialize;

/// An answer to `/nearest` or `/analogy`, as far as it is shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Answer {
    pub(super) model: String,
    pub(super) version: String,
    pub(super) neighbors: Vec<Neighbor>,
    /// The words of the question among their own neighbours, where it was to be explained.
    #[serde(default)]
    pub(super) inputs: Vec<Input>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Neighbor {
    pub(super) word: String,
    /// To the bit what the service has.
    pub(super) score: f64,
    pub(super) row: u32,
    #[serde(default)]
    pub(super) terms: Vec<Term>,
}

/// A word's part in a score: one of both.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Term {
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

/// A problem document, as far as it is shown.
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
    /// What a person should know of it. Of one unknown word the detail says all.
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
