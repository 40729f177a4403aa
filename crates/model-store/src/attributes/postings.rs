//! The rows of each text of a column, so that a test of a rare text reads the rows that meet it
//! instead of all rows.

use std::fmt;

use contract::Row;

/// The rows of each code.
pub struct Postings {
    /// `[codes + 1]`: the rows of code `c` are `rows[starts[c - 1]..starts[c]]`.
    starts: Vec<usize>,
    rows: Vec<Row>,
}

impl fmt::Debug for Postings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {} texts", self.rows.len(), self.starts.len() - 1)
    }
}

impl Postings {
    /// Sorts rows by the codes of their lists, each of which is from 1 to `distinct`.
    pub(super) fn of_lists(list_starts: &[u64], codes: &[u32], distinct: usize) -> Self {
        let row = |(row, pair): (usize, &[u64])| {
            codes[pair[0] as usize..pair[1] as usize].iter().map(move |&code| (row, code))
        };
        Self::new(codes, list_starts.windows(2).enumerate().rev().flat_map(row), distinct)
    }

    /// Sorts rows by their codes, each of which is from 0 to `distinct`; 0 is no text.
    pub(super) fn of_texts(codes: &[u32], distinct: usize) -> Self {
        let texts = codes.iter().copied().enumerate().rev().filter(|&(_, code)| code > 0);
        Self::new(codes, texts, distinct)
    }

    /// A sort by counting, of 5 to 10 ns of one core for each code. `texts` are rows, descending,
    /// with those of the codes that are not 0.
    fn new(codes: &[u32], texts: impl Iterator<Item = (usize, u32)>, distinct: usize) -> Self {
        let mut starts = vec![0; distinct + 1];
        codes.iter().for_each(|&code| starts[code as usize] += 1);
        starts[0] = 0;
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // From the last row to the first: where a code's rows end becomes where they begin.
        let mut rows = vec![Row(0); sum];
        for (row, code) in texts {
            let start = &mut starts[code as usize];
            *start -= 1;
            rows[*start] = Row(row as u32);
        }
        starts.remove(0);
        starts.push(sum);
        Self { starts, rows }
    }

    /// The rows that have the text with this code, ascending; one is repeated if its list repeats
    /// the text.
    ///
    /// # Panics
    /// If there is no such code.
    pub fn of(&self, code: u32) -> &[Row] {
        let code = code as usize;
        &self.rows[self.starts[code - 1]..self.starts[code]]
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_of(self.rows.len(), self.starts.len() - 1)
    }

    /// Bytes of memory for lists that have this many texts together, of which this many are
    /// different.
    pub(super) fn bytes_of(texts: usize, distinct: usize) -> usize {
        texts * size_of::<Row>() + (distinct + 1) * size_of::<usize>()
    }
}
