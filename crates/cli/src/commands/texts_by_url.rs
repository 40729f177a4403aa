//! `kindred classify` and `kindred expand` with `--url`: a service answers, many texts at a time.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::Path;

use jobs::bulk::{Answerer as _, BulkQuestion, Fault, JsonAnswer};
use kindred::heads::{Explanation, Form, HeadKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::by_url::ByUrl;
use super::expand::wanted_terms;
use super::{CommandError, each_batch, heading, print};
use crate::arguments::{ClassifyArguments, ExpandArguments};
use crate::console::explanation_lines;
use server::escape::{escaped, escaped_lines};

/// Texts that are asked for together.
const TOGETHER: usize = 1024;
/// The most that a service explains together.
const EXPLAINED_TOGETHER: usize = 16;

/// A label or a term: a line for people, and columns for other programs.
struct Row {
    line: String,
    columns: Vec<String>,
}

/// Prints answers.
struct Printer<'a> {
    service: &'a ByUrl,
    is_json: bool,
    is_terminal: bool,
    /// Reads the labels or terms of an answer; `None` if it has none of the usual form.
    rows: fn(&JsonAnswer) -> Option<Vec<Row>>,
    unanswered: usize,
}

/// An answer in JSON: what was asked, and the answer over HTTP.
#[derive(Serialize)]
struct Line<'a> {
    text: &'a str,
    model: &'a str,
    version: &'a str,
    head: &'a str,
    #[serde(flatten)]
    answer: Answer<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Found(&'a JsonAnswer),
    Failed { error: Value },
}

/// Prints the labels of texts.
pub(super) fn classify(arguments: &ClassifyArguments) -> Result<(), CommandError> {
    #[derive(Deserialize)]
    struct Label {
        label: String,
        probability: f64,
    }
    fn rows(found: &JsonAnswer) -> Option<Vec<Row>> {
        let row = |Label { label, probability }: Label| Row {
            line: format!("  {:5.1} %  {label}", 100.0 * probability),
            columns: vec![label, probability.to_string()],
        };
        Some(found.field::<Vec<Label>>("labels")?.into_iter().map(row).collect())
    }
    let ClassifyArguments { texts, service, labels, explain, json, .. } = arguments;
    let (head, wanted) = (labels.head.as_deref().map(Path::to_string_lossy), labels.wanted());
    let head = Some((HeadKind::Classifier, head.as_deref()));
    let service = ByUrl::new(service, head, |labels| BulkQuestion::Classify(wanted, labels))?;
    let (service, together) = explaining(service, *explain);
    print_all(&service, (texts, together), *json, rows)
}

/// Prints the terms that texts imply.
pub(super) fn expand(arguments: &ExpandArguments) -> Result<(), CommandError> {
    #[derive(Deserialize)]
    struct Term {
        term: String,
        weight: f64,
        token: Option<Token>,
    }
    #[derive(Deserialize)]
    struct Token {
        text: Option<String>,
    }
    fn rows(found: &JsonAnswer) -> Option<Vec<Row>> {
        let row = |Term { term, weight, token }: Term| {
            let token = token.and_then(|token| token.text);
            let why = token.as_ref().map_or_else(String::new, |token| format!("  ({token})"));
            let line = format!("  {weight:7.4}  {term}{why}");
            let columns = [term, weight.to_string()].into_iter().chain(token);
            Row { line, columns: columns.collect() }
        };
        Some(found.field::<Vec<Term>>("terms")?.into_iter().map(row).collect())
    }
    let ExpandArguments { texts, service, terms, format, explain, json, .. } = arguments;
    let (head, wanted) = (terms.head.as_deref().map(Path::to_string_lossy), wanted_terms(terms)?);
    let form = format.unwrap_or(Form::Terms);
    let head = Some((HeadKind::Expander, head.as_deref()));
    let service = ByUrl::new(service, head, |_| BulkQuestion::Expand(wanted, form))?;
    let service = match *explain && form == Form::Terms {
        true => service.with("explain", json!(true)),
        false => service,
    };
    print_all(&service, (texts, TOGETHER), *json || format.is_some(), rows)
}

/// A service that explains its labels, if that is wanted, and the texts that it takes together.
fn explaining(service: ByUrl, explain: bool) -> (ByUrl, usize) {
    match explain {
        true => (service.with("explain", json!(true)), EXPLAINED_TOGETHER),
        false => (service, TOGETHER),
    }
}

fn print_all(
    service: &ByUrl,
    (texts, together): (&[String], usize),
    is_json: bool,
    rows: fn(&JsonAnswer) -> Option<Vec<Row>>,
) -> Result<(), CommandError> {
    let is_terminal = io::stdout().is_terminal();
    let mut printer = Printer { service, is_json, is_terminal, rows, unanswered: 0 };
    if !is_json {
        let (model, version) = service.model();
        eprintln!("{}", heading(service.head(), model, version));
    }
    each_batch(texts, together, |texts| {
        for some in texts.chunks(together) {
            let asked: Vec<&str> = some.iter().map(String::as_str).collect();
            let answers = service.ask(&asked, &|| ControlFlow::Continue(()))?;
            for (text, answer) in some.iter().zip(answers.into_iter().flatten()) {
                printer.print(text, &answer)?;
            }
        }
        Ok(())
    })?;
    match printer.unanswered {
        0 => Ok(()),
        count => Err(CommandError::Usage(format!(
            "{count} of the texts have no answer; each has its error"
        ))),
    }
}

impl Printer<'_> {
    fn print(
        &mut self,
        text: &str,
        answer: &Result<JsonAnswer, Fault>,
    ) -> Result<(), CommandError> {
        self.unanswered += usize::from(answer.is_err());
        if self.is_json {
            let (model, version) = self.service.model();
            let answer = match answer {
                Ok(found) => Answer::Found(found),
                Err(Fault { code, detail }) => {
                    Answer::Failed { error: json!({"code": code, "detail": detail}) }
                }
            };
            let head = self.service.head().unwrap_or_default();
            let line = Line { text, model, version, head, answer };
            let line = serde_json::to_string(&line).expect("numbers and texts are JSON");
            return print((line + "\n").as_bytes());
        }
        let found = match answer {
            Ok(found) => found,
            Err(fault) => {
                eprintln!("{}", escaped(&format!("{text}: {}", fault.detail)));
                return Ok(());
            }
        };
        let strange = || CommandError::Refused("the answer has not the usual form".to_owned());
        let rows = (self.rows)(found).ok_or_else(strange)?;
        let explanation = found.field::<Explanation<'static>>("explanation");
        let mut notes: Vec<String> = explanation.iter().flat_map(explanation_lines).collect();
        if let Some(unknown) = found.field::<Vec<String>>("unknown") {
            notes.push(format!("unknown: {}", unknown.join(" ")));
        }
        if found.has("cut") {
            notes.push("the text was too long; a part of it was left out".to_owned());
        }
        if self.is_terminal {
            let mut lines = vec![text.to_owned()];
            lines.extend(rows.into_iter().map(|row| row.line));
            lines.extend(notes.into_iter().map(|note| format!("  {note}")));
            return print((escaped_lines(&lines.join("\n")) + "\n").as_bytes());
        }
        let mut lines = String::new();
        for Row { columns, .. } in rows {
            let columns = [text].into_iter().chain(columns.iter().map(String::as_str));
            lines += &columns.map(escaped).collect::<Vec<_>>().join("\t");
            lines.push('\n');
        }
        print(lines.as_bytes())?;
        for note in notes {
            eprintln!("{}", escaped(&format!("{text}: {note}")));
        }
        Ok(())
    }
}
