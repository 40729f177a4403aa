//! The output of `classify` and `expand`: blocks for people on a terminal, tab-separated columns for
//! other programs, or JSON as over HTTP.

use std::io::{self, IsTerminal as _};

use kindred::{Error, Model};
use serde::Serialize;
use serde_json::Value;

use super::{CommandError, heading, print};
use crate::console::tab_separated;
use server::escape::{escaped, escaped_lines};
use server::http::problem;

/// The form of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A block of lines for each text.
    People,
    /// A line for each label or term, which begins with the text.
    Columns,
    /// An object for each text.
    Json,
}

/// Prints answers to texts, all by the same head.
pub(super) struct Printer {
    pub(super) style: Style,
    model: String,
    version: String,
    head: String,
}

/// An answer in JSON. The question stands before the fields of an answer over HTTP.
#[derive(Serialize)]
struct Line<'a, A> {
    #[serde(flatten)]
    asked: &'a Value,
    model: &'a str,
    version: &'a str,
    head: &'a str,
    #[serde(flatten)]
    answer: A,
}

#[derive(Serialize)]
struct Failed<P> {
    error: P,
}

/// Words that were left out, and whether more of the text was, as over HTTP.
#[derive(Serialize)]
pub(super) struct Notes<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) unknown: &'a [String],
    #[serde(rename = "cut", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_cut: bool,
}

impl Printer {
    /// A printer to the current standard output. Names the head and its model on standard error;
    /// in JSON, each answer does.
    pub(super) fn new(is_json: bool, head: &str, model: &Model) -> Self {
        let style = match (is_json, io::stdout().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::People,
            (false, false) => Style::Columns,
        };
        let (model, version) = (model.name().to_owned(), model.version().to_owned());
        if style != Style::Json {
            eprintln!("{}", heading(Some(head), &model, &version));
        }
        Self { style, model, version, head: head.to_owned() }
    }

    /// Prints a line of JSON. `asked` is an object.
    pub(super) fn json(&self, asked: &Value, answer: impl Serialize) -> Result<(), CommandError> {
        let Self { model, version, head, .. } = self;
        let line = Line { asked, model, version, head, answer };
        let line = serde_json::to_string(&line).expect("numbers and texts are JSON");
        print((line + "\n").as_bytes())
    }

    /// Prints lines for people.
    pub(super) fn lines(&self, lines: &[String]) -> Result<(), CommandError> {
        print((escaped_lines(&lines.join("\n")) + "\n").as_bytes())
    }

    /// Prints rows of columns.
    pub(super) fn columns(&self, rows: &[Vec<String>]) -> Result<(), CommandError> {
        let line = |row: &Vec<String>| tab_separated(row.iter().map(String::as_str)) + "\n";
        print(rows.iter().map(line).collect::<String>().as_bytes())
    }

    /// Prints the error of a text without an answer: in JSON as over HTTP, otherwise to standard
    /// error.
    pub(super) fn failed(
        &self,
        title: &str,
        asked: &Value,
        error: Error,
    ) -> Result<(), CommandError> {
        if self.style == Style::Json {
            return self.json(asked, Failed { error: problem(error) });
        }
        self.note(title, &error.to_string());
        Ok(())
    }

    /// Prints a note on a text to standard error.
    pub(super) fn note(&self, title: &str, said: &str) {
        eprintln!("{}", escaped(&format!("{title}: {said}")));
    }

    /// Prints the notes on a text to standard error; `cut` is that on a text that was too long.
    pub(super) fn notes(&self, title: &str, Notes { unknown, is_cut }: &Notes<'_>, cut: &str) {
        if !unknown.is_empty() {
            self.note(title, &format!("unknown: {}", unknown.join(" ")));
        }
        if *is_cut {
            self.note(title, cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_of_json_has_the_fields_of_an_answer_over_http_in_their_order() {
        let asked = json!({"text": "t"});
        let notes = Notes { unknown: &["x".to_owned()], is_cut: true };
        let line = Line { asked: &asked, model: "m", version: "v", head: "h", answer: notes };
        let expected =
            r#"{"text":"t","model":"m","version":"v","head":"h","unknown":["x"],"cut":true}"#;
        assert_eq!(serde_json::to_string(&line).unwrap(), expected);
        let error = problem(Error::no_known_word(vec!["x".to_owned()]));
        let error = serde_json::to_value(Failed { error }).unwrap();
        assert_eq!(error["error"]["code"], "unknown_word");
        assert_eq!(error["error"]["unknown"], json!([{"word": "x", "suggestions": []}]));
    }
}
