//! `kindred expand`: the terms that texts imply.

use std::sync::Arc;

use kindred::heads::{Expander, Form, Formed, WantedTerms};
use kindred::{Device, ImpliedTerms, Kindred, Model, Settings};
use serde_json::{Map, Value, json};

use super::{CommandError, each_batch, model_of_head, print};
use crate::cli::ExpandArguments;

/// Texts that are expanded together.
const TOGETHER: usize = 256;

/// Prints the terms that texts imply.
///
/// # Errors
/// If the head or the model can't be used, or a text has no known word.
pub fn expand(arguments: &ExpandArguments) -> Result<(), CommandError> {
    let wanted = WantedTerms {
        top: arguments.top,
        min_weight: arguments.min_weight,
        max_ratio: arguments.max_ratio,
    };
    if !(0.0..=f64::MAX).contains(&wanted.min_weight) {
        return Err(CommandError::Usage("--min-weight must be at least 0".to_owned()));
    }
    if !(0.0..=1.0).contains(&wanted.max_ratio) {
        return Err(CommandError::Usage("--max-ratio must be from 0 to 1".to_owned()));
    }
    let model = model_of_head(&arguments.model)?;
    let settings = Settings {
        device: Device::Cpu,
        threads: arguments.threads,
        keep_tables: false,
        ..Settings::default()
    };
    let kindred = Kindred::start(Model::from(model), settings)?;
    let expander = match &arguments.head {
        Some(folder) => kindred.expander(folder)?,
        None => kindred.built_in_expander().ok_or_else(|| {
            let name = kindred.model().name();
            CommandError::Usage(format!(
                "the model {name} has no expander of its own; make one with `kindred train expander`, and name it with --head"
            ))
        })?,
    };
    let mut asked = Asked { arguments, kindred: &kindred, expander, wanted, unanswered: 0 };
    each_batch(&arguments.texts, TOGETHER, |some| asked.answer(some))?;
    match asked.unanswered {
        0 => Ok(()),
        count => Err(CommandError::Usage(format!(
            "{count} of the texts have no terms: the model has none of their words"
        ))),
    }
}

struct Asked<'a> {
    arguments: &'a ExpandArguments,
    kindred: &'a Kindred,
    expander: Arc<Expander>,
    wanted: WantedTerms,
    unanswered: usize,
}

impl Asked<'_> {
    fn answer(&mut self, texts: &[String]) -> Result<(), CommandError> {
        let answers = self.kindred.expand(&self.expander, texts, self.wanted).wait()?;
        let form = if self.arguments.json { Some(Form::Terms) } else { self.arguments.format };
        for (text, answer) in texts.iter().zip(answers) {
            let line = match (answer, form) {
                (Ok(terms), Some(form)) => self.json(text, &terms, form),
                (Ok(terms), None) => self.lines(text, &terms),
                (Err(error), form) => {
                    self.unanswered += 1;
                    match form {
                        Some(_) => json!({"text": text, "error": error.to_string()}).to_string(),
                        None => format!("{text}\n  {error}"),
                    }
                }
            };
            print((line + "\n").as_bytes())?;
        }
        Ok(())
    }

    fn json(&self, text: &str, found: &ImpliedTerms, form: Form) -> String {
        let terms = match form {
            Form::Terms => {
                let term = |term: &kindred::ImpliedTerm| {
                    let mut json = json!({"term": term.word, "weight": term.weight});
                    if self.arguments.explain {
                        json["token"] = json!(term.token);
                    }
                    json
                };
                Value::Array(found.terms.iter().map(term).collect())
            }
            form => {
                let terms = found.terms.iter();
                let terms = terms.map(|term| (term.row, term.word.as_str(), term.weight));
                json!(Formed { form, terms: terms.collect() })
            }
        };
        let mut answer =
            Map::from_iter([("text".to_owned(), json!(text)), (form.name().to_owned(), terms)]);
        if !found.unknown.is_empty() {
            answer.insert("unknown".to_owned(), json!(found.unknown));
        }
        if found.is_cut {
            answer.insert("cut".to_owned(), json!(true));
        }
        Value::Object(answer).to_string()
    }

    fn lines(&self, text: &str, found: &ImpliedTerms) -> String {
        let mut lines = vec![text.to_owned()];
        for term in &found.terms {
            let why = term.token.text.as_deref().filter(|_| self.arguments.explain);
            let why = why.map(|token| format!("  ({token})")).unwrap_or_default();
            lines.push(format!("  {:7.4}  {}{why}", term.weight, term.word));
        }
        if !found.unknown.is_empty() {
            lines.push(format!("  unknown: {}", found.unknown.join(" ")));
        }
        if found.is_cut {
            lines.push("  only a part of the text was read".to_owned());
        }
        lines.join("\n")
    }
}
