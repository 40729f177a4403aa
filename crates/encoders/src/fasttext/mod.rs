//! fastText's models: files of version 11 and 12, mapped and never copied.
//!
//! A word's vector is the mean of its rows in the order of fastText's sum, so it has the same bits.
//! Classifiers, which may be pruned and quantised, are in `classifier`.

mod classifier;
mod cursor;
mod dictionary;
mod header;
mod loss;
mod matrix;
mod ngrams;
mod shares;

use std::fmt;
use std::path::{Path, PathBuf};

use model_store::{Mapped, NgramLengths};

pub use self::classifier::{FastTextClassifier, MAX_WORDS, ReadText};
use self::cursor::Cursor;
use self::dictionary::Dictionary;
use self::header::Header;
pub use self::header::{ClassifierTraining, Training};
pub use self::loss::{LossKind, Scored};
use self::matrix::Dense;
pub use self::shares::Shares;
use crate::EncoderError;

/// The end of a line, as fastText names it. It has no n-grams.
const END_OF_LINE: &[u8] = b"</s>";

/// Words that are longer get no vector: what they take grows with their length, and is not ended
/// half-way.
pub const MAX_SUBWORD_BYTES: usize = 65_536;

/// A word model of fastText. Its rows stay in the mapped file.
pub struct FastText {
    path: PathBuf,
    file: Mapped,
    training: Training,
    dictionary: Dictionary,
    /// Those of the words, then those of the buckets.
    rows: Dense,
}

/// One of the parts of which a word's vector is the mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subword {
    /// The word itself, or an n-gram of `<word>`. A part of invalid UTF-8 need not be valid.
    pub text: Vec<u8>,
    /// Its row: those of the words come first, then those that n-grams share.
    pub row: u32,
}

impl FastText {
    /// The first bytes of each file.
    pub const MAGIC: [u8; 4] = header::MAGIC.to_le_bytes();

    /// Maps a file, which must not change as long as the model is used, and reads its dictionary.
    ///
    /// # Errors
    /// If the file can't be mapped, contradicts itself, or is no word model of fastText.
    pub fn open(path: &Path) -> Result<Self, EncoderError> {
        Self::from_mapped(path, Mapped::open(path)?)
    }

    /// The same of bytes that are in memory. The path names them in errors.
    ///
    /// # Errors
    /// If they contradict themselves, or are no word model of fastText.
    pub fn from_mapped(path: &Path, file: Mapped) -> Result<Self, EncoderError> {
        let cursor = &mut Cursor::new(path, &file);
        let Header { training, classifier } = Header::read(cursor)?;
        if classifier.is_some() {
            return Err(cursor.unsupported(
                "it is a classifier of fastText (supervised): its rows are features of labels; \
                 make a head of it with `kindred import-head`, or give a model made by `fasttext \
                 skipgram` or `fasttext cbow`",
            ));
        }
        let dictionary = Dictionary::read(cursor, &file, false)?;
        if cursor.bool("whether rows are quantised")? {
            return Err(cursor.unsupported(
                "its rows are quantised (.ftz), which fastText does to classifiers alone; give \
                 the .bin file that it was made from",
            ));
        }
        let words = dictionary.words();
        let all = u64::from(words) + u64::from(training.bucket);
        let rows = Dense::read(cursor, "rows", all, training.dim)?;
        // It says whether the output is quantised, which is done only if the rows are.
        cursor.bool("whether the output is quantised")?;
        // The output matrix is for training alone.
        Dense::read(cursor, "the output matrix", u64::from(words), training.dim)?;
        cursor.end("the output matrix")?;
        let path = path.to_owned();
        Ok(Self { path, training, dictionary, rows, file })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it was trained.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.training.dim
    }

    /// How many words have a row of their own. Labels, which a word model may have, are none.
    pub fn words(&self) -> u32 {
        self.dictionary.words()
    }

    /// The word of a row: bytes without a 0, which need not be UTF-8.
    ///
    /// # Panics
    /// If there are no more than `row` words.
    pub fn word(&self, row: u32) -> &[u8] {
        self.dictionary.word(&self.file, row)
    }

    /// How often the word of a row occurred in the text that the model was trained on.
    ///
    /// # Panics
    /// If there are no more than `row` words.
    pub fn count(&self, row: u32) -> i64 {
        self.dictionary.count(&self.file, row)
    }

    /// The row of a word with exactly these bytes.
    pub fn find(&self, word: &[u8]) -> Option<u32> {
        self.dictionary.find(&self.file, word)
    }

    /// The parts of which a word's vector is the mean, in the order of the sum: the word itself if
    /// it is known, then its n-grams. A part that occurs twice is there twice.
    pub fn subwords(&self, word: &[u8]) -> Vec<Subword> {
        let mut found = Vec::new();
        self.for_each_row(self.find(word), word, |text, row| {
            found.push(Subword { text: text.to_owned(), row });
        });
        found
    }

    /// Writes the vector of any word, known or not, and returns of how many rows it is the mean.
    /// Where these are none, the vector is zero. What stands in the file is not checked: a
    /// component may be infinite or no number.
    ///
    /// # Panics
    /// If `vector` does not have [`FastText::dim`] components.
    pub fn vector(&self, word: &[u8], vector: &mut [f32]) -> usize {
        self.mean_of_rows(self.find(word), word, vector)
    }

    /// The same of the word of a row.
    pub(crate) fn vector_of_row(&self, row: u32, vector: &mut [f32]) -> usize {
        self.mean_of_rows(Some(row), self.word(row), vector)
    }

    fn mean_of_rows(&self, own: Option<u32>, word: &[u8], vector: &mut [f32]) -> usize {
        assert_eq!(vector.len(), self.dim(), "components of a vector");
        vector.fill(0.0);
        let mut rows = 0;
        self.for_each_row(own, word, |_, row| {
            self.rows.add(&self.file, row, vector);
            rows += 1;
        });
        divide(vector, rows);
        rows
    }

    /// Calls for each part of a word and its row, in the order of fastText's sum.
    fn for_each_row(&self, own: Option<u32>, word: &[u8], mut each: impl FnMut(&[u8], u32)) {
        if let Some(row) = own {
            each(word, row);
        }
        let (lengths, words) = (self.training.lengths(), self.words());
        for_each_bucket(word, &lengths, |text, bucket| each(text, words + bucket));
    }

    /// The byte of the file where the word of a row is.
    pub(crate) fn byte(&self, row: u32) -> u64 {
        self.dictionary.byte(row)
    }

    /// The rows that n-grams share, little-endian float32 `[buckets, dim]`.
    pub(crate) fn bucket_rows(&self) -> &[u8] {
        let words = self.words();
        self.rows.bytes(&self.file, words..words + self.training.bucket)
    }
}

impl fmt::Debug for FastText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("FastText");
        shown.field("path", &self.path).field("training", &self.training);
        shown.field("words", &self.words()).finish_non_exhaustive()
    }
}

/// Divides a sum of rows by their number. The sum of no rows stays zero.
pub(crate) fn divide(sum: &mut [f32], rows: usize) {
    if rows > 0 {
        // fastText multiplies; a division would give other bits.
        let share = (1.0 / rows as f64) as f32;
        sum.iter_mut().for_each(|component| *component *= share);
    }
}

/// Calls for each n-gram of a word and its row among those that n-grams share, in the order of
/// fastText's sum.
pub(crate) fn for_each_bucket(
    word: &[u8],
    lengths: &NgramLengths,
    mut each: impl FnMut(&[u8], u32),
) {
    if word == END_OF_LINE || !lengths.has_any() {
        return;
    }
    let mut bracketed = Vec::with_capacity(word.len() + 2);
    bracketed.push(ngrams::BEGINS);
    bracketed.extend_from_slice(word);
    bracketed.push(ngrams::ENDS);
    let &NgramLengths { minn, maxn, buckets } = lengths;
    ngrams::for_each(&bracketed, minn, maxn, |range, hash| {
        each(&bracketed[range], hash % buckets);
    });
}
