//! A question as an HTTP request.

use serde_json::{Value, json};

use kindred::Options;
use kindred::method::Method;

/// A question to a model.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// The nearest neighbours of a word, by its exact bytes.
    Nearest(String),
    /// The nearest neighbours of an expression, in the grammar of [`kindred::expression`].
    Analogy(String),
    /// The nearest neighbours of a weighted sum of words.
    Sum(Vec<(String, f64)>),
}

impl Question {
    /// The route that answers it.
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Nearest(_) => "/nearest",
            Self::Analogy(_) | Self::Sum(_) => "/analogy",
        }
    }

    /// The body of the request.
    pub(super) fn body(&self, options: &Options, method: Option<Method>) -> Value {
        let mut body = options.to_json();
        match self {
            Self::Nearest(word) => body["word"] = json!(word),
            Self::Analogy(expression) => body["expression"] = json!(expression),
            Self::Sum(words) => {
                // All words are in one list, so that they are summed in this order.
                let words =
                    words.iter().map(|(word, weight)| json!({"word": word, "weight": weight}));
                body["positive"] = words.collect();
            }
        }
        if let (Self::Analogy(_) | Self::Sum(_), Some(method)) = (self, method) {
            body["method"] = json!(method.short_name());
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_sent() {
        let none = Options::new();
        let frog = Question::Nearest("frog".into());
        assert_eq!(frog.body(&none, Some(Method::ThreeCosMul)), json!({"word": "frog"}));
        let options = Options::new().k(3).excluding(["a"]).min_score(-0.5).explain(true);
        let asked = Question::Analogy("a - b".into()).body(&options, Some(Method::ThreeCosMul));
        let expected = json!({"expression": "a - b", "k": 3, "exclude": ["a"], "min_score": -0.5,
            "explain": true, "method": "3cosmul"});
        assert_eq!(asked, expected);
    }
}
