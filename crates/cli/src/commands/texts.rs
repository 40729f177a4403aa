//! The output of `classify` and `expand`, whoever answers: blocks for people on a terminal,
//! tab-separated columns for other programs, or JSON as over HTTP.

use std::io::{self, IsTerminal as _};

use kindred::heads::Explanation;
use serde::Serialize;
use serde_json::Value;

use super::{CommandError, heading, print};
use crate::console::{beginning, explanation_lines, reasons, tab_separated};
use server::escape::{escaped, escaped_lines};

/// Said of a text whose labels are all left out.
pub(super) const NO_LABELS: &str = "no labels: none has the probability that --threshold asks for";

/// Said of a text that implies nothing.
pub(super) const NO_TERMS: &str = "no terms: none has a weight above 0 that --min-weight keeps";

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
    /// Texts without an answer.
    failed: usize,
}

/// A label or a term.
pub(super) struct Row {
    /// The line for people.
    line: String,
    /// The columns behind the text.
    columns: Vec<String>,
}

/// The answer to a text, for styles other than JSON.
pub(super) struct Shown<'a> {
    pub(super) rows: Vec<Row>,
    /// Said if there are none.
    pub(super) none: &'static str,
    /// Why the text has its most probable label, if that is wanted.
    pub(super) explanation: Option<&'a Explanation<'a>>,
    pub(super) notes: Notes<'a>,
    /// The most tokens of a text that are read, if the head has such a limit.
    pub(super) limit: Option<u64>,
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

/// Words that were left out, and whether the text was cut, as over HTTP.
#[derive(Serialize)]
pub(super) struct Notes<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) unknown: &'a [String],
    #[serde(rename = "cut", skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_cut: bool,
}

impl Row {
    /// A label, with its class score if that is wanted, and the n-grams that decided for it if
    /// there is an explanation.
    pub(super) fn of_label(
        label: &str,
        probability: f64,
        score: Option<f64>,
        explanation: Option<&Explanation<'_>>,
    ) -> Self {
        let shown = score.map_or_else(String::new, |score| format!("  ({score:.4})"));
        let mut columns = vec![label.to_owned(), probability.to_string()];
        columns.extend(score.map(|score| score.to_string()));
        columns.extend(explanation.map(|why| reasons(why, label)));
        Self { line: format!("{:5.1} %  {label}{shown}", 100.0 * probability), columns }
    }

    /// A term, with the token that gave it if that is wanted.
    pub(super) fn of_term(term: &str, weight: f64, token: Option<String>) -> Self {
        let why = token.as_ref().map_or_else(String::new, |token| format!("  ({token})"));
        let line = format!("{weight:7.4}  {term}{why}");
        let columns = [term.to_owned(), weight.to_string()].into_iter().chain(token).collect();
        Self { line, columns }
    }
}

impl Printer {
    /// A printer to the current standard output. Names the head, its model and the model's version
    /// on standard error; in JSON, each answer does.
    pub(super) fn new(is_json: bool, head: &str, model: &str, version: &str) -> Self {
        let style = match (is_json, io::stdout().is_terminal()) {
            (true, _) => Style::Json,
            (false, true) => Style::People,
            (false, false) => Style::Columns,
        };
        if style != Style::Json {
            eprintln!("{}", heading(Some(head), model, version));
        }
        let [head, model, version] = [head, model, version].map(str::to_owned);
        Self { style, model, version, head, failed: 0 }
    }

    /// Prints a line of JSON. `asked` is an object.
    pub(super) fn json(&self, asked: &Value, answer: impl Serialize) -> Result<(), CommandError> {
        let Self { model, version, head, .. } = self;
        let line = Line { asked, model, version, head, answer };
        let line = serde_json::to_string(&line).expect("numbers and texts are JSON");
        print((line + "\n").as_bytes())
    }

    /// Prints an answer in the other styles. `title` is the text, or a name for what was asked.
    pub(super) fn shown(&self, title: &str, answer: &Shown<'_>) -> Result<(), CommandError> {
        let Shown { rows, none, explanation, notes: Notes { unknown, is_cut }, limit } = answer;
        let mut notes = Vec::new();
        if rows.is_empty() {
            notes.push((*none).to_owned());
        }
        if !unknown.is_empty() {
            notes.push(format!("unknown: {}", unknown.join(" ")));
        }
        if *is_cut {
            notes.push(limit.map_or_else(
                || "only a part of the text was read".to_owned(),
                |limit| format!("only {limit} tokens were read"),
            ));
        }
        if self.style == Style::People {
            let why = explanation.iter().flat_map(|why| explanation_lines(why));
            let below = rows.iter().map(|row| row.line.clone()).chain(why).chain(notes);
            let lines: Vec<String> = below.map(|line| format!("\n  {line}")).collect();
            return print((escaped_lines(&(title.to_owned() + &lines.concat())) + "\n").as_bytes());
        }
        let line = |Row { columns, .. }: &Row| {
            tab_separated([title].into_iter().chain(columns.iter().map(String::as_str))) + "\n"
        };
        print(rows.iter().map(line).collect::<String>().as_bytes())?;
        notes.iter().for_each(|said| note(title, said));
        Ok(())
    }

    /// Prints the error of a text without an answer: in JSON as over HTTP, otherwise its `detail`
    /// to standard error.
    pub(super) fn failed(
        &mut self,
        title: &str,
        asked: &Value,
        detail: &str,
        problem: impl Serialize,
    ) -> Result<(), CommandError> {
        self.failed += 1;
        if self.style == Style::Json {
            return self.json(asked, Failed { error: problem });
        }
        note(title, detail);
        Ok(())
    }

    /// An error if texts had no answer: no `label`, or no `terms`.
    pub(super) fn finish(&self, answer: &str) -> Result<(), CommandError> {
        match self.failed {
            0 => Ok(()),
            count => {
                let (has, each) = if count == 1 { ("has", "it") } else { ("have", "each") };
                Err(CommandError::Usage(format!(
                    "{count} of the texts {has} no {answer}; {each} has its error"
                )))
            }
        }
    }
}

/// Prints a note on a text to standard error.
fn note(title: &str, said: &str) {
    eprintln!("{}", escaped(&format!("{}: {said}", shortened(title))));
}

/// The beginning of a text that is long, so that a note on it can be read.
fn shortened(title: &str) -> String {
    const SHOWN: usize = 80;
    match title.trim().is_empty() {
        true => "an empty text".to_owned(),
        false => beginning(title, SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use kindred::Error;
    use serde_json::json;
    use server::http::problem;

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

    #[test]
    fn notes_name_texts_by_their_beginning() {
        let long = "ä".repeat(81);
        let cut = "ä".repeat(80) + "…";
        for (title, expected) in [
            (" ", "an empty text"),
            ("a film", "a film"),
            (&long[..160], &long[..160]),
            (long.as_str(), cut.as_str()),
        ] {
            assert_eq!(shortened(title), expected);
        }
    }

    #[test]
    fn a_label_and_a_term_have_a_column_for_all_that_is_wanted() {
        let ngrams = json!([{"text": "a b", "start": 0, "end": 3, "share": -0.25}]);
        let why = json!({"label": "p", "score": 1.0, "base": 0.0, "ngrams": ngrams, "others": 0.0,
            "exact": true});
        let why: Explanation<'_> = serde_json::from_value(why).unwrap();
        let row = Row::of_label("p", 1.0 / 3.0, Some(-0.5), Some(&why));
        assert_eq!(row.columns, ["p", "0.3333333333333333", "-0.5", "a b -0.250"]);
        assert_eq!(row.line, " 33.3 %  p  (-0.5000)");
        assert_eq!(Row::of_label("p", 1.0, None, None).columns, ["p", "1"]);
        let row = Row::of_term("t", 0.1 + 0.2, Some("x".to_owned()));
        assert_eq!(row.columns, ["t", "0.30000000000000004", "x"]);
        assert_eq!(row.line, " 0.3000  t  (x)");
        assert_eq!(Row::of_term("t", 1.0, None).columns, ["t", "1"]);
    }
}
