//! Trains a classifier over a model's rows, from texts with labels to a head that can be written.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use contract::Row;
use contract::classifier::{
    calibration_error, fit_sigmoid_temperature, fit_temperature, sigmoid, softmax,
};
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
    /// Shape, steps and seed. The weights of classes are set by `balance`; probabilities become sigmoids if a text has several labels
    /// or none.
    pub settings: Settings,
    /// How texts become tokens.
    pub tokens: Tokens,
    /// Rare classes count for more: each class for as much as every other; with sigmoids, the texts that have a label for as much
    /// as those that do not.
    pub balance: bool,
    /// What the vectors of words that training does not meet are multiplied by, if vectors are trained. Those that it meets
    /// shrink, so words that it never saw would speak too loudly.
    pub other_words: f32,
}

impl TrainingOptions {
    /// The default of `other_words`. On SST-2 with glove.6B.50d (means of five seeds): 0: 82.56 %; 0.25: 82.53 %; 0.5: 82.33 %;
    /// 1: 80.83 %.
    pub const OTHER_WORDS: f32 = 0.25;

    /// What a head for these texts has: sigmoids if that is wanted, or a text has several labels or none.
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

/// A text as tokens, with its classes.
struct Encoded {
    tokens: Vec<Token>,
    classes: Vec<u32>,
}

/// Trains a classifier. Without `dev`, one text of ten decides when to stop. Calls `on_progress` after each batch and epoch; if it
/// breaks, the best so far is made; `None` if there is none yet.
///
/// # Errors
/// If the texts have fewer than two labels (with sigmoids: none), `dev` has other labels, or no text has a known word.
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
    model.words().make_table();
    let vocabulary = Vocabulary::of_model(model, &options.tokens);
    let mut learned = encode(train, &labels, &vocabulary)?;
    let mut empty = train.texts.len() - learned.len();
    let deciding = match dev {
        Some(dev) => {
            let encoded = encode(dev, &labels, &vocabulary)?;
            empty += dev.texts.len() - encoded.len();
            encoded
        }
        None => split(&mut learned, settings.seed),
    };
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

    let Trained { classifier, vectors, quality, epoch } = trained;
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
        probabilities: settings.probabilities,
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

/// Texts as tokens. Those without a known word are left out.
fn encode(
    texts: &Texts,
    labels: &[&str],
    words: &Vocabulary<'_>,
) -> Result<Vec<Encoded>, TrainError> {
    let mut encoded = Vec::new();
    for one in &texts.texts {
        let class = |label: &String| {
            let class = labels.binary_search(&label.as_str()).map(|class| class as u32);
            class.map_err(|_| {
                TrainError::Data(format!(
                    "the label {label:?} is only in the texts that decide; those to learn from have {}",
                    labels.join(", ")
                ))
            })
        };
        let mut classes = one.labels.iter().map(class).collect::<Result<Vec<_>, _>>()?;
        classes.sort_unstable();
        classes.dedup();
        let tokens = words.tokenise(&one.text).tokens;
        if !tokens.is_empty() {
            encoded.push(Encoded { tokens, classes });
        }
    }
    Ok(encoded)
}

/// Takes one text of ten away, for deciding when to stop: always the same ones for the same seed.
fn split(texts: &mut Vec<Encoded>, seed: u64) -> Vec<Encoded> {
    let order = train::shuffled(texts.len(), seed);
    let chosen: BTreeSet<usize> = order.into_iter().take(texts.len() / SPLIT).collect();
    let (mut kept, mut deciding) = (Vec::new(), Vec::new());
    for (index, text) in std::mem::take(texts).into_iter().enumerate() {
        if chosen.contains(&index) { deciding.push(text) } else { kept.push(text) }
    }
    *texts = kept;
    deciding
}

/// The weight of each class, so that all count alike; with sigmoids, so that those texts that have it count for as much as the
/// others.
fn balanced(texts: &[Encoded], classes: usize, probabilities: Probabilities) -> Vec<f32> {
    let mut counts = vec![0usize; classes];
    let all = texts.iter().flat_map(|one| &one.classes);
    all.for_each(|&class| counts[class as usize] += 1);
    let weight = |count: usize| {
        let count = count.max(1);
        match probabilities {
            Probabilities::Softmax => texts.len() as f32 / classes as f32 / count as f32,
            // A class that all texts have counts a little, too.
            Probabilities::Sigmoid => (texts.len() - count).max(1) as f32 / count as f32,
        }
    };
    counts.into_iter().map(weight).collect()
}

/// Fits the temperature on the deciding texts. Returns the calibration error before and after.
fn calibrate(
    model: &Arc<ModelStore>,
    parts: &mut Parts,
    texts: &[Encoded],
    pool: &ThreadPool,
) -> Result<[f64; 2], TrainError> {
    let head = Arc::new(Head::from_memory(parts, model)?);
    let mut engine = Classifying::new(head, PRODUCTS_MEMORY);
    let tokens: Vec<&[Token]> = texts.iter().map(|one| &one.tokens[..]).collect();
    let scores = engine.scores(&model.table(), &tokens, pool);
    let scores: Vec<Vec<f64>> =
        scores.chunks_exact(parts.description.labels.len()).map(<[f64]>::to_vec).collect();
    let few = scores.len() < LEAST_TO_FIT;
    let (fitted, errors) = match parts.description.probabilities {
        Probabilities::Softmax => {
            let classes: Vec<usize> = texts.iter().map(|one| one.classes[0] as usize).collect();
            let fitted = if few { 1.0 } else { fit_temperature(&scores, &classes) };
            let error = |temperature| {
                let answer = |(scores, &class): (&Vec<f64>, &usize)| {
                    let probabilities = softmax(scores, temperature);
                    let best = super::best(&probabilities);
                    (probabilities[best], best == class)
                };
                let answers: Vec<_> = scores.iter().zip(&classes).map(answer).collect();
                calibration_error(&answers, CALIBRATION_BINS)
            };
            (fitted, [error(1.0), error(fitted)])
        }
        Probabilities::Sigmoid => {
            let of_text = |(scores, one): (&Vec<f64>, &Encoded)| -> Vec<(f64, bool)> {
                let pair = |(class, &score): (u32, &f64)| (score, one.classes.contains(&class));
                (0..).zip(scores).map(pair).collect()
            };
            let pairs: Vec<(f64, bool)> = scores.iter().zip(texts).flat_map(of_text).collect();
            let fitted = if few { 1.0 } else { fit_sigmoid_temperature(&pairs) };
            let error = |temperature| {
                let answer = |&(score, has): &(f64, bool)| (sigmoid(score, temperature), has);
                let answers: Vec<_> = pairs.iter().map(answer).collect();
                calibration_error(&answers, CALIBRATION_BINS)
            };
            (fitted, [error(1.0), error(fitted)])
        }
    };
    parts.description.temperature = fitted;
    Ok(errors)
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
        "dev_calibration_error": made.calibration[1],
    });
    let serde_json::Value::Object(mut training) = training else { unreachable!("an object") };
    training.insert(
        format!("dev_{}", quality_name(settings.probabilities).to_lowercase()),
        json!(made.quality),
    );
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
        assert_eq!(made.quality, 1.0);
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
    fn texts_with_several_labels_or_none_get_a_sigmoid_for_each() {
        let lines = [
            r#"{"text": "the good film", "labels": ["praise", "film", "film"]}"#,
            r#"{"text": "the bad film", "labels": ["film"]}"#,
            r#"{"text": "fine", "labels": ["praise"]}"#,
            r#"{"text": "not poor", "labels": []}"#,
        ];
        let (model, texts) = (model(), texts(&lines.repeat(40).join("\n")));
        for balance in [false, true] {
            let options = TrainingOptions { balance, ..options() };
            let mut go_on = |_| ControlFlow::Continue(());
            let made = train_classifier(&model, &texts, None, &options, &pool(), &mut go_on);
            let made = made.unwrap().unwrap();
            assert_eq!((made.train, made.dev), (144, 16));
            assert!(made.quality > 0.9, "{}", made.quality);
            let Description { probabilities, labels, training, .. } = &made.parts.description;
            assert_eq!(*probabilities, Probabilities::Sigmoid);
            assert_eq!(
                (&labels[..], &training["dev_f1"]),
                (&["film".to_owned(), "praise".to_owned()][..], &json!(made.quality))
            );
            assert!(made.calibration[1] <= made.calibration[0] + 1e-9);
        }
    }

    #[test]
    fn rare_labels_count_for_more_if_that_is_wanted() {
        let classes = [vec![0], vec![0], vec![0], vec![1]];
        let texts = classes.map(|classes| Encoded { tokens: Vec::new(), classes });
        assert_eq!(balanced(&texts, 2, Probabilities::Softmax), [2.0 / 3.0, 2.0]);
        assert_eq!(balanced(&texts, 2, Probabilities::Sigmoid), [1.0 / 3.0, 3.0]);
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
        assert!(
            refused("{\"text\": \"good\", \"labels\": []}", None).contains("no text has a label")
        );
    }
}
