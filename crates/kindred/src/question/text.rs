//! The words of a text to search for.

use contract::Row;

use crate::Error;
use crate::rows::Rows;
use crate::text::{self, Part, Signs};

/// Most words that one text may have.
pub const MAX_TEXT_WORDS: usize = 256;

/// What a text must be, in words.
pub const TEXT_MUST_BE: &str = "a string of 1 to 256 words, such as \"a quick brown fox\"";

/// The words of a text, in their order, from 1 to [`MAX_TEXT_WORDS`]: their rows, or as they were
/// written if the model does not have them in any of their forms. Punctuation that the model does
/// not have is left out, unless the text has nothing else.
pub(super) fn tokens(model: &dyn Rows, text: &str) -> Result<Vec<Result<Row, String>>, Error> {
    let find = |word: &str| text::row(word, |word| model.row_of(word));
    let token = |part: Part<Row>| part.found.ok_or_else(|| text[part.bytes].to_owned());
    let parts = || text::parts(text, find, Signs::Dropped);
    // One more than the maximum is enough: a text can be as long as a body.
    let some = parts().filter(|part| !part.is_punctuation).take(MAX_TEXT_WORDS + 1);
    let mut tokens: Vec<_> = some.map(token).collect();
    if tokens.is_empty() {
        tokens = parts().take(MAX_TEXT_WORDS + 1).map(token).collect();
    }
    match tokens.is_empty() || tokens.len() > MAX_TEXT_WORDS {
        true => Err(Error::invalid("text", TEXT_MUST_BE)),
        false => Ok(tokens),
    }
}

#[cfg(test)]
mod tests {
    use model_store::ModelStore;

    use super::*;

    fn found(model: &[&str], text: &str) -> Result<Vec<String>, Error> {
        let rows = model.iter().map(|&word| (word, &[1.0f32][..]));
        let model = ModelStore::from_rows("m", 1, rows).unwrap();
        let tokens = tokens(&model, text)?;
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
            assert_eq!(found(&["a"], &format!("{text}{separator}a")), Err(invalid()));
        }
    }
}
