//! Texts to words. Searches and new heads use `unicode`: the words that a vocabulary has, by
//! Unicode's rules and the Treebank's. Heads that were made with `ptb` (the Penn Treebank's splits
//! alone) or `words` (letters and digits) keep these.

mod ptb;
mod unicode;
mod words;

pub use ptb::{Piece, pieces};
pub use unicode::{Part, Signs, parts};
pub use words::{row, words};

/// Cuts a text that is longer than anybody would read.
pub fn cut(mut text: String) -> String {
    const LONGEST: usize = 32 << 10;
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}
