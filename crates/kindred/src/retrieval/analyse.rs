//! From texts to the terms that are indexed: words in lower case, without stop words, stemmed.

use std::collections::HashSet;

use super::porter::stem;

/// NLTK's English stop words, which begin with those of Porter's Snowball project. A contraction is split as texts are: `don`,
/// `t`.
const ENGLISH: &str = include_str!("recorded/stop_words.txt");

/// How texts become terms.
#[derive(Debug, Clone)]
pub struct Analyser {
    stop_words: HashSet<String>,
    stemming: bool,
}

/// A word of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As written.
    pub written: String,
    /// Its term.
    pub term: String,
}

impl Analyser {
    /// One with these stop words, which are in the text in any form.
    pub fn new(stop_words: &str, stemming: bool) -> Self {
        Self { stop_words: pieces(stop_words).map(str::to_lowercase).collect(), stemming }
    }

    /// One with English stop words and Porter's stemming.
    pub fn english() -> Self {
        Self::new(Self::english_stop_words(), true)
    }

    /// English stop words.
    pub fn english_stop_words() -> &'static str {
        ENGLISH
    }

    /// The number of stop words.
    pub fn stop_words(&self) -> usize {
        self.stop_words.len()
    }

    /// The words of a text that are no stop words, with their terms.
    pub fn words<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Word> + 'a {
        pieces(text).filter_map(|written| {
            Some(Word { written: written.to_owned(), term: self.term(written)? })
        })
    }

    /// The terms of a text, in order.
    pub fn terms<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        pieces(text).filter_map(|written| self.term(written))
    }

    fn term(&self, written: &str) -> Option<String> {
        let lower = written.to_lowercase();
        let is_kept = !self.stop_words.contains(&lower);
        is_kept.then(|| if self.stemming { stem(&lower) } else { lower })
    }
}

/// Letters and digits between other characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(analyser: &Analyser, text: &str) -> Vec<String> {
        analyser.terms(text).collect()
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case_without_stop_words_and_stemmed() {
        let text = "The boundary-layer's Flows, and don't: naca-0012 (Größen)";
        let english = Analyser::english();
        assert_eq!(terms(&english, text), ["boundari", "layer", "flow", "naca", "0012", "größen"]);
        let word = Word { written: "Flows".into(), term: "flow".into() };
        assert_eq!(english.words(text).nth(2), Some(word));
        let own = Analyser::new("flows\nDon't", false);
        assert_eq!(
            terms(&own, text),
            ["the", "boundary", "layer", "s", "and", "naca", "0012", "größen"]
        );
        assert_eq!(terms(&Analyser::new("", true), "the flows"), ["the", "flow"]);
        assert_eq!(terms(&english, " .,\n"), [""; 0]);
    }

    #[test]
    fn there_are_english_stop_words() {
        let english = Analyser::english();
        assert_eq!(english.stop_words(), 153);
        for word in ["what", "has", "been", "can", "t", "very"] {
            assert_eq!(terms(&english, word), [""; 0], "{word}");
        }
    }
}
