//! `kindred classify`: the labels of texts.

use std::path::Path;
use std::sync::Arc;

use kindred::heads::{
    BUILT_IN, Classification, Description, Explanation, Head, HeadKind, Judged, Probabilities,
    Texts, Tokenised, Vocabulary, built_in,
};
use kindred::{Classified, Device, Error, Kindred, NamedLabel};
use serde_json::{Value, json};

use super::{CommandError, each_batch, heading, model_of, own_engine, print};
use crate::arguments::ClassifyArguments;
use crate::console::explanation_lines;
use server::escape::escaped_lines;
use server::models::{OneModel, without_checksum};

/// Texts that are classified together.
const TOGETHER: usize = 1024;

/// N-grams that are named as reasons.
const REASONS: usize = 5;

/// Characters of a text that are shown in an error.
const SHOWN: usize = 80;

/// Prints the labels of texts.
pub(super) fn classify(arguments: &ClassifyArguments) -> Result<(), CommandError> {
    let one = model_of(&arguments.model)?;
    let (name, head) = classifier_of(&one, arguments.labels.head.as_deref())?;
    let kindred = Kindred::start(one.model.into(), own_engine(&Device::Cpu, arguments.threads))?;
    let mut asked = Asked { arguments, kindred: &kindred, name, head, unanswered: 0 };
    if !arguments.json {
        let model = kindred.model();
        eprintln!("{}", heading(Some(&asked.name), model.name(), model.version()));
    }
    each_batch(&arguments.texts, TOGETHER, |some| asked.answer(some))?;
    match asked.unanswered {
        0 => Ok(()),
        count => Err(CommandError::Usage(format!(
            "{count} of the texts have no label; each has its error"
        ))),
    }
}

/// The classifier in this folder, or else that of the settings, or the model's own; and its name.
pub(super) fn classifier_of(
    one: &OneModel,
    folder: Option<&Path>,
) -> Result<(String, Arc<Head>), CommandError> {
    if let Some(source) = one.head(folder, HeadKind::Classifier)? {
        let folder = source.folder.as_deref().expect("a head has a folder");
        let head = Head::open(folder, &one.model)?;
        if head.missing_checksum().is_some() {
            eprintln!("warning: {}", without_checksum(folder));
        }
        return Ok((source.expected_name(), Arc::new(head)));
    }
    let head = built_in(&one.model).ok_or_else(|| {
        CommandError::Usage(format!(
            "the model {} has no head of its own; train one with `kindred train classifier`, and name it \
             with --head",
            one.model.name()
        ))
    })?;
    Ok((BUILT_IN.to_owned(), head))
}

struct Asked<'a> {
    arguments: &'a ClassifyArguments,
    kindred: &'a Kindred,
    name: String,
    head: Arc<Head>,
    unanswered: usize,
}

impl Asked<'_> {
    fn answer(&mut self, texts: &[String]) -> Result<(), CommandError> {
        let answers = self.kindred.classify(&self.head, texts).wait()?;
        for (text, answer) in texts.iter().zip(answers) {
            let line = match (answer, self.arguments.json) {
                (Ok(found), true) => self.json(text, &found),
                (Ok(found), false) => escaped_lines(&self.lines(text, &found)),
                (Err(error), is_json) => {
                    self.unanswered += 1;
                    let model = self.kindred.model().store();
                    let vocabulary = Vocabulary::of_head(&self.head, model);
                    let Tokenised { tokens, unknown, .. } = vocabulary.tokenise(text);
                    let error = match tokens.is_empty() {
                        true => "the model has none of its words".to_owned(),
                        false => error.to_string(),
                    };
                    match is_json {
                        true => {
                            let mut answer = self.object(text);
                            answer["error"] = json!(error);
                            answer["unknown"] = json!(unknown);
                            answer.to_string()
                        }
                        false => escaped_lines(&format!("{text}\n  {error}")),
                    }
                }
            };
            print((line + "\n").as_bytes())?;
        }
        Ok(())
    }

    /// Why the text has its most probable label, if that is wanted.
    fn explanation<'l>(&'l self, text: &'l str, found: &Classified) -> Option<Explanation<'l>> {
        let model = self.kindred.model().store();
        match self.arguments.explain {
            true => found.explanation(model, &self.head, text, REASONS),
            false => None,
        }
    }

    /// An answer to a text, with who gave it.
    fn object(&self, text: &str) -> Value {
        let model = self.kindred.model();
        let (model, version) = (model.name(), model.version());
        json!({"model": model, "version": version, "head": self.name, "text": text})
    }

    fn json(&self, text: &str, found: &Classified) -> String {
        let mut answer = self.object(text);
        answer["labels"] = json!(self.arguments.labels.wanted().of(found));
        if !found.unknown.is_empty() {
            answer["unknown"] = json!(found.unknown);
        }
        if found.is_cut {
            answer["cut"] = json!(true);
        }
        if let Some(explanation) = self.explanation(text, found) {
            answer["explanation"] = json!(explanation);
        }
        answer.to_string()
    }

    fn lines(&self, text: &str, found: &Classified) -> String {
        let mut lines = vec![text.to_owned()];
        for label in self.arguments.labels.wanted().of(found) {
            lines.push(format!("  {:5.1} %  {}", 100.0 * label.probability, label.name));
        }
        if let Some(explanation) = self.explanation(text, found) {
            let why = explanation_lines(&explanation);
            lines.extend(why.into_iter().map(|line| format!("  {line}")));
        }
        if !found.unknown.is_empty() {
            lines.push(format!("  unknown: {}", found.unknown.join(" ")));
        }
        if found.is_cut {
            let limit = self.head.description().tokens.limit;
            lines.push(format!("  only {limit} tokens were read"));
        }
        lines.join("\n")
    }
}

/// Classifies texts whose labels are known.
pub(super) fn evaluate(
    kindred: &Kindred,
    head: &Arc<Head>,
    set: &str,
    texts: &Texts,
) -> Result<Classification, CommandError> {
    let Description { labels: names, probabilities, .. } = head.description();
    let class = |label: &String| {
        names.iter().position(|name| name == label).ok_or_else(|| {
            let known = names.join(", ");
            CommandError::Usage(format!("{set}: the head has no label {label:?}; it has {known}"))
        })
    };
    let right = |labels: &[String]| {
        if *probabilities == Probabilities::Softmax && labels.len() != 1 {
            let count = labels.len();
            return Err(CommandError::Usage(format!(
                "{set}: a text has {count} labels, but the head gives one label to each text"
            )));
        }
        let mut classes = labels.iter().map(class).collect::<Result<Vec<_>, _>>()?;
        classes.sort_unstable();
        classes.dedup();
        Ok(classes)
    };
    kindred.model().store().words().make_table();
    let of_classes = |mut labels: Vec<NamedLabel>| {
        labels.sort_by_key(|label| label.class);
        labels.iter().map(|label| label.probability).collect()
    };
    let mut judged = Vec::new();
    for some in texts.texts.chunks(TOGETHER) {
        let answers = kindred.classify(head, some.iter().map(|one| &one.text)).wait()?;
        for (one, answer) in some.iter().zip(answers) {
            let probabilities = match answer {
                Ok(found) => Some(of_classes(found.labels)),
                // No word of it is known.
                Err(Error::InvalidValue { .. } | Error::UnknownWord { .. }) => None,
                Err(error) => {
                    let text: String = one.text.chars().take(SHOWN).collect();
                    return Err(CommandError::Usage(format!("{set}: {text:?}: {error}")));
                }
            };
            judged.push(Judged { right: right(&one.labels)?, probabilities });
        }
    }
    Ok(Classification::new(set, names, *probabilities, &judged))
}
