//! The fields before the dictionary of a fastText file: how it was trained.

use model_store::NgramLengths;

use super::cursor::Cursor;
use super::loss::LossKind;
use crate::EncoderError;

/// The first four bytes of each file, as a number.
pub(super) const MAGIC: i32 = 793_712_314;

/// The versions that are read. They do not differ in their layout.
const VERSIONS: [i32; 2] = [11, 12];

/// What a file begins with: how the model was trained, as far as its vectors depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training {
    /// The version of the file's format.
    pub version: i32,
    /// Components of a vector.
    pub dim: usize,
    /// The length of the shortest n-gram, in characters.
    pub minn: i32,
    /// The length of the longest n-gram, in characters; none are shorter than 1.
    pub maxn: i32,
    /// How many rows n-grams have, which share them by their hash.
    pub bucket: u32,
}

/// All that stands before the dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) training: Training,
    /// How a classifier was trained; `None` for a word model.
    pub(super) classifier: Option<ClassifierTraining>,
}

/// How a classifier was trained, as far as its labels depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassifierTraining {
    /// Words of the longest n-gram of words; without any, 1 or less.
    pub word_ngrams: i32,
    /// How scores become probabilities.
    pub loss: LossKind,
}

impl Header {
    /// Reads the fields from the start up to the sampling threshold.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, EncoderError> {
        let magic = cursor.i32("the signature")?;
        if magic != MAGIC {
            return Err(cursor.unsupported(
                "this is no .bin file of fastText, which begin with the bytes BA 16 4F 2F; \
                 vectors as text (.vec) are another format",
            ));
        }
        let version = cursor.i32("the version")?;
        if !VERSIONS.contains(&version) {
            return Err(cursor.unsupported(format!(
                "it has version {version} of fastText's format, and versions 11 and 12 are read; \
                 train the model again with fastText 0.9, or use its vectors as text (.vec)"
            )));
        }
        let at = cursor.at();
        let dim = cursor.count("the number of components")?;
        if dim == 0 {
            return Err(cursor.damaged(at, "vectors have no components"));
        }
        for name in ["ws", "epoch", "minCount", "neg"] {
            cursor.i32(name)?;
        }
        let word_ngrams = cursor.i32("wordNgrams")?;
        let loss_at = cursor.at();
        let loss = cursor.i32("the loss")?;
        let at = cursor.at();
        let is_classifier = match cursor.i32("the kind of model")? {
            1 | 2 => false,
            3 => true,
            other => {
                let reason =
                    format!("the kind of model is {other}: 1 is cbow, 2 skipgram, 3 a classifier");
                return Err(cursor.damaged(at, reason));
            }
        };
        let classifier = match is_classifier {
            false => None,
            true => {
                let loss =
                    LossKind::of_number(loss).map_err(|reason| cursor.damaged(loss_at, reason))?;
                Some(ClassifierTraining { word_ngrams, loss })
            }
        };
        let bucket = cursor.count("the number of buckets")?;
        let minn = cursor.i32("minn")?;
        let mut maxn = cursor.i32("maxn")?;
        // Classifiers of version 11 wrote a length that they did not use.
        if version == 11 && is_classifier {
            maxn = 0;
        }
        cursor.i32("lrUpdateRate")?;
        cursor.take(8, "the sampling threshold")?;
        let training = Training { version, dim: dim as usize, minn, maxn, bucket };
        Ok(Self { training, classifier })
    }
}

impl Training {
    /// How words are cut into n-grams.
    pub fn lengths(&self) -> NgramLengths {
        NgramLengths { minn: self.minn, maxn: self.maxn, buckets: self.bucket }
    }
}
