//! `kindred expand`: the terms that texts imply, or vectors of their tokens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use kindred::contract::TermExpander as _;
use kindred::heads::{Expander, Form, Formed, HeadKind, WantedTerms, own_expander};
use kindred::prepare::{Array, read_array};
use kindred::{Device, ImpliedTerm, ImpliedTerms, Kindred};
use serde::Serialize;
use serde_json::{Value, json};

use super::texts::{NO_TERMS, Notes, Printer, Row, Shown, Style};
use super::{CommandError, each_batch, model_of, own_engine};
use crate::arguments::{ExpandArguments, TermArguments};
use server::http::problem;
use server::models::{OneModel, without_checksum};

/// Texts that are expanded together.
const TOGETHER: usize = 256;

/// Prints the terms that texts imply.
pub(super) fn expand(arguments: &ExpandArguments) -> Result<(), CommandError> {
    let (wanted, form) = (wanted_terms(&arguments.terms)?, wanted_form(arguments)?);
    let one = model_of(&arguments.model)?;
    let (name, expander) = expander_of(&one, arguments.terms.head.as_deref())?;
    let kindred = Kindred::start(one.model.into(), own_engine(&Device::Cpu, arguments.threads))?;
    let is_json = arguments.json || arguments.format.is_some();
    let model = kindred.model();
    let printer = Printer::new(is_json, &name, model.name(), model.version());
    let mut asked = Run { arguments, kindred: &kindred, expander, wanted, form, printer };
    if let Some(path) = &arguments.vectors {
        return asked.answer_vectors(path);
    }
    each_batch(&arguments.texts, TOGETHER, |some| asked.answer(some))?;
    asked.printer.finish("terms")
}

/// The expander in this folder, or else that of the settings, or the model's own; and its name.
pub(super) fn expander_of(
    one: &OneModel,
    folder: Option<&Path>,
) -> Result<(String, Arc<Expander>), CommandError> {
    if let Some(source) = one.head(folder, HeadKind::Expander)? {
        let folder = source.folder.as_deref().expect("a head has a folder");
        let expander = Expander::open(folder, &one.model)?;
        if expander.missing_checksum().is_some() {
            eprintln!("warning: {}", without_checksum(folder));
        }
        return Ok((source.expected_name(), Arc::new(expander)));
    }
    let (name, head) = own_expander(&one.model).ok_or_else(|| {
        CommandError::Usage(format!(
            "the model {} has no expander of its own; make one with `kindred train expander`, and name it \
             with --head",
            one.model.name()
        ))
    })?;
    Ok((name.to_owned(), head))
}

/// The terms that are wanted. Refuses bounds of weights that no term could keep.
pub(super) fn wanted_terms(terms: &TermArguments) -> Result<WantedTerms, CommandError> {
    let TermArguments { head: _, top, min_weight, max_ratio, filter } = terms.clone();
    let wanted = WantedTerms { top, min_weight, max_ratio, filter };
    if !(0.0..=f64::MAX).contains(&wanted.min_weight) {
        return Err(CommandError::Usage("--min-weight must be at least 0".to_owned()));
    }
    if !(0.0..=1.0).contains(&wanted.max_ratio) {
        return Err(CommandError::Usage("--max-ratio must be from 0 to 1".to_owned()));
    }
    Ok(wanted)
}

/// The form of the terms. Refuses to explain one that has no tokens.
pub(super) fn wanted_form(arguments: &ExpandArguments) -> Result<Form, CommandError> {
    let form = arguments.format.unwrap_or(Form::Terms);
    if arguments.explain && form != Form::Terms {
        let name = form.name();
        let message = format!("--explain needs --format terms, not {name}; leave one out");
        return Err(CommandError::Usage(message));
    }
    Ok(form)
}

/// One run of the command.
struct Run<'a> {
    arguments: &'a ExpandArguments,
    kindred: &'a Kindred,
    expander: Arc<Expander>,
    wanted: WantedTerms,
    form: Form,
    printer: Printer,
}

/// The answer to a text, as over HTTP: its terms have the name of their form.
#[derive(Serialize)]
struct TermsAnswer<'a> {
    #[serde(flatten)]
    terms: BTreeMap<&'static str, Terms<'a>>,
    #[serde(flatten)]
    notes: Notes<'a>,
}

/// Not as a [`Value`], which has neither float32 nor the order of terms.
#[derive(Serialize)]
#[serde(untagged)]
enum Terms<'a> {
    WithTokens(&'a [ImpliedTerm]),
    Formed(Formed<'a>),
}

impl Run<'_> {
    fn answer(&mut self, texts: &[String]) -> Result<(), CommandError> {
        let answers = self.kindred.expand(&self.expander, texts, self.wanted.clone()).wait()?;
        for (text, answer) in texts.iter().zip(answers) {
            let asked = json!({"text": text});
            match answer {
                Ok(terms) => self.print(text, &asked, &terms)?,
                Err(error) => {
                    let error = error.with_suggestions(self.kindred.model().store());
                    let detail = error.to_string();
                    self.printer.failed(text, &asked, &detail, problem(error))?;
                }
            }
        }
        Ok(())
    }

    /// Answers the texts of a file of vectors.
    fn answer_vectors(&self, path: &Path) -> Result<(), CommandError> {
        let name = path.display().to_string();
        let dim = self.expander.token_dim();
        let read = read_array(path, |shape| check_shape(shape, dim as u64))?;
        let Array { shape, numbers, warning } = read;
        if let Some(warning) = warning {
            eprintln!("warning: {name}: {warning}");
        }
        let tokens = shape[shape.len() - 2];
        let is_single = shape.len() == 2;
        if let Some(place) = numbers.iter().position(|number| !number.is_finite()) {
            let (token, component) = (place / dim, place % dim);
            let (text, token) = (token / tokens, token % tokens);
            let text = if is_single { String::new() } else { format!("text {text}, ") };
            return Err(CommandError::Usage(format!(
                "{name}, {text}token {token}, component {component}: {} is not a finite float32; leave out such vectors, or mend \
                 the encoder that made them",
                numbers[place]
            )));
        }
        for (batch, some) in numbers.chunks(TOGETHER * tokens * dim).enumerate() {
            let texts = some.chunks(tokens * dim).map(<[f32]>::to_vec);
            let answers = self.kindred.expand_vectors(&self.expander, texts, self.wanted.clone());
            for (text, terms) in answers.wait()?.iter().enumerate() {
                let index = batch * TOGETHER + text;
                let (title, asked) = match is_single {
                    true => (name.clone(), json!({"vectors": name})),
                    false => (format!("{name}[{index}]"), json!({"vectors": name, "index": index})),
                };
                self.print(&title, &asked, terms)?;
            }
        }
        Ok(())
    }

    /// Prints the terms of a text: below its title, or in JSON with what was asked.
    fn print(&self, title: &str, asked: &Value, found: &ImpliedTerms) -> Result<(), CommandError> {
        let explain = self.arguments.explain;
        let notes = Notes { unknown: &found.unknown, is_cut: found.is_cut };
        if self.printer.style == Style::Json {
            let terms = terms_in(self.form, found, explain);
            let terms = BTreeMap::from([(self.form.name(), terms)]);
            return self.printer.json(asked, TermsAnswer { terms, notes });
        }
        let row = |term: &ImpliedTerm| {
            let token = explain.then(|| token(term.token.text.as_deref(), term.token.position));
            Row::of_term(&term.word, term.weight, token)
        };
        let rows = found.terms.iter().map(row).collect();
        let limit = self.expander.description().tokens.as_ref().map(|tokens| tokens.limit as u64);
        let shown = Shown { rows, none: NO_TERMS, explanation: None, notes, limit };
        self.printer.shown(title, &shown)
    }
}

/// The token that gave a term: its text, or else its position.
pub(super) fn token(text: Option<&str>, position: u32) -> String {
    text.map_or_else(|| format!("token {position}"), str::to_owned)
}

/// Terms in a form; as `terms`, with their tokens if `explain` says so.
fn terms_in(form: Form, found: &ImpliedTerms, explain: bool) -> Terms<'_> {
    if form == Form::Terms && explain {
        return Terms::WithTokens(&found.terms);
    }
    let terms = found.terms.iter();
    let terms = terms.map(|term| (term.row, term.word.as_str(), term.weight));
    Terms::Formed(Formed { form, terms: terms.collect() })
}

/// Refuses shapes other than `[tokens, dim]` and `[texts, tokens, dim]`, and arrays without
/// vectors.
fn check_shape(shape: &[u64], dim: u64) -> Result<(), String> {
    let is_right = matches!(shape.len(), 2 | 3);
    if is_right && shape[shape.len() - 1] == dim && shape.iter().all(|&length| length > 0) {
        return Ok(());
    }
    let found = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let cure = match shape {
        [length] if *length == dim => {
            "save the vector of one token with numpy.save(path, array[None])"
        }
        [.., last] if is_right && *last != dim => {
            "use the encoder that the terms were made with, or an expander for this one"
        }
        _ if is_right => "give at least one vector",
        _ => {
            "save the tokens' vectors of one text, or those of several texts with equally many tokens"
        }
    };
    Err(format!(
        "its array has the shape [{found}], but this expander takes [tokens, {dim}] or [texts, tokens, {dim}]; {cure}"
    ))
}
