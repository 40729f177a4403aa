//! The words of a text, and their sum.

use contract::{Row, WeightedWord};

use super::formula::Formula;
use super::look_up::{look_up, or_added};
use super::notes::each_row_once;
use super::with_added::WithAdded;
use crate::Error;
use crate::added::AddedWords;
use crate::options::Unknown;
use crate::rows::Rows;
use crate::text::{self, Part, Signs};

/// Most words that one text may have.
pub const MAX_TEXT_WORDS: usize = 256;

/// The weight of a word that is no row, with or without weights of rows.
const UNSEEN: f64 = 1.0;

/// What a text must be, in words.
pub const TEXT_MUST_BE: &str = "a string of 1 to 256 words, such as \"a quick brown fox\"";

/// The first words of a text, from 1 to `most`, in their order: their rows, or as they were written
/// if the model does not have them in any of their forms; and whether there are more. Punctuation
/// that the model does not have is left out, unless the text has nothing else.
pub(super) fn tokens(
    model: &dyn Rows,
    text: &str,
    most: usize,
    must_be: &str,
) -> Result<(Vec<Result<Row, String>>, bool), Error> {
    let find = |word: &str| text::row(word, |word| model.row_of(word));
    let token = |part: Part<Row>| part.found.ok_or_else(|| text[part.bytes].to_owned());
    let parts = || text::parts(text, find, Signs::Dropped);
    // One more than the maximum is enough: a text can be as long as a body.
    let some = parts().filter(|part| !part.is_punctuation).take(most + 1);
    let mut tokens: Vec<_> = some.map(token).collect();
    if tokens.is_empty() {
        tokens = parts().take(most + 1).map(token).collect();
    }
    if tokens.is_empty() {
        return Err(Error::invalid("text", must_be));
    }
    let is_cut = tokens.len() > most;
    tokens.truncate(most);
    Ok((tokens, is_cut))
}

/// A text as a sum of words.
pub(super) struct SumOfText {
    pub(super) formula: Formula,
    /// The rows of the words that it is the sum of, with repetitions; of those that are added, too.
    pub(super) rows: Vec<Row>,
    /// The rows of the words that the model has, each once.
    pub(super) used: Vec<Row>,
    /// The words that were left out, each once, and how many these are with repetitions.
    pub(super) skipped: Vec<String>,
    pub(super) unknown_words: usize,
    /// Whether the text has more words than the most.
    pub(super) is_cut: bool,
}

/// The most words of a text, and the fate of those that have more.
#[derive(Debug, Clone, Copy)]
pub(super) enum Most {
    /// They are refused.
    OrRefused(usize),
    /// The first words are read.
    OrCut(usize),
}

/// Looks up the words of a text, with their weights. Those that the model does not have are treated
/// by `unknown`.
pub(super) fn sum_of_text(
    model: &dyn Rows,
    text: &str,
    most: Most,
    unknown: Unknown,
    added: &mut AddedWords,
) -> Result<SumOfText, Error> {
    let (Most::OrRefused(limit) | Most::OrCut(limit)) = most;
    let must_be = match most {
        Most::OrRefused(_) => TEXT_MUST_BE,
        Most::OrCut(_) => "a string with a word, such as \"a quick brown fox\"",
    };
    let (tokens, is_cut) = tokens(model, text, limit, must_be)?;
    if is_cut && matches!(most, Most::OrRefused(_)) {
        return Err(Error::invalid("text", must_be));
    }
    let read = tokens.len();
    let found = tokens.into_iter().map(|found| or_added(model, found, unknown, added));
    let (rows, skipped) = look_up(found, unknown)?;
    let weight = |row: Row| if added.has(row) { UNSEEN } else { model.text_weight(row) };
    let weighted: Vec<_> =
        rows.iter().map(|&row| WeightedWord { row, weight: weight(row) }).collect();
    let known = rows.iter().copied().filter(|&row| !added.has(row));
    let used = each_row_once(&known.collect::<Vec<_>>());
    let formula = Formula::of_sum(&WithAdded { rows: model, added }, &weighted)?;
    let unknown_words = read - rows.len();
    Ok(SumOfText { formula, rows, used, skipped, unknown_words, is_cut })
}

#[cfg(test)]
mod tests {
    use model_store::ModelStore;

    use super::*;

    fn found(model: &[&str], text: &str) -> Result<Vec<String>, Error> {
        let rows = model.iter().map(|&word| (word, &[1.0f32][..]));
        let model = ModelStore::from_rows("m", 1, rows).unwrap();
        let (tokens, is_cut) = tokens(&model, text, MAX_TEXT_WORDS, TEXT_MUST_BE)?;
        assert_eq!(is_cut, tokens.len() == MAX_TEXT_WORDS && text.ends_with("aa"));
        Ok(tokens
            .into_iter()
            .map(|token| match token {
                Ok(row) => model.words().word(row).to_owned(),
                Err(word) => format!("no {word}"),
            })
            .collect())
    }

    #[test]
    fn each_piece_is_the_first_form_that_the_model_has() {
        let model = ["new", "New", "york", "c++", "(sic)", "sic", "e-mail", "mail", "!", "naïve"];
        for (text, words) in [
            ("new New NEW", &["new", "New", "new"][..]),
            ("\tnew\u{a0}york\n", &["new", "york"]),
            ("C++, c++ (sic) (SIC) (sic).", &["c++", "c++", "(sic)", "(sic)", "sic"]),
            ("E-Mail! e-mail/mail", &["e-mail", "no e", "mail", "mail"]),
            ("!!! ! …", &["!"]),
            ("!!! …", &["no !!!", "no …"]),
            ("NAÏVE «naïve»", &["naïve", "naïve"]),
            ("York's new-york", &["york", "new", "york"]),
            ("東京 mail", &["no 東", "no 京", "mail"]),
        ] {
            assert_eq!(found(&model, text).unwrap(), words, "{text}");
        }
    }

    fn invalid() -> Error {
        Error::invalid("text", TEXT_MUST_BE)
    }

    #[test]
    fn a_text_has_at_least_one_word_and_at_most_max_text_words() {
        for text in ["", " \n\u{2003}"] {
            assert_eq!(found(&["a"], text), Err(invalid()));
        }
        for separator in [" ", "/", " \t", "-"] {
            let text = vec!["a"; MAX_TEXT_WORDS].join(separator);
            assert_eq!(found(&["a"], &text).unwrap().len(), MAX_TEXT_WORDS);
            let longer = format!("{text}{separator}aa");
            assert_eq!(found(&["a"], &longer).unwrap().len(), MAX_TEXT_WORDS);
        }
    }
}
