//! Expressions that were written without spaces, or with other signs than those of the grammar:
//! `king-man+woman` is one word. Messages say what was meant.

use super::pieces::weight_length;
use super::typing::as_term;

/// Longer words are not taken apart, in bytes.
const LONGEST: usize = 128;

/// The sign of the grammar that a character is, or looks like: of the many dashes, `-`.
pub(super) fn sign(c: char) -> Option<char> {
    match c {
        '+' | '\u{2795}' | '\u{fe62}' | '\u{ff0b}' => Some('+'),
        '-'
        | '\u{2010}'..='\u{2015}'
        | '\u{2212}'
        | '\u{2796}'
        | '\u{fe58}'
        | '\u{fe63}'
        | '\u{ff0d}' => Some('-'),
        _ => None,
    }
}

/// The expression that an unknown word may stand for, if all of its words are known. A word whose
/// only signs are hyphens is no expression: it is rather a compound such as `well-known`.
pub(crate) fn spaced(word: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let is_no_hyphen = |c: char| c != '-' && sign(c).is_some();
    if word.len() > LONGEST || !word.contains(is_no_hyphen) {
        return None;
    }
    let (mut rest, mut expression) = (word, String::new());
    while let Some(first) = rest.chars().next() {
        let sign = sign(first);
        if sign.is_some() {
            rest = &rest[first.len_utf8()..];
        }
        let (weight, after) = rest.split_at(weight_length(rest).map_or(0, |length| length + 1));
        let (part, after) = after.split_at(longest_known(after, &is_known)?);
        match (sign, expression.is_empty()) {
            (Some(sign), false) => expression += &format!(" {sign} "),
            (Some('-'), true) => expression.push('-'),
            _ => {}
        }
        expression += weight;
        expression += &as_term(part, false);
        rest = after;
    }
    Some(expression)
}

/// The length of the longest known word at the start of a text, before one of its signs or the end.
fn longest_known(text: &str, is_known: impl Fn(&str) -> bool) -> Option<usize> {
    let signs = text.char_indices().filter(|&(at, c)| at > 0 && sign(c).is_some());
    let mut ends: Vec<usize> = signs.map(|(at, _)| at).collect();
    ends.push(text.len());
    ends.into_iter().rev().find(|&end| is_known(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn meant(word: &str) -> Option<String> {
        let known = ["king", "man", "woman", "well-known", "c++", "2", "日本", "(sic)"];
        spaced(word, |word| known.contains(&word))
    }

    #[test]
    fn expressions_without_spaces_and_with_other_dashes_are_understood() {
        for (word, expected) in [
            ("king-man+woman", "king - man + woman"),
            ("king+woman", "king + woman"),
            ("king\u{2212}man", "king - man"),
            ("king\u{2013}man\u{ff0b}woman", "king - man + woman"),
            ("\u{2212}man", "-man"),
            ("\u{2014}man+king", "-man + king"),
            ("king-2*man+0.5*woman", "king - 2*man + 0.5*woman"),
            ("well-known+king", "well-known + king"),
            ("c+++king", "c++ + king"),
            ("日本+king", "日本 + king"),
            ("king+(sic)", "king + \"(sic)\""),
        ] {
            assert_eq!(meant(word).as_deref(), Some(expected), "{word}");
            assert!(parse(expected).is_ok(), "{expected}");
        }
    }

    #[test]
    fn other_words_stay_words() {
        let long = vec!["king"; 100].join("+");
        for word in ["", "kong", "king-man", "king+kong", "king+", "+", "king++man", "C++", &long] {
            assert_eq!(meant(word), None, "{word}");
        }
    }
}
