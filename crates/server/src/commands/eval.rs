use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model_store::ModelStore;
use serde::Serialize;

use super::CommandError;
use crate::cli::EvalArguments;
use crate::engines;
use crate::evaluation::results::{AnalogyResult, Case, Method, SectionResult, SimilarityResult};
use crate::evaluation::run::Evaluation;
use crate::evaluation::source::{Source, name};
use crate::evaluation::{EvaluationError, analogies, similarities};

/// Asks a model the questions of some sets and prints how many it answers right.
///
/// # Errors
/// If a set, the model or the engine can't be used; nothing is printed then.
pub fn eval(arguments: &EvalArguments) -> Result<(), CommandError> {
    // All sets are read before anything takes time.
    let analogies: Vec<_> =
        arguments.analogies.iter().map(|path| read_analogies(path)).collect::<Result<_, _>>()?;
    let pairs: Vec<_> =
        arguments.similarities.iter().map(|path| read_pairs(path)).collect::<Result<_, _>>()?;
    let model = Arc::new(ModelStore::open(&arguments.model)?);
    // An evaluation leaves nothing behind, so no table of the engine's either.
    let wanted = engines::Wanted {
        device: arguments.device,
        threads: arguments.threads,
        keep_tables: false,
    };
    let mut engine = engines::make(&model, wanted)?;
    let description = engine.description();
    let mut methods = arguments.methods.clone();
    methods.sort();
    methods.dedup();

    let questions =
        analogies.iter().flat_map(|(_, sections)| sections).map(analogies::Section::len);
    let bar = progress_bar(questions.sum::<usize>() * methods.len());
    let case = arguments.case;
    let mut evaluation = Evaluation { model: model.clone(), engine: &mut *engine, case, methods };
    let mut report = Report {
        model: Model { name: model.name(), rows: model.rows(), dim: model.dim() },
        engine: Engine { name: description.name, detail: description.detail },
        case,
        analogies: Vec::new(),
        similarities: Vec::new(),
    };
    for (set, sections) in &analogies {
        let result = evaluation.analogies(set, sections, |asked| bar.inc(asked as u64))?;
        report.analogies.push(result);
    }
    for (set, pairs) in &pairs {
        report.similarities.push(evaluation.similarities(set, pairs));
    }
    bar.finish_and_clear();
    if arguments.json {
        let json = serde_json::to_string_pretty(&report).expect("numbers and names are JSON");
        say!("{json}");
    } else {
        print(&report, &evaluation.methods);
    }
    Ok(())
}

/// A file or folder of analogies: its name and sections.
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

/// On a terminal; elsewhere nothing is drawn.
fn progress_bar(questions: usize) -> ProgressBar {
    let style = "{bar:40} {percent:>3} %  {human_pos} questions  {eta} left";
    let bar = ProgressBar::new(questions as u64)
        .with_style(ProgressStyle::with_template(style).expect("checked by use"));
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    model: Model<'a>,
    engine: Engine,
    case: Case,
    analogies: Vec<AnalogyResult>,
    similarities: Vec<SimilarityResult>,
}

#[derive(Serialize)]
struct Model<'a> {
    name: &'a str,
    rows: usize,
    dim: usize,
}

#[derive(Serialize)]
struct Engine {
    name: &'static str,
    detail: String,
}

fn print(report: &Report<'_>, methods: &[Method]) {
    let Model { name, rows, dim } = report.model;
    let looked_up = match report.case {
        Case::Lower => "as written, else in lower case",
        Case::Exact => "as written",
    };
    say!(
        "{name}: {} rows × {dim} dimensions; words looked up {looked_up}",
        HumanCount(rows as u64)
    );
    for result in &report.analogies {
        say!("");
        print_analogies(result, methods);
    }
    if !report.similarities.is_empty() {
        let names = report.similarities.iter().map(|result| &result.set);
        let wide = width(names.chain([&"similarities".to_owned()]));
        say!("\n{:wide$}  {:>6}  {:>6}  {:>12}", "similarities", "pairs", "found", "Spearman's ρ");
        for SimilarityResult { set, pairs, found, spearman } in &report.similarities {
            let spearman = spearman.map_or_else(|| "none".to_owned(), |rho| format!("{rho:.3}"));
            say!("{set:wide$}  {pairs:>6}  {found:>6}  {spearman:>12}");
        }
    }
}

fn print_analogies(result: &AnalogyResult, methods: &[Method]) {
    let names = result.sections.iter().map(|section| &section.name);
    let wide = width(names.chain([&result.set]));
    let mut head = format!("{:wide$}  {:>9}  {:>13}", result.set, "questions", "in vocabulary");
    for method in methods {
        head += &format!("  {:>16}", method.name());
    }
    say!("{head}");
    let line = |section: &SectionResult| {
        let SectionResult { name, questions, in_vocabulary, .. } = section;
        let mut line = format!("{name:wide$}  {questions:>9}  {in_vocabulary:>13}");
        for method in methods {
            let result = section.methods.get(method).copied().unwrap_or_default();
            line += &format!("  {:>7} {:>6.2} %", result.right, 100.0 * result.accuracy);
        }
        say!("{line}");
    };
    result.sections.iter().for_each(line);
    line(&result.total);
    let mut line = format!("{:wide$}  {:>9}  {:>13}", "seconds", "", "");
    for method in methods {
        let seconds = result.total.methods.get(method).copied().unwrap_or_default().seconds;
        line += &format!("  {seconds:>16.1}");
    }
    say!("{line}");
}

/// Characters of the longest name.
fn width<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|name| name.chars().count()).max().unwrap_or_default()
}
