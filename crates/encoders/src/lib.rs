//! Encoders: from words and texts to vectors, equal to those of the programs that made the files.
//!
//! [`FastText`] is for fastText's word models: no word is unknown, because its n-grams have
//! vectors.
#![forbid(unsafe_code)]

mod error;
mod fasttext;

pub use error::EncoderError;
pub use fasttext::{FastText, Subword, Training};
