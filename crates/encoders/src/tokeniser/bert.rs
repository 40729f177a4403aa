//! How BERT cleans a text and cuts it into words and signs (`BertNormalizer`, `BertPreTokenizer`).
//!
//! Categories and decompositions are those of the crates that `tokenizers` takes, which know
//! Unicode as it was in 2016: with newer ones, some characters would give other tokens.

use std::ops::Range;

use serde::Deserialize;
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

/// How a text is cleaned, as `tokenizer.json` says it.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Normalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    /// As `lowercase`, where it is null.
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl Normalizer {
    /// Appends the cleaned text.
    pub(super) fn normalize(self, text: &str, normal: &mut String) {
        if text.is_ascii() {
            let kept = text.chars().filter_map(|sign| self.cleaned(sign));
            normal.extend(
                kept.map(|sign| if self.lowercase { sign.to_ascii_lowercase() } else { sign }),
            );
            return;
        }
        let cleaned = text.chars().filter_map(|sign| self.cleaned(sign));
        let spaced = cleaned.flat_map(|sign| {
            let space = (self.handle_chinese_chars && is_chinese(sign)).then_some(' ');
            space.into_iter().chain([sign]).chain(space)
        });
        if self.strip_accents.unwrap_or(self.lowercase) {
            let apart = spaced.nfd().map(|(sign, _)| sign);
            self.lower(apart.filter(|sign| !sign.is_mark_nonspacing()), normal);
        } else {
            self.lower(spaced, normal);
        }
    }

    fn lower(self, signs: impl Iterator<Item = char>, normal: &mut String) {
        if self.lowercase {
            normal.extend(signs.flat_map(char::to_lowercase));
        } else {
            normal.extend(signs);
        }
    }

    /// The character without what is invisible; all white space is one.
    fn cleaned(self, sign: char) -> Option<char> {
        match sign {
            _ if !self.clean_text => Some(sign),
            '\t' | '\n' | '\r' => Some(' '),
            '\0' | '\u{fffd}' => None,
            _ if sign.is_other() => None,
            _ if sign.is_whitespace() => Some(' '),
            _ => Some(sign),
        }
    }
}

/// The ideographs that become words of their own.
fn is_chinese(sign: char) -> bool {
    matches!(
        u32::from(sign),
        0x4e00..=0x9fff
            | 0x3400..=0x4dbf
            | 0x20000..=0x2a6df
            | 0x2a700..=0x2b73f
            | 0x2b740..=0x2b81f
            | 0x2b920..=0x2ceaf
            | 0xf900..=0xfaff
            | 0x2f800..=0x2fa1f
    )
}

/// Calls for each word between white space, and for each sign of punctuation by itself.
pub(super) fn for_each_word(text: &str, mut each: impl FnMut(Range<usize>)) {
    let mut start = 0;
    for (at, sign) in text.char_indices() {
        let is_space = sign.is_whitespace();
        if !is_space && !is_punctuation(sign) {
            continue;
        }
        if start < at {
            each(start..at);
        }
        start = at + sign.len_utf8();
        if !is_space {
            each(at..start);
        }
    }
    if start < text.len() {
        each(start..text.len());
    }
}

/// Signs of punctuation, as Unicode of 2016 has them.
pub(super) fn is_punctuation(sign: char) -> bool {
    if sign.is_ascii() { sign.is_ascii_punctuation() } else { sign.is_punctuation() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCASED: Normalizer = Normalizer {
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: None,
        lowercase: true,
    };

    fn normal(normalizer: Normalizer, text: &str) -> String {
        let mut normal = String::new();
        normalizer.normalize(text, &mut normal);
        normal
    }

    #[test]
    fn text_is_cleaned_spaced_stripped_and_lowered() {
        assert_eq!(normal(UNCASED, "Na\u{ef}VE\u{200b}\0\u{fffd}\u{85}\u{3000}x\ty"), "naive x y");
        assert_eq!(normal(UNCASED, "a\u{4e00}b"), "a \u{4e00} b");
        // Two words by their lower case: not the final sigma, and two characters for one.
        assert_eq!(normal(UNCASED, "\u{3a3}\u{3a3} \u{130}"), "\u{3c3}\u{3c3} i");
    }

    #[test]
    fn each_step_can_be_left_out() {
        let cased = Normalizer { lowercase: false, ..UNCASED };
        assert_eq!(normal(cased, "\u{c9}A"), "\u{c9}A");
        let stripped = Normalizer { strip_accents: Some(true), ..cased };
        assert_eq!(normal(stripped, "\u{c9}A"), "EA");
        let accents = Normalizer { strip_accents: Some(false), ..UNCASED };
        assert_eq!(normal(accents, "\u{c9}A"), "\u{e9}a");
        let unclean = Normalizer { clean_text: false, ..UNCASED };
        assert_eq!(normal(unclean, "A\0\u{3000}\u{e9}"), "a\0\u{3000}e");
        let joined = Normalizer { handle_chinese_chars: false, ..UNCASED };
        assert_eq!(normal(joined, "a\u{4e00}b"), "a\u{4e00}b");
    }

    #[test]
    fn ascii_takes_a_shorter_way_to_the_same() {
        for byte in 0..128u8 {
            let sign = char::from(byte);
            let long = normal(UNCASED, &format!("{sign}\u{e9}"));
            assert_eq!(normal(UNCASED, &sign.to_string()) + "e", long, "{sign:?}");
        }
    }

    #[test]
    fn words_end_at_white_space_and_signs_stand_alone() {
        let mut words = Vec::new();
        let text = " don't\u{2003}stop\u{2014}now!! $1+\u{20ac} ";
        for_each_word(text, |word| words.push(&text[word]));
        let expected =
            ["don", "'", "t", "stop", "\u{2014}", "now", "!", "!", "$", "1", "+", "\u{20ac}"];
        assert_eq!(words, expected);
    }
}
