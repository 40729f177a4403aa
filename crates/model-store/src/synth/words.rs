//! The names of synthetic rows.

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 4] = b"aiou";

/// The word of a synthetic row: its number in syllables of six bits, at least two. Different rows
/// have different words.
pub fn word(row: u32) -> String {
    let mut syllables = Vec::new();
    let mut rest = row;
    while rest > 0 || syllables.len() < 2 {
        syllables.push(rest % 64);
        rest /= 64;
    }
    let letters = |syllable: u32| {
        let (consonant, vowel) = (syllable / 4, syllable % 4);
        [CONSONANTS[consonant as usize] as char, VOWELS[vowel as usize] as char]
    };
    syllables.into_iter().rev().flat_map(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_distinct_and_can_be_said() {
        assert_eq!(word(0), "baba");
        assert_eq!(word(63), "bazu");
        let mut words: Vec<String> = (0..300_000).map(word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 300_000);
        assert_eq!(word(u32::MAX).len(), 12);
    }
}
