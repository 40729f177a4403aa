//! Hugging Face's tokenisers, read from their `tokenizer.json`: WordPiece as BERT has it.
//!
//! The same ids as the crate `tokenizers` gives, which takes too long to compile (docs/tried.md).
//! Padding, and what surrounds a text in that file, are for transformers, and ignored.

mod added;
mod bert;
mod file;
mod word_piece;

use std::path::Path;

use self::added::AddedTokens;
use self::bert::Normalizer;
use self::word_piece::WordPiece;
use crate::EncoderError;

/// A tokeniser: from a text to the ids of its tokens.
#[derive(Debug)]
pub struct Tokeniser {
    added: AddedTokens,
    normalizer: Normalizer,
    model: WordPiece,
    /// The vocabulary, by its ids.
    tokens: Vec<String>,
    max_tokens: Option<usize>,
}

impl Tokeniser {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// If the file can't be read, contradicts itself, or is of a kind that is not read here.
    pub fn open(path: &Path) -> Result<Self, EncoderError> {
        file::open(path)
    }

    /// The same of a file's bytes. The path names them in errors.
    ///
    /// # Errors
    /// If they contradict themselves, or are of a kind that is not read here.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, EncoderError> {
        file::read(path, bytes)
    }

    /// The tokens, by their ids.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The id that stands for a word that has no tokens.
    pub fn unknown(&self) -> u32 {
        self.model.unknown()
    }

    /// To how many tokens the file says that texts are cut. [`Tokeniser::encode`] cuts nothing.
    pub fn max_tokens(&self) -> Option<usize> {
        self.max_tokens
    }

    /// Appends the ids of a text's tokens. Nothing is put before or behind them.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut normal = String::new();
        let mut rest = text;
        while let Some((before, id, behind)) = self.added.split(rest) {
            self.encode_plain(before, &mut normal, ids);
            ids.push(id);
            rest = behind;
        }
        self.encode_plain(rest, &mut normal, ids);
    }

    /// The ids of a text without added tokens.
    fn encode_plain(&self, text: &str, normal: &mut String, ids: &mut Vec<u32>) {
        normal.clear();
        self.normalizer.normalize(text, normal);
        bert::for_each_word(normal, |word| self.model.encode(word, ids));
    }
}
