//! Encoders: from words and texts to vectors, equal to those of the programs that made the files.
//!
//! [`FastText`] is for fastText's word models: no word is unknown, because its n-grams have
//! vectors. [`prepare_folder`] makes a model folder of one, and [`vector_of_subwords`] has the
//! vectors of words that are no rows of it; [`text_encoder`] is that of a model folder.
//! [`FastTextClassifier`] is for fastText's classifiers, whose labels a head gives.
//! [`StaticModel`] is for models of a row per token, as Model2Vec and sentence-transformers'
//! StaticEmbedding save them; [`Tokeniser`] makes the tokens.
#![forbid(unsafe_code)]

mod error;
mod fasttext;
mod prepare;
mod static_model;
mod subwords;
mod text;
mod tokeniser;

pub use error::EncoderError;
pub use fasttext::{
    ClassifierTraining, FastText, FastTextClassifier, LossKind, MAX_SUBWORD_BYTES, MAX_WORDS,
    ReadText, Scored, Shares, Subword, Training,
};
pub use prepare::prepare_folder;
pub use static_model::{Layout, MAX_TEXT_BYTES, RowsAre, StaticModel, TextTokens};
pub use subwords::{subwords, vector_of_subwords};
pub use text::{TextEncoder, text_encoder, words_of};
pub use tokeniser::Tokeniser;
