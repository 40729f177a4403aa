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

use self::folder::Folder;
use self::rows::Rows;
use crate::{EncoderError, Tokeniser};

/// A static model.
#[derive(Debug)]
pub struct StaticModel {
    folder: PathBuf,
    layout: Layout,
    tokeniser: Tokeniser,
    rows: Rows,
    /// Where a text is cut; `None`: nowhere.
    cut: Option<Cut>,
    normalizes: bool,
}

/// Whose rules a folder follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Those of Model2Vec: texts are cut, and unknown tokens dropped.
    Model2Vec,
    /// Those of sentence-transformers' StaticEmbedding: no token is dropped, and sums are float32.
    StaticEmbedding,
}

/// Where a text is cut, first by characters, which Model2Vec alone does, then by tokens.
#[derive(Debug, Clone, Copy)]
struct Cut {
    chars: usize,
    tokens: usize,
}

/// What became of a text besides its vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// Of how many tokens' rows the vector is the mean. Where these are none, it is zero.
    pub tokens: usize,
    /// How many tokens are unknown. Model2Vec drops them.
    pub unknown: usize,
    /// Whether the text was cut, and something behind it has no part in the vector.
    pub is_cut: bool,
}

impl StaticModel {
    /// Opens a folder as Model2Vec or sentence-transformers save it. Its rows are mapped: the
    /// folder must not change as long as the model is used.
    ///
    /// # Errors
    /// If a file can't be read, contradicts another, or is of a kind that is not read here.
    pub fn open(folder: &Path) -> Result<Self, EncoderError> {
        let Folder { layout, tokeniser, rows, max_tokens, normalizes } = Folder::read(folder)?;
        let tokeniser = Tokeniser::open(&tokeniser)?;
        let rows = Rows::open(&rows, tokeniser.tokens())?;
        let cut = match layout {
            Layout::Model2Vec => max_tokens.map(|tokens| Cut {
                chars: tokens.saturating_mul(median_length(tokeniser.tokens())),
                tokens,
            }),
            Layout::StaticEmbedding => {
                tokeniser.max_tokens().map(|tokens| Cut { chars: usize::MAX, tokens })
            }
        };
        Ok(Self { folder: folder.to_owned(), layout, tokeniser, rows, cut, normalizes })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whose rules it follows.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// How texts become tokens.
    pub fn tokeniser(&self) -> &Tokeniser {
        &self.tokeniser
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.rows.dim()
    }

    /// Whether vectors of texts have unit length.
    pub fn normalizes(&self) -> bool {
        self.normalizes
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
    pub fn encode(&self, text: &str, vector: &mut [f32]) -> Encoded {
        assert_eq!(vector.len(), self.dim(), "components of a vector");
        let mut is_cut = false;
        let mut read = text;
        // A character has a byte at least, so most texts need not be counted.
        if let Some(cut) = self.cut
            && text.len() > cut.chars
            && let Some((end, _)) = text.char_indices().nth(cut.chars)
        {
            (read, is_cut) = (&text[..end], true);
        }
        let mut ids = Vec::new();
        self.tokeniser.encode(read, &mut ids);
        if let Some(cut) = self.cut
            && ids.len() > cut.tokens
        {
            ids.truncate(cut.tokens);
            is_cut = true;
        }
        let unknown = ids.iter().filter(|id| **id == self.tokeniser.unknown()).count();
        if self.layout == Layout::Model2Vec && unknown > 0 {
            ids.retain(|id| *id != self.tokeniser.unknown());
        }
        self.mean(&ids, vector);
        Encoded { tokens: ids.len(), unknown, is_cut }
    }

    fn mean(&self, ids: &[u32], vector: &mut [f32]) {
        let count = ids.len().max(1) as f64;
        let mut mean = match self.layout {
            Layout::Model2Vec => self.sum::<f64>(ids, |sum, component| *sum += component),
            // With the rounding of PyTorch, which texts that repeat a word show.
            Layout::StaticEmbedding => {
                let sum = self.sum::<f32>(ids, |sum, component| *sum += component as f32);
                sum.into_iter().map(f64::from).collect()
            }
        };
        mean.iter_mut().for_each(|component| *component /= count);
        let length = mean.iter().map(|component| component * component).sum::<f64>().sqrt();
        if self.normalizes && length > 0.0 {
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
