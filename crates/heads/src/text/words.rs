//! Texts as people type them, such as `The quick fox!`, to words of a model.
//!
//! Models differ in what they take for a word: some have `New`, some have only `new`, some have `,`
//! and `n't`. So each piece between white space is looked up in several forms, and the first that
//! the model has is taken: as it is written; in lower case; without the signs around its letters
//! and digits, as written and in lower case. A piece that is still unknown is split into its words
//! by Unicode Standard Annex 29, each looked up as written and in lower case. Whatever is not
//! found with typographic quotes and dashes is looked up with plain ones: `don’t` is `don't`.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::ptb::find_plain;

/// The words of a text, in their order: the bytes of each, and what was found for it.
pub fn words<'a, T: 'a>(
    text: &'a str,
    look_up: impl Fn(&str) -> Option<T> + Copy + 'a,
) -> impl Iterator<Item = (Range<usize>, Option<T>)> + 'a {
    let start = text.as_ptr() as usize;
    let bytes = move |word: &str| {
        let at = word.as_ptr() as usize - start;
        at..at + word.len()
    };
    let find = move |word: &str| find_plain(word, |word| row(word, look_up));
    text.split_whitespace().flat_map(move |piece| {
        let inner = piece.trim_matches(|c: char| !c.is_alphanumeric());
        let whole = find(piece).map(|found| (bytes(piece), Some(found)));
        let whole = whole.or_else(|| Some((bytes(inner), Some(find(inner)?))));
        // A piece can be as long as the text, so its words come one by one.
        let mut inside = whole.is_none().then(|| piece.unicode_words().peekable());
        let none = inside.as_mut().is_some_and(|words| words.peek().is_none());
        let unknown = none.then(|| (bytes(piece), None));
        let inside = inside.into_iter().flatten();
        let inside = inside.map(move |word| (bytes(word), find(word)));
        whole.into_iter().chain(unknown).chain(inside)
    })
}

/// What is found for a word as it is written or, failing that, in lower case.
pub fn row<T>(word: &str, look_up: impl Fn(&str) -> Option<T>) -> Option<T> {
    /// Longer words, in bytes, are looked up as they are written only.
    const LONGEST_FOLDED: usize = 4096;
    let lower = || (word.len() <= LONGEST_FOLDED).then(|| look_up(&word.to_lowercase()));
    look_up(word).or_else(|| lower()?)
}
