//! The question of each row, and the heads that answer it here.

use std::sync::Arc;

use kindred::filters::terms_of;
use kindred::heads::{Expander, Form, TextClassifier, WantedTerms};
use kindred::options::DEFAULT_K;
use kindred::question::Checked;
use kindred::{Classified, Error, Kindred, NamedLabel, Options};
use serde::Serialize;
use serde_json::{Value, json};

use super::BulkOptions;
use super::formats::{BulkFormat, BulkOutput};
use crate::error::JobError;

/// The question of each row, with the head that answers it in this process.
#[derive(Debug, Clone)]
pub enum BulkWork {
    /// The nearest neighbours of a word.
    Nearest(Options),
    /// The nearest neighbours of a text: of the sum of its words.
    NearestOfTexts(Options),
    /// The words nearest to an expression.
    Analogy(Options),
    /// The labels of a text.
    Classify(TextClassifier, WantedLabels),
    /// The terms that a text implies.
    Expand(Arc<Expander>, WantedTerms, Form),
}

/// The question of each row, wherever it is answered.
#[derive(Debug, Clone)]
pub enum BulkQuestion {
    /// The nearest neighbours of a word.
    Nearest(Options),
    /// The nearest neighbours of a text: of the sum of its words.
    NearestOfTexts(Options),
    /// The words nearest to an expression.
    Analogy(Options),
    /// The labels of a text, of a head that has this number of them.
    Classify(WantedLabels, usize),
    /// The terms that a text implies.
    Expand(WantedTerms, Form),
}

/// Which labels of a text are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WantedLabels {
    /// At most this number.
    pub top: Option<usize>,
    /// Only those of at least this probability.
    pub threshold: Option<f64>,
}

impl WantedLabels {
    /// Those of a text's labels that are wanted.
    pub fn of<'a>(&self, found: &'a Classified) -> &'a [NamedLabel] {
        let (top, least) = (self.top.unwrap_or(usize::MAX), self.threshold.unwrap_or(0.0));
        let labels = &found.labels;
        let count = labels.iter().take(top).take_while(|label| label.probability >= least).count();
        &labels[..count]
    }
}

impl BulkWork {
    /// The question, without the head.
    pub fn question(&self) -> BulkQuestion {
        match self {
            Self::Nearest(options) => BulkQuestion::Nearest(options.clone()),
            Self::NearestOfTexts(options) => BulkQuestion::NearestOfTexts(options.clone()),
            Self::Analogy(options) => BulkQuestion::Analogy(options.clone()),
            Self::Classify(head, wanted) => BulkQuestion::Classify(*wanted, head.labels().len()),
            Self::Expand(_, wanted, form) => BulkQuestion::Expand(wanted.clone(), *form),
        }
    }

    /// Refuses options that no row could be asked with.
    pub(super) fn check(&self, kindred: &Kindred) -> Result<(), JobError> {
        match self {
            Self::Nearest(options) | Self::NearestOfTexts(options) | Self::Analogy(options) => {
                let model = kindred.model().store();
                let checked = Checked::new(model, kindred.sets(), options.clone(), None);
                checked.map(drop).map_err(|error| JobError::Refused(error.to_string()))
            }
            Self::Expand(expander, wanted, _) => {
                let refused = |error: Error| JobError::Refused(error.to_string());
                kindred.check_expander(expander).map_err(refused)?;
                let terms = terms_of(kindred.sets(), expander, wanted.filter.as_deref());
                terms.map(drop).map_err(|error| JobError::Refused(error.to_string()))
            }
            Self::Classify(..) => Ok(()),
        }
    }

    /// An object with all that decides the answers, except the model and the question: the head,
    /// and the engine if scores depend on it.
    pub(super) fn about(&self, engine: &str) -> Value {
        match self {
            Self::Nearest(_) | Self::NearestOfTexts(_) | Self::Analogy(_) => json!({}),
            // Class scores have the same bits on one kind of engine.
            Self::Classify(head, _) => {
                json!({"head": version(&parsed(&head.description())), "engine": engine})
            }
            Self::Expand(expander, ..) => json!({"head": version(expander.description())}),
        }
    }
}

impl BulkQuestion {
    /// Refuses an output that can't have the form of the terms.
    ///
    /// # Errors
    /// If another form is given than the columns of CSV have, or the output's name does not say its
    /// format.
    pub fn check_output(
        &self,
        output: BulkOutput<'_>,
        options: &BulkOptions,
    ) -> Result<(), JobError> {
        let (format, _) = output.format(options.to)?;
        match self {
            Self::Expand(_, form) if *form != Form::default() && format == BulkFormat::Csv => {
                Err(JobError::Refused(format!(
                    "{}: CSV has no place for the form {}; write .jsonl or .parquet, or leave out the \
                     form: then each term has its columns",
                    output.name(),
                    form.name(),
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Nearest(_) | Self::NearestOfTexts(_) => "nearest",
            Self::Analogy(_) => "analogy",
            Self::Classify(..) => "classify",
            Self::Expand(..) => "expand",
        }
    }

    /// The column that is asked if none is named.
    pub(super) fn column(&self) -> &'static str {
        match self {
            Self::Nearest(_) => "word",
            Self::Analogy(_) => "expression",
            Self::NearestOfTexts(_) | Self::Classify(..) | Self::Expand(..) => "text",
        }
    }

    /// The columns of CSV between the id with the rank, and the error.
    pub(super) fn columns(&self) -> &'static [&'static str] {
        match self {
            Self::Classify(..) => &["label", "probability", "score"],
            Self::Expand(..) => &["term", "weight"],
            Self::Nearest(_) | Self::NearestOfTexts(_) | Self::Analogy(_) => {
                &["word", "score", "row"]
            }
        }
    }

    /// The field of JSON with the labels, terms or neighbours.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Classify(..) => "labels",
            Self::Expand(_, form) => form.name(),
            Self::Nearest(_) | Self::NearestOfTexts(_) | Self::Analogy(_) => "neighbors",
        }
    }

    /// Whether each line of CSV has the question. A word that has neighbours is short. A text or an
    /// expression may have megabytes, so it stands once.
    pub(super) fn is_in_each_line(&self) -> bool {
        matches!(self, Self::Nearest(_))
    }

    /// Rows that are answered together. Their answers take a few megabytes.
    pub(super) fn rows_per_piece(&self) -> usize {
        let most_per_row = match self {
            Self::Nearest(options) | Self::NearestOfTexts(options) | Self::Analogy(options) => {
                options.k.unwrap_or(DEFAULT_K) as usize
            }
            Self::Classify(wanted, labels) => wanted.top.map_or(*labels, |top| top.min(*labels)),
            Self::Expand(wanted, _) => wanted.top,
        };
        (65_536 / most_per_row.max(1)).clamp(64, 1024)
    }

    /// The options, which decide the answers.
    pub(super) fn options(&self) -> Value {
        match self {
            Self::Nearest(options) | Self::Analogy(options) => options.to_json(),
            Self::NearestOfTexts(options) => {
                let mut json = options.to_json();
                json["texts"] = true.into();
                json
            }
            Self::Classify(wanted, _) => {
                json!({"top": wanted.top, "threshold": wanted.threshold})
            }
            Self::Expand(wanted, form) => {
                let WantedTerms { top, min_weight, max_ratio, filter } = wanted;
                let mut json = json!({
                    "top": top, "min_weight": min_weight, "max_ratio": max_ratio,
                    "form": form.name(),
                });
                // Work that was begun before there were filters goes on.
                if let Some(filter) = filter {
                    json["filter"] = json!(filter);
                }
                json
            }
        }
    }
}

/// A head's version: that of its description, which has the checksum of its weights.
fn parsed(description: &str) -> Value {
    serde_json::from_str(description).expect("a description is JSON")
}

fn version(description: &impl Serialize) -> String {
    let description: Value = serde_json::to_value(description).expect("it is written as JSON");
    blake3::hash(description.to_string().as_bytes()).to_hex()[..16].to_owned()
}
