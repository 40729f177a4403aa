//! Tab completion: words of the model, and commands.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::line::COMMANDS;
use kindred::expression::{as_term, open_piece};
use server::escape::is_harmless;

/// Finds the words with a prefix.
type WithPrefix = Box<dyn Fn(&str) -> Vec<String>>;

/// Completes with the model's words, the most frequent first.
pub(super) struct Words {
    pub(super) with_prefix: WithPrefix,
}

impl Words {
    /// Where the text to replace begins, and its possible replacements.
    fn offered(&self, typed: &str) -> (usize, Vec<String>) {
        let begin = typed.len() - typed.trim_start().len();
        let line = &typed[begin..];
        if line.starts_with(':') {
            let commands = COMMANDS.iter().map(|(name, ..)| *name);
            let fitting = commands.filter(|name| name.starts_with(line)).map(str::to_owned);
            let fitting: Vec<String> = fitting.collect();
            if !fitting.is_empty() {
                return (begin, fitting);
            }
        }
        let words = |prefix: &str| {
            let mut found = (self.with_prefix)(prefix);
            // Offered words are printed unescaped, so leave out words with control characters.
            // Nobody can type them anyway.
            found.retain(|word| word.chars().all(is_harmless));
            found
        };
        let (start, prefix) = open_piece(typed);
        if prefix.is_empty() {
            return (start, Vec::new());
        }
        let is_quoted = typed[start..].starts_with('"');
        let found = words(&prefix);
        if found.is_empty() && line.contains(char::is_whitespace) {
            // The whole line may be one word with spaces in it.
            return (begin, words(line));
        }
        let term = |word: String| as_term(&word, is_quoted);
        (start, found.into_iter().map(term).collect())
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.offered(&line[..position]))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_is_completed_with_what_reads_as_that_word() {
        let model = [
            "frog",
            "frogs",
            "new york",
            "-x",
            "2*x",
            ":k",
            "steer\u{1b}[2J",
            "steer\u{202e}",
            "steers",
        ];
        let with_prefix = move |prefix: &str| -> Vec<String> {
            let words = model.iter().filter(|word| word.starts_with(prefix));
            words.map(|&word| word.to_owned()).collect()
        };
        let words = Words { with_prefix: Box::new(with_prefix) };
        for (typed, start, expected) in [
            ("fro", 0, &["frog", "frogs"][..]),
            ("king - fro", 7, &["frog", "frogs"]),
            ("king -fro", 6, &["frog", "frogs"]),
            ("0.5*(fro", 5, &["frog", "frogs"]),
            ("a + 2*frogs", 6, &["frogs"]),
            ("new", 0, &["\"new york\""]),
            ("a - \"new y", 4, &["\"new york\""]),
            ("new y", 0, &["new york"]),
            ("2*", 2, &[]),
            ("", 0, &[]),
            ("nothing", 0, &[]),
            ("steer", 0, &["steers"]),
            (":co", 0, &[":compare"]),
            (":ex", 0, &[":expand", ":explain"]),
            (":expand fro", 8, &["frog", "frogs"]),
            (" :m", 1, &[":method", ":model"]),
        ] {
            assert_eq!(
                words.offered(typed),
                (start, expected.iter().map(|&w| w.to_owned()).collect()),
                "{typed}"
            );
        }
    }
}
