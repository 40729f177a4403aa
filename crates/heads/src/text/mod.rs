//! Texts to words. Searches and new heads use `unicode`: the words that a vocabulary has, by
//! Unicode's rules and the Treebank's. Heads that were made with `ptb` (the Penn Treebank's splits
//! alone) or `words` (letters and digits) keep these.

mod ptb;
mod unicode;
mod words;

pub use ptb::{Piece, pieces};
pub use unicode::{Part, Signs, parts};
pub use words::{row, words};
