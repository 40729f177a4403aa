//! fastText's classifiers (`fasttext supervised`), also pruned and quantised (`.ftz`).
//!
//! A text is split at ASCII white space, and `</s>` ends it. Its vector is the mean of rows: for
//! each word its own, if it is known, and those of its n-grams; then one for each n-gram of words.
//! Known labels in the text, and unknown words that begin like one, have no part in it. The products
//! of the vector with the output rows become scores and probabilities by the loss.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use model_store::Mapped;

use super::cursor::Cursor;
use super::dictionary::Dictionary;
use super::header::{ClassifierTraining, Header, Training};
use super::loss::{Loss, Scored};
use super::matrix::Matrix;
use super::{END_OF_LINE, MAX_SUBWORD_BYTES, divide, for_each_bucket, ngrams};
use crate::EncoderError;

/// The most words of a text that are read.
pub const MAX_WORDS: usize = 65_536;

/// The prefix of labels in fastText's files.
const PREFIX: &[u8] = b"__label__";

/// A classifier. Its matrices stay in the mapped file.
pub struct FastTextClassifier {
    path: PathBuf,
    pub(super) file: Mapped,
    training: Training,
    pub(super) of_classifier: ClassifierTraining,
    dictionary: Dictionary,
    labels: Vec<String>,
    pub(super) rows: Matrix,
    pub(super) output: Matrix,
    pub(super) loss: Loss,
}

/// A text as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadText {
    /// The mean of the rows, `[dim]`.
    pub vector: Vec<f32>,
    /// The number of rows. Without any, the vector is zero and no label follows.
    pub rows: usize,
    /// The words without any row, by their places in the text; as many as were asked for.
    pub unknown: Vec<usize>,
}

impl FastTextClassifier {
    /// Maps a file, which must not change as long as the model is used, and reads its dictionary.
    ///
    /// # Errors
    /// If the file can't be mapped, contradicts itself, or is no classifier of fastText.
    pub fn open(path: &Path) -> Result<Self, EncoderError> {
        Self::from_mapped(path, Mapped::open(path)?)
    }

    /// The same of bytes that are in memory. The path names them in errors.
    ///
    /// # Errors
    /// If they contradict themselves, or are no classifier of fastText.
    pub fn from_mapped(path: &Path, file: Mapped) -> Result<Self, EncoderError> {
        let cursor = &mut Cursor::new(path, &file);
        let Header { training, classifier } = Header::read(cursor)?;
        let Some(of_classifier) = classifier else {
            return Err(cursor.unsupported(
                "it is a word model of fastText (skipgram or cbow), which has no labels; make a \
                 model of it with `kindred prepare`, or give a model made by `fasttext supervised`",
            ));
        };
        let labels_at = cursor.at();
        let dictionary = Dictionary::read(cursor, &file, true)?;
        let labels = labels_of(cursor, &dictionary, &file)?;
        if labels.is_empty() {
            return Err(cursor.damaged(labels_at, "a classifier without labels"));
        }
        let is_quantised = cursor.bool("whether rows are quantised")?;
        if !is_quantised && dictionary.is_pruned() {
            let reason = "n-grams were pruned, which is done to quantised models alone";
            return Err(cursor.damaged(labels_at, reason));
        }
        let all = u64::from(dictionary.words()) + dictionary.ngram_rows(training.bucket);
        let rows = Matrix::read(cursor, "rows", all, training.dim, is_quantised)?;
        let output_too = cursor.bool("whether the output is quantised")?;
        let (name, count) = ("the output matrix", labels.len() as u64);
        let output = Matrix::read(cursor, name, count, training.dim, is_quantised && output_too)?;
        cursor.end(name)?;
        let counts: Vec<i64> =
            dictionary.labels().map(|place| dictionary.count(&file, place)).collect();
        let loss = Loss::new(of_classifier.loss, &counts);
        let path = path.to_owned();
        Ok(Self { path, training, of_classifier, dictionary, labels, rows, output, loss, file })
    }

    /// How it was trained.
    pub fn training(&self) -> (&Training, &ClassifierTraining) {
        (&self.training, &self.of_classifier)
    }

    /// The labels in the file's order, without `__label__`.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Components of a text's vector.
    pub fn dim(&self) -> usize {
        self.training.dim
    }

    /// The number of words that have a row of their own.
    pub fn words(&self) -> u32 {
        self.dictionary.words()
    }

    /// Whether texts have n-grams of their words' characters.
    pub fn has_subwords(&self) -> bool {
        self.training.lengths().has_any()
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    /// Reads a text of at most [`MAX_WORDS`] words: `words` as [`words_of`](Self::words_of) finds
    /// them. `goes_on` is asked now and then; after it has said no, the rest is left out.
    pub fn read(
        &self,
        words: &[&[u8]],
        most_unknown: usize,
        goes_on: impl Fn() -> bool,
    ) -> ReadText {
        let (mut vector, mut rows) = (vec![0f32; self.dim()], 0);
        let (mut unknown, mut next) = (Vec::new(), 0);
        let mut pass = |places: Range<usize>| {
            let room = most_unknown - unknown.len();
            unknown.extend(places.take(room));
        };
        self.for_each_row(words, &goes_on, |row, (first, last)| {
            self.rows.add(&self.file, row, &mut vector);
            rows += 1;
            // Rows of words come in the order of the words, and before those of spans.
            if first == last && first >= next && first < words.len() {
                pass(next..first);
                next = first + 1;
            }
        });
        pass(next..words.len());
        divide(&mut vector, rows);
        ReadText { vector, rows, unknown }
    }

    /// Each label's score and probability. `products` are those of a text's vector.
    pub fn scored(&self, products: &[f32]) -> Vec<Scored> {
        self.loss.scored(products)
    }

    /// The words of a text: pieces between ASCII white space and zeros, up to `</s>`, and whether
    /// more than [`MAX_WORDS`] were there. A line break is white space like any other.
    pub fn words_of(text: &str) -> (Vec<Range<usize>>, bool) {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c | 0);
        let (mut words, mut at) = (Vec::new(), 0);
        for piece in text.as_bytes().split(is_space) {
            let range = at..at + piece.len();
            at = range.end + 1;
            if piece == END_OF_LINE {
                break;
            }
            if !piece.is_empty() {
                if words.len() == MAX_WORDS {
                    return (words, true);
                }
                words.push(range);
            }
        }
        (words, false)
    }

    /// Calls for each row of a text, in the order of fastText's sum, with the places of the first
    /// and the last word that it belongs to. The end of the text comes behind the words.
    pub(super) fn for_each_row(
        &self,
        words: &[&[u8]],
        goes_on: impl Fn() -> bool,
        mut each: impl FnMut(u32, (usize, usize)),
    ) {
        let mut hashes = Vec::with_capacity(words.len() + 1);
        let mut places = Vec::with_capacity(words.len() + 1);
        for (place, word) in words.iter().chain([&END_OF_LINE]).enumerate() {
            if !goes_on() {
                return;
            }
            if self.is_label(word) {
                continue;
            }
            self.for_each_row_of_word(word, |row| each(row, (place, place)));
            // fastText keeps it as a signed number, and extends that.
            hashes.push(i64::from(ngrams::hash(word).cast_signed()).cast_unsigned());
            places.push(place);
        }
        let longest = usize::try_from(self.of_classifier.word_ngrams).unwrap_or(0);
        let buckets = u64::from(self.training.bucket);
        if longest < 2 || buckets == 0 {
            return;
        }
        for first in 0..hashes.len() {
            if !goes_on() {
                return;
            }
            let mut hash = hashes[first];
            for last in first + 1..hashes.len().min(first.saturating_add(longest)) {
                hash = hash.wrapping_mul(116_049_371).wrapping_add(hashes[last]);
                if let Some(row) = self.dictionary.row_of_bucket((hash % buckets) as u32) {
                    each(row, (places[first], places[last]));
                }
            }
        }
    }

    fn is_label(&self, word: &[u8]) -> bool {
        match self.dictionary.find(&self.file, word) {
            Some(place) => place >= self.words(),
            None => word.starts_with(PREFIX),
        }
    }

    /// Calls for each row of a word that is no label: its own, then those of its n-grams.
    fn for_each_row_of_word(&self, word: &[u8], mut each: impl FnMut(u32)) {
        match self.dictionary.find(&self.file, word) {
            Some(place) if place >= self.words() => return,
            Some(row) => each(row),
            None => {}
        }
        if word.len() > MAX_SUBWORD_BYTES {
            return;
        }
        for_each_bucket(word, &self.training.lengths(), |_, bucket| {
            if let Some(row) = self.dictionary.row_of_bucket(bucket) {
                each(row);
            }
        });
    }

    /// The products of a text's vector with the output rows, one for each label.
    pub fn products(&self, vector: &[f32]) -> Vec<f32> {
        (0..self.labels.len() as u32).map(|row| self.output.dot(&self.file, row, vector)).collect()
    }
}

impl fmt::Debug for FastTextClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FastTextClassifier");
        shown.field("path", &self.path).field("training", &self.training);
        shown.field("labels", &self.labels.len()).finish_non_exhaustive()
    }
}

/// The labels as texts, each once.
fn labels_of(
    cursor: &Cursor<'_>,
    dictionary: &Dictionary,
    file: &Mapped,
) -> Result<Vec<String>, EncoderError> {
    let mut labels = Vec::with_capacity(dictionary.labels().len());
    let mut known = std::collections::HashSet::new();
    for place in dictionary.labels() {
        let stored = dictionary.word(file, place);
        let at = dictionary.byte(place) as usize;
        let name = stored.strip_prefix(PREFIX).unwrap_or(stored);
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(cursor.damaged(at, "a label that is no UTF-8"));
        };
        if name.is_empty() || !known.insert(name) {
            return Err(cursor.damaged(at, format!("the label {name:?} is empty, or there twice")));
        }
        labels.push(name.to_owned());
    }
    Ok(labels)
}
