//! Tells words from the first column of a matrix without words.
//!
//! A vocabulary may have numbers, even as its first words. The words of a graph's nodes are often
//! all numbers: whole ones, each once. A matrix has numbers only, and some of them are not whole,
//! are negative, or are there twice.

use super::text::{Lines, ends_in_a_number, ends_in_digits};
use super::{Parsed, Parser as _};
use crate::prepare::PrepareOptions;

/// In a matrix, at most one of so many cells of the first column is no number, but for the first
/// few.
const OTHERS_OF: u64 = 10;
const FEW_OTHERS: u64 = 2;

/// What the words of a file look like so far.
#[derive(Debug, Clone, Default)]
pub(in crate::prepare) struct FirstColumn {
    /// Whether a header has the number of components, so that a line has one field more: its word.
    has_header: bool,
    /// The first word, as long as all are numbers.
    first: Option<String>,
    /// Words that are no numbers, such as `NA` for one that is missing.
    others: u64,
    /// Whether there are too many of these for a matrix.
    has_words: bool,
    /// Words that are numbers as identifiers are: digits.
    digits: u64,
    words: u64,
    /// Words that are not even finite.
    infinite: u64,
    /// Whether a component is not whole.
    has_fractions: bool,
}

impl FirstColumn {
    pub(super) fn new(has_header: bool) -> Self {
        Self { has_header, ..Self::default() }
    }

    /// Looks at more rows. Costs nothing once there was a word.
    pub(super) fn see(&mut self, parsed: &Parsed) {
        for word in parsed.words() {
            if self.has_words {
                return;
            }
            self.words += 1;
            let number = word.parse::<f64>();
            if number.is_ok() {
                self.first.get_or_insert_with(|| word.to_owned());
            }
            match number {
                Err(_) => {
                    self.others += 1;
                    self.has_words = self.others > FEW_OTHERS.max(self.words / OTHERS_OF);
                }
                Ok(_) if word.bytes().all(|byte| byte.is_ascii_digit()) => self.digits += 1,
                // `nan` is a word of its own, and in a matrix a number that is missing.
                Ok(_) => {
                    self.infinite += u64::from(!word.bytes().any(|byte| byte.is_ascii_digit()));
                }
            }
        }
        self.has_fractions |= parsed.components.iter().any(|x| x.fract() != 0.0);
    }

    /// Why this is a matrix whatever follows, if so: no number of the first rows is one of digits
    /// only.
    pub(super) fn is_surely_a_matrix(&self) -> Option<String> {
        let is_one = self.others == 0 && self.digits == 0 && self.infinite < self.words;
        is_one.then(|| self.reason())
    }

    /// Why the whole file is a matrix, if so; `repeated` words were there before.
    pub(super) fn is_a_matrix(&self, repeated: u64) -> Option<String> {
        let numbers = self.words - self.infinite - self.others;
        if self.has_words || numbers == 0 {
            return None;
        }
        if self.others > 0 {
            // A vocabulary may have a few words like this one, but not nearly all.
            let fractions = numbers - self.digits;
            let are_nearly_all = self.others * OTHERS_OF <= self.words;
            return (are_nearly_all && 2 * fractions > self.words).then(|| self.reason());
        }
        let are_alike = !self.has_fractions && !self.has_header;
        (self.digits < numbers || repeated > 0 || are_alike).then(|| self.reason())
    }

    fn reason(&self) -> String {
        let first = self.first.as_deref().unwrap_or_default();
        format!(
            "the words are numbers, from `{first}` on: it looks like a matrix without words, whose \
             first column would be taken for words; give the words with --words FILE, one per line, in \
             row order; if the first column is the words, add --allow-numeric-words"
        )
    }
}

/// What the words look like; an error if the first are those of a matrix without words.
pub(super) fn first_column(
    lines: &Lines,
    text: &[u8],
    has_header: bool,
    options: &PrepareOptions,
) -> Result<Option<FirstColumn>, String> {
    /// Lines that are looked at before everything is read.
    const SAMPLE: usize = 100;
    // The last line may go on.
    let end = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let end = end.take(SAMPLE).last().unwrap_or(text.len());
    let parsed = lines.parse(&text[..end], 0);
    if options.allow_numeric_words {
        let reason =
            all_end_in_fractions(&parsed, lines.dim).filter(|_| lines.may_end_in_numbers());
        return reason.map_or(Ok(None), Err);
    }
    let column = FirstColumn::new(has_header);
    let mut sample = column.clone();
    sample.see(&parsed);
    match sample.is_surely_a_matrix() {
        None => Ok(Some(column)),
        Some(reason) => Err(reason),
    }
}

/// Why the dimension is wrong, if every word ends in a number that is no whole one, which is then
/// rather a component.
fn all_end_in_fractions(parsed: &Parsed, dim: usize) -> Option<String> {
    /// Fewer words say nothing.
    const FEWEST: usize = 2;
    let ends_in_a_fraction = |word: &str| ends_in_a_number(word) && !ends_in_digits(word);
    let are_all = parsed.words().count() >= FEWEST && parsed.words().all(ends_in_a_fraction);
    let first = parsed.words().next().filter(|_| are_all)?;
    Some(format!(
        "with {dim} components per row, every word would end in a number, from `{first}` on, so \
         the rows have more components; correct the header, or give --dim"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, dim: usize, has_header: bool) -> FirstColumn {
        let mut column = FirstColumn::new(has_header);
        for line in text.lines() {
            column.see(&Lines { dim, ..Lines::default() }.parse(line.as_bytes(), 0));
        }
        column
    }

    #[test]
    fn a_matrix_with_a_missing_number_is_one() {
        let rows = |missing: &str, at: usize| -> String {
            let cell = |row| if row == at { missing.to_owned() } else { format!("{}.5", row % 7) };
            (0..40).map(|row| format!("{} 0.25\n", cell(row))).collect()
        };
        for missing in ["NA", "null", "-", "1,5"] {
            for at in [0, 20, 39] {
                let column = seen(&rows(missing, at), 1, false);
                assert!(column.is_a_matrix(0).is_some(), "{missing} in row {at}");
            }
        }
        let few = seen("NA 1\n0.5 1\n0.25 1", 1, false);
        assert!(few.is_a_matrix(0).is_none(), "too few to tell");
        let vocabulary: String = (0..40).map(|row| format!("{row} 0.25\n")).collect();
        assert!(seen(&format!("the 1\n{vocabulary}"), 1, false).is_a_matrix(0).is_none());
    }

    #[test]
    fn numbers_are_a_matrix_and_words_are_not() {
        for (text, is_sure) in [
            ("0.5 1\n-0.25 2", true),
            ("1e-3 1\n-2 2", true),
            ("5.000000000000000000e-01 1.0e+00\n-inf 2", true),
            ("nan 0.5\n0.25 0.5", true),
            ("0 0.5\n1.5 0.25", false),
            ("1 0\n-1 1", false),
            ("1 0\n2 1", false),
        ] {
            let column = seen(text, 1, false);
            assert!(column.is_a_matrix(0).is_some(), "{text}");
            assert_eq!(column.is_surely_a_matrix().is_some(), is_sure, "{text}");
        }
        for text in [
            "the 0.5\n, 0.25",
            "0.5 1\n1/2 2",
            "1 0.5\n2000 0.25",
            "nan 0.5\ninf 0.25",
            "1990s 1\n1st 2",
            "1,5 1\n2,5 2",
            "0.5 1\n0.25 2\nthe 3",
        ] {
            assert_eq!(seen(text, 1, false).is_a_matrix(0), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_nodes_are_words() {
        let nodes = "17 0.5 1\n4 0.25 -1\n0 1 1";
        assert_eq!(seen(nodes, 2, false).is_a_matrix(0), None);
        assert!(seen(nodes, 2, false).is_a_matrix(1).is_some(), "a node is there once");
        let whole = "17 5 1\n4 3 -1";
        assert_eq!(seen(whole, 2, true).is_a_matrix(0), None, "a header says where the word is");
        assert!(seen(whole, 2, false).is_a_matrix(0).is_some());
    }
}
