//! Classifiers of fastText as heads: their rows, their words and their labels are their own.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use encoders::{
    ClassifierTraining, EncoderError, FastText, FastTextClassifier, LossKind, MAX_WORDS, Shares,
    Training,
};
use model_store::head::{FastTextDescription, FastTextFiles, HeadError, Probabilities};
use serde_json::{Value, json};

use crate::label::{ClassScores, Label, ScoresNotFinite};
use crate::tokens::{MAX_UNKNOWN_WORDS, Tokenised};

/// A classifier of fastText.
#[derive(Debug)]
pub struct FastTextHead {
    description: FastTextDescription,
    model: FastTextClassifier,
}

impl FastTextHead {
    /// Maps a head's folder.
    ///
    /// # Errors
    /// If it is no such head, or damaged.
    pub fn open(folder: &Path) -> Result<Self, HeadError> {
        let FastTextFiles { path, description, file } = FastTextFiles::open(folder)?;
        let damaged =
            |reason: String| HeadError::Damaged { path: path.clone(), reason: reason.into() };
        let model = FastTextClassifier::from_mapped(&path, file);
        let model = model.map_err(|error| damaged(error.to_string()))?;
        if model.labels() != description.labels {
            return Err(damaged("its labels are others than those of head.json".to_owned()));
        }
        Ok(Self { description, model })
    }

    /// Whether a file is one of fastText, by its first bytes.
    pub fn is_file(path: &Path) -> bool {
        let mut first = [0; FastText::MAGIC.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
        read.is_ok() && first == FastText::MAGIC
    }

    /// Reads a file of fastText, from which a head is to be made.
    ///
    /// # Errors
    /// If it can't be read, or is no classifier of fastText; each with the cure.
    pub fn import(file: &Path) -> Result<Self, EncoderError> {
        let model = FastTextClassifier::open(file)?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let (training, of_classifier) = model.training();
        let about = json!({
            "made_by": concat!("kindred ", env!("CARGO_PKG_VERSION")),
            "imported_from": name,
            "dim": training.dim,
            "words": model.words(),
            "loss": of_classifier.loss.name(),
            "word_ngrams": of_classifier.word_ngrams,
            "minn": training.minn,
            "maxn": training.maxn,
            "buckets": training.bucket,
        });
        let Value::Object(about) = about else { unreachable!("an object") };
        let probabilities = match of_classifier.loss.is_one_label() {
            true => Probabilities::Softmax,
            false => Probabilities::Sigmoid,
        };
        let labels = model.labels().to_vec();
        Ok(Self { description: FastTextDescription::new(labels, probabilities, about), model })
    }

    /// Writes the head's folder, complete or not at all.
    ///
    /// # Errors
    /// If `out` exists (unless it is a head and `replace` is set), or can't be written.
    pub fn write(&self, out: &Path, replace: bool) -> Result<(), HeadError> {
        self.description.clone().write(out, replace, self.model.bytes())
    }

    /// How it was trained.
    pub fn training(&self) -> (&Training, &ClassifierTraining) {
        self.model.training()
    }

    /// The number of words that have a row of their own.
    pub fn words(&self) -> u32 {
        self.model.words()
    }

    /// What the head is.
    pub fn description(&self) -> &FastTextDescription {
        &self.description
    }

    /// The words of a text, as bytes of it. They are read by [`scores`](Self::scores), which finds
    /// the unknown ones.
    pub fn split(&self, text: &str) -> Tokenised {
        let (bytes, is_cut) = FastTextClassifier::words_of(text);
        Tokenised { bytes, is_cut, ..Tokenised::default() }
    }

    /// A text whose words are given one by one, and taken as they are. Their bytes are those of the
    /// words with a space between each two.
    pub fn take<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Tokenised {
        let (mut found, mut at) = (Tokenised::default(), 0);
        for word in words {
            if found.bytes.len() == MAX_WORDS {
                found.is_cut = true;
                break;
            }
            let bytes = at..at + word.len();
            at = bytes.end + 1;
            found.bytes.push(bytes);
        }
        found
    }

    /// The class scores of a text with these words. `goes_on` is asked now and then; after it has
    /// said no, the rest is not read.
    pub fn scores(
        &self,
        text: &str,
        words: &[Range<usize>],
        goes_on: impl Fn() -> bool,
    ) -> ClassScores {
        let words = bytes_of(text, words);
        let read = self.model.read(&words, MAX_UNKNOWN_WORDS, goes_on);
        let mut unknown: Vec<String> = Vec::new();
        for place in read.unknown {
            let word = model_store::cut(String::from_utf8_lossy(words[place]).into_owned());
            if !unknown.contains(&word) {
                unknown.push(word);
            }
        }
        let scores = match read.rows {
            0 => Vec::new(),
            _ => self.model.products(&read.vector).into_iter().map(f64::from).collect(),
        };
        ClassScores { scores, unknown }
    }

    /// All labels of a text, the most probable first; of equally probable ones, the head's first.
    /// Probabilities are fastText's, but that they end at 1.
    ///
    /// # Errors
    /// If a score is not finite.
    pub fn labels(&self, scores: &[f64]) -> Result<Vec<Label>, ScoresNotFinite> {
        let products: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        if !products.iter().all(|score| score.is_finite()) {
            return Err(ScoresNotFinite);
        }
        let label = |(class, scored): (usize, encoders::Scored)| Label {
            class,
            probability: scored.probability,
            score: f64::from(scored.score),
        };
        let mut labels: Vec<Label> =
            self.model.scored(&products).into_iter().enumerate().map(label).collect();
        labels.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        Ok(labels)
    }

    /// The shares of a label's score that words have, by their places.
    pub(crate) fn shares(&self, text: &str, words: &[Range<usize>], class: usize) -> Shares {
        self.model.shares(&bytes_of(text, words), class, || true)
    }

    /// Nanoseconds that reading a text with these words takes, at the most.
    pub fn cost(&self, words: &[Range<usize>]) -> u64 {
        /// A row that is in no cache, and its hash.
        const ROW: u64 = 60;
        /// A word that is looked up, and its hash.
        const WORD: u64 = 100;
        let (training, of_classifier) = self.model.training();
        let (dim, labels) = (training.dim as u64, self.description.labels.len() as u64);
        // A component takes half a nanosecond.
        let row = ROW + dim / 2;
        let lengths = i64::from(training.maxn) - i64::from(training.minn.max(1)) + 1;
        let ngrams_of_byte = match self.model.has_subwords() {
            true => u64::try_from(lengths).unwrap_or(0).min(64),
            false => 0,
        };
        let rows_of_word = u64::try_from(of_classifier.word_ngrams).unwrap_or(0).clamp(1, 64);
        let bytes: u64 = words.iter().map(|word| word.len() as u64).sum();
        let of_words = words.len() as u64 * (WORD + rows_of_word * row);
        of_words + bytes * (2 + ngrams_of_byte * row) + labels * (dim / 2 + 20)
    }

    /// Nanoseconds that making and sorting the labels of a text takes.
    pub fn cost_of_labels(&self) -> u64 {
        let (_, of_classifier) = self.model.training();
        let each = match of_classifier.loss {
            LossKind::HierarchicalSoftmax => 300,
            _ => 100,
        };
        self.description.labels.len() as u64 * each
    }
}

fn bytes_of<'a>(text: &'a str, words: &[Range<usize>]) -> Vec<&'a [u8]> {
    words.iter().map(|word| &text.as_bytes()[word.clone()]).collect()
}
