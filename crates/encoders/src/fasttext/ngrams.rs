//! The n-grams of a word, and their hash.

use std::ops::Range;

/// Begins and ends a word before it is cut into n-grams.
pub(super) const BEGINS: u8 = b'<';
/// See [`BEGINS`].
pub(super) const ENDS: u8 = b'>';

/// Calls for each n-gram of a word that has its brackets: where it is, and its hash. They come in
/// the order in which fastText sums their rows: by start, then by length.
///
/// A character is a byte and the continuation bytes of UTF-8 behind it, whatever the bytes are: no
/// bytes are refused. A single character is an n-gram only within the brackets.
pub(super) fn for_each(
    bracketed: &[u8],
    minn: i32,
    maxn: i32,
    mut each: impl FnMut(Range<usize>, u32),
) {
    for start in 0..bracketed.len() {
        if is_continuation(bracketed[start]) {
            continue;
        }
        let (mut end, mut hash) = (start, OFFSET);
        for length in 1..=maxn {
            if end == bracketed.len() {
                break;
            }
            hash = with_byte(hash, bracketed[end]);
            end += 1;
            while end < bracketed.len() && is_continuation(bracketed[end]) {
                hash = with_byte(hash, bracketed[end]);
                end += 1;
            }
            let is_bracket = length == 1 && (start == 0 || end == bracketed.len());
            if length >= minn && !is_bracket {
                each(start..end, hash);
            }
        }
    }
}

/// The hash of a word, as fastText's n-grams of words have it.
pub(super) fn hash(word: &[u8]) -> u32 {
    word.iter().fold(OFFSET, |hash, byte| with_byte(hash, *byte))
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

const OFFSET: u32 = 2_166_136_261;
const PRIME: u32 = 16_777_619;

/// FNV-1a, but that bytes are signed, as in fastText: from 0x80 on they flip 24 more bits.
fn with_byte(hash: u32, byte: u8) -> u32 {
    (hash ^ byte.cast_signed() as u32).wrapping_mul(PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngrams(bracketed: &str, minn: i32, maxn: i32) -> Vec<&str> {
        let mut found = Vec::new();
        for_each(bracketed.as_bytes(), minn, maxn, |range, _| found.push(&bracketed[range]));
        found
    }

    #[test]
    fn ngrams_come_by_start_then_by_length_and_count_characters() {
        assert_eq!(ngrams("<ab>", 2, 3), ["<a", "<ab", "ab", "ab>", "b>"]);
        assert_eq!(ngrams("<né>", 3, 9), ["<né", "<né>", "né>"]);
        assert_eq!(ngrams("<aa>", 1, 1), ["a", "a"]);
    }

    #[test]
    fn single_characters_at_the_ends_are_none() {
        assert_eq!(ngrams("<é>", 1, 2), ["<é", "é", "é>"]);
        assert_eq!(ngrams("<>", 1, 2), ["<>"]);
        assert_eq!(ngrams("<>", 3, 6), [""; 0]);
    }

    #[test]
    fn lengths_of_nothing_give_nothing() {
        assert_eq!(ngrams("<ab>", 0, 0), [""; 0]);
        assert_eq!(ngrams("<ab>", 1, -1), [""; 0]);
        assert_eq!(ngrams("<ab>", 4, 3), [""; 0]);
        assert_eq!(ngrams("<a>", -5, 1), ["a"]);
    }

    #[test]
    fn continuation_bytes_begin_nothing_but_ride_on_what_is_before_them() {
        let mut found = Vec::new();
        for_each(b"<\x80a>", 1, 2, |range, _| found.push(range));
        assert_eq!(found, [0..3, 2..3, 2..4]);
    }

    #[test]
    fn bytes_of_other_scripts_are_sign_extended() {
        // FNV-1a of ASCII, as its authors publish it.
        assert_eq!(
            [hash(b""), hash(b"a"), hash(b"foobar")],
            [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]
        );
        let step = (OFFSET ^ 0xffff_ffc3).wrapping_mul(PRIME);
        assert_eq!(hash("é".as_bytes()), (step ^ 0xffff_ffa9).wrapping_mul(PRIME));
    }
}
