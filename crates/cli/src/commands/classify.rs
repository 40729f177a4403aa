//! `kindred classify`: the labels of texts.

use std::path::Path;

use kindred::heads::{
    BUILT_IN, Classification, Explanation, HeadKind, Judged, Probabilities, REASONS,
    TextClassifier, Texts, built_in,
};
use kindred::{Classified, Device, Error, Kindred, NamedLabel};
use serde::Serialize;
use serde_json::{Value, json};

use super::texts::{NO_LABELS, Notes, Printer, Row, Shown, Style};
use super::{CommandError, changed_model_of, each_batch, own_engine};
use crate::arguments::ClassifyArguments;
use server::http::problem;
use server::models::{OneModel, without_checksum};

/// Texts that are classified together.
const TOGETHER: usize = 1024;

/// Characters of a text that are shown in an error.
const SHOWN: usize = 80;

/// Prints the labels of texts.
pub(super) fn classify(arguments: &ClassifyArguments) -> Result<(), CommandError> {
    // A head knows the words of the base, whatever was changed since.
    let (one, _) = changed_model_of(&arguments.model)?;
    let (name, head) = classifier_of(&one, arguments.labels.head.as_deref())?;
    let kindred = Kindred::start(one.model.into(), own_engine(&Device::Cpu, arguments.threads))?;
    let model = kindred.model();
    let printer = Printer::new(arguments.json, &name, model.name(), model.version());
    let mut asked = Asked { arguments, kindred: &kindred, head, printer };
    each_batch(&arguments.texts, TOGETHER, |some| asked.answer(some))?;
    asked.printer.finish("label")
}

/// The classifier in this folder, or else that of the settings, or the model's own; and its name.
pub(super) fn classifier_of(
    one: &OneModel,
    folder: Option<&Path>,
) -> Result<(String, TextClassifier), CommandError> {
    if let Some(source) = one.head(folder, HeadKind::Classifier)? {
        let folder = source.folder.as_deref().expect("a head has a folder");
        let head = TextClassifier::open(folder, &one.model)?;
        if head.missing_checksum().is_some() {
            eprintln!("warning: {}", without_checksum(folder));
        }
        return Ok((source.expected_name(), head));
    }
    let head = built_in(&one.model).ok_or_else(|| {
        CommandError::Usage(format!(
            "the model {} has no head of its own; train one with `kindred train classifier`, and name it \
             with --head",
            one.model.name()
        ))
    })?;
    Ok((BUILT_IN.to_owned(), head.into()))
}

struct Asked<'a> {
    arguments: &'a ClassifyArguments,
    kindred: &'a Kindred,
    head: TextClassifier,
    printer: Printer,
}

/// The answer to a text, as over HTTP.
#[derive(Serialize)]
struct LabelsAnswer<'a> {
    labels: Vec<LabelAnswer<'a>>,
    #[serde(flatten)]
    notes: Notes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation<'a>>,
}

#[derive(Serialize)]
struct LabelAnswer<'a> {
    label: &'a str,
    probability: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

impl Asked<'_> {
    fn answer(&mut self, texts: &[String]) -> Result<(), CommandError> {
        let answers = self.kindred.classify(&self.head, texts).wait()?;
        for (text, answer) in texts.iter().zip(answers) {
            let asked = json!({"text": text});
            match answer {
                Ok(found) => self.print(text, &asked, &found)?,
                Err(error) => {
                    let error = error.with_suggestions(self.kindred.model().store());
                    let detail = error.to_string();
                    self.printer.failed(text, &asked, &detail, problem(error))?;
                }
            }
        }
        Ok(())
    }

    fn print(&self, text: &str, asked: &Value, found: &Classified) -> Result<(), CommandError> {
        let ClassifyArguments { labels, explain, scores, .. } = self.arguments;
        let explanation = match *explain {
            true => found.explanation(self.kindred.model().store(), &self.head, text, REASONS),
            false => None,
        };
        let wanted = labels.wanted().of(found);
        let notes = Notes { unknown: &found.unknown, is_cut: found.is_cut };
        if self.printer.style == Style::Json {
            let labels = wanted.iter().map(|one| LabelAnswer {
                label: &one.name,
                probability: one.probability,
                score: scores.then_some(one.score),
            });
            let labels = labels.collect();
            return self.printer.json(asked, LabelsAnswer { labels, notes, explanation });
        }
        let explanation = explanation.as_ref();
        let row = |NamedLabel { name, probability, score, .. }: &NamedLabel| {
            Row::of_label(name, *probability, scores.then_some(*score), explanation)
        };
        let rows = wanted.iter().map(row).collect();
        let limit = Some(self.head.limit() as u64);
        self.printer.shown(text, &Shown { rows, none: NO_LABELS, explanation, notes, limit })
    }
}

/// Classifies texts whose labels are known.
pub(super) fn evaluate(
    kindred: &Kindred,
    head: &TextClassifier,
    set: &str,
    texts: &Texts,
) -> Result<Classification, CommandError> {
    let (names, probabilities) = (head.labels(), head.probabilities());
    let class = |label: &String| {
        names.iter().position(|name| name == label).ok_or_else(|| {
            let known = names.join(", ");
            CommandError::Usage(format!("{set}: the head has no label {label:?}; it has {known}"))
        })
    };
    let right = |labels: &[String]| {
        if probabilities == Probabilities::Softmax && labels.len() != 1 {
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
    Ok(Classification::new(set, names, probabilities, &judged))
}
