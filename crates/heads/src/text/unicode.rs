//! Texts as people type them, to words of a vocabulary, by Unicode's rules.
//!
//! A text is cut at white space: White_Space, and Pattern_White_Space, which also has the marks for
//! the direction of text. Of each piece, the first of these that the vocabulary has is taken:
//!
//! 1. the piece as it was typed: `u.s.`, `:)`, `don't` where a vocabulary has it;
//! 2. without the signs around it, that is characters of the general categories P (punctuation), S
//!    (symbols) and Cf (format): `film` of `«film»`, `*film*` and `film😀`. With up to three of
//!    them, if the vocabulary has that: `c++` of `(C++),`, `u.s.` of `U.S.,`, `.net` of `.NET!`;
//! 3. its parts as the Penn Treebank splits it: `king` and `'s` of `king's`. A part of which the
//!    vocabulary has no form gives its words by Unicode Standard Annex 29: `film` and `movie` of
//!    `film,movie`; before the letters of scripts without white space, what is between two signs as
//!    a whole.
//!
//! Signs are judged by grapheme clusters (Annex 29): so marks, joiners and variation selectors stay
//! with their letter. A piece of letters without white space may be as long as a text; then step 3
//! is the annex's words alone.

use std::ops::Range;

use unicode_general_category::{GeneralCategory as Category, get_general_category};
use unicode_segmentation::UnicodeSegmentation;

use super::ptb::{self, find_plain};

/// A part of a text that was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// What was found for it.
    pub found: Option<T>,
    /// Whether it has neither letters nor digits nor symbols, or is an unknown `'s`. Nobody misses
    /// such a part.
    pub is_punctuation: bool,
}

/// Whether signs around words are parts of a text, too, if the vocabulary has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signs {
    /// For classifiers and expanders: an exclamation mark may say something.
    Kept,
    /// For the mean of a text's words: emoji alone are kept.
    Dropped,
}

/// Longer pieces, in bytes, are not split as the Treebank does.
const LONGEST_SPLIT: usize = 256;

/// Signs on one side of a word that may belong to it.
const MOST_SIGNS: usize = 3;

/// The parts of a text, in order, each with what `find` has for it, or for its form with plain
/// quotes and dashes.
pub fn parts<'a, T: 'a>(
    text: &'a str,
    find: impl Fn(&str) -> Option<T> + Copy + 'a,
    signs: Signs,
) -> impl Iterator<Item = Part<T>> + 'a {
    let start = text.as_ptr() as usize;
    let at = move |part: &str| {
        let first = part.as_ptr() as usize - start;
        first..first + part.len()
    };
    let word = move |word: &'a str| Part::of(at(word), find_plain(word, find));
    // The parts of a piece; or the piece itself, if it may be as long as the text: then its words
    // come one by one.
    let parts_or_long = move |piece: &'a str| -> (Vec<Part<T>>, Option<&'a str>) {
        let known = |part: &'a str| Some(Part::of(at(part), Some(find_plain(part, find)?)));
        if let Some(whole) = known(piece) {
            return (vec![whole], None);
        }
        let inner = without_signs(piece);
        let (before, after) = around(piece, inner);
        let mut few = Vec::new();
        let of_signs = |few: &mut Vec<_>, around: &'a str| {
            if around.len() > LONGEST_SPLIT {
                return;
            }
            match signs {
                Signs::Kept => {
                    let each = ptb::pieces(around).map(|one| &around[one.bytes]);
                    few.extend(each.filter_map(known));
                }
                // An emoji is a word that needs no white space.
                Signs::Dropped => {
                    few.extend(around.graphemes(true).filter(is_picture).filter_map(known));
                }
            }
        };
        if inner.is_empty() {
            // Of several signs, such as `?!` or `:)`, the vocabulary may have each.
            of_signs(&mut few, piece);
            if few.is_empty() {
                few.push(Part::unknown(at(piece), is_punctuation(piece)));
            }
            return (few, None);
        }
        let with_signs = with_some_signs(piece, before, after);
        if let Some(found) = with_signs.into_iter().chain([inner]).find_map(known) {
            let (before, after) = around(piece, &text[found.bytes.clone()]);
            of_signs(&mut few, before);
            few.push(found);
            of_signs(&mut few, after);
            return (few, None);
        }
        if piece.len() > LONGEST_SPLIT {
            return (few, Some(piece));
        }
        for part in ptb::pieces(piece) {
            let part = &piece[part.bytes];
            let inner = without_signs(part);
            if inner.is_empty() {
                of_signs(&mut few, part);
            } else if let Some(found) = known(part).or_else(|| known(inner)) {
                few.push(found);
            } else if is_possessive(part) {
                few.push(Part::unknown(at(part), true));
            } else {
                let before = few.len();
                for run in runs(part) {
                    match known(run) {
                        Some(whole) => few.push(whole),
                        None => few.extend(run.unicode_words().map(word)),
                    }
                }
                if few.len() == before {
                    few.push(Part::unknown(at(part), false));
                }
            }
        }
        (few, None)
    };
    let pieces = text.split(is_white).filter(|piece| !piece.is_empty());
    pieces.map(parts_or_long).flat_map(move |(few, long)| {
        let words = long.into_iter().flat_map(|long| long.unicode_words());
        few.into_iter().chain(words.map(word))
    })
}

impl<T> Part<T> {
    fn of(bytes: Range<usize>, found: Option<T>) -> Self {
        Self { bytes, found, is_punctuation: false }
    }

    fn unknown(bytes: Range<usize>, is_punctuation: bool) -> Self {
        Self { bytes, found: None, is_punctuation }
    }
}

/// White_Space, and the two of Pattern_White_Space that are not: marks for the direction of text.
fn is_white(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200e}' | '\u{200f}')
}

/// A piece without the signs at its ends; empty if it has nothing else.
fn without_signs(piece: &str) -> &str {
    let mut clusters = piece.grapheme_indices(true);
    let Some((first, _)) = clusters.by_ref().find(|(_, cluster)| !is_sign(cluster)) else {
        return &piece[..0];
    };
    let inner = &piece[first..];
    let last = inner.grapheme_indices(true).rfind(|(_, cluster)| !is_sign(cluster));
    last.map_or(inner, |(at, cluster)| &inner[..at + cluster.len()])
}

/// A piece without the signs around it but for a few: those that follow the word, most first, then
/// those before it.
fn with_some_signs<'a>(piece: &'a str, before: &'a str, after: &'a str) -> Vec<&'a str> {
    let (start, end) = (before.len(), piece.len() - after.len());
    // Most words have no signs, or one that is there as typed.
    if before.len() + after.len() < 2 || piece.len() > LONGEST_SPLIT {
        return Vec::new();
    }
    let ends = after.grapheme_indices(true).take(MOST_SIGNS);
    let ends: Vec<usize> = ends.map(|(at, sign)| end + at + sign.len()).collect();
    let starts = before.grapheme_indices(true).rev().take(MOST_SIGNS);
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let longest_first = ends.into_iter().rev().map(|end| &piece[start..end]);
    longest_first.chain(starts.into_iter().rev().map(|start| &piece[start..end])).collect()
}

/// What is between the signs of a part: words by Annex 29 that follow one another, as the letters
/// of scripts without white space do, are one run.
fn runs(part: &str) -> impl Iterator<Item = &str> {
    let mut segments = part.split_word_bound_indices().peekable();
    std::iter::from_fn(move || {
        let is_word = |segment: &str| segment.chars().any(char::is_alphanumeric);
        let (start, first) = segments.find(|(_, segment)| is_word(segment))?;
        let mut end = start + first.len();
        while let Some((at, segment)) = segments.next_if(|(_, segment)| is_word(segment)) {
            end = at + segment.len();
        }
        Some(&part[start..end])
    })
}

/// What stands before and after a part of a piece.
fn around<'a>(piece: &'a str, inner: &str) -> (&'a str, &'a str) {
    let start = inner.as_ptr() as usize - piece.as_ptr() as usize;
    (&piece[..start], &piece[start + inner.len()..])
}

/// Whether a grapheme cluster begins with a sign and has no letter or digit.
fn is_sign(cluster: &str) -> bool {
    let first = cluster.chars().next().map(kind);
    matches!(first, Some(Kind::Punctuation | Kind::Symbol | Kind::Format))
        && !cluster.chars().any(|c| kind(c) == Kind::Word)
}

/// Whether a grapheme cluster is a picture, such as an emoji.
fn is_picture(cluster: &&str) -> bool {
    let first = cluster.chars().next().map(get_general_category);
    first == Some(Category::OtherSymbol)
}

/// Whether a piece has neither words nor symbols.
fn is_punctuation(piece: &str) -> bool {
    !piece.chars().map(kind).any(|kind| matches!(kind, Kind::Word | Kind::Symbol))
}

/// `'s`, without which `king's` is still `king`.
fn is_possessive(part: &str) -> bool {
    ptb::plain(part).eq_ignore_ascii_case("'s")
}

/// Kinds of characters, by their general categories.
#[derive(PartialEq, Eq)]
enum Kind {
    /// L, N, and what is not assigned or only for some.
    Word,
    /// M: they belong to the character before them.
    Mark,
    Punctuation,
    Symbol,
    Format,
}

fn kind(c: char) -> Kind {
    use Category::{
        ClosePunctuation, ConnectorPunctuation, Control, CurrencySymbol, DashPunctuation,
        EnclosingMark, FinalPunctuation, Format, InitialPunctuation, MathSymbol, ModifierSymbol,
        NonspacingMark, OpenPunctuation, OtherPunctuation, OtherSymbol, SpacingMark,
    };
    // By far the most common.
    if c.is_ascii_alphanumeric() {
        return Kind::Word;
    }
    match get_general_category(c) {
        ConnectorPunctuation | DashPunctuation | OpenPunctuation | ClosePunctuation
        | InitialPunctuation | FinalPunctuation | OtherPunctuation => Kind::Punctuation,
        MathSymbol | CurrencySymbol | ModifierSymbol | OtherSymbol => Kind::Symbol,
        NonspacingMark | SpacingMark | EnclosingMark => Kind::Mark,
        Format | Control => Kind::Format,
        _ => Kind::Word,
    }
}

#[cfg(test)]
mod tests;
