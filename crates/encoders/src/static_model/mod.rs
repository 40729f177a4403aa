//! Static models: a row for each token, and a text is the mean of its tokens' rows.
//!
//! Two programs make such folders, and read the same rows differently; the folder's files say
//! whose it is. **Model2Vec** (`config.json` with `model_type` `model2vec`) cuts a text to so many
//! characters, then to so many tokens, and drops the unknown ones. **sentence-transformers'
//! StaticEmbedding** (`modules.json`) cuts to as many tokens as `tokenizer.json` says, if it does,
//! and the unknown token is one like others.

mod folder;
mod rows;

use std::path::{Path, PathBuf};

use model_store::{EncoderFiles, Mapped, ModelError, NewFiles};
use serde::{Deserialize, Serialize};

use self::folder::{Folder, Settings};
use self::rows::Rows;
use crate::{EncoderError, Tokeniser};

/// A static model.
#[derive(Debug)]
pub struct StaticModel {
    /// The file of the rows.
    path: PathBuf,
    settings: Settings,
    /// The file that the tokeniser was read from.
    tokenizer: Mapped,
    tokeniser: Tokeniser,
    rows: Rows,
    /// Where a text is cut; `None`: nowhere.
    cut: Option<Cut>,
}

/// Whose rules a folder follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// Those of Model2Vec: texts are cut, and unknown tokens dropped.
    #[serde(rename = "model2vec")]
    Model2Vec,
    /// Those of sentence-transformers' StaticEmbedding: no token is dropped, and sums are float32.
    #[serde(rename = "sentence-transformers")]
    StaticEmbedding,
}

/// The rows of the model that an encoder belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowsAre {
    /// Its tokens.
    Tokens,
    /// Texts that it has encoded.
    Texts,
}

/// Where a text is cut, first by characters, which Model2Vec alone does, then by tokens.
#[derive(Debug, Clone, Copy)]
struct Cut {
    chars: usize,
    tokens: usize,
}

/// The tokens of a text, as answers tell them. JSON has these names, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextTokens {
    /// Of how many tokens' rows the vector is the mean. Where these are none, it is zero.
    pub count: usize,
    /// How many tokens are unknown. Model2Vec drops them, and they are not among the others.
    pub unknown: usize,
    /// Whether the text was cut, and something behind it has no part in the vector.
    pub truncated: bool,
}

/// No more bytes of a text are read: the work of a text is not ended half-way.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The names that its files have in a model folder.
const TOKENISER: &str = "tokenizer.json";
const ROWS: &str = "rows.safetensors";

impl StaticModel {
    /// The name of this kind of encoder.
    pub const KIND: &str = "static";

    /// Opens a folder as Model2Vec or sentence-transformers save it. Its rows are mapped: the
    /// folder must not change as long as the model is used.
    ///
    /// # Errors
    /// If a file can't be read, contradicts another, or is of a kind that is not read here.
    pub fn open(folder: &Path) -> Result<Self, EncoderError> {
        let Folder { tokeniser, rows, settings } = Folder::read(folder)?;
        let tokenizer = Mapped::open(&tokeniser)?;
        let file = Mapped::open(&rows)?;
        Self::new(settings, (tokeniser, tokenizer), (rows, file))
    }

    /// Whether a folder has a file by which such models are known.
    pub fn is_one(folder: &Path) -> bool {
        Folder::is_one(folder)
    }

    /// Reads the encoder that a model folder has kept.
    ///
    /// # Errors
    /// If it is of another kind, or damaged.
    pub fn of_files(files: &EncoderFiles) -> Result<Self, EncoderError> {
        let damaged = |reason: String| ModelError::damaged(files.path(), reason);
        if files.kind() != Self::KIND {
            let reason = format!(
                "it is an encoder of the kind `{}`, which this program does not know; use a newer \
                 kindred",
                files.kind()
            );
            return Err(damaged(reason).into());
        }
        let settings = Settings::deserialize(files.settings());
        let settings = settings.map_err(|error| damaged(error.to_string()))?;
        let file = |name: &str| {
            let found = files.file(name).map(|(path, file)| (path, file.clone()));
            found.ok_or_else(|| damaged(format!("its file {name} is missing")))
        };
        Self::new(settings, file(TOKENISER)?, file(ROWS)?)
    }

    /// The same encoder for a model folder with such rows.
    pub fn kept(&self, rows: RowsAre) -> NewFiles<'_> {
        let settings = Settings { rows, ..self.settings };
        NewFiles {
            kind: Self::KIND,
            settings: serde_json::to_value(settings).expect("names and numbers"),
            files: vec![(TOKENISER, &self.tokenizer), (ROWS, self.rows.file())],
        }
    }

    /// A model of its `tokenizer.json` and the file of its rows, each with its path.
    fn new(
        settings: Settings,
        (tokeniser, tokenizer): (PathBuf, Mapped),
        (path, file): (PathBuf, Mapped),
    ) -> Result<Self, EncoderError> {
        let Settings { layout, max_tokens, .. } = settings;
        let tokeniser = Tokeniser::from_bytes(&tokeniser, &tokenizer)?;
        let rows = Rows::of(&path, file, tokeniser.tokens())?;
        let cut = match layout {
            Layout::Model2Vec => max_tokens.map(|tokens| Cut {
                chars: tokens.saturating_mul(median_length(tokeniser.tokens())),
                tokens,
            }),
            Layout::StaticEmbedding => {
                tokeniser.max_tokens().map(|tokens| Cut { chars: usize::MAX, tokens })
            }
        };
        Ok(Self { path, settings, tokenizer, tokeniser, rows, cut })
    }

    /// The rows of the model that it belongs to.
    pub fn rows_are(&self) -> RowsAre {
        self.settings.rows
    }

    /// The file of its rows.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose rules it follows.
    pub fn layout(&self) -> Layout {
        self.settings.layout
    }

    /// How texts become tokens.
    pub fn tokeniser(&self) -> &Tokeniser {
        &self.tokeniser
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// The most tokens of a text that are read, if there is such a number.
    pub fn max_tokens(&self) -> Option<usize> {
        self.cut.map(|cut| cut.tokens)
    }

    /// Whether vectors of texts have unit length.
    pub fn normalizes(&self) -> bool {
        self.settings.normalizes
    }

    /// Writes the vector of a token: its row times its weight.
    ///
    /// # Panics
    /// If no token has this id, or `vector` does not have [`StaticModel::dim`] components.
    pub fn token(&self, id: u32, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dim(), "components of a vector");
        self.rows.for_each(id, |at, component| vector[at] = component as f32);
    }

    /// Writes the vector of a text. It is summed in the order of the tokens, and so the same bits
    /// whatever else is encoded. Stored numbers are not checked: a component may be
    /// infinite or no number.
    ///
    /// # Panics
    /// If `vector` does not have [`StaticModel::dim`] components.
    pub fn encode(&self, text: &str, vector: &mut [f32]) -> TextTokens {
        let (ids, tokens) = self.tokens(text);
        self.mean(&ids, self.normalizes(), vector);
        tokens
    }

    /// The ids of the tokens whose rows make the vector of a text.
    pub fn tokens(&self, text: &str) -> (Vec<u32>, TextTokens) {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        let (mut read, mut truncated) = (&text[..end], end < text.len());
        // A character has a byte at least, so most texts need not be counted.
        if let Some(cut) = self.cut
            && read.len() > cut.chars
            && let Some((end, _)) = read.char_indices().nth(cut.chars)
        {
            (read, truncated) = (&read[..end], true);
        }
        let mut ids = Vec::new();
        self.tokeniser.encode(read, &mut ids);
        if let Some(cut) = self.cut
            && ids.len() > cut.tokens
        {
            ids.truncate(cut.tokens);
            truncated = true;
        }
        let is_unknown = |id: &u32| Some(*id) == self.tokeniser.unknown();
        let unknown = ids.iter().filter(|id| is_unknown(id)).count();
        if self.settings.layout == Layout::Model2Vec && unknown > 0 {
            ids.retain(|id| !is_unknown(id));
        }
        let count = ids.len();
        (ids, TextTokens { count, unknown, truncated })
    }

    /// Writes the mean of some tokens' rows; if it is to be normalised, of unit length.
    ///
    /// # Panics
    /// If `vector` does not have [`StaticModel::dim`] components, or no token has such an id.
    pub fn mean(&self, ids: &[u32], normalizes: bool, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dim(), "components of a vector");
        let count = ids.len().max(1) as f64;
        let mut mean = match self.settings.layout {
            Layout::Model2Vec => self.sum::<f64>(ids, |sum, component| *sum += component),
            // With the rounding of PyTorch, which texts that repeat a word show.
            Layout::StaticEmbedding => {
                let sum = self.sum::<f32>(ids, |sum, component| *sum += component as f32);
                sum.into_iter().map(f64::from).collect()
            }
        };
        mean.iter_mut().for_each(|component| *component /= count);
        let length = mean.iter().map(|component| component * component).sum::<f64>().sqrt();
        if normalizes && length > 0.0 {
            mean.iter_mut().for_each(|component| *component /= length);
        }
        for (component, mean) in vector.iter_mut().zip(mean) {
            *component = mean as f32;
        }
    }

    /// The sum of tokens' rows, in their order.
    fn sum<T: Clone + Default>(&self, ids: &[u32], add: impl Fn(&mut T, f64)) -> Vec<T> {
        let mut sum = vec![T::default(); self.dim()];
        for id in ids {
            self.rows.for_each(*id, |at, component| add(&mut sum[at], component));
        }
        sum
    }
}

/// The median length of tokens in characters, as Model2Vec has it: the mean of two, rounded down.
fn median_length(tokens: &[String]) -> usize {
    let mut lengths: Vec<usize> = tokens.iter().map(|token| token.chars().count()).collect();
    lengths.sort_unstable();
    match lengths.len() {
        0 => 0,
        count if count % 2 == 1 => lengths[count / 2],
        count => usize::midpoint(lengths[count / 2 - 1], lengths[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_characters_and_is_rounded_down() {
        let median = |tokens: &[&str]| {
            median_length(&tokens.iter().map(|token| (*token).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(median(&["abcd", "a", "\u{e9}\u{e9}\u{e9}"]), 3);
        assert_eq!(median(&["abcd", "a"]), 2);
        assert_eq!(median(&[]), 0);
    }
}
