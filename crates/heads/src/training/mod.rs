//! Trains a classifier over a model's rows, from texts with labels to a head that can be written.
//!
//! - `texts`: texts become tokens and classes;
//! - here: words get vectors, and a head is made of what was trained;
//! - `calibrate`: its probabilities are fitted.

mod calibrate;
mod texts;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use contract::Row;
use cpu_core::heads::Diverged;
use cpu_core::heads::train::{self, Data, Example, Progress, Settings, Trained};
use model_store::ModelStore;
use model_store::head::{
    Description, HEAD_VERSION, HeadError, HeadKind, MadeFor, Parts, Probabilities, Token, Tokens,
};
use rayon::ThreadPool;
use serde_json::json;

use super::{Texts, Vocabulary};
pub use calibrate::CALIBRATION_BINS;
use calibrate::calibrate;
use texts::{Encoded, balanced, encode, split, typical_component, unknown_words};

/// How a classifier is made.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingOptions {
    /// Shape, steps and seed. The weights of classes are set by `balance`; probabilities become
    /// sigmoids if a text has several labels or none.
    pub settings: Settings,
    /// How texts become tokens.
    pub tokens: Tokens,
    /// Rare classes count for more: each class for as much as every other; with sigmoids, the texts
    /// that have a label for as much as those that do not.
    pub balance: bool,
    /// What the vectors of words that training does not meet are multiplied by, if vectors are
    /// trained. Those that it meets shrink, so words that it never saw would speak too loudly.
    pub other_words: f32,
    /// Words that the model does not have get vectors of their own if this number of texts has
    /// them; otherwise they are left out. Only if vectors are trained.
    pub add_words: Option<NonZeroUsize>,
}

impl TrainingOptions {
    /// The default of `other_words`. On SST-2 with glove.6B.50d (means of five seeds): 0: 82.56 %;
    /// 0.25: 82.53 %; 0.5: 82.33 %; 1: 80.83 %.
    pub const OTHER_WORDS: f32 = 0.25;

    /// What a head for these texts has: sigmoids if that is wanted, or a text has several labels or
    /// none.
    pub fn probabilities(&self, train: &Texts, dev: Option<&Texts>) -> Probabilities {
        match train.any_number() || dev.is_some_and(Texts::any_number) {
            true => Probabilities::Sigmoid,
            false => self.settings.probabilities,
        }
    }
}

/// What a classifier was made from, and how good it is.
#[derive(Debug, Clone)]
pub struct Made {
    /// The head.
    pub parts: Parts,
    /// Texts that were learned from.
    pub train: usize,
    /// Texts that decided when to stop.
    pub dev: usize,
    /// Texts without a word that the model has. They were left out.
    pub empty: usize,
    /// The epoch whose weights were kept.
    pub epoch: usize,
    /// How good it is on the deciding texts: accuracy, or with sigmoids F1 ([`Trained::quality`]).
    pub quality: f64,
    /// The expected calibration error on the deciding texts, before and after the temperature was
    /// fitted.
    pub calibration: [f64; 2],
}

/// Why no classifier was made.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The data do not suffice.
    #[error("{0}")]
    Data(String),
    /// The loss or a weight is not finite any more.
    #[error(transparent)]
    Diverged(#[from] Diverged),
    /// The head does not fit its model. That would be a fault of ours.
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// Trains a classifier. Without `dev`, one text of ten decides when to stop. Calls `on_progress`
/// after each batch and epoch; if it breaks, the best so far is made; `None` if there is none yet.
///
/// # Errors
/// If the texts have fewer than two labels (with sigmoids: none) or about as many labels as there
/// are texts, `dev` has other labels, no text has a known word, the head would be too large, or
/// training diverges.
pub fn train_classifier(
    model: &Arc<ModelStore>,
    train: &Texts,
    dev: Option<&Texts>,
    options: &TrainingOptions,
    pool: &ThreadPool,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Made>, TrainError> {
    let labels: Vec<&str> = train.labels().into_iter().map(|(label, _)| label).collect();
    let probabilities = options.probabilities(train, dev);
    let mut settings = Settings { probabilities, ..options.settings.clone() };
    let is_softmax = settings.probabilities == Probabilities::Softmax;
    if labels.len() < if is_softmax { 2 } else { 1 } {
        return Err(TrainError::Data(match labels.first() {
            Some(only) => {
                format!("a classifier needs texts of two labels or more; all have {only:?}")
            }
            None => "no text has a label".to_owned(),
        }));
    }
    if let Some(what) = train.look_swapped() {
        return Err(TrainError::Data(what));
    }
    model.words().make_table();
    let vocabulary = Vocabulary::of_model(model, &options.tokens);
    let least = options.add_words.filter(|_| settings.fine_tune);
    let added = least.map_or_else(Vec::new, |least| unknown_words(train, &vocabulary, least));
    let rows = model.rows();
    let tokens_of_added = (rows as u32..).map(Token);
    let own: HashMap<String, Token> = added.iter().cloned().zip(tokens_of_added).collect();
    let vocabulary = vocabulary.with(&own);
    let mut learned = encode(train, &labels, &vocabulary)?;
    let all = train.texts.len() + dev.map_or(0, |dev| dev.texts.len());
    let mut deciding = match dev {
        Some(dev) => encode(dev, &labels, &vocabulary)?,
        None => split(&mut learned, settings.seed),
    };
    // Words with vectors of their own that no text teaches stay unknown.
    let is_own = |token: &Token| token.0 as usize >= rows;
    let taught: HashSet<Token> =
        learned.iter().flat_map(|one| &one.tokens).copied().filter(is_own).collect();
    for one in &mut deciding {
        one.tokens.retain(|token| !is_own(token) || taught.contains(token));
    }
    deciding.retain(|one| !one.tokens.is_empty());
    let empty = all - learned.len() - deciding.len();
    if learned.is_empty() || deciding.is_empty() {
        let what = "too few texts have a word of the model; use another model or more texts";
        return Err(TrainError::Data(what.to_owned()));
    }
    if options.balance {
        settings.class_weights = balanced(&learned, labels.len(), settings.probabilities);
    }

    // Words by their first appearance, those to learn from first.
    let mut words: Vec<Token> = Vec::new();
    let mut indices = HashMap::new();
    let mut examples = |texts: &[Encoded], words: &mut Vec<Token>| -> Vec<Example> {
        let mut index = |token: &Token| {
            *indices.entry(*token).or_insert_with(|| {
                words.push(*token);
                words.len() as u32 - 1
            })
        };
        let example = |one: &Encoded| Example {
            words: one.tokens.iter().map(&mut index).collect(),
            classes: one.classes.clone(),
        };
        texts.iter().map(example).collect()
    };
    let train_examples = examples(&learned, &mut words);
    let met = words.len();
    let dev_examples = examples(&deciding, &mut words);
    let other_words = if settings.fine_tune { options.other_words } else { 1.0 };
    let (dim, table) = (model.dim(), model.table());
    let width = typical_component(model, &words);
    let mut vectors = Vec::with_capacity(words.len() * dim);
    for (index, token) in words.iter().enumerate() {
        let scale = if index < met { 1.0 } else { other_words };
        match is_own(token) {
            true => vectors.extend(train::random_vector(width, dim, settings.seed, token.0)),
            false => vectors.extend(table.row(Row(token.0)).iter().map(|x| x * scale)),
        }
    }
    let data = Data {
        train: &train_examples,
        dev: &dev_examples,
        vectors: &vectors,
        dim,
        classes: labels.len(),
    };
    check_size(&data, &settings)?;
    let trained = train::train(data, &settings, pool, on_progress)?;
    let Some(trained) = trained else { return Ok(None) };

    let Trained { classifier, vectors, quality, epoch } = trained;
    // The words' own vectors, by token: those of rows before those of words that the model does not
    // have.
    let mut trained: Vec<(Token, usize)> = Vec::new();
    if vectors.is_some() {
        trained.extend(words[..met].iter().copied().zip(0..));
        trained.sort_unstable();
    }
    let vectors = vectors.unwrap_or_default();
    let (tuned, of_added) = trained.split_at(trained.partition_point(|(token, _)| !is_own(token)));
    let vectors_of = |some: &[(Token, usize)]| -> Vec<f32> {
        some.iter().flat_map(|&(_, at)| &vectors[at * dim..][..dim]).copied().collect()
    };
    let word = |(token, _): &(Token, usize)| added[token.0 as usize - rows].clone();
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(model),
        tokens: options.tokens.clone(),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        probabilities: settings.probabilities,
        temperature: 1.0,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: of_added.iter().map(word).collect(),
        other_words,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let mut parts = Parts {
        description,
        classifier,
        tuned: (tuned.iter().map(|&(token, _)| Row(token.0)).collect(), vectors_of(tuned)),
        added: vectors_of(of_added),
        unknown: None,
    };
    let calibration = calibrate(model, &mut parts, &deciding, epoch, pool)?;
    let made = Made {
        train: learned.len(),
        dev: deciding.len(),
        empty,
        epoch,
        quality,
        calibration,
        parts,
    };
    Ok(Some(described(made, &settings)))
}

/// Refuses what would take more memory than anyone means, before it is allocated.
fn check_size(data: &Data<'_>, settings: &Settings) -> Result<(), TrainError> {
    /// With gradients, Adam's moments and the best so far, 20 bytes each.
    const MOST_WEIGHTS: u128 = 1 << 27;
    /// Of 4 bytes, at the same time.
    const MOST_PRODUCTS: u128 = 1 << 31;
    /// Texts of which the quality is measured at the same time.
    const MEASURED: usize = 256;
    let channels = settings.channels as u128;
    let widths = settings.widths.iter().map(|&width| width as u128).sum::<u128>();
    let features = channels * settings.widths.len() as u128;
    let weights = channels * widths * data.dim as u128 + features * data.classes as u128;
    let texts = settings.batch.min(data.train.len()).max(MEASURED.min(data.dev.len()));
    let longest = data.train.iter().chain(data.dev).map(|one| one.words.len()).max().unwrap_or(0);
    let words = (texts * longest).min(data.vectors.len() / data.dim) as u128;
    let products = words * channels * widths + texts as u128 * features;
    let too_large = |what: &str, found: u128, most: u128, cure: &str| {
        TrainError::Data(format!("{what} {found} numbers; at most {most} are possible: {cure}"))
    };
    if weights > MOST_WEIGHTS {
        let cure = "lower --channels or --widths, or give fewer labels";
        return Err(too_large("the head would have", weights, MOST_WEIGHTS, cure));
    }
    if products > MOST_PRODUCTS {
        let cure = "lower --channels, --widths, --batch or --limit";
        return Err(too_large("a step would compute", products, MOST_PRODUCTS, cure));
    }
    Ok(())
}

/// The name of [`Made::quality`].
pub fn quality_name(probabilities: Probabilities) -> &'static str {
    match probabilities {
        Probabilities::Softmax => "accuracy",
        Probabilities::Sigmoid => "F1",
    }
}

/// Writes down how it was made.
fn described(mut made: Made, settings: &Settings) -> Made {
    let training = json!({
        "made_by": concat!("kindred ", env!("CARGO_PKG_VERSION")),
        "texts": made.train,
        "dev_texts": made.dev,
        "texts_without_known_words": made.empty,
        "fine_tuned": settings.fine_tune,
        "added_words": made.parts.description.words.len(),
        "dropout": settings.dropout,
        "batch": settings.batch,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "class_weights": settings.class_weights,
        "seed": settings.seed,
        "epoch": made.epoch,
        "dev_calibration_error": made.calibration[1],
        (format!("dev_{}", quality_name(settings.probabilities).to_lowercase())): made.quality,
    });
    let serde_json::Value::Object(training) = training else { unreachable!("an object") };
    made.parts.description.training = training;
    made
}

#[cfg(test)]
mod tests;
