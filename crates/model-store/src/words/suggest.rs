//! Spelling suggestions for unknown words.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use fst::{Automaton, IntoStreamer, Streamer};
use levenshtein_automata::{DFA, LevenshteinAutomatonBuilder};
use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

use super::Words;
use contract::Row;

/// Maximum number of suggestions per word.
pub const MAX_SUGGESTIONS: usize = 5;

/// Longer words get no suggestions: the automata that find them grow with the word.
pub const MAX_SUGGESTED_WORD_CHARS: usize = 32;

/// Bytes of a character that is written as a letter and three marks: more than any word has of
/// each.
const LARGEST_CHAR: usize = 12;

/// Minimum length, in characters, for suggestions two edits away.
const TWO_EDITS_FROM_CHARS: usize = 5;

impl Words {
    /// Words of the model that are similar to `word`, at most [`MAX_SUGGESTIONS`]: first the same
    /// word in another normal form (NFC, NFD), or as it was before an address changed it (`c++` for
    /// `c  `), then variants in upper and lower case, then words one edit away, then (from five
    /// letters on) two; more frequent words first among equals. Never `word` itself.
    ///
    /// Takes up to several milliseconds, so do not call it on latency-critical threads.
    pub fn suggestions(&self, word: &str) -> Vec<&str> {
        if word.len() > MAX_SUGGESTED_WORD_CHARS * LARGEST_CHAR {
            return Vec::new();
        }
        let (composed, decomposed): (String, String) = (word.nfc().collect(), word.nfd().collect());
        let (plus, decoded) = (with_plus(word), decoded(word));
        let equal = [&composed, &decomposed, &plus, &decoded];
        let equal = equal.into_iter().filter(|&form| form != word);
        let mut rows: Vec<Row> = equal.filter_map(|form| self.row(form)).collect();
        // A letter with a mark counts as one.
        let chars = composed.chars().count();
        if chars == 0 || chars > MAX_SUGGESTED_WORD_CHARS {
            return rows.into_iter().map(|row| self.word(row)).collect();
        }
        // Each step costs more than the previous one, and only runs while there is room for more.
        let mut forms = vec![word, &composed, &decomposed];
        forms.dedup();
        for form in forms {
            self.add_matches(word, CaseVariants::of(form), &mut rows);
        }
        let most_edits = if chars >= TWO_EDITS_FROM_CHARS { 2 } else { 1 };
        for edits in 1..=most_edits {
            if rows.len() < MAX_SUGGESTIONS {
                self.add_matches(word, close_words(&composed, edits), &mut rows);
            }
        }
        rows.into_iter().map(|row| self.word(row)).collect()
    }

    /// Appends the most frequent new matches except `word`, while there is room.
    fn add_matches(&self, word: &str, automaton: impl Automaton, rows: &mut Vec<Row>) {
        let mut best = BTreeSet::new();
        let own = self.row(word);
        let mut matches = self.index.search(automaton).into_stream();
        while let Some((_, row)) = matches.next() {
            let Some(row) = u32::try_from(row).ok().map(Row) else { continue };
            if row.index() < self.len() && Some(row) != own && !rows.contains(&row) {
                best.insert(row);
                if best.len() > MAX_SUGGESTIONS {
                    best.pop_last();
                }
            }
        }
        rows.extend(best.into_iter().take(MAX_SUGGESTIONS - rows.len()));
    }
}

/// The hint for who writes a plus into a URL as it is: a literal, so that others can contain it.
#[macro_export]
macro_rules! plus_in_url {
    () => {
        "in a URL a plus is written %2B, because + is a space there"
    };
}

/// How a word became another than the one that was meant, if that is not plain to see: it looks the
/// same (NFC and NFD), or an address changed it.
pub fn mistaken_for(word: &str, meant: &str) -> Option<&'static str> {
    match () {
        () if word == meant => None,
        () if word.nfc().eq(meant.nfc()) => Some("the same letters, as other code points"),
        () if with_plus(word) == meant => Some(plus_in_url!()),
        () if decoded(word) == meant => Some("it was percent-encoded twice"),
        () => None,
    }
}

/// A word in which an address turned every plus into a space.
fn with_plus(word: &str) -> String {
    word.replace(' ', "+")
}

/// A word without the percent-encoding that is left in it; as it is if that is not UTF-8.
fn decoded(word: &str) -> String {
    percent_decode_str(word).decode_utf8().map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// Accepts words that differ from a word only in case (Unicode simple case folding).
struct CaseVariants(Vec<u32>);

/// The number of characters read; the number of bytes of the next character that have been read;
/// these bytes, 8 bits each. `None` if no word continues like this.
type CharsRead = Option<(usize, usize, u32)>;

impl CaseVariants {
    fn of(word: &str) -> Self {
        Self(word.chars().map(folded).collect())
    }
}

/// The folded form, which is the same for all variants of a character.
fn folded(c: char) -> u32 {
    unicode_case_mapping::case_folded(c).map_or(u32::from(c), Into::into)
}

impl Automaton for CaseVariants {
    type State = CharsRead;

    fn start(&self) -> CharsRead {
        Some((0, 0, 0))
    }

    fn is_match(&self, state: &CharsRead) -> bool {
        *state == Some((self.0.len(), 0, 0))
    }

    fn can_match(&self, state: &CharsRead) -> bool {
        state.is_some()
    }

    fn accept(&self, state: &CharsRead, byte: u8) -> CharsRead {
        let (chars, bytes, begun) = (*state)?;
        let expected = *self.0.get(chars)?;
        let (bytes, begun) = (bytes + 1, begun << 8 | u32::from(byte));
        let begun_bytes = &begun.to_be_bytes()[4 - bytes..];
        match std::str::from_utf8(begun_bytes) {
            Ok(text) if text.chars().all(|c| folded(c) == expected) => Some((chars + 1, 0, 0)),
            Ok(_) => None,
            // The character is not complete yet.
            Err(error) if error.error_len().is_none() => Some((chars, bytes, begun)),
            Err(_) => None,
        }
    }
}

/// Accepts words at most this many edits (1 or 2) away from a word: characters inserted, deleted or
/// replaced, or two neighbours that change places.
fn close_words(word: &str, edits: u8) -> DFA {
    // These tables depend only on the number of edits, and take a moment to build.
    static BUILDERS: LazyLock<[LevenshteinAutomatonBuilder; 2]> =
        LazyLock::new(|| [1, 2].map(|edits| LevenshteinAutomatonBuilder::new(edits, true)));
    BUILDERS[usize::from(edits) - 1].build_dfa(word)
}
