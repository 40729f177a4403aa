//! Tells a component from the index of the rows, which other programs write as the first column.

use memchr::memchr;

use super::Parsed;

/// The first column of a matrix, as far as it was seen. It is an index if it counts the rows, from
/// 0 or 1 on.
#[derive(Debug, Clone)]
pub(in crate::prepare) struct IndexColumn {
    dim: usize,
    /// The command that drops the column.
    cure: String,
    /// Rows so far; bad ones have a number, too.
    records: u64,
    /// Good ones.
    rows: u64,
    /// The number of the first row, once it is known.
    first: Option<u64>,
    counts: bool,
}

impl IndexColumn {
    /// Of rows like this one. A single column is no index, because there would be nothing left.
    pub(super) fn new(row: &[u8], dim: usize, has_header: bool) -> Option<Self> {
        let cure = without_first_column(row, has_header);
        (dim > 1).then_some(Self { dim, cure, records: 0, rows: 0, first: None, counts: true })
    }

    /// Looks at more rows. Costs nothing once one had another number.
    pub(super) fn see(&mut self, parsed: &Parsed) {
        if !self.counts {
            return;
        }
        let mut bad = parsed.bad.iter().map(|&record| u64::from(record)).peekable();
        let good = (0..parsed.records).filter(|record| bad.next_if_eq(record).is_none());
        for (record, row) in good.zip(parsed.components.chunks_exact(self.dim)) {
            let record = self.records + record;
            // Both are the nearest float32.
            let first = *self.first.get_or_insert(u64::from(row[0] != record as f32));
            self.rows += 1;
            if row[0] != (record + first) as f32 {
                self.counts = false;
                return;
            }
        }
        self.records += parsed.records;
    }

    /// Why the column is an index, if so.
    pub(super) fn reason(&self) -> Option<String> {
        /// Fewer rows say nothing.
        const FEWEST: u64 = 3;
        let first = self.first.filter(|_| self.counts && self.rows >= FEWEST)?;
        let Self { dim, cure, .. } = self;
        Some(format!(
            "its first column counts the rows from {first} on, so it is their index and no \
             component; drop it: {cure}; if it is a component, add --dim {dim}"
        ))
    }
}

/// The command that drops the first column of rows like this one.
fn without_first_column(row: &[u8], has_header: bool) -> String {
    let row = row.trim_ascii_end();
    let has = |sign| memchr(sign, row).is_some();
    let are_spaces = |pair: &[u8]| pair.iter().all(u8::is_ascii_whitespace);
    let is_loose =
        row.windows(2).any(are_spaces) || row.first().is_some_and(u8::is_ascii_whitespace);
    let command = if has(b',') {
        "cut -d, -f2-"
    } else if has(b';') {
        "cut -d';' -f2-"
    } else if is_loose || (has(b'\t') && has(b' ')) {
        "awk '{ $1 = \"\"; print }'"
    } else if has(b'\t') {
        "cut -f2-"
    } else {
        "cut -d' ' -f2-"
    };
    // The header has the number of components with the index.
    match has_header {
        true => format!("tail -n +2 FILE | {command}"),
        false => format!("{command} FILE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows whose first components are these; bad ones where there is none.
    fn seen(chunks: &[&[Option<f32>]]) -> Option<String> {
        let mut column = IndexColumn::new(b"0 0.5", 2, false).unwrap();
        for chunk in chunks {
            let mut parsed = Parsed::default();
            for first in *chunk {
                parsed.components.extend([first.unwrap_or(0.0), 0.5]);
                parsed.end_record(first.map(|_| "a").ok_or(String::new()), 2, 0);
            }
            column.see(&parsed);
        }
        column.reason()
    }

    #[test]
    fn what_counts_the_rows_is_an_index() {
        let row = |number: u32| Some(number as f32);
        for first in [0, 1] {
            let rows: Vec<Option<f32>> = (first..first + 100).map(row).collect();
            let expected = format!("counts the rows from {first} on");
            assert!(seen(&[&rows[..]]).unwrap().contains(&expected));
            assert!(seen(&[&rows[..1], &[], &rows[1..40], &rows[40..]]).is_some());
            assert!(seen(&[&rows[..3]]).is_some());
            assert_eq!(seen(&[&rows[..2]]), None, "too few to tell");
            for at in [0, 1, 50, 99] {
                let mut others = rows.clone();
                others[at] = Some(0.25);
                assert_eq!(seen(&[&others[..60], &others[60..]]), None, "row {at} has another");
                others[at] = None;
                assert!(seen(&[&others[..60], &others[60..]]).is_some(), "row {at} is bad");
            }
        }
        let [two, zero] = [2, 0].map(|first| (first..first + 9).map(row).collect::<Vec<_>>());
        assert_eq!(seen(&[&two[..]]), None);
        assert_eq!(seen(&[&zero[..], &zero[..]]), None, "it begins again");
        assert_eq!(seen(&[]), None);
        assert!(IndexColumn::new(b"0", 1, false).is_none());
    }

    #[test]
    fn rows_beyond_the_whole_numbers_of_float32_are_counted() {
        const BEFORE: u64 = (1 << 24) - 50;
        let mut column = IndexColumn::new(b"0 0.5", 2, false).unwrap();
        (column.records, column.first) = (BEFORE, Some(0));
        let mut parsed = Parsed::default();
        for number in BEFORE..BEFORE + 100 {
            parsed.components.extend([number.to_string().parse::<f32>().unwrap(), 0.5]);
            parsed.records += 1;
        }
        column.see(&parsed);
        assert!(column.reason().is_some());
    }

    #[test]
    fn the_cure_suits_the_separator() {
        for (row, expected) in [
            ("0 0.5 1\r", "cut -d' ' -f2- FILE"),
            ("0\t0.5\t1", "cut -f2- FILE"),
            ("0, 0.5, 1", "cut -d, -f2- FILE"),
            ("0;0.5;1", "cut -d';' -f2- FILE"),
            (" 0 0.5 1", "awk '{ $1 = \"\"; print }' FILE"),
            ("0   0.5 1", "awk '{ $1 = \"\"; print }' FILE"),
            ("0\t0.5 1", "awk '{ $1 = \"\"; print }' FILE"),
        ] {
            assert_eq!(without_first_column(row.as_bytes(), false), expected, "{row}");
        }
        assert_eq!(without_first_column(b"1 2", true), "tail -n +2 FILE | cut -d' ' -f2-");
    }
}
