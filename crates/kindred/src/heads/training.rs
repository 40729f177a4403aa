//! Trains a classifier over a model's rows, from texts with labels to a head that can be written.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use contract::Row;
use contract::classifier::{calibration_error, fit_temperature, softmax};
use cpu_core::heads::classify::{Classifying, PRODUCTS_MEMORY};
use cpu_core::heads::train::{self, Data, Example, Progress, Settings, Trained};
use model_store::ModelStore;
use model_store::head::{
    Description, HEAD_VERSION, Head, HeadError, HeadKind, MadeFor, Parts, Probabilities, Token,
    Tokens,
};
use rayon::ThreadPool;
use serde_json::json;

use super::{Texts, Vocabulary};

/// The groups of texts of which calibration errors are means.
pub const CALIBRATION_BINS: usize = 10;

/// A temperature that is fitted to fewer texts says little of others.
const LEAST_TO_FIT: usize = 50;

/// One text of this many decides when to stop, if no others are given.
const SPLIT: usize = 10;

/// How a classifier is made.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingOptions {
    /// Shape, steps and seed. The weights of classes are set by `balance`.
    pub settings: Settings,
    /// How texts become tokens.
    pub tokens: Tokens,
    /// Rare classes count for more: each class for as much as every other.
    pub balance: bool,
    /// What the vectors of words that training does not meet are multiplied by, if vectors are trained. Those that it meets
    /// shrink, so words that it never saw would speak too loudly.
    pub other_words: f32,
}

impl TrainingOptions {
    /// The default of `other_words`. On SST-2 with glove.6B.50d (means of five seeds): 0: 82.56 %; 0.25: 82.53 %; 0.5: 82.33 %;
    /// 1: 80.83 %.
    pub const OTHER_WORDS: f32 = 0.25;
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
    /// The share of the deciding texts whose label is right.
    pub accuracy: f64,
    /// The expected calibration error on the deciding texts, before and after the temperature was fitted.
    pub calibration: [f64; 2],
}

/// Why no classifier was made.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The data do not suffice.
    #[error("{0}")]
    Data(String),
    /// The head does not fit its model. That would be a fault of ours.
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// Texts as tokens, with their classes.
struct Encoded {
    texts: Vec<(Vec<Token>, u32)>,
    empty: usize,
}

/// Trains a classifier. Without `dev`, one text of ten decides when to stop. Calls `on_progress` after each batch and epoch; if it
/// breaks, the best so far is made; `None` if there is none yet.
///
/// # Errors
/// If the texts have fewer than two labels, a text has several or none, `dev` has other labels, or no text has a known word.
pub fn train_classifier(
    model: &Arc<ModelStore>,
    train: &Texts,
    dev: Option<&Texts>,
    options: &TrainingOptions,
    pool: &ThreadPool,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Made>, TrainError> {
    let labels: Vec<&str> = train.labels().into_iter().map(|(label, _)| label).collect();
    if labels.len() < 2 {
        return Err(TrainError::Data(format!(
            "a classifier needs texts of two labels or more; all have {:?}",
            labels.first().copied().unwrap_or_default()
        )));
    }
    model.words().make_table();
    let vocabulary = Vocabulary::of_model(model, &options.tokens);
    let mut learned = encode(train, &labels, &vocabulary)?;
    let mut empty = learned.empty;
    let mut settings = options.settings.clone();
    let deciding = match dev {
        Some(dev) => {
            let dev = encode(dev, &labels, &vocabulary)?;
            empty += dev.empty;
            dev.texts
        }
        None => split(&mut learned.texts, settings.seed),
    };
    if learned.texts.is_empty() || deciding.is_empty() {
        let what = "too few texts have a word of the model; use another model or more texts";
        return Err(TrainError::Data(what.to_owned()));
    }
    if options.balance {
        settings.class_weights = balanced(&learned.texts, labels.len());
    }

    // Words by their first appearance, those to learn from first.
    let mut words: Vec<Token> = Vec::new();
    let mut indices = HashMap::new();
    let mut examples = |texts: &[(Vec<Token>, u32)], words: &mut Vec<Token>| -> Vec<Example> {
        let mut index = |token: &Token| {
            *indices.entry(*token).or_insert_with(|| {
                words.push(*token);
                words.len() as u32 - 1
            })
        };
        let example = |(tokens, class): &(Vec<Token>, u32)| Example {
            words: tokens.iter().map(&mut index).collect(),
            class: *class,
        };
        texts.iter().map(example).collect()
    };
    let train_examples = examples(&learned.texts, &mut words);
    let met = words.len();
    let dev_examples = examples(&deciding, &mut words);
    let other_words = if settings.fine_tune { options.other_words } else { 1.0 };
    let (dim, table) = (model.dim(), model.table());
    let mut vectors = Vec::with_capacity(words.len() * dim);
    for (index, token) in words.iter().enumerate() {
        let scale = if index < met { 1.0 } else { other_words };
        vectors.extend(table.row(Row(token.0)).iter().map(|x| x * scale));
    }
    let data = Data {
        train: &train_examples,
        dev: &dev_examples,
        vectors: &vectors,
        dim,
        classes: labels.len(),
    };
    let Some(trained) = train::train(data, &settings, pool, on_progress) else { return Ok(None) };

    let Trained { classifier, vectors, accuracy, epoch } = trained;
    let mut tuned: Vec<(Row, usize)> = Vec::new();
    if vectors.is_some() {
        tuned.extend(words[..met].iter().enumerate().map(|(at, token)| (Row(token.0), at)));
        tuned.sort_unstable();
    }
    let vectors = vectors.unwrap_or_default();
    let tuned_vectors = tuned.iter().flat_map(|&(_, at)| &vectors[at * dim..][..dim]).copied();
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(model),
        tokens: options.tokens.clone(),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
        probabilities: Probabilities::Softmax,
        temperature: 1.0,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: Vec::new(),
        other_words,
        weights: String::new(),
        training: serde_json::Map::new(),
    };
    let mut parts = Parts {
        description,
        classifier,
        tuned: (tuned.iter().map(|&(row, _)| row).collect(), tuned_vectors.collect()),
        added: Vec::new(),
        unknown: None,
    };
    let calibration = calibrate(model, &mut parts, &deciding, pool)?;
    let made = Made {
        train: learned.texts.len(),
        dev: deciding.len(),
        empty,
        epoch,
        accuracy,
        calibration,
        parts,
    };
    Ok(Some(described(made, &settings)))
}

/// Texts as tokens. Those without a known word are left out.
fn encode(texts: &Texts, labels: &[&str], words: &Vocabulary<'_>) -> Result<Encoded, TrainError> {
    let mut encoded = Encoded { texts: Vec::new(), empty: 0 };
    for one in &texts.texts {
        let [label] = &one.labels[..] else {
            return Err(TrainError::Data(format!(
                "the text {:?} has {} labels; a classifier learns from texts with one label each",
                one.text,
                one.labels.len()
            )));
        };
        let Ok(class) = labels.binary_search(&label.as_str()) else {
            return Err(TrainError::Data(format!(
                "the label {label:?} is only in the texts that decide; those to learn from have {}",
                labels.join(", ")
            )));
        };
        let tokens = words.tokenise(&one.text).tokens;
        match tokens.is_empty() {
            true => encoded.empty += 1,
            false => encoded.texts.push((tokens, class as u32)),
        }
    }
    Ok(encoded)
}

/// Takes one text of ten away, for deciding when to stop: always the same ones for the same seed.
fn split(texts: &mut Vec<(Vec<Token>, u32)>, seed: u64) -> Vec<(Vec<Token>, u32)> {
    let order = train::shuffled(texts.len(), seed);
    let chosen: BTreeSet<usize> = order.into_iter().take(texts.len() / SPLIT).collect();
    let (mut kept, mut deciding) = (Vec::new(), Vec::new());
    for (index, text) in std::mem::take(texts).into_iter().enumerate() {
        if chosen.contains(&index) { deciding.push(text) } else { kept.push(text) }
    }
    *texts = kept;
    deciding
}

/// The weight of each class, so that all count alike.
fn balanced(texts: &[(Vec<Token>, u32)], classes: usize) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    texts.iter().for_each(|(_, class)| counts[*class as usize] += 1);
    let share = texts.len() as f32 / classes as f32;
    counts.into_iter().map(|count| share / count.max(1) as f32).collect()
}

/// Fits the temperature on the deciding texts. Returns the calibration error before and after.
fn calibrate(
    model: &Arc<ModelStore>,
    parts: &mut Parts,
    texts: &[(Vec<Token>, u32)],
    pool: &ThreadPool,
) -> Result<[f64; 2], TrainError> {
    let head = Arc::new(Head::from_memory(parts, model)?);
    let mut engine = Classifying::new(head, PRODUCTS_MEMORY);
    let tokens: Vec<&[Token]> = texts.iter().map(|(tokens, _)| &tokens[..]).collect();
    let scores = engine.scores(&model.table(), &tokens, pool);
    let scores: Vec<Vec<f64>> =
        scores.chunks_exact(parts.description.labels.len()).map(<[f64]>::to_vec).collect();
    let classes: Vec<usize> = texts.iter().map(|(_, class)| *class as usize).collect();
    let error = |temperature| {
        let answer = |(scores, &class): (&Vec<f64>, &usize)| {
            let probabilities = softmax(scores, temperature);
            let best = super::best(&probabilities);
            (probabilities[best], best == class)
        };
        let answers: Vec<_> = scores.iter().zip(&classes).map(answer).collect();
        calibration_error(&answers, CALIBRATION_BINS)
    };
    let few = scores.len() < LEAST_TO_FIT;
    let temperature = if few { 1.0 } else { fit_temperature(&scores, &classes) };
    parts.description.temperature = temperature;
    Ok([error(1.0), error(temperature)])
}

/// Writes down how it was made.
fn described(mut made: Made, settings: &Settings) -> Made {
    let Settings { widths: _, channels: _, padding: _, .. } = settings;
    let training = json!({
        "made_by": concat!("kindred ", env!("CARGO_PKG_VERSION")),
        "texts": made.train,
        "dev_texts": made.dev,
        "texts_without_known_words": made.empty,
        "fine_tuned": settings.fine_tune,
        "dropout": settings.dropout,
        "batch": settings.batch,
        "learning_rate": settings.learning_rate,
        "weight_decay": settings.weight_decay,
        "class_weights": settings.class_weights,
        "seed": settings.seed,
        "epoch": made.epoch,
        "dev_accuracy": made.accuracy,
        "dev_calibration_error": made.calibration[1],
    });
    let serde_json::Value::Object(training) = training else { unreachable!("an object") };
    made.parts.description.training = training;
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::TokenClassifier;
    use model_store::head::{Cut, Tokeniser};

    fn model() -> Arc<ModelStore> {
        let words = ["good", "bad", "not", "film", "the", "fine", "poor"];
        let rows: Vec<(&str, [f32; 4])> = words
            .iter()
            .enumerate()
            .map(|(n, word)| (*word, std::array::from_fn(|i| ((n * 7 + i * 3) as f32).sin())))
            .collect();
        let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
        Arc::new(ModelStore::from_rows("m", 4, rows).unwrap())
    }

    fn options() -> TrainingOptions {
        let settings = Settings { channels: 8, epochs: 30, patience: 30, ..Settings::default() };
        let tokens =
            Tokens { tokeniser: Tokeniser::Ptb, lower_case: true, limit: 512, cut: Cut::End };
        TrainingOptions { settings, tokens, balance: false, other_words: 0.25 }
    }

    fn texts(content: &str) -> Texts {
        Texts::parse("data", content, None, false).unwrap()
    }

    fn many() -> Texts {
        let lines =
            ["1\tthe good film", "0\tthe bad film", "0\tnot good", "1\tnot bad", "1\tunseen"];
        texts(&lines.repeat(40).join("\n"))
    }

    fn pool() -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()
    }

    #[test]
    fn a_head_is_made_and_answers() {
        let (model, mut go_on) = (model(), |_| ControlFlow::Continue(()));
        let made = train_classifier(&model, &many(), None, &options(), &pool(), &mut go_on);
        let made = made.unwrap().unwrap();
        assert_eq!((made.train, made.dev, made.empty), (144, 16, 40));
        assert_eq!(made.accuracy, 1.0);
        assert!(made.calibration[1] <= made.calibration[0] + 1e-9);
        let Parts { description, tuned, .. } = &made.parts;
        assert_eq!(description.labels, ["0", "1"]);
        assert_eq!(tuned.0, [0, 1, 2, 3, 4].map(Row), "the words of the texts");
        let head = Head::from_memory(&made.parts, &model).unwrap();
        let own = head.vector(&model.table(), head.of_row(Row(5)))[0];
        assert_eq!(own, 0.25 * model.table().row(Row(5))[0], "a word that training did not meet");

        let settings = Settings { fine_tune: false, ..options().settings };
        let frozen = TrainingOptions { settings, balance: true, ..options() };
        let made = train_classifier(&model, &many(), Some(&many()), &frozen, &pool(), &mut go_on);
        let made = made.unwrap().unwrap();
        assert!(made.parts.tuned.0.is_empty() && made.parts.description.other_words == 1.0);
        let stopped = |_| ControlFlow::Break(());
        let none = train_classifier(&model, &many(), None, &options(), &pool(), &mut { stopped });
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn data_that_do_not_suffice_are_refused() {
        let model = model();
        let refused = |train: &str, dev: Option<&str>| {
            let dev = dev.map(texts);
            let made = train_classifier(
                &model,
                &texts(train),
                dev.as_ref(),
                &options(),
                &pool(),
                &mut |_| ControlFlow::Continue(()),
            );
            made.unwrap_err().to_string()
        };
        assert!(refused("1\tgood\n1\tbad", None).contains("two labels or more; all have \"1\""));
        assert!(refused("1\tx\n0\ty", Some("0\tgood")).contains("too few texts have a word"));
        assert!(refused("1\tgood\n0\tbad", Some("2\tgood")).contains("\"2\" is only in the texts"));
        let two = "__label__a good\n__label__b __label__a bad";
        assert!(refused(two, None).contains("has 2 labels"));
    }
}
