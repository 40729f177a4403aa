//! `kindred classify`: the labels of texts.

use std::path::Path;
use std::sync::Arc;

use kindred::heads::{
    BUILT_IN, Classification, Classifying, Description, Explanation, Head, HeadKind, Judged, Label,
    PRODUCTS_MEMORY, Probabilities, ScoresNotFinite, Texts, ThreadPool, Tokenised, Vocabulary,
    built_in, explain, labels,
};
use model_store::ModelStore;
use serde_json::{Value, json};

use super::{CommandError, each_batch, heading, model_of_head, print, threads};
use crate::arguments::{ClassifyArguments, LabelArguments};
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
///
/// # Errors
/// If the head or the model can't be used, or a text has no label.
pub fn classify(arguments: &ClassifyArguments) -> Result<(), CommandError> {
    let one = model_of_head(&arguments.model)?;
    let (name, head) = classifier_of(&one, arguments.labels.head.as_deref())?;
    let model = one.model;
    let mut asked = Asked {
        engine: Classifying::new(head.clone(), PRODUCTS_MEMORY),
        pool: threads(arguments.threads)?,
        vocabulary: Vocabulary::of_head(&head, &model),
        arguments,
        model: &model,
        head: &head,
        name: &name,
        unanswered: 0,
    };
    if !arguments.json {
        eprintln!("{}", heading(Some(&name), model.name(), model.version()));
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
    engine: Classifying,
    pool: ThreadPool,
    vocabulary: Vocabulary<'a>,
    arguments: &'a ClassifyArguments,
    model: &'a ModelStore,
    head: &'a Head,
    name: &'a str,
    unanswered: usize,
}

impl Asked<'_> {
    fn answer(&mut self, texts: &[String]) -> Result<(), CommandError> {
        let tokenised: Vec<Tokenised> =
            texts.iter().map(|text| self.vocabulary.tokenise(text)).collect();
        let answers = answers(self.model, self.head, &mut self.engine, &self.pool, &tokenised);
        for ((text, tokens), labels) in texts.iter().zip(&tokenised).zip(answers) {
            let line = match (labels, self.arguments.json) {
                (Ok(labels), true) => self.json(text, tokens, &labels),
                (Ok(labels), false) => escaped_lines(&self.lines(text, tokens, &labels)),
                (Err(error), is_json) => {
                    self.unanswered += 1;
                    let error = error.to_string();
                    match is_json {
                        true => {
                            let fields =
                                [("error", json!(error)), ("unknown", json!(tokens.unknown))];
                            self.object(text, fields).to_string()
                        }
                        false => escaped_lines(&format!("{text}\n  {error}")),
                    }
                }
            };
            print((line + "\n").as_bytes())?;
        }
        Ok(())
    }

    /// The labels that are wanted.
    fn wanted<'l>(&self, labels: &'l [Label]) -> &'l [Label] {
        let LabelArguments { top, threshold, .. } = self.arguments.labels;
        let top = top.map_or(usize::MAX, std::num::NonZeroUsize::get);
        let least = threshold.unwrap_or(0.0);
        let count = labels.iter().take(top).take_while(|label| label.probability >= least).count();
        &labels[..count]
    }

    fn name(&self, label: &Label) -> &str {
        &self.head.description().labels[label.class]
    }

    /// Why the text has its most probable label, if that is wanted.
    fn explanation<'l>(
        &'l self,
        text: &'l str,
        tokens: &Tokenised,
        labels: &[Label],
    ) -> Option<Explanation<'l>> {
        let label = labels.first().filter(|_| self.arguments.explain)?;
        Some(explain(self.model, self.head, text, tokens, label.class, REASONS))
    }

    /// An answer to a text, with who gave it.
    fn object<const N: usize>(&self, text: &str, fields: [(&str, Value); N]) -> Value {
        let (model, version) = (self.model.name(), self.model.version());
        let mut answer =
            json!({"model": model, "version": version, "head": self.name, "text": text});
        for (name, value) in fields {
            answer[name] = value;
        }
        answer
    }

    fn json(&self, text: &str, tokens: &Tokenised, labels: &[Label]) -> String {
        let wanted = self.wanted(labels).iter().map(|label| {
            json!({"label": self.name(label), "probability": label.probability, "score": label.score})
        });
        let mut answer = self.object(text, [("labels", wanted.collect::<Vec<_>>().into())]);
        if !tokens.unknown.is_empty() {
            answer["unknown"] = json!(tokens.unknown);
        }
        if tokens.is_cut {
            answer["cut"] = json!(true);
        }
        if let Some(explanation) = self.explanation(text, tokens, labels) {
            answer["explanation"] = json!(explanation);
        }
        answer.to_string()
    }

    fn lines(&self, text: &str, tokens: &Tokenised, labels: &[Label]) -> String {
        let mut lines = vec![text.to_owned()];
        for label in self.wanted(labels) {
            lines.push(format!("  {:5.1} %  {}", 100.0 * label.probability, self.name(label)));
        }
        if let Some(explanation) = self.explanation(text, tokens, labels) {
            let why = explanation_lines(&explanation);
            lines.extend(why.into_iter().map(|line| format!("  {line}")));
        }
        if !tokens.unknown.is_empty() {
            lines.push(format!("  unknown: {}", tokens.unknown.join(" ")));
        }
        if tokens.is_cut {
            let limit = self.head.description().tokens.limit;
            lines.push(format!("  only {limit} tokens were read"));
        }
        lines.join("\n")
    }
}

/// Why a text has no labels.
#[derive(Debug, thiserror::Error)]
enum NoLabels {
    /// No word of it is known.
    #[error("the model has none of its words")]
    NoWord,
    /// The head can't be used for it.
    #[error(transparent)]
    NotFinite(#[from] ScoresNotFinite),
}

/// The labels of each text.
fn answers(
    model: &ModelStore,
    head: &Head,
    engine: &mut Classifying,
    pool: &ThreadPool,
    texts: &[Tokenised],
) -> Vec<Result<Vec<Label>, NoLabels>> {
    let known: Vec<_> =
        texts.iter().map(|text| &text.tokens[..]).filter(|tokens| !tokens.is_empty()).collect();
    let scores = engine.scores(&model.table(), &known, pool);
    let mut scores = scores.chunks_exact(head.description().labels.len());
    let labels_of = |text: &Tokenised| match text.tokens.is_empty() {
        true => Err(NoLabels::NoWord),
        false => Ok(labels(head, scores.next().expect("scores of each text"))?),
    };
    texts.iter().map(labels_of).collect()
}

/// Classifies texts whose labels are known.
pub(super) fn evaluate(
    model: &Arc<ModelStore>,
    head: &Arc<Head>,
    set: &str,
    texts: &Texts,
    pool: &ThreadPool,
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
    model.words().make_table();
    let vocabulary = Vocabulary::of_head(head, model);
    let mut engine = Classifying::new(head.clone(), PRODUCTS_MEMORY);
    let mut judged = Vec::new();
    for some in texts.texts.chunks(TOGETHER) {
        let tokenised: Vec<Tokenised> =
            some.iter().map(|one| vocabulary.tokenise(&one.text)).collect();
        for (one, labels) in some.iter().zip(answers(model, head, &mut engine, pool, &tokenised)) {
            let of_classes = |mut labels: Vec<Label>| {
                labels.sort_by_key(|label| label.class);
                labels.iter().map(|label| label.probability).collect()
            };
            let probabilities = match labels {
                Ok(labels) => Some(of_classes(labels)),
                Err(NoLabels::NoWord) => None,
                Err(NoLabels::NotFinite(error)) => {
                    let text: String = one.text.chars().take(SHOWN).collect();
                    return Err(CommandError::Usage(format!("{set}: {text:?}: {error}")));
                }
            };
            judged.push(Judged { right: right(&one.labels)?, probabilities });
        }
    }
    Ok(Classification::new(set, names, *probabilities, &judged))
}
