//! Texts as a head takes them: the tokens that it knows, and where each stands in the text.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use contract::Row;
use model_store::head::{Cut, Expander, Head, Token, Tokeniser, Tokens};
use model_store::{ModelStore, Words};

use crate::text::{self, Signs};

/// The most unknown words that are named.
pub const MAX_UNKNOWN_WORDS: usize = 100;

/// Longer words, in bytes, are not looked up in lower case.
const LONGEST_WORD: usize = 4096;

/// A text as tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokenised {
    /// The tokens, in their order.
    pub tokens: Vec<Token>,
    /// The bytes of the text that each stands for.
    pub bytes: Vec<Range<usize>>,
    /// The words that neither the model nor the head has, each once, in the order of the text; the
    /// first [`MAX_UNKNOWN_WORDS`] of them.
    pub unknown: Vec<String>,
    /// The number of stop words that were left out.
    pub stop_words: usize,
    /// Whether tokens were left out because the text is too long.
    pub is_cut: bool,
}

impl Tokenised {
    /// Whether a head can answer: the text has tokens, or it is all stop words, which imply
    /// nothing.
    pub fn has_answer(&self) -> bool {
        !self.tokens.is_empty() || (self.stop_words > 0 && self.unknown.is_empty())
    }
}

/// The words that a head knows, and how it splits texts.
#[derive(Debug, Clone)]
pub struct Vocabulary<'a> {
    words: &'a Words,
    /// Its own words go before the model's.
    head: Option<&'a Head>,
    /// Those of a head that is being made.
    added: Option<&'a HashMap<String, Token>>,
    /// The rows of words that are left out, ascending.
    stop_rows: &'a [Row],
    tokens: &'a Tokens,
}

impl<'a> Vocabulary<'a> {
    /// That of a head over its model.
    pub fn of_head(head: &'a Head, model: &'a ModelStore) -> Self {
        let tokens = &head.description().tokens;
        Self { head: Some(head), ..Self::of_model(model, tokens) }
    }

    /// That of a model, for a head that is to be trained.
    pub fn of_model(model: &'a ModelStore, tokens: &'a Tokens) -> Self {
        Self { words: model.words(), head: None, added: None, stop_rows: &[], tokens }
    }

    /// That of an expander over its model, without its stop words; `None` if the expander takes no
    /// texts.
    pub fn of_expander(expander: &'a Expander, model: &'a ModelStore) -> Option<Self> {
        let tokens = expander.description().tokens.as_ref()?;
        Some(Self { stop_rows: expander.stop_rows(), ..Self::of_model(model, tokens) })
    }

    /// The same, and words that the model does not have, in lower case.
    pub(super) fn with(self, added: &'a HashMap<String, Token>) -> Self {
        Self { added: Some(added), ..self }
    }

    fn look_up(&self, word: &str) -> Option<Token> {
        let row = || self.words.row(word).map(|Row(row)| Token(row));
        let added = || self.added.and_then(|added| added.get(word).copied());
        self.head.and_then(|head| head.of_own_word(word)).or_else(row).or_else(added)
    }

    /// The token of a word that is a token already.
    fn of_token(&self, word: &str) -> Option<Token> {
        match self.tokens.lower_case {
            // No vocabulary has a longer word.
            true if word.len() > LONGEST_WORD => None,
            true => self.look_up(&word.to_lowercase()),
            false => text::row(word, |word| self.look_up(word)),
        }
    }

    /// A text whose words are given one by one. Their bytes are those of the words with a space
    /// between each two.
    pub fn take<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Tokenised {
        let mut found = TakenTokens::new(self);
        let mut at = 0;
        for word in words {
            let bytes = at..at + word.len();
            at = bytes.end + 1;
            if !found.take(word, bytes, self.of_token(word)) {
                break;
            }
        }
        found.finish()
    }

    /// The tokens of a text.
    pub fn tokenise(&self, text: &str) -> Tokenised {
        let mut found = TakenTokens::new(self);
        match self.tokens.tokeniser {
            Tokeniser::Unicode => {
                let find = |word: &str| self.of_token(word);
                text::parts(text, find, Signs::Kept)
                    .filter(|part| !part.is_punctuation)
                    .all(|part| found.take(&text[part.bytes.clone()], part.bytes, part.found));
            }
            Tokeniser::Words => {
                let look_up = |word: &str| self.look_up(word);
                text::words(text, &look_up)
                    .all(|(bytes, token)| found.take(&text[bytes.clone()], bytes, token));
            }
            Tokeniser::Ptb => {
                text::pieces(text).all(|piece| {
                    let token = self.of_token(&piece.word);
                    found.take(&text[piece.bytes.clone()], piece.bytes, token)
                });
            }
        }
        found.finish()
    }
}

/// What has been found of a text.
struct TakenTokens<'a> {
    vocabulary: &'a Vocabulary<'a>,
    tokens: VecDeque<(Token, Range<usize>)>,
    unknown: Vec<String>,
    stop_words: usize,
    is_cut: bool,
}

impl<'a> TakenTokens<'a> {
    fn new(vocabulary: &'a Vocabulary<'a>) -> Self {
        let (tokens, unknown) = (VecDeque::new(), Vec::new());
        Self { vocabulary, tokens, unknown, stop_words: 0, is_cut: false }
    }

    fn finish(self) -> Tokenised {
        let Self { tokens, unknown, stop_words, is_cut, .. } = self;
        let (tokens, bytes) = tokens.into_iter().unzip();
        Tokenised { tokens, bytes, unknown, stop_words, is_cut }
    }

    /// Takes a word and what was found for it. Whether more are wanted.
    fn take(&mut self, word: &str, bytes: Range<usize>, token: Option<Token>) -> bool {
        let is_new = |known: &[String]| !known.iter().any(|known| known == word);
        if token.is_none() && self.unknown.len() < MAX_UNKNOWN_WORDS && is_new(&self.unknown) {
            self.unknown.push(model_store::cut(word.to_owned()));
        }
        let Some(token) = token.or_else(|| self.vocabulary.head?.unknown()) else { return true };
        if self.vocabulary.stop_rows.binary_search(&Row(token.0)).is_ok() {
            self.stop_words += 1;
            return true;
        }
        let &Tokens { limit, cut, .. } = self.vocabulary.tokens;
        if self.tokens.len() == limit {
            self.is_cut = true;
            match cut {
                Cut::End => return false,
                Cut::Start => drop(self.tokens.pop_front()),
            }
        }
        self.tokens.push_back((token, bytes));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model_store::head::{ExpanderDescription, ExpanderWeights};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn model() -> ModelStore {
        let words = ["I", "do", "n't", "like", "it", ".", "new", "don't"];
        let rows: Vec<(&str, [f32; 1])> = words.iter().map(|&word| (word, [1.0])).collect();
        ModelStore::from_rows("m", 1, rows.iter().map(|(word, row)| (*word, &row[..]))).unwrap()
    }

    fn tokens(tokeniser: Tokeniser, limit: usize, cut: Cut) -> Tokens {
        Tokens { tokeniser, lower_case: false, limit, cut }
    }

    #[test]
    fn texts_become_tokens_with_their_places() {
        let model = model();
        let text = "I don't LIKE Foo, it. Foo";
        for (tokeniser, expected, unknown) in [
            (Tokeniser::Ptb, "I|do|n't|LIKE|it|.", vec!["Foo", ","]),
            (Tokeniser::Words, "I|don't|LIKE|it", vec!["Foo"]),
        ] {
            let found =
                Vocabulary::of_model(&model, &tokens(tokeniser, 512, Cut::End)).tokenise(text);
            let words: Vec<&str> = found.bytes.iter().map(|bytes| &text[bytes.clone()]).collect();
            assert_eq!(
                (words.join("|"), found.unknown),
                (expected.to_owned(), unknown.iter().map(|&word| word.to_owned()).collect())
            );
            assert!(!found.is_cut);
        }
    }

    #[test]
    fn typographic_apostrophes_are_plain_ones_for_every_tokeniser() {
        let model = model();
        for tokeniser in [Tokeniser::Unicode, Tokeniser::Words, Tokeniser::Ptb] {
            let tokens = tokens(tokeniser, 512, Cut::End);
            let vocabulary = Vocabulary::of_model(&model, &tokens);
            let plain = vocabulary.tokenise("I don't like it, DON'T");
            for text in ["I don’t like it, DON’T", "I don‘t like it, ‘DON’T’"] {
                let found = vocabulary.tokenise(text);
                let is_sign = |word: &String| word.chars().all(|c| !c.is_alphanumeric());
                assert_eq!(found.tokens, plain.tokens, "{tokeniser:?}, {text}");
                assert!(found.unknown.iter().all(is_sign), "{:?}", found.unknown);
            }
        }
        // A word that a model has is taken as it is.
        let rows = [("don’t", [1.0]), ("don't", [1.0])];
        let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
        let model = ModelStore::from_rows("m", 1, rows).unwrap();
        let tokens = tokens(Tokeniser::Words, 512, Cut::End);
        let found = Vocabulary::of_model(&model, &tokens).tokenise("don’t don't");
        assert_eq!(found.tokens, [Token(0), Token(1)]);
    }

    #[test]
    fn a_long_text_is_cut_at_either_end() {
        let model = model();
        for (cut, expected) in [(Cut::End, [0, 1]), (Cut::Start, [4, 5])] {
            let tokens = tokens(Tokeniser::Ptb, 2, cut);
            let vocabulary = Vocabulary::of_model(&model, &tokens);
            let found = vocabulary.tokenise("I do n't like it .");
            assert!(found.is_cut);
            assert_eq!(found.tokens, expected.map(Token));
            let whole = vocabulary.tokenise("it .");
            assert!(!whole.is_cut && whole.tokens == [Token(4), Token(5)]);
        }
        let tokens = tokens(Tokeniser::Words, 512, Cut::End);
        let vocabulary = Vocabulary::of_model(&model, &tokens);
        let given = vocabulary.take(["I", "like", "Foo", "it"]);
        assert_eq!(given.bytes, [0..1, 2..6, 11..13]);
        let many: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        let found = vocabulary.tokenise(&many);
        assert_eq!((found.tokens.len(), found.unknown.len()), (0, MAX_UNKNOWN_WORDS));
        assert_eq!(vocabulary.tokenise(" \n"), Tokenised::default());
    }

    /// Of texts, and of words given one by one.
    #[test]
    fn stop_words_are_left_out() {
        let model = Arc::new(model());
        let tokens = tokens(Tokeniser::Words, 2, Cut::End);
        let description = ExpanderDescription {
            stop_words: ["i", "it", "absent"].map(str::to_owned).to_vec(),
            ..ExpanderDescription::of_model(&model, tokens.clone())
        };
        let expander =
            Expander::from_memory(description, ExpanderWeights::default(), &model).unwrap();
        // `i` stands for `I`, too.
        assert_eq!(expander.stop_rows(), [Row(0), Row(4)]);
        let vocabulary = Vocabulary::of_expander(&expander, &model).unwrap();
        for (text, expected, unknown, stop_words) in [
            // Only words that count are limited.
            ("I like it new", &[3, 6][..], "", 2),
            ("it do it I like it", &[1, 3], "", 4),
            ("it I it", &[], "", 3),
            ("it Foo", &[], "Foo", 1),
            ("Foo", &[], "Foo", 0),
            ("", &[], "", 0),
        ] {
            let expected: Vec<Token> = expected.iter().map(|&row| Token(row)).collect();
            let words: Vec<&str> = text.split_whitespace().collect();
            for found in [vocabulary.tokenise(text), vocabulary.take(words)] {
                assert_eq!(found.tokens, expected, "{text}");
                assert_eq!(found.unknown.join(" "), unknown, "{text}");
                assert_eq!((found.stop_words, found.is_cut), (stop_words, false), "{text}");
                let is_known = !expected.is_empty() || text == "it I it";
                assert_eq!(found.has_answer(), is_known, "{text}");
                // Their places in the text stay right.
                let bytes: Vec<&str> = found.bytes.iter().map(|at| &text[at.clone()]).collect();
                let names: Vec<&str> =
                    expected.iter().map(|token| model.words().word(Row(token.0))).collect();
                assert_eq!(bytes, names);
            }
        }
        let plain = Vocabulary::of_model(&model, &tokens).tokenise("I like it new");
        assert!(plain.is_cut && plain.tokens == [Token(0), Token(3)] && plain.stop_words == 0);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_places_are_in_order(text in "\\PC{0,60}", is_ptb: bool, limit in 1usize..5) {
            let model = model();
            let tokeniser = if is_ptb { Tokeniser::Ptb } else { Tokeniser::Words };
            for cut in [Cut::Start, Cut::End] {
                let found = Vocabulary::of_model(&model, &tokens(tokeniser, limit, cut)).tokenise(&text);
                prop_assert!(found.tokens.len() <= limit && found.tokens.len() == found.bytes.len());
                prop_assert!(found.bytes.iter().all(|bytes| text.get(bytes.clone()).is_some()));
                prop_assert!(found.bytes.is_sorted_by_key(|bytes| bytes.start));
            }
        }
    }
}
