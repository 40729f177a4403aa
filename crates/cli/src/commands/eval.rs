//! `kindred eval`: measures how good a model or a head is, by test sets.

use std::path::Path;

use indicatif::HumanCount;

use super::beside::Verification;
use super::classify::{classifier_of, evaluate};
use super::progress::{Display, Step};
use super::train::{read_texts, texts_options};
use super::{CommandError, changed_model_of, heading, own_engine, start};
use crate::arguments::EvalArguments;
use kindred::evaluation::results::{
    AnalogyResult, Case, Model, Report, SectionResult, SimilarityResult,
};
use kindred::evaluation::source::{Source, name};
use kindred::evaluation::{EvaluationError, analogies, similarities};
use kindred::heads::{Classification, OfLabel};
use kindred::method::Method;
use kindred::{Device, Kindred, ModelStore};
use serde_json::json;

/// Asks a model the questions of test sets, and prints how many it answers right.
pub(super) fn eval(arguments: &EvalArguments) -> Result<(), CommandError> {
    check_are_no_models(arguments)?;
    // All sets are read first, so that a fault in one is found before the long work.
    let analogies: Vec<_> =
        arguments.analogies.iter().map(|path| read_analogies(path)).collect::<Result<_, _>>()?;
    let pairs: Vec<_> =
        arguments.similarities.iter().map(|path| read_pairs(path)).collect::<Result<_, _>>()?;
    let how = texts_options(&arguments.columns, None, false);
    let texts: Vec<_> = arguments
        .classification
        .iter()
        .map(|path| Ok((name(path), read_texts(path, arguments.columns.encoding, &how)?)))
        .collect::<Result<_, CommandError>>()?;
    let (one, live) = changed_model_of(&arguments.model.arguments())?;
    let model = one.model.clone();
    let mut verification = Some(Verification::start(&model)?);
    let mut finish = || verification.take().map_or(Ok(()), |own| own.finish(None));
    if !texts.is_empty() {
        let (name, head) = classifier_of(&one, arguments.head.as_deref())?;
        let settings = own_engine(&Device::Cpu, arguments.threads);
        let kindred = Kindred::start(model.clone().into(), settings)?;
        let results = texts.iter().map(|(set, texts)| evaluate(&kindred, &head, set, texts));
        let results: Vec<Classification> = results.collect::<Result<_, _>>()?;
        finish()?;
        print_classifications(&results, &name, &model, arguments.json)?;
        if arguments.analogies.is_empty() && arguments.similarities.is_empty() {
            return Ok(());
        }
    }
    let settings = own_engine(&arguments.device, arguments.threads);
    // All sets are about the same rows.
    let kindred = start(&model, live.as_ref(), settings)?.pinned();
    let mut methods = arguments.methods.clone();
    if methods.is_empty() {
        methods = Method::under(model.metric()).to_vec();
    }
    methods.sort();
    methods.dedup();

    let questions =
        analogies.iter().flat_map(|(_, sections)| sections).map(analogies::Section::len);
    let questions = questions.sum::<usize>() as u64 * methods.len() as u64;
    let (mut display, mut done) = (Display::new(), 0);
    let case = arguments.case;
    let mut report = Report::new(&model, kindred.engine(), case);
    if let Some(at) = kindred.at() {
        (report.model.rows, report.model.position) = (at.live_rows(), Some(at.position()));
    }
    for (set, sections) in &analogies {
        let show = |asked: usize| {
            done += asked as u64;
            display.show(&Step::of("questions", done, questions));
        };
        let asked = kindred.evaluate_analogies(set, sections, &methods, case, show);
        report.analogies.push(asked.wait()?);
    }
    for (set, pairs) in &pairs {
        report.similarities.push(kindred.evaluate_similarities(set, pairs, case));
    }
    display.finish();
    finish()?;
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report).expect("numbers and names are JSON"))
    } else {
        say!("{}", tables(&report, &methods))
    }
}

/// Refuses a model folder among the test sets: behind these, `DIR` is taken for one more.
fn check_are_no_models(arguments: &EvalArguments) -> Result<(), CommandError> {
    let EvalArguments { analogies, similarities, classification, .. } = arguments;
    let mut sets = analogies.iter().chain(similarities).chain(classification);
    match sets.find(|set| set.is_dir() && ModelStore::open_base(set).is_ok()) {
        Some(model) => Err(CommandError::Usage(format!(
            "{0} is a model, not a test set; name it with --model {0}",
            model.display()
        ))),
        None => Ok(()),
    }
}

/// Prints how good a head is.
fn print_classifications(
    results: &[Classification],
    head: &str,
    model: &ModelStore,
    is_json: bool,
) -> Result<(), CommandError> {
    let (name, version) = (model.name(), model.version());
    let text = match is_json {
        true => serde_json::to_string_pretty(&json!({
            "model": name, "version": version, "head": head, "classification": results,
        }))
        .expect("numbers and names are JSON"),
        false => {
            let tables = results.iter().map(classification).collect::<Vec<_>>().join("\n\n");
            format!("{}\n\n{tables}", heading(Some(head), name, version))
        }
    };
    say!("{text}")
}

/// A result as tables: each label by itself, then which label was given to texts of which.
fn classification(result: &Classification) -> String {
    let wide = width(result.labels.iter().map(|one| &one.label).chain([&result.set]));
    let mut lines = vec![
        format!(
            "{}: {} texts, {} without a known word; accuracy {:.2} %, F1 {:.3} (mean of labels {:.3}), calibration error {:.3}",
            result.set,
            result.texts,
            result.unanswered,
            100.0 * result.accuracy,
            result.micro_f1,
            result.macro_f1,
            result.calibration_error
        ),
        format!(
            "{:wide$}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}",
            "label", "texts", "given", "precision", "recall", "F1"
        ),
    ];
    for OfLabel { label, texts, given, precision, recall, f1 } in &result.labels {
        lines.push(format!(
            "{label:wide$}  {texts:>9}  {given:>9}  {precision:>9.3}  {recall:>9.3}  {f1:>9.3}"
        ));
    }
    if result.confusion.is_empty() {
        return lines.join("\n");
    }
    let given: Vec<String> = result.labels.iter().map(|one| format!("{:>9}", one.label)).collect();
    lines.push(format!("{:wide$}  {}", "given:", given.join("  ")));
    for (OfLabel { label, .. }, row) in result.labels.iter().zip(&result.confusion) {
        let counts: Vec<String> = row.iter().map(|count| format!("{count:>9}")).collect();
        lines.push(format!("{label:wide$}  {}", counts.join("  ")));
    }
    lines.join("\n")
}

/// Reads a file or folder of analogies. Returns its name and sections.
fn read_analogies(path: &Path) -> Result<(String, Vec<analogies::Section>), EvaluationError> {
    let mut sections = Vec::new();
    for source in Source::read_all(path)? {
        sections.extend(analogies::parse(&source)?);
    }
    Ok((name(path), sections))
}

fn read_pairs(path: &Path) -> Result<(String, Vec<similarities::Pair>), EvaluationError> {
    let source = Source::read(path)?;
    let pairs = similarities::parse(&source)?;
    Ok((source.name, pairs))
}

/// The report as tables, for people.
fn tables(report: &Report<'_>, methods: &[Method]) -> String {
    let Model { name, version, rows, dim, .. } = report.model;
    let name = heading(None, name, version);
    let looked_up = match report.case {
        Case::Lower => "as written, then in lower case",
        Case::Exact => "as written",
    };
    let rows = HumanCount(rows as u64);
    let mut lines =
        vec![format!("{name}: {rows} rows × {dim} dimensions; words looked up {looked_up}")];
    for result in &report.analogies {
        lines.push(String::new());
        add_analogies(result, methods, &mut lines);
    }
    if !report.similarities.is_empty() {
        let names = report.similarities.iter().map(|result| &result.set);
        let wide = width(names.chain([&"similarities".to_owned()]));
        lines.push(String::new());
        lines.push(format!(
            "{:wide$}  {:>6}  {:>6}  {:>12}",
            "similarities", "pairs", "found", "Spearman's ρ"
        ));
        for SimilarityResult { set, pairs, found, spearman } in &report.similarities {
            let spearman = spearman.map_or_else(|| "none".to_owned(), |rho| format!("{rho:.3}"));
            lines.push(format!("{set:wide$}  {pairs:>6}  {found:>6}  {spearman:>12}"));
        }
    }
    lines.join("\n")
}

fn add_analogies(result: &AnalogyResult, methods: &[Method], lines: &mut Vec<String>) {
    let names = result.sections.iter().map(|section| &section.name);
    let wide = width(names.chain([&result.set]));
    let mut head = format!("{:wide$}  {:>9}  {:>13}", result.set, "questions", "in vocabulary");
    for method in methods {
        head += &format!("  {:>16}", method.name());
    }
    lines.push(head);
    let line = |section: &SectionResult| {
        let SectionResult { name, questions, in_vocabulary, .. } = section;
        let mut line = format!("{name:wide$}  {questions:>9}  {in_vocabulary:>13}");
        for method in methods {
            let result = section.methods.get(method).copied().unwrap_or_default();
            line += &format!("  {:>7} {:>6.2} %", result.right, 100.0 * result.accuracy);
        }
        line
    };
    lines.extend(result.sections.iter().map(line));
    lines.push(line(&result.total));
    let mut line = format!("{:wide$}  {:>9}  {:>13}", "seconds", "", "");
    for method in methods {
        let seconds = result.total.methods.get(method).copied().unwrap_or_default().seconds;
        line += &format!("  {seconds:>16.1}");
    }
    lines.push(line);
}

/// The length of the longest name, in characters.
fn width<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or_default()
}
