//! Text formats of GloVe, word2vec and fastText: one word per line, then its components.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memrchr};

use super::notation::{TABS, after, notation};
use super::{
    BadBytes, Framing, MAX_RECORD_BYTES, Parsed, Parser, check_norm, counted, is_padding, utf8,
};
use crate::prepare::blank_end::BlankEnd;
use crate::prepare::encoding::TextEncoding;
use crate::prepare::separator::Separator;

/// Finds the ends of lines. Blank lines wait until another line follows: at the end of a file they
/// are left out.
#[derive(Default)]
pub(super) struct LineFraming {
    end: BlankEnd,
}

impl Framing for LineFraming {
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<(usize, u64), BadBytes> {
        // The last line may lack its line feed.
        let whole = if at_end { Some(bytes.len()) } else { memrchr(b'\n', bytes).map(|at| at + 1) };
        let is_full = bytes.len() >= MAX_RECORD_BYTES;
        if whole.is_none() && is_full {
            let mib = MAX_RECORD_BYTES >> 20;
            let reason = match is_padding(bytes) {
                true => format!(
                    "here are more than {mib} MiB of zero bytes, as in a download that was not \
                     finished; download the file again"
                ),
                false => format!(
                    "the line is longer than {mib} MiB; is this a text file with one word per line?"
                ),
            };
            return Err(BadBytes { record: None, byte: 0, reason });
        }
        let lines = &bytes[..whole.unwrap_or(0)];
        let lines = match before_blank_end(lines) {
            // So many are no end.
            0 if is_full && !at_end => lines,
            until => &lines[..until],
        };
        let line_feeds = |lines: &[u8]| memchr_iter(b'\n', lines).count() as u64;
        let unfinished = |lines: &[u8]| u64::from(!lines.is_empty() && !lines.ends_with(b"\n"));
        if at_end {
            let end = &bytes[lines.len()..];
            let zeros = memchr_iter(0, end).count() as u64;
            self.end = BlankEnd { lines: line_feeds(end) + unfinished(end), zeros };
        }
        Ok((lines.len(), line_feeds(lines) + unfinished(lines)))
    }

    fn end_of(&self, bytes: &[u8], records: u64) -> Option<usize> {
        let Some(last) = records.checked_sub(1) else { return Some(0) };
        let end = memchr_iter(b'\n', bytes).nth(usize::try_from(last).ok()?)? + 1;
        match before_blank_end(bytes) {
            0 if bytes.len() >= MAX_RECORD_BYTES => Some(end),
            // Blank lines are records only if another line follows.
            until => (end <= until).then_some(end),
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.end.warning().into_iter().collect()
    }
}

/// The length of the lines up to the last one that is not blank.
fn before_blank_end(lines: &[u8]) -> usize {
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == 0;
    let Some(last) = lines.iter().rposition(|&byte| !is_blank(byte)) else { return 0 };
    memchr(b'\n', &lines[last..]).map_or(lines.len(), |at| last + at + 1)
}

/// The form of every line.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub(super) dim: usize,
    /// Whether a norm precedes the components.
    pub(super) with_norm: bool,
    /// A hint for lines with another number of components.
    pub(super) hint: &'static str,
    pub(super) separator: Separator,
    /// The encoding that the text was decoded from, if it is not UTF-8.
    pub(super) encoding: Option<TextEncoding>,
    /// Whether the number of components is known from elsewhere than the first line.
    pub(super) has_known_dim: bool,
    /// Whether a word with spaces may end in a number, as `route 66` does, where the number of
    /// components is known. One component too many would pass for that.
    pub(super) numeric_ends: bool,
}

impl Parser for Lines {
    fn parse(&self, bytes: &[u8], _first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        let lines = bytes.len() / (self.dim * 7) + 1;
        parsed.components.reserve(lines * self.dim);
        let mut start = 0;
        let ends =
            memchr_iter(b'\n', bytes).chain((!bytes.ends_with(b"\n")).then_some(bytes.len()));
        for end in ends {
            let word = self.parse_line(&bytes[start..end], &mut parsed.components);
            match word {
                Ok(word) => parsed.end_record(Ok(&word), self.dim, start),
                Err(reason) => parsed.end_record(Err(reason), self.dim, start),
            }
            start = end + 1;
        }
        parsed
    }
}

impl Lines {
    /// Whether words between spaces may end in a number.
    pub(super) fn may_end_in_numbers(&self) -> bool {
        self.numeric_ends && self.has_known_dim && self.separator == Separator::Space
    }

    fn numbers(&self) -> usize {
        self.dim + usize::from(self.with_norm)
    }

    /// Returns the word of a line and appends its components. A bad line may leave some appended.
    fn parse_line<'a>(
        &self,
        line: &'a [u8],
        components: &mut Vec<f32>,
    ) -> Result<Cow<'a, str>, String> {
        let line = without_returns(line);
        // word2vec and fastText end each line with a space.
        let line = self.separator.trim_end(line);
        let start = components.len();
        let word = match self.split_plain(line, components) {
            Some(word) => Cow::Borrowed(utf8(word, self.encoding)?),
            None => {
                components.truncate(start);
                self.split_carefully(line, components)?
            }
        };
        if self.with_norm {
            let norm = components.remove(start);
            check_norm(norm, &components[start..])?;
        }
        Ok(word)
    }

    /// Parses a usual line: a word without spaces and quotes, then the right number of finite
    /// numbers. `None` for any other line, good or bad.
    fn split_plain<'a>(&self, line: &'a [u8], components: &mut Vec<f32>) -> Option<&'a [u8]> {
        let separator = self.separator.byte();
        let (word, mut rest) = line.split_at(memchr(separator, line)?);
        for _ in 0..self.numbers() {
            rest = rest.split_first().filter(|(sign, _)| **sign == separator)?.1;
            let (component, length) = fast_float2::parse_partial::<f32, _>(rest).ok()?;
            if !component.is_finite() {
                return None;
            }
            components.push(component);
            rest = &rest[length..];
        }
        let is_plain = match self.separator {
            Separator::Space => memchr(b'\t', word).is_none(),
            Separator::Tab => !word.starts_with(b" ") && !word.ends_with(b" "),
            Separator::Comma => !matches!(word, [b' ' | b'"', ..] | [.., b' ']),
        };
        (rest.is_empty() && !word.is_empty() && is_plain).then_some(word)
    }

    /// Parses any line, from the right, so that words may contain spaces.
    fn split_carefully<'a>(
        &self,
        line: &'a [u8],
        components: &mut Vec<f32>,
    ) -> Result<Cow<'a, str>, String> {
        let numbers = self.numbers();
        if line.is_empty() {
            return Err("the line is empty".into());
        }
        let start = components.len();
        let separator = self.separator.byte();
        let mut fields = line.rsplitn(numbers + 1, |&b| b == separator);
        for (taken, field) in fields.by_ref().take(numbers).enumerate() {
            match self.parse_number(field) {
                Ok(component) => components.push(component),
                Err(reason) => {
                    let cure = notation(field);
                    // With too few components, parsing reaches the word; report that instead of an
                    // invalid number.
                    if self.separator.numbers(line) < numbers {
                        let reason = self.wrong_number_of_components(line);
                        // Tabs are named already.
                        return Err(reason + &after(cure.filter(|cure| *cure != TABS)));
                    }
                    let cure = after(cure);
                    let index = numbers - taken - usize::from(self.with_norm);
                    return Err(match index {
                        0 => format!("the norm {reason}{cure}"),
                        _ => format!("component {index} {reason}{cure}"),
                    });
                }
            }
        }
        components[start..].reverse();
        let Some(word) = fields.next().and_then(|word| self.separator.word(word)) else {
            return Err(self.wrong_number_of_components(line));
        };
        let word = match word {
            Cow::Borrowed(word) => Cow::Borrowed(utf8(word, self.encoding)?),
            Cow::Owned(word) => Cow::Owned(utf8(&word, self.encoding)?.to_owned()),
        };
        if word.is_empty() {
            return Err("the word is empty".into());
        }
        let is_spaced = word.starts_with(' ') || word.ends_with(' ');
        if self.separator != Separator::Space {
            return match is_spaced {
                true => Err("the word begins or ends with a space".into()),
                false => Ok(word),
            };
        }
        if is_spaced {
            return Err(
                "there is more than one space between two fields, or a space at the start".into()
            );
        }
        // When split from the right, an extra component would end up in the word.
        if !self.may_end_in_numbers() && ends_in_a_number(&word) {
            return Err(self.wrong_number_of_components(line) + &self.numeric_end(&word));
        }
        if word.contains('\t') {
            return Err(TABS.into());
        }
        Ok(word)
    }

    fn parse_number(&self, field: &[u8]) -> Result<f32, String> {
        if self.separator == Separator::Space {
            return parse_component(field);
        }
        let field = field.trim_ascii();
        let bare = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
        let field = bare.filter(|_| self.separator == Separator::Comma).unwrap_or(field);
        if field.is_empty() {
            return Err(format!("is empty; fields must be separated by a {}", self.separator));
        }
        parse_component(field)
    }

    /// The cure if the word ends in a whole number; empty if the number is rather a component.
    fn numeric_end(&self, word: &str) -> String {
        if !ends_in_digits(word) {
            return String::new();
        }
        let (shown, dim) = (word.chars().take(40).collect::<String>(), self.dim);
        format!("; if the word is `{shown}`, add --dim {dim} --allow-numeric-words")
    }

    fn wrong_number_of_components(&self, line: &[u8]) -> String {
        let found = self.separator.numbers(line);
        let mut reason = match self.with_norm {
            false => {
                format!("{} instead of {}", counted(found as u64, "component"), self.dim)
            }
            true => format!(
                "{found} numbers instead of {}: a norm and {} components",
                self.numbers(),
                self.dim
            ),
        };
        match self.separator {
            Separator::Space if memchr(b'\t', line).is_some() => {
                reason = format!("{reason}; {TABS}");
            }
            Separator::Comma if found > self.numbers() => {
                reason += "; a word with commas must be between quotes";
            }
            _ => {}
        }
        reason + self.hint
    }
}

/// A line without the carriage returns at its end: some programs write several.
pub(in crate::prepare) fn without_returns(mut line: &[u8]) -> &[u8] {
    while let Some(shorter) = line.strip_suffix(b"\r") {
        line = shorter;
    }
    line
}

/// Whether the last part of a word with spaces would be read as a component.
pub(crate) fn ends_in_a_number(word: &str) -> bool {
    let tail = word.rsplit_once(' ').map(|(_, tail)| tail);
    tail.is_some_and(|tail| tail.parse::<f64>().is_ok_and(f64::is_finite))
}

/// Whether the last part of a word with spaces has digits only.
pub(super) fn ends_in_digits(word: &str) -> bool {
    let tail = word.rsplit(' ').next().unwrap_or_default();
    tail.bytes().all(|byte| byte.is_ascii_digit())
}

/// To the nearest float32, directly.
pub(in crate::prepare) fn parse_component(field: &[u8]) -> Result<f32, String> {
    let text = String::from_utf8_lossy(field);
    let shown = || text.chars().take(40).collect::<String>();
    if field.is_empty() {
        return Err("is empty; fields must be separated by single spaces".into());
    }
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) if text.bytes().any(|b| b.is_ascii_digit()) => {
            Err(format!("is outside the range of float32: {}", shown()))
        }
        Ok(_) => Err(format!("is not finite: {}", shown())),
        Err(_) => Err(format!("is not a number: `{}`", shown())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(dim: usize) -> Lines {
        Lines { dim, ..Lines::default() }
    }

    fn parse_with(lines: &Lines, line: &[u8]) -> Result<(String, Vec<f32>), String> {
        let parsed = lines.parse(line, 0);
        assert_eq!(parsed.records, 1);
        assert_eq!(
            parsed.components.len(),
            parsed.norms.len() * lines.dim,
            "a bad line adds nothing"
        );
        match parsed.first_bad {
            Some(bad) => Err(bad.reason),
            None => Ok((parsed.words, parsed.components)),
        }
    }

    #[test]
    fn good_lines() {
        let read = |line: &str| parse_with(&lines(2), line.as_bytes()).unwrap();
        assert_eq!(read("cat 0.5 -1e-3"), ("cat".into(), vec![0.5, -1e-3]));
        assert_eq!(read(". . . 1 2"), (". . .".into(), vec![1.0, 2.0]));
        assert_eq!(read("at name@domain.com 1 2").0, "at name@domain.com");
        assert_eq!(read("42 1 2").0, "42", "a number alone is a word like any other");
        assert_eq!(read("naïve .5 5.").0, "naïve");
        assert_eq!(
            read("cat 1 2  \r"),
            ("cat".into(), vec![1.0, 2.0]),
            "ends that word2vec writes"
        );
        assert_eq!(read("+1 +1 -0").1, [1.0, 0.0]);
        // Between two float32: rounded directly to the nearest, not through float64.
        assert_eq!(read("x 1.00000017881393432617187499 0").1[0], 1.0000001);
    }

    #[test]
    fn bad_lines_say_why() {
        let reason = |line: &str| parse_with(&lines(2), line.as_bytes()).unwrap_err();
        assert_eq!(reason("cat 1"), "1 component instead of 2");
        assert_eq!(
            reason("cat 1 2 3"),
            "3 components instead of 2; if the word is `cat 1`, add --dim 2 --allow-numeric-words"
        );
        assert_eq!(reason("cat 0.5 2 3"), "3 components instead of 2");
        assert_eq!(reason(""), "the line is empty");
        assert_eq!(reason("a cat 1 b"), "component 2 is not a number: `b`");
        assert_eq!(reason("cat 0x1 2"), "component 1 is not a number: `0x1`");
        assert_eq!(reason("cat nan 1"), "component 1 is not finite: nan");
        assert_eq!(reason("cat 1 -inf"), "component 2 is not finite: -inf");
        assert_eq!(reason("cat 1 1e39"), "component 2 is outside the range of float32: 1e39");
        assert_eq!(reason(" 1 2"), "the word is empty");
        assert!(reason("cat  1 2").starts_with("there is more than one space"));
        assert!(reason("cat 1  2").starts_with("component 1 is empty"));
        for tabs in ["cat\t1 2", "cat\t0 1 2", "a\tcat 1 2"] {
            assert!(reason(tabs).contains("fields must be separated by single spaces"), "{tabs}");
        }
    }

    #[test]
    fn carriage_returns_at_the_end_are_left_out() {
        assert_eq!(without_returns(b"cat 1 \r\r"), b"cat 1 ");
        assert_eq!(parse_with(&lines(1), b"cat 1 \r\r").unwrap(), ("cat".into(), vec![1.0]));
    }

    #[test]
    fn stored_norms_are_held_against_the_components() {
        let lines = Lines { dim: 2, with_norm: true, ..Lines::default() };
        let read = |line: &str| parse_with(&lines, line.as_bytes());
        assert_eq!(read("cat 5.00001 3 -4").unwrap(), ("cat".into(), vec![3.0, -4.0]));
        assert_eq!(read(". . 0 0 0").unwrap().0, ". .");
        assert!(read("cat 3 4 5").unwrap_err().contains("stored norm is 3, but the components"));
        assert!(read("cat nan 3 4").unwrap_err().contains("the norm is not finite"));
        assert!(read("cat 3 4").unwrap_err().contains("2 numbers instead of 3"));
    }

    #[test]
    fn lines_are_cut_at_their_ends_only() {
        let whole = |bytes: &[u8], at_end| LineFraming::default().whole(bytes, at_end);
        assert_eq!(whole(b"a 1\nb 2\nc", false), Ok((8, 2)));
        assert_eq!(whole(b"a 1\nb 2\nc", true), Ok((9, 3)));
        assert_eq!(whole(b"a 1\nb 2\n", true), Ok((8, 2)));
        assert_eq!((whole(b"a 1", false), whole(b"", true)), (Ok((0, 0)), Ok((0, 0))));
        assert!(whole(&vec![b'x'; MAX_RECORD_BYTES], false).is_err());
    }

    #[test]
    fn blank_lines_are_left_out_at_the_end_only() {
        let end = |bytes: &[u8]| {
            let mut framing = LineFraming::default();
            let found = framing.whole(bytes, true).unwrap();
            (found, framing.end.lines, framing.end.zeros)
        };
        assert_eq!(end(b"a 1\nb 2\n\n"), ((8, 2), 1, 0));
        assert_eq!(end(b"a 1\nb 2\n\n \r\n\t"), ((8, 2), 3, 0));
        assert_eq!(end(b"a 1\n\nb 2\n\0\0\0"), ((9, 3), 1, 3));
        assert_eq!(end(b"a 1\nb 2 \r"), ((9, 2), 0, 0), "a line may end in spaces");
        assert_eq!(end(b"a 1\nb 2\0\0"), ((9, 2), 0, 0), "the last number may be cut off");
        assert_eq!(end(b"\n\n"), ((0, 0), 2, 0));
        // Before more lines they wait, and then are lines like any other.
        let mut framing = LineFraming::default();
        assert_eq!(framing.whole(b"a 1\n\n\n", false), Ok((4, 1)));
        assert_eq!(framing.whole(b"\n\n", false), Ok((0, 0)));
        assert_eq!(framing.whole(b"\n\nb 2\n", true), Ok((6, 3)));
        assert_eq!(framing.warnings(), Vec::<String>::new());
        let many = vec![b'\n'; MAX_RECORD_BYTES];
        assert_eq!(framing.whole(&many, false), Ok((many.len(), many.len() as u64)));
        let said = framing.whole(&vec![0; MAX_RECORD_BYTES], false).unwrap_err().reason;
        assert!(said.contains("zero bytes") && said.contains("download the file again"), "{said}");
    }

    #[test]
    fn blank_lines_at_the_end_are_none_of_the_first_ones() {
        let end = |bytes: &[u8], records| LineFraming::default().end_of(bytes, records);
        assert_eq!((end(b"a 1\nb 2\n", 0), end(b"a 1\nb 2\n", 1)), (Some(0), Some(4)));
        assert_eq!((end(b"a 1\nb 2\n", 2), end(b"a 1\nb 2", 2)), (Some(8), None));
        assert_eq!((end(b"a 1\n\nb 2\n", 2), end(b"a 1\n\nb", 2)), (Some(5), Some(5)));
        assert_eq!((end(b"a 1\n\n \n", 1), end(b"a 1\n\n \n", 2)), (Some(4), None));
        assert_eq!((end(b"\n\n", 1), end(&vec![b'\n'; MAX_RECORD_BYTES], 1)), (None, Some(1)));
    }

    proptest! {
        #[test]
        fn every_float32_survives_its_shortest_text(
            word in "[^ \t\n\r]{1,12}",
            bits in prop::collection::vec(any::<u32>(), 1..40),
        ) {
            let row: Vec<f32> =
                bits.into_iter().map(f32::from_bits).filter(|x| x.is_finite()).collect();
            prop_assume!(!row.is_empty());
            let bits = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let plain = row.iter().fold(word.clone(), |line, x| format!("{line} {x}"));
            let short = row.iter().fold(word.clone(), |line, x| format!("{line} {x:e}"));
            for line in [plain, short] {
                let (read, components) = parse_with(&lines(row.len()), line.as_bytes()).unwrap();
                prop_assert_eq!(&read, &word);
                prop_assert_eq!(bits(&components), bits(&row));
            }
        }

        /// The fast parser accepts only lines that the careful one accepts, with the same result.
        #[test]
        fn the_quick_way_agrees_with_the_careful_one(
            line in "[ a0-9.e+-]{0,24}|[a ]{1,3}( -?[0-9]{1,3}(\\.[0-9]{1,9})?(e-?[0-9]{1,2})?){1,4} ?",
            dim in 1usize..5,
        ) {
            for separator in Separator::ALL {
                let line = line.replace(' ', std::str::from_utf8(&[separator.byte()]).unwrap());
                let lines = Lines { separator, ..lines(dim) };
                let (mut quick, mut careful) = (Vec::new(), Vec::new());
                if let Some(word) = lines.split_plain(line.as_bytes(), &mut quick) {
                    let found = lines.split_carefully(line.as_bytes(), &mut careful).unwrap();
                    prop_assert_eq!(found.as_bytes(), word);
                    prop_assert_eq!(quick, careful);
                }
            }
        }

        #[test]
        fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..60), dim in 1usize..5) {
            for (with_norm, separator) in
                [false, true].into_iter().flat_map(|norm| Separator::ALL.map(|sign| (norm, sign)))
            {
                let lines = Lines { dim, with_norm, separator, ..Lines::default() };
                let parsed = lines.parse(&line, 0);
                prop_assert_eq!(parsed.components.len(), parsed.norms.len() * dim);
                prop_assert_eq!(parsed.records, parsed.norms.len() as u64 + parsed.bad.len() as u64);
            }
        }
    }
}
