//! The texts of a column, each there once: one JSON string per line, sorted by their bytes.
//!
//! A text has a code, its line from 1; code 0 stands for no text. Sorted texts that begin alike are
//! adjacent, so a prefix is a range of codes.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr;

use super::array::{Array, UINT64, npy_of};
use crate::mapped::Mapped;

/// Bytes of a line beside its text, at least: two quotes and a line feed.
const AROUND: u64 = 3;

/// The texts of a column, by their codes from 1.
///
/// Texts are compared by their exact bytes. Clones share the memory.
#[derive(Debug, Clone)]
pub struct Dictionary {
    lines: Mapped,
    /// Where each line begins, and where the last ends.
    starts: Array<u64>,
}

/// The files of a dictionary: the lines, and where they start.
pub(super) fn files_of<'a>(sorted: impl Iterator<Item = &'a str>) -> (Vec<u8>, Vec<u8>) {
    let (mut lines, mut starts) = (Vec::new(), vec![0_u64]);
    for text in sorted {
        serde_json::to_writer(&mut lines, text).expect("a text becomes JSON, in memory");
        lines.push(b'\n');
        starts.push(lines.len() as u64);
    }
    (lines, npy_of(UINT64, &starts))
}

impl Dictionary {
    /// Checks that the starts are those of the lines, which are UTF-8 between quotes: every look-up
    /// relies on it.
    pub(super) fn new(lines: Mapped, starts: Mapped, length: usize) -> Result<Self, String> {
        if u32::try_from(length).is_ok_and(|length| length < u32::MAX) {
            let starts = Array::new(starts, UINT64, length + 1)?;
            check(&lines, starts.all())?;
            return Ok(Self { lines, starts });
        }
        Err("it has too many texts".to_owned())
    }

    /// Number of texts, which is the last code.
    pub fn len(&self) -> usize {
        self.starts.all().len() - 1
    }

    /// Bytes of a text of the usual length, as JSON.
    pub(super) fn usual_bytes(&self) -> usize {
        self.lines.len().div_ceil(self.len().max(1))
    }

    /// Whether there are no texts: all values of the column are missing, or empty lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a code from 1; `None` for another number. It is borrowed unless its JSON has
    /// escapes.
    pub fn text(&self, code: u32) -> Option<Cow<'_, str>> {
        let line = self.line(usize::try_from(code).ok()?.checked_sub(1)?)?;
        Some(match memchr(b'\\', line.as_bytes()) {
            None => Cow::Borrowed(&line[1..line.len() - 1]),
            Some(_) => Cow::Owned(unescaped(line)),
        })
    }

    /// All texts in their order; the first has the code 1.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        (0..self.len()).map(move |index| self.text(index as u32 + 1).unwrap_or_default())
    }

    /// The code of a text, if the column has it.
    pub fn code(&self, text: &str) -> Option<u32> {
        let first = self.first(|other| other < text);
        (self.text(first)? == text).then_some(first)
    }

    /// The codes of all texts that begin like this. The empty prefix has all codes.
    pub fn starting_with(&self, prefix: &str) -> Range<u32> {
        let first = self.first(|text| text < prefix);
        let end = self.first(|text| text < prefix || text.starts_with(prefix));
        first..end
    }

    /// The first code whose text is not `before`; behind the last one if there is none.
    fn first(&self, before: impl Fn(&str) -> bool) -> u32 {
        let (mut from, mut to) = (1, self.len() as u32 + 1);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.text(middle).is_some_and(|text| before(&text)) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// A line without its line feed, by its index from 0.
    fn line(&self, index: usize) -> Option<&str> {
        let starts = self.starts.all();
        let (start, end) = (*starts.get(index)? as usize, *starts.get(index + 1)? as usize);
        std::str::from_utf8(&self.lines[start..end - 1]).ok()
    }

    /// Checks that every line is a JSON string as it is written here, and that they are sorted and
    /// different.
    pub(super) fn verify(&self, goes_on: &dyn Fn() -> bool) -> Result<bool, String> {
        let mut before: Option<String> = None;
        for index in 0..self.len() {
            if index.is_multiple_of(4096) && !goes_on() {
                return Ok(false);
            }
            let line = self.line(index).unwrap_or_default();
            let text = serde_json::from_str::<String>(line).ok();
            let again = text.as_ref().and_then(|text| serde_json::to_string(text).ok());
            let Some(text) = text.filter(|_| again.as_deref() == Some(line)) else {
                return Err(format!(
                    "its line {} is not a JSON string in its usual form",
                    index + 1
                ));
            };
            if before.as_ref().is_some_and(|before| *before >= text) {
                return Err(format!("its line {} is not after the line before", index + 1));
            }
            before = Some(text);
        }
        Ok(true)
    }
}

/// The text of a line; as it stands there if it is no JSON, which only `verify` says.
fn unescaped(line: &str) -> String {
    serde_json::from_str(line).unwrap_or_else(|_| line[1..line.len() - 1].to_owned())
}

fn check(lines: &[u8], starts: &[u64]) -> Result<(), String> {
    std::str::from_utf8(lines).map_err(|e| format!("it is not UTF-8: {e}"))?;
    if starts.first() != Some(&0) || starts.last() != Some(&(lines.len() as u64)) {
        return Err("the starts of its lines do not cover it".to_owned());
    }
    let is_line = |pair: &[u64]| {
        let [start, end] = [pair[0], pair[1]];
        // Ascending up to the last one, which is the length, so all are within the file.
        end.checked_sub(start).is_some_and(|bytes| bytes >= AROUND)
            && lines[start as usize] == b'"'
            && lines[end as usize - 2..end as usize] == *b"\"\n"
    };
    // The order is checked first: it keeps all starts within the file.
    let ascending = starts.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || !starts.windows(2).all(is_line) {
        return Err("the starts of its lines are not those of texts between quotes".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn dictionary(texts: &BTreeSet<String>) -> Dictionary {
        let (lines, starts) = files_of(texts.iter().map(String::as_str));
        let copy = |bytes: &[u8]| Mapped::copy_of(bytes).unwrap();
        Dictionary::new(copy(&lines), copy(&starts), texts.len()).unwrap()
    }

    proptest! {
        #[test]
        fn texts_are_found_by_code_by_text_and_by_prefix(
            texts in prop::collection::btree_set("[ab\"\\\\\né\u{1}]{0,4}", 0..40),
            asked in "[ab\"\\\\\né\u{1}]{0,3}",
        ) {
            let found = dictionary(&texts);
            prop_assert_eq!(found.verify(&|| true), Ok(true));
            let expected: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(found.texts().collect::<Vec<_>>(), expected);
            for (index, text) in texts.iter().enumerate() {
                prop_assert_eq!(found.code(text), Some(index as u32 + 1));
            }
            let code = texts.iter().position(|text| *text == asked).map(|at| at as u32 + 1);
            prop_assert_eq!(found.code(&asked), code);
            let all = 1..texts.len() as u32 + 1;
            let begins = |&code: &u32| found.text(code).unwrap().starts_with(&asked);
            let range: Vec<u32> = found.starting_with(&asked).collect();
            prop_assert_eq!(range, all.filter(begins).collect::<Vec<_>>());
            prop_assert_eq!(found.text(0), None);
            prop_assert_eq!(found.text(texts.len() as u32 + 1), None);
        }
    }

    #[test]
    fn lines_that_are_no_texts_are_refused() {
        let open = |lines: &[u8], starts: &[u64]| {
            let copy = |bytes: &[u8]| Mapped::copy_of(bytes).unwrap();
            let length = starts.len() - 1;
            Dictionary::new(copy(lines), copy(&npy_of(UINT64, starts)), length)
        };
        let good = open(b"\"a\"\n\"b\"\n", &[0, 4, 8]).unwrap();
        assert_eq!(good.verify(&|| true), Ok(true));
        assert_eq!(good.verify(&|| false), Ok(false));
        for (lines, starts) in [
            (&b"\"a\"\n\"b\"\n"[..], &[0, 8][..]),
            (b"\"a\"\n\"b\"\n", &[0, 4, 7]),
            (b"\"a\"\n\"b\"\n", &[0, 4, 2, 8]),
            (b"\"a\"\n\"b\"\n", &[0, 9, 8]),
            (b"\"\xff\"\n", &[0, 4]),
            (b"a\n", &[0, 2]),
            (b"'a'\n", &[0, 4]),
            (b"\"\n\n", &[0, 3]),
        ] {
            // A line with a quote in it is found when the whole is verified.
            let found = open(lines, starts).and_then(|opened| opened.verify(&|| true));
            assert!(found.is_err(), "{starts:?}");
        }
        for lines in [&b"\"b\"\n\"a\"\n"[..], b"\"a\"\n\"a\"\n", b"\"\\\"\n\"b\"\n"] {
            let opened = open(lines, &[0, 4, 8]).unwrap();
            let _ = (opened.text(1), opened.code("a"), opened.starting_with("a"));
            assert!(opened.verify(&|| true).is_err());
        }
    }
}
