//! Text: one word a line, then its components. GloVe's, word2vec's and fastText's.

use memchr::{memchr, memchr_iter, memrchr};

use super::numbers::check_norm;
use super::{BadBytes, CHUNK_BYTES, Framing, Parsed, Parser, utf8};

/// Cuts between lines.
pub(super) struct LineFraming;

impl Framing for LineFraming {
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<usize, BadBytes> {
        // The last line may lack its line feed.
        let whole = if at_end { Some(bytes.len()) } else { memrchr(b'\n', bytes).map(|at| at + 1) };
        if whole.is_none() && bytes.len() >= CHUNK_BYTES {
            let reason =
                format!("the line is longer than {} MiB; is this a text of one word a line?", CHUNK_BYTES >> 20);
            return Err(BadBytes { record: None, byte: 0, reason });
        }
        Ok(whole.unwrap_or(0))
    }
}

/// What every line must look like.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    /// Components in a row.
    pub(super) dim: usize,
    /// The norm stands before the components.
    pub(super) with_norm: bool,
    /// Said when a line has another number of components.
    pub(super) hint: &'static str,
}

impl Parser for Lines {
    fn parse(&self, bytes: &[u8], _first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        let lines = bytes.len() / (self.dim * 7) + 1;
        parsed.components.reserve(lines * self.dim);
        let mut start = 0;
        let ends = memchr_iter(b'\n', bytes).chain((!bytes.ends_with(b"\n")).then_some(bytes.len()));
        for end in ends {
            let word = self.parse_line(&bytes[start..end], &mut parsed.components);
            parsed.end_record(word, self.dim, start);
            start = end + 1;
        }
        parsed
    }
}

impl Lines {
    fn numbers(&self) -> usize {
        self.dim + usize::from(self.with_norm)
    }

    /// The word of a line; its components are appended. A bad line may leave some behind.
    fn parse_line<'a>(
        &self,
        line: &'a [u8],
        components: &mut Vec<f32>,
    ) -> Result<&'a str, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // word2vec and fastText end each line with a space.
        let line = trim_end_spaces(line);
        let start = components.len();
        let word = match self.split_plain(line, components) {
            Some(word) => utf8(word)?,
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

    /// A line as nearly all are: a word without spaces, then the right number of finite numbers. `None` if
    /// it is another, good or bad.
    fn split_plain<'a>(&self, line: &'a [u8], components: &mut Vec<f32>) -> Option<&'a [u8]> {
        let (word, mut rest) = line.split_at(memchr(b' ', line)?);
        for _ in 0..self.numbers() {
            rest = rest.strip_prefix(b" ")?;
            let (component, length) = fast_float2::parse_partial::<f32, _>(rest).ok()?;
            if !component.is_finite() {
                return None;
            }
            components.push(component);
            rest = &rest[length..];
        }
        (rest.is_empty() && !word.is_empty()).then_some(word)
    }

    /// Any line: split from the right, so that words may contain spaces.
    fn split_carefully<'a>(
        &self,
        line: &'a [u8],
        components: &mut Vec<f32>,
    ) -> Result<&'a str, String> {
        let numbers = self.numbers();
        if line.is_empty() {
            return Err("the line is empty".into());
        }
        let start = components.len();
        let mut fields = line.rsplitn(numbers + 1, |&b| b == b' ');
        for (taken, field) in fields.by_ref().take(numbers).enumerate() {
            match parse_component(field) {
                Ok(component) => components.push(component),
                Err(reason) => {
                    // Too few components run into the word; say so rather than that it is no number.
                    if spaces(line) < numbers {
                        return Err(self.wrong_number_of_components(line));
                    }
                    let place = numbers - taken - usize::from(self.with_norm);
                    return Err(match place {
                        0 => format!("the norm {reason}"),
                        _ => format!("component {place} {reason}"),
                    });
                }
            }
        }
        components[start..].reverse();
        let Some(word) = fields.next() else {
            return Err(self.wrong_number_of_components(line));
        };
        let word = utf8(word)?;
        if word.is_empty() {
            return Err("the word is empty".into());
        }
        if word.starts_with(' ') || word.ends_with(' ') {
            return Err("more than one space between two fields, or a space at the start".into());
        }
        // Split from the right, a line with a component too many would hide it in the word.
        let tail = word.rsplit_once(' ').map(|(_, tail)| tail);
        if tail.is_some_and(|tail| tail.parse::<f64>().is_ok_and(f64::is_finite)) {
            return Err(self.wrong_number_of_components(line));
        }
        Ok(word)
    }

    fn wrong_number_of_components(&self, line: &[u8]) -> String {
        let found = spaces(line);
        let mut reason = match self.with_norm {
            false => format!("{found} components instead of {}", self.dim),
            true => format!("{found} numbers instead of {}: a norm and {} components", self.numbers(), self.dim),
        };
        if memchr(b'\t', line).is_some() {
            reason += "; fields are separated by single spaces, and this line has tabs";
        }
        reason + self.hint
    }
}

fn trim_end_spaces(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&b| b != b' ').map_or(0, |last| last + 1);
    &line[..end]
}

pub(super) fn spaces(line: &[u8]) -> usize {
    memchr_iter(b' ', line).count()
}

/// To the nearest float32, directly.
fn parse_component(field: &[u8]) -> Result<f32, String> {
    let text = String::from_utf8_lossy(field);
    let shown = || text.chars().take(40).collect::<String>();
    if field.is_empty() {
        return Err("is empty: fields are separated by single spaces".into());
    }
    match text.parse::<f32>() {
        Ok(x) if x.is_finite() => Ok(x),
        Ok(_) if text.bytes().any(|b| b.is_ascii_digit()) => {
            Err(format!("is outside the range of 32-bit numbers: {}", shown()))
        }
        Ok(_) => Err(format!("is not finite: {}", shown())),
        Err(_) => Err(format!("is not a number: `{}`", shown())),
    }
}
