//! How texts become words: in the forms that a model has (`words`), or as the Penn Treebank splits them (`ptb`).

mod ptb;
mod words;

pub use ptb::{Piece, pieces};
pub(crate) use words::{row, words};

/// Cuts a text that is longer than anybody would read.
pub fn cut(mut text: String) -> String {
    const LONGEST: usize = 32 << 10;
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}
