//! Rows of fixed size, whose words are in a separate file.

use std::sync::Arc;

use super::{BadBytes, Framing, Parsed, Parser, check_finite, check_norm, is_padding};
use crate::number::Number;
use crate::prepare::blank_end::BlankEnd;
use crate::prepare::words_file::WordList;

pub(super) struct FixedFraming {
    pub(super) row_bytes: usize,
    pub(super) rows: u64,
    pub(super) found: u64,
    /// Whether other data may follow the rows.
    pub(super) may_go_on: bool,
    /// The end after the rows, which is left out.
    pub(super) end: BlankEnd,
}

impl Framing for FixedFraming {
    fn whole(&mut self, bytes: &[u8], at_end: bool) -> Result<(usize, u64), BadBytes> {
        let left = self.rows - self.found;
        let there = ((bytes.len() / self.row_bytes) as u64).min(left);
        let whole = there as usize * self.row_bytes;
        self.found += there;
        let fault = |record, reason| Err(BadBytes { record, byte: whole, reason });
        if self.found == self.rows {
            let rest = &bytes[whole..];
            if !self.may_go_on && !is_padding(rest) {
                return fault(None, format!("the file has more data after its {} rows", self.rows));
            }
            if !self.may_go_on {
                self.end.zeros += rest.len() as u64;
            }
        } else if at_end {
            let reason = match bytes.len() - whole {
                0 => format!("the file ends here, but should have {} rows", self.rows),
                _ => format!("the file ends inside this row; it should have {} rows", self.rows),
            };
            return fault(Some(self.found), reason);
        }
        Ok((whole, there))
    }

    fn end_of(&self, bytes: &[u8], records: u64) -> Option<usize> {
        let end = self.row_bytes.checked_mul(usize::try_from(records).ok()?)?;
        (records <= self.rows - self.found && end <= bytes.len()).then_some(end)
    }

    fn is_done(&self) -> bool {
        self.found == self.rows
    }

    fn warnings(&self) -> Vec<String> {
        self.end.warning().into_iter().collect()
    }
}

pub(super) struct FixedRows {
    pub(super) dim: usize,
    pub(super) number: Number,
    /// Whether a norm precedes the components.
    pub(super) with_norm: bool,
    pub(super) words: Arc<WordList>,
}

impl FixedRows {
    pub(super) fn row_bytes(&self) -> usize {
        (self.dim + usize::from(self.with_norm)) * self.number.bytes()
    }
}

impl Parser for FixedRows {
    fn parse(&self, bytes: &[u8], first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        parsed.components.reserve(bytes.len() / self.number.bytes());
        for (i, row) in bytes.chunks_exact(self.row_bytes()).enumerate() {
            let before = parsed.components.len();
            self.number.read(row, &mut parsed.components);
            let norm = self.with_norm.then(|| parsed.components.remove(before));
            let row = &parsed.components[before..];
            let good = check_finite(row).and_then(|()| match norm {
                Some(norm) => check_norm(norm, row),
                None => Ok(()),
            });
            let word = good.map(|()| self.words.get(first as usize + i));
            parsed.end_record(word, self.dim, i * self.row_bytes());
        }
        parsed
    }
}
