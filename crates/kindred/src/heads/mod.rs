//! Heads over a model: texts with labels to learn from, and how texts become tokens.

mod data;
mod ptb;

pub use data::{DataError, Format, Labelled, Texts};
pub use ptb::{Piece, pieces};
