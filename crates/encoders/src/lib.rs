//! Encoders: from words and texts to vectors, equal to those of the programs that made the files.
//!
//! [`FastText`] is for fastText's word models: no word is unknown, because its n-grams have
//! vectors. [`StaticModel`] is for models of a row per token, as Model2Vec and
//! sentence-transformers' StaticEmbedding save them; [`Tokeniser`] makes the tokens.
#![forbid(unsafe_code)]

mod error;
mod fasttext;
mod static_model;
mod tokeniser;

pub use error::EncoderError;
pub use fasttext::{FastText, Subword, Training};
pub use static_model::{Encoded, Layout, StaticModel};
pub use tokeniser::Tokeniser;
