//! Signs that all words of a text have, such as quotes: probably the file's notation.

use super::formats::Parsed;

/// Fewer words say nothing.
const FEWEST: u64 = 8;

/// The texts before and after a word, and the end of the warning.
type Sign = (&'static str, &'static str, &'static str);

const SIGNS: [Sign; 5] = [
    ("", ",", "ends in a comma; if it is no part of the words, remove it: sed 's/, / /' FILE"),
    ("", ":", "ends in a colon; if it is no part of the words, remove it: sed 's/: / /' FILE"),
    ("", ";", "ends in a semicolon; if it is no part of the words, remove it: sed 's/; / /' FILE"),
    (
        "\"",
        "\"",
        "is between quotes; if they are no part of the words, remove them: sed 's/^\"//; s/\" / /' \
         FILE (R: write.table(quote = FALSE))",
    ),
    (
        "'",
        "'",
        "is between quotes; if they are no part of the words, remove them: sed \"s/^'//; s/' / /\" \
         FILE",
    ),
];

/// Which signs all words have so far.
#[derive(Debug, Clone)]
pub(super) struct WordSigns {
    words: u64,
    /// In the order of [`SIGNS`].
    have_all: [bool; SIGNS.len()],
}

impl WordSigns {
    pub(super) fn new() -> Self {
        Self { words: 0, have_all: [true; SIGNS.len()] }
    }

    /// Looks at more rows. Costs nothing once no sign is left.
    pub(super) fn see(&mut self, parsed: &Parsed) {
        for word in parsed.words() {
            if !self.have_all.contains(&true) {
                return;
            }
            self.words += 1;
            for (have_all, (before, after, _)) in self.have_all.iter_mut().zip(SIGNS) {
                let inner = word.strip_prefix(before).and_then(|word| word.strip_suffix(after));
                *have_all &= inner.is_some_and(|inner| !inner.is_empty());
            }
        }
    }

    /// A warning if all words have a sign.
    pub(super) fn warning(&self) -> Option<String> {
        let are_enough = self.words >= FEWEST;
        let found = SIGNS.iter().zip(self.have_all).find(|(_, have_all)| are_enough && *have_all);
        found.map(|((.., what), _)| format!("every word {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(words: &[&str]) -> Option<String> {
        let mut signs = WordSigns::new();
        for &word in words {
            let mut parsed = Parsed { components: vec![1.0], ..Parsed::default() };
            parsed.end_record(Ok(word), 1, 0);
            signs.see(&parsed);
        }
        signs.warning()
    }

    #[test]
    fn only_signs_of_all_words_are_named() {
        let words = ["the", "of", ",", "and", "\"", "to", "a", "in"];
        let with = |before: &str, after: &str| -> Vec<String> {
            words.iter().map(|word| format!("{before}{word}{after}")).collect()
        };
        for (before, after, expected) in [
            ("", ",", Some("every word ends in a comma; ")),
            ("", ":", Some("every word ends in a colon; ")),
            ("", ";", Some("every word ends in a semicolon; ")),
            ("\"", "\"", Some("every word is between quotes; ")),
            ("'", "'", Some("every word is between quotes; ")),
            ("", "", None),
            ("/c/en/", "", None),
        ] {
            let words = with(before, after);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = warning(&words);
            assert_eq!(said.is_some(), expected.is_some(), "{said:?}");
            assert!(said.is_none_or(|said| said.starts_with(expected.unwrap_or_default())));
            assert_eq!(warning(&words[1..]), None, "too few to tell");
        }
        let signs = [",,", "a,", "b,", "c,", "d,", "e,", "f,", "g,"];
        assert!(warning(&signs).is_some());
        assert_eq!(warning(&[&[","][..], &signs[..]].concat()), None, "a comma alone is a word");
    }
}
