//! `kindred classify` and `kindred expand` with `--url`: a service answers, many texts at a time.

use std::ops::ControlFlow;

use jobs::bulk::{Answerer as _, BulkQuestion, JsonAnswer};
use kindred::heads::{Explanation, HeadKind};
use serde::Deserialize;
use serde_json::json;

use super::by_url::{ByUrl, Problem};
use super::expand::{token, wanted_form, wanted_terms};
use super::texts::{NO_LABELS, NO_TERMS, Notes, Printer, Row, Shown, Style};
use super::{CommandError, each_batch};
use crate::arguments::{ClassifyArguments, ExpandArguments};

/// The maximum number of texts in a request.
const TOGETHER: usize = 1024;
/// The same, with explanations.
const EXPLAINED_TOGETHER: usize = 16;

/// Reads the labels or terms of an answer; `None` if it has none of the usual form.
type ReadRows = fn(&JsonAnswer, Option<&Explanation<'_>>) -> Option<Vec<Row>>;

/// Prints the labels of texts.
pub(super) fn classify(arguments: &ClassifyArguments) -> Result<(), CommandError> {
    #[derive(Deserialize)]
    struct Label {
        label: String,
        probability: f64,
        score: Option<f64>,
    }
    fn rows(found: &JsonAnswer, why: Option<&Explanation<'_>>) -> Option<Vec<Row>> {
        let row = |Label { label, probability, score }: Label| {
            Row::of_label(&label, probability, score, why)
        };
        Some(found.field::<Vec<Label>>("labels")?.into_iter().map(row).collect())
    }
    let ClassifyArguments { texts, service, labels, explain, scores, json, .. } = arguments;
    let (head, wanted) = (labels.head.as_deref(), labels.wanted());
    let head = Some((HeadKind::Classifier, head));
    let service = ByUrl::new(service, head, |labels| BulkQuestion::Classify(wanted, labels))?;
    let service = service.with("scores", json!(scores));
    let (service, together) = match *explain {
        true => (service.with("explain", json!(true)), EXPLAINED_TOGETHER),
        false => (service, TOGETHER),
    };
    print_all(&service, (texts, together), *json, rows, NO_LABELS)?.finish("label")
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
        position: u32,
        text: Option<String>,
    }
    fn rows(found: &JsonAnswer, _: Option<&Explanation<'_>>) -> Option<Vec<Row>> {
        let row = |Term { term, weight, token: from }: Term| {
            let from = from.map(|Token { position, text }| token(text.as_deref(), position));
            Row::of_term(&term, weight, from)
        };
        Some(found.field::<Vec<Term>>("terms")?.into_iter().map(row).collect())
    }
    let ExpandArguments { texts, service, terms, format, explain, json, .. } = arguments;
    let (wanted, form) = (wanted_terms(terms)?, wanted_form(arguments)?);
    let head = Some((HeadKind::Expander, terms.head.as_deref()));
    let service = ByUrl::new(service, head, |_| BulkQuestion::Expand(wanted, form))?;
    let service = match *explain {
        true => service.with("explain", json!(true)),
        false => service,
    };
    let is_json = *json || format.is_some();
    print_all(&service, (texts, TOGETHER), is_json, rows, NO_TERMS)?.finish("terms")
}

/// Prints the answers to all texts; `none` is said of one without rows. A request has at most
/// `together` texts.
fn print_all(
    service: &ByUrl,
    (texts, together): (&[String], usize),
    is_json: bool,
    rows: ReadRows,
    none: &'static str,
) -> Result<Printer, CommandError> {
    let (model, version) = service.model();
    let head = service.head().unwrap_or_default();
    let mut printer = Printer::new(is_json, head, model, version);
    each_batch(texts, together, |texts| {
        for some in texts.chunks(together) {
            let asked: Vec<&str> = some.iter().map(String::as_str).collect();
            let answers = service.ask(&asked, &|| ControlFlow::Continue(()))?;
            for (text, answer) in some.iter().zip(answers.into_iter().flatten()) {
                let asked = json!({"text": text});
                match answer {
                    Ok(found) if printer.style == Style::Json => printer.json(&asked, found)?,
                    Ok(found) => print(&printer, text, &found, service.limit(), (rows, none))?,
                    Err(Problem { fault, json }) => {
                        printer.failed(text, &asked, &fault.detail, json)?;
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(printer)
}

/// Prints the answer to a text, in other styles than JSON.
fn print(
    printer: &Printer,
    text: &str,
    found: &JsonAnswer,
    limit: Option<u64>,
    (rows, none): (ReadRows, &'static str),
) -> Result<(), CommandError> {
    let explanation = found.field::<Explanation<'static>>("explanation");
    let explanation = explanation.as_ref();
    let strange = || CommandError::Refused("the answer has not the usual form".to_owned());
    let rows = rows(found, explanation).ok_or_else(strange)?;
    let unknown = found.field::<Vec<String>>("unknown").unwrap_or_default();
    let notes = Notes { unknown: &unknown, is_cut: found.field("cut").unwrap_or_default() };
    printer.shown(text, &Shown { rows, none, explanation, notes, limit })
}
