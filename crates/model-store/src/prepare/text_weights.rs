//! Weights of the rows in texts, from their ranks or from a file of counts.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::Input;
use super::encoding::TextEncoding;
use super::formats::{MAX_WORD_BYTES, utf8};
use super::lines::for_each_line;
use super::options::Frequencies;
use super::unpack::{self, file_name};
use crate::ModelError;

/// The constant of SIF, as in the paper.
const A: f64 = 1e-3;

/// Space for the longest word, a space, and the longest count.
const MAX_LINE_BYTES: usize = MAX_WORD_BYTES + 64;

/// The most missing words that a message names.
const NAMED: usize = 3;

/// From what rows get their weights.
#[derive(Debug)]
pub(super) enum TextWeighting {
    /// From their ranks.
    Rank,
    /// From these counts.
    Counts(WordCounts),
}

/// The source of the counts of words.
#[derive(Debug)]
pub(super) struct WordCounts {
    path: PathBuf,
    counts: IndexMap<Box<str>, u64>,
    total: u128,
    /// A warning if the end of the file was left out.
    warning: Option<String>,
}

impl TextWeighting {
    /// Reads the file of counts, if there is one.
    pub(super) fn read(
        frequencies: &Frequencies,
        encoding: Option<TextEncoding>,
    ) -> Result<Self, ModelError> {
        match frequencies {
            Frequencies::ByRank => Ok(Self::Rank),
            Frequencies::Counts(path) => WordCounts::read(path, encoding).map(Self::Counts),
        }
    }

    /// Where the weights come from, for the model's provenance.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Rank => "SIF by rank".to_owned(),
            Self::Counts(counts) => format!("SIF by counts in {}", file_name(&counts.path)),
        }
    }

    /// The warning, with the file's name.
    pub(super) fn warning(&self) -> Option<String> {
        let Self::Counts(WordCounts { path, warning, .. }) = self else { return None };
        Some(format!("{}: {}", file_name(path), warning.as_ref()?))
    }

    /// The weights of rows with these words, in their order.
    pub(super) fn of<'a>(
        &self,
        words: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<Vec<f64>, ModelError> {
        match self {
            Self::Rank => Ok(by_rank(words.len())),
            Self::Counts(counts) => counts.of(words),
        }
    }
}

/// The weight of a word of this probability.
fn sif(probability: f64) -> f64 {
    A / (A + probability)
}

/// Weights by Zipf's law: row `r` of `n` has the probability `1 / ((r + 1) · H(n))`.
fn by_rank(rows: usize) -> Vec<f64> {
    let harmonic: f64 = (1..=rows).map(|rank| 1.0 / rank as f64).sum();
    (1..=rows).map(|rank| sif(1.0 / (rank as f64 * harmonic))).collect()
}

impl WordCounts {
    /// Reads a file with a word and its count on each line, compressed or not.
    fn read(path: &Path, encoding: Option<TextEncoding>) -> Result<Self, ModelError> {
        let what = "a file of counts has a word and how often it occurs on each line, such as \
                    `frog 12`";
        unpack::read(Input::File(path), None, |unpacked| {
            let mut counts: IndexMap<Box<str>, u64> = IndexMap::new();
            let take = |line: &[u8]| {
                let (word, count) = word_and_count(utf8(line, encoding)?)?;
                // All lines before are words, so a word's place is its line.
                match counts.insert_full(word.into(), count) {
                    (_, None) => Ok(()),
                    (place, Some(_)) => Err(format!(
                        "the word `{word}` has a count already, in line {}; remove one of them",
                        place + 1
                    )),
                }
            };
            let most = MAX_LINE_BYTES;
            let warning = for_each_line(unpacked, Vec::new(), true, encoding, most, what, take)?;
            let total = counts.values().map(|count| u128::from(*count)).sum();
            if total == 0 {
                let reason = format!("it has no count above 0; {what}");
                return Err(unpacked.progress().bad(reason));
            }
            Ok(Self { path: path.to_owned(), counts, total, warning })
        })
    }

    fn of<'a>(
        &self,
        words: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<Vec<f64>, ModelError> {
        let total = self.total as f64;
        let (mut missing, mut named) = (0, Vec::new());
        let weight = |(row, word): (usize, &str)| match self.counts.get(word) {
            Some(count) => sif(*count as f64 / total),
            None => {
                missing += 1;
                if named.len() < NAMED {
                    named.push(format!(
                        "`{}` (row {row})",
                        word.chars().take(40).collect::<String>()
                    ));
                }
                1.0
            }
        };
        let weights = words.enumerate().map(weight).collect();
        if missing == 0 {
            return Ok(weights);
        }
        let more = match missing - named.len() {
            0 => String::new(),
            others => format!(" and {others} others"),
        };
        let reason = format!(
            "it has no count of {}{more}; add a line for each, with the count 0 if the word does not occur",
            named.join(", ")
        );
        Err(ModelError::BadInput { path: self.path.clone(), reason: reason.into() })
    }
}

/// The parts of a line. Words may have spaces.
fn word_and_count(line: &str) -> Result<(&str, u64), String> {
    let parts = line.trim_ascii_end().rsplit_once([' ', '\t']);
    let (word, count) = parts.ok_or("it has no count")?;
    let word = word.trim_ascii_end();
    if word.is_empty() {
        return Err("it has no word".to_owned());
    }
    if count.starts_with('-') && count[1..].parse::<f64>().is_ok() {
        return Err(format!("the count `{count}` is negative"));
    }
    let is_whole = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    match count.parse() {
        Ok(count) if is_whole => Ok((word, count)),
        Err(_) if is_whole => Err(format!("the count `{count}` is above {}", u64::MAX)),
        _ => Err(format!("the count `{count}` is not a whole number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_rank_have_the_weights_of_zipf() {
        // H(4) = 25/12, so row 0 has the probability 12/25, and row 3 a quarter of it.
        let weights = by_rank(4);
        for (row, expected) in [(0, 1e-3 / (1e-3 + 0.48)), (3, 1e-3 / (1e-3 + 0.12))] {
            assert!((weights[row] - expected).abs() < 1e-15, "{row}: {}", weights[row]);
        }
        assert!(
            weights.is_sorted() && by_rank(1) == [1e-3 / (1e-3 + 1.0)] && by_rank(0).is_empty()
        );
    }

    #[test]
    fn lines_are_words_with_whole_numbers() {
        for (line, word, count) in [
            ("frog 12", "frog", 12),
            ("frog\t0", "frog", 0),
            ("new york  007 ", "new york", 7),
            ("3 4", "3", 4),
            ("a 18446744073709551615", "a", u64::MAX),
        ] {
            assert_eq!(word_and_count(line), Ok((word, count)), "{line}");
        }
        for (line, said) in [
            ("frog", "no count"),
            (" 7", "no word"),
            ("frog -3", "`-3` is negative"),
            ("frog 1.5", "`1.5` is not a whole number"),
            ("frog +3", "`+3` is not a whole number"),
            ("frog 1e3", "`1e3` is not a whole number"),
            ("frog nan", "`nan` is not a whole number"),
            ("word count", "`count` is not a whole number"),
            ("frog 18446744073709551616", "is above 18446744073709551615"),
        ] {
            let error = word_and_count(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }
}
