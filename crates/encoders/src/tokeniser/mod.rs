//! Hugging Face's tokenisers, read from their `tokenizer.json`: WordPiece, Unigram and BPE.
//!
//! The same ids as the crate `tokenizers` gives, which takes too long to compile (docs/tried.md).
//! Added tokens are cut out of a text, what is between them is normalised and cut into pieces, and
//! the model makes tokens of each. Padding, and what surrounds a text in that file, are for
//! transformers, and ignored.

mod added;
mod bert;
mod bpe;
mod byte_chars;
mod byte_level;
mod bytes;
mod characters;
mod fault;
mod file;
mod merges;
mod metaspace;
mod model;
mod normal;
mod normalizer;
mod pieces;
mod pre_tokenizer;
mod precompiled;
mod replaced;
mod scores;
mod trie;
mod unigram;
mod word_piece;

use std::path::Path;

use self::added::{AddedTokens, Part};
use self::model::Model;
use self::normal::Normal;
use self::pieces::Pieces;
use crate::EncoderError;

/// A tokeniser: from a text to the ids of its tokens.
#[derive(Debug)]
pub struct Tokeniser {
    /// Tokens that are found in a text as it is.
    added: AddedTokens,
    /// Tokens that are found in a normalised text.
    added_normal: AddedTokens,
    normalizer: Vec<normalizer::Step>,
    pre_tokenizer: Vec<pre_tokenizer::Step>,
    /// Whether pieces differ by where they begin in the original text.
    asks_for_head: bool,
    model: Model,
    /// The vocabulary, by its ids.
    tokens: Vec<String>,
    max_tokens: Option<usize>,
}

/// Memory that is used again for each part of a text.
#[derive(Debug, Default)]
struct Work {
    normal: Normal,
    pieces: Pieces,
    model: model::Work,
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

    /// The kind of its model: `wordpiece`, `unigram` or `bpe`.
    pub fn kind(&self) -> &'static str {
        self.model.kind()
    }

    /// The tokens, by their ids. Added ones that the model does not have are behind the others.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The id that stands for what has no tokens. Without one, that is left out.
    pub fn unknown(&self) -> Option<u32> {
        self.model.unknown()
    }

    /// To how many tokens the file says that texts are cut. [`Tokeniser::encode`] cuts nothing.
    pub fn max_tokens(&self) -> Option<usize> {
        self.max_tokens
    }

    /// Appends the ids of a text's tokens. Nothing is put before or behind them.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut work = Work::default();
        self.added.for_each(text, |part| match part {
            Part::Token(id) => ids.push(id),
            Part::Text(range) => {
                let head = self.asks_for_head && range.start == 0;
                self.encode_plain(&text[range], head, &mut work, ids);
            }
        });
    }

    /// The ids of a text without the tokens that are found in it as it is.
    fn encode_plain(&self, text: &str, head: bool, work: &mut Work, ids: &mut Vec<u32>) {
        let Work { normal, pieces, model } = work;
        normal.begin(text, head);
        for step in &self.normalizer {
            step.apply(normal);
        }
        let Normal { text, head, .. } = normal;
        self.added_normal.for_each(text, |part| match part {
            Part::Token(id) => ids.push(id),
            Part::Text(range) => {
                let head = head.unwrap_or(0).clamp(range.start, range.end) - range.start;
                pieces.begin(&text[range], head);
                for step in &self.pre_tokenizer {
                    step.apply(pieces);
                }
                for piece in pieces.iter() {
                    self.model.encode(piece, model, ids);
                }
            }
        });
    }
}
