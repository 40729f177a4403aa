//! A file of words, one per line, for vectors without words.

use std::collections::HashSet;
use std::path::Path;

use super::encoding::TextEncoding;
use super::formats::{MAX_WORD_BYTES, utf8};
use super::lines::for_each_line;
use super::unpack::{self, file_name};
use super::{Input, PrepareOptions};
use crate::ModelError;

/// Words in row order.
#[derive(Debug)]
pub(super) struct WordList {
    name: String,
    text: String,
    ends: Vec<usize>,
    /// A warning if the end of the file was left out.
    warning: Option<String>,
}

impl WordList {
    /// Reads a file, compressed or not.
    pub(super) fn read(path: &Path, options: &PrepareOptions) -> Result<Self, ModelError> {
        let (name, text, ends) = (file_name(path), String::new(), Vec::new());
        let mut list = Self { name, text, ends, warning: None };
        unpack::read(Input::File(path), None, |unpacked| {
            let what = "a words file has one word per line";
            let encoding = options.encoding.and_then(TextEncoding::other_than_utf8);
            let add = |line: &[u8]| list.add(line, encoding);
            let (head, most) = (Vec::new(), MAX_WORD_BYTES);
            list.warning = for_each_line(unpacked, head, true, encoding, most, what, add)?;
            match list.have_counts().filter(|_| !options.allow_numeric_words) {
                Some(reason) => Err(unpacked.progress().bad(reason)),
                None => Ok(()),
            }
        })?;
        Ok(list)
    }

    fn add(&mut self, line: &[u8], encoding: Option<TextEncoding>) -> Result<(), String> {
        self.text.push_str(utf8(line, encoding)?);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// Why the lines are words with their counts, if so, as in the `vocab.txt` of GloVe, or with
    /// their scores after a tab, as in the `.vocab` of SentencePiece. Words that are the same but
    /// for their numbers, such as `item 1` and `item 2`, are no such lines.
    fn have_counts(&self) -> Option<String> {
        /// Fewer lines say nothing.
        const FEWEST: usize = 3;
        if self.len() < FEWEST {
            return None;
        }
        let words = (0..self.len()).map(|row| before_count(self.get(row)));
        // Ends at the first line without a count.
        let words: HashSet<&str> = words.collect::<Option<_>>()?;
        let cut = if self.get(0).contains('\t') { "cut -f1" } else { "cut -d' ' -f1" };
        let are_counts = (0..self.len()).all(|row| {
            let tail = self.get(row).rsplit(['\t', ' ']).find(|part| !part.trim().is_empty());
            tail.is_some_and(|tail| is_whole(tail.trim_ascii()))
        });
        let number = match are_counts {
            true => "a whole number, such as its count",
            false => "a number, such as its score",
        };
        (words.len() == self.len()).then(|| {
            format!(
                "each line is a word and {number}, but a words file has one word per line; drop \
                 the numbers: {cut} FILE; if they belong to the words, add --allow-numeric-words"
            )
        })
    }

    /// The warning, with the file's name.
    pub(super) fn warning(&self) -> Option<String> {
        let warning = self.warning.as_ref()?;
        Some(format!("{}: {warning}", self.name))
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }
}

/// The word of a line that has a whole number after it, or any number after a tab. Only before a
/// tab may it have spaces: titles with their years are words as they are.
fn before_count(line: &str) -> Option<&str> {
    if let Some((word, number)) = line.rsplit_once('\t') {
        let is_number = number.trim_ascii().parse::<f64>().is_ok_and(f64::is_finite);
        let word = word.trim_ascii_end();
        return (is_number && !word.is_empty()).then_some(word);
    }
    let (word, count) = line.trim_ascii_end().rsplit_once(' ')?;
    let word = word.trim_ascii_end();
    (is_whole(count) && !word.contains(' ') && !word.is_empty()).then_some(word)
}

fn is_whole(number: &str) -> bool {
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}
