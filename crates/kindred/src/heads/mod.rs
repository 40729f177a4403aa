//! Heads over a model: how texts become their tokens.

mod ptb;

pub use ptb::{Piece, pieces};
