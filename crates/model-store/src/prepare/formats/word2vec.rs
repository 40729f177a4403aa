//! word2vec's binary format: a line with the numbers of rows and components, then for each row its
//! word, a space, its components as little-endian float32, and an optional line feed.

use memchr::memchr;

use super::{
    BadBytes, Framing, HEADER_TOLERANCE, MAX_WORD_BYTES, Parsed, Parser, check_finite, counted,
    is_padding, not_utf8, utf8,
};
use crate::number::Number;
use crate::prepare::blank_end::BlankEnd;
use crate::prepare::encoding::{TextEncoding, word_in};

/// Finds the end of each row.
pub(super) struct RowFraming {
    dim: usize,
    /// Rows according to the header.
    rows: u64,
    /// Rows found so far.
    found: u64,
    end: BlankEnd,
}

impl RowFraming {
    pub(super) fn new(dim: usize, rows: u64) -> Self {
        Self { dim, rows, found: 0, end: BlankEnd::default() }
    }

    /// Whether the file may end after the rows that were found.
    fn may_end(&self, at_end: bool) -> bool {
        self.found >= self.rows
            || (at_end && self.found > 0 && self.found + HEADER_TOLERANCE >= self.rows)
    }
}

/// The offsets of a row's word, of its components and of their end; `None` if bytes are missing.
fn split(bytes: &[u8], dim: usize) -> Result<Option<(usize, usize, usize)>, &'static str> {
    // The line feed after the previous row.
    let word = usize::from(bytes.starts_with(b"\n"));
    let window = &bytes[word..bytes.len().min(word + MAX_WORD_BYTES + 1)];
    let Some(length) = memchr(b' ', window) else {
        if window.len() > MAX_WORD_BYTES {
            return Err("expected a word of at most 4096 bytes followed by a space");
        }
        return Ok(None);
    };
    let components = word + length + 1;
    let end = components + dim * size_of::<f32>();
    Ok((end <= bytes.len()).then_some((word, components, end)))
}

impl Framing for RowFraming {
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<(usize, u64), BadBytes> {
        let (mut whole, before) = (0, self.found);
        loop {
            if self.may_end(at_end) {
                // A line feed after the last row belongs to it.
                let rest = &bytes[whole..];
                let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
                if is_padding(rest) {
                    self.end.zeros += rest.len() as u64;
                    return Ok((bytes.len(), self.found - before));
                }
            }
            let is_over = self.found >= self.rows.saturating_add(HEADER_TOLERANCE);
            let next = if is_over { Ok(None) } else { split(&bytes[whole..], self.dim) };
            match next {
                Ok(Some((_, _, end))) => {
                    whole += end;
                    self.found += 1;
                }
                Ok(None) if !at_end && !is_over => return Ok((whole, self.found - before)),
                _ if self.found >= self.rows => {
                    let reason = format!(
                        "the file has more data after the {} rows that its header announces; \
                         download it again, or write the right numbers into its first line",
                        self.rows
                    );
                    return Err(BadBytes { record: None, byte: whole, reason });
                }
                fault => {
                    let Self { dim, rows, found, .. } = self;
                    let reason = match fault {
                        Err(reason) => format!(
                            "{reason} (the file is damaged, or its header is wrong: {rows} rows of \
                             {dim} components)"
                        ),
                        Ok(_) if whole + 1 >= bytes.len() => format!(
                            "the file ends here, but its header announces {} of {dim} \
                             components; download it again, or write the right number into its \
                             first line: (echo {found} {dim}; tail -n +2 FILE) > WHOLE",
                            counted(*rows, "row")
                        ),
                        Ok(_) => format!(
                            "the file ends inside this row of {dim} components (the file is cut \
                             off, or its header is wrong); download it again"
                        ),
                    };
                    return Err(BadBytes { record: Some(self.found), byte: whole, reason });
                }
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let other = self.found != self.rows;
        let announced = || counted(self.rows, "row");
        let count = other
            .then(|| format!("its header announces {}, but it has {}", announced(), self.found));
        count.into_iter().chain(self.end.warning()).collect()
    }

    fn end_of(&self, bytes: &[u8], records: u64) -> Option<usize> {
        if records > self.rows.saturating_sub(self.found) {
            return None;
        }
        (0..records).try_fold(0, |end, _| match split(&bytes[end..], self.dim) {
            Ok(Some((_, _, length))) => Some(end + length),
            _ => None,
        })
    }
}

pub(super) struct BinaryRows {
    dim: usize,
    /// Whether a line feed follows each row, as word2vec.c writes it.
    has_line_feeds: bool,
    /// The encoding of the words, if it is not UTF-8.
    encoding: Option<TextEncoding>,
}

impl BinaryRows {
    /// Of a file whose rows begin like this, with words in this encoding, if it is not UTF-8.
    pub(super) fn new(dim: usize, rows: &[u8], encoding: Option<TextEncoding>) -> Self {
        let end = split(rows, dim).ok().flatten().map(|(_, _, end)| end);
        let has_line_feeds = end.is_some_and(|end| rows.get(end) == Some(&b'\n'));
        Self { dim, has_line_feeds, encoding }
    }

    /// Whether only the word of a row is bad, and not its place. A wrong header misplaces all rows
    /// after the first. A word with a space ends at the space: what follows of it is read as
    /// components, and the last of these as the beginning of the next word.
    ///
    /// `record` has the line feed of the row before; `before` are the components of that row, and
    /// `after` is what follows.
    fn is_in_place(&self, record: &[u8], word: &[u8], before: Before<'_>, after: &[u8]) -> bool {
        if self.has_line_feeds {
            let begins = matches!(before, Before::Nothing) || record.starts_with(b"\n");
            let goes_on = after.starts_with(b"\n") || is_padding(after);
            return begins && goes_on && memchr(b'\n', word).is_none();
        }
        let is_usual = |x: f32| x == 0.0 || (1e-12..1e6).contains(&x.abs());
        let was_whole = match before {
            Before::Row(components) => self.components(components).into_iter().all(is_usual),
            Before::Nothing | Before::Unknown => true,
        };
        // Components have zero bytes and the like, words at most a tab.
        let is_number = word.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
        was_whole && !is_number && self.goes_on(after)
    }

    /// Whether whole rows follow, or fewer than can tell.
    fn goes_on(&self, mut after: &[u8]) -> bool {
        /// Several words one after the other may be bad, but misplaced rows hardly have a good one.
        const LOOKED_AT: usize = 3;
        for _ in 0..LOOKED_AT {
            let Ok(Some((word, components, end))) = split(after, self.dim) else {
                return true;
            };
            let word = word_in(self.encoding, &after[word..components - 1]);
            let is_word =
                check_word(&word, self.encoding).is_ok() || is_long_and_cut(&word, self.encoding);
            if is_word && check_finite(&self.components(&after[components..end])).is_ok() {
                return true;
            }
            after = &after[end..];
        }
        false
    }

    fn components(&self, bytes: &[u8]) -> Vec<f32> {
        let mut components = Vec::with_capacity(self.dim);
        Number::F32.read(bytes, &mut components);
        components
    }
}

/// The bytes before a row.
#[derive(Clone, Copy)]
enum Before<'a> {
    /// It is the first of the file.
    Nothing,
    /// Another chunk of the file.
    Unknown,
    /// The components of a row.
    Row(&'a [u8]),
}

impl Parser for BinaryRows {
    fn parse(&self, bytes: &[u8], first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.components.reserve(bytes.len() / size_of::<f32>());
        let mut start = 0;
        let mut before = if first == 0 { Before::Nothing } else { Before::Unknown };
        // The framing only passes whole records.
        while let Ok(Some((word, components, end))) = split(&bytes[start..], self.dim) {
            let row = &bytes[start..start + end];
            let (word, components) = (&row[word..components - 1], &row[components..]);
            Number::F32.read(components, &mut parsed.components);
            match check_word(&word_in(self.encoding, word), self.encoding) {
                Ok(word) => {
                    let before = parsed.components.len() - self.dim;
                    let good = check_finite(&parsed.components[before..]).map(|()| word);
                    parsed.end_record(good, self.dim, start);
                }
                Err(reason) if self.is_in_place(row, word, before, &bytes[start + end..]) => {
                    parsed.end_record(Err(reason), self.dim, start);
                }
                Err(reason) => {
                    parsed.end_broken_record(reason + MISPLACED, self.dim, start);
                }
            }
            before = Before::Row(components);
            start += end;
        }
        parsed
    }
}

/// The end of the message for a row after which no row is where it should be.
const MISPLACED: &str = "; the header may be wrong, or an earlier word contains a space, which \
                         this format does not allow: use the text form instead";

/// Checks a word that was decoded, unless it is UTF-8.
fn check_word(word: &[u8], encoding: Option<TextEncoding>) -> Result<&str, String> {
    match utf8(word, encoding) {
        Ok("") => Err("the word is empty".to_owned()),
        Ok(word) if word.contains(|c: char| c.is_ascii_control()) => {
            Err("the word contains control characters".to_owned())
        }
        Ok(word) => Ok(word),
        // word2vec.c keeps the first bytes of a long word.
        Err(reason) => Err(match cut_at(word, encoding).filter(|_| encoding.is_none()) {
            Some(byte) => not_utf8(byte, ", as if cut inside a character"),
            None => reason,
        }),
    }
}

/// The bytes before the last character of a word that lacks only the end of that character. In
/// other encodings than UTF-8, a byte that is not UTF-8 replaces it.
fn cut_at(word: &[u8], encoding: Option<TextEncoding>) -> Option<usize> {
    let error = std::str::from_utf8(word).err()?;
    let at = error.valid_up_to();
    let is_cut = match encoding {
        None => error.error_len().is_none(),
        Some(_) => at + 1 == word.len(),
    };
    is_cut.then_some(at)
}

/// Whether a word was cut inside a character, and is too long to be the bytes of numbers.
fn is_long_and_cut(word: &[u8], encoding: Option<TextEncoding>) -> bool {
    const LONG: usize = 32;
    let has_controls = word.iter().any(u8::is_ascii_control);
    cut_at(word, encoding).is_some_and(|at| at >= LONG) && !has_controls
}

#[cfg(test)]
mod tests;
