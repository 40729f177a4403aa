//! Texts for display: compressed, in the order of the rows, and never compared.
//!
//! ```text
//! line of a row = its text as a JSON string, or null
//! block         = some whole lines, about BLOCK_BYTES, as a member of gzip
//! file          = the blocks, one behind another: a file that every gzip unpacks
//! ```
//!
//! The block of a row is unpacked to read it, and stays unpacked for the thread that has read it:
//! reading all rows in their order unpacks each block once.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use memchr::memchr_iter;

use super::array::{Array, UINT64, npy_of};
use crate::mapped::Mapped;

/// Bytes of lines in a block, from which on it is full.
const BLOCK_BYTES: usize = 16 << 10;

/// Typical ratio of the size of texts to their compressed size.
const RATIO: usize = 3;

/// Counts those that were made, so that what a thread keeps is of the right one.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LAST: RefCell<Unpacked> =
        const { RefCell::new(Unpacked { of: (u64::MAX, 0), lines: String::new() }) };
}

/// The block that a thread has read last.
struct Unpacked {
    /// Whose block it is, and which.
    of: (u64, usize),
    lines: String,
}

/// Texts that are written, one row after the other.
#[derive(Debug)]
pub(super) struct StoredWriter {
    id: u64,
    packed: Vec<u8>,
    /// Where each block begins, and where the last ends.
    starts: Vec<u64>,
    /// The first row of each block, and the number of rows in all blocks.
    rows: Vec<u64>,
    /// Lines that are in no block yet.
    lines: Vec<u8>,
    count: u64,
    /// Rows that have a text.
    texts: usize,
}

impl StoredWriter {
    pub(super) fn new() -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (packed, lines) = (Vec::new(), Vec::new());
        Self { id, packed, starts: vec![0], rows: vec![0], lines, count: 0, texts: 0 }
    }

    /// Adds the text of the next row.
    pub(super) fn push(&mut self, text: Option<&str>) {
        serde_json::to_writer(&mut self.lines, &text).expect("texts are JSON");
        self.lines.push(b'\n');
        self.count += 1;
        self.texts += usize::from(text.is_some());
        if self.lines.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let mut encoder = GzEncoder::new(std::mem::take(&mut self.packed), Compression::new(4));
        encoder.write_all(&self.lines).expect("memory takes all bytes");
        self.packed = encoder.finish().expect("memory takes all bytes");
        self.lines.clear();
        self.starts.push(self.packed.len() as u64);
        self.rows.push(self.count);
    }

    /// The files: the blocks, where they begin, and their first rows; of the rows that have the
    /// texts at these places.
    pub(super) fn into_files(mut self, sources: &[Option<usize>]) -> [Vec<u8>; 3] {
        let is_all = sources.len() as u64 == self.count
            && sources.iter().flatten().count() == self.texts
            && sources.iter().enumerate().all(|(row, at)| at.is_none_or(|at| at == row));
        if is_all {
            return self.finish();
        }
        if !self.lines.is_empty() {
            self.end_block();
        }
        let (id, packed, starts, rows) = (self.id, &self.packed, &self.starts, &self.rows);
        let blocks = Blocks { id, packed, starts, rows };
        let mut other = Self::new();
        for at in sources {
            other.push(at.and_then(|at| blocks.text(at as u64)).as_deref());
        }
        other.finish()
    }

    fn finish(mut self) -> [Vec<u8>; 3] {
        if !self.lines.is_empty() {
            self.end_block();
        }
        let (starts, rows) = (npy_of(UINT64, &self.starts), npy_of(UINT64, &self.rows));
        [self.packed, starts, rows]
    }
}

/// The mapped texts of a column. Clones share them.
#[derive(Debug, Clone)]
pub struct Stored {
    id: u64,
    packed: Mapped,
    starts: Array<u64>,
    rows: Array<u64>,
}

impl Stored {
    /// Takes the files of a column of this many rows. Checks that blocks cover the file and the
    /// rows.
    pub(super) fn new(
        packed: Mapped,
        starts: Mapped,
        rows: Mapped,
        count: usize,
    ) -> Result<Self, String> {
        let (starts, rows) = (Array::any_length(starts, UINT64)?, Array::any_length(rows, UINT64)?);
        let cover = |numbers: &[u64], end: usize| {
            numbers.first() == Some(&0)
                && numbers.last() == Some(&(end as u64))
                && numbers.windows(2).all(|pair| pair[0] < pair[1])
        };
        let is_right = starts.all().len() == rows.all().len()
            && cover(starts.all(), packed.len())
            && cover(rows.all(), count);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        match is_right {
            true => Ok(Self { id, packed, starts, rows }),
            false => Err("its blocks do not cover its texts".to_owned()),
        }
    }

    fn blocks(&self) -> Blocks<'_> {
        let Self { id, packed, starts, rows } = self;
        Blocks { id: *id, packed, starts: starts.all(), rows: rows.all() }
    }

    /// The text of a row; `None` if it has none.
    pub fn text(&self, row: usize) -> Option<String> {
        self.blocks().text(row as u64)
    }

    /// Bytes of a text of the usual length.
    pub(super) fn usual_bytes(&self) -> usize {
        let rows = self.rows.all().last().map_or(1, |&rows| rows.max(1) as usize);
        RATIO * self.packed.len() / rows
    }

    /// Checks that every block has lines of its rows, each a JSON string as it is written here, and
    /// `null` where `is_missing`.
    pub(super) fn verify(
        &self,
        is_missing: &dyn Fn(usize) -> bool,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool, String> {
        let blocks = self.blocks();
        for block in 0..blocks.starts.len() - 1 {
            if !goes_on() {
                return Ok(false);
            }
            let lines =
                blocks.unpacked(block).ok_or_else(|| format!("its block {block} is damaged"))?;
            let (mut row, end) = (blocks.rows[block] as usize, blocks.rows[block + 1] as usize);
            for line in lines.split_inclusive('\n') {
                let content = line.strip_suffix('\n').unwrap_or_default();
                let text: Option<Option<String>> = serde_json::from_str(content).ok();
                let is_right = text.is_some_and(|text| {
                    let again = serde_json::to_string(&text).ok();
                    again.as_deref() == Some(content) && text.is_none() == is_missing(row)
                });
                if row >= end || !is_right {
                    return Err(format!("its line of row {row} is not that of the row"));
                }
                row += 1;
            }
            if row != end {
                return Err(format!("its block {block} has too few lines"));
            }
        }
        Ok(goes_on())
    }
}

/// Blocks in memory.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    id: u64,
    packed: &'a [u8],
    starts: &'a [u64],
    rows: &'a [u64],
}

impl Blocks<'_> {
    /// The text of a row. A block that is damaged has none; `verify` says so.
    fn text(self, row: u64) -> Option<String> {
        let block = self.rows.partition_point(|&first| first <= row).checked_sub(1)?;
        if block + 1 >= self.rows.len() {
            return None;
        }
        LAST.with_borrow_mut(|last| {
            if last.of != (self.id, block) {
                *last = Unpacked { of: (self.id, block), lines: self.unpacked(block)? };
            }
            let line = line(&last.lines, (row - self.rows[block]) as usize)?;
            serde_json::from_str(line).ok().flatten()
        })
    }

    /// The lines of a block.
    fn unpacked(self, block: usize) -> Option<String> {
        let (start, end) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        let (mut lines, packed) =
            (String::with_capacity(2 * BLOCK_BYTES), &self.packed[start..end]);
        let mut decoder = GzDecoder::new(packed);
        decoder.read_to_string(&mut lines).ok()?;
        decoder.get_ref().is_empty().then_some(lines)
    }
}

/// A line by its number from 0.
fn line(lines: &str, number: usize) -> Option<&str> {
    let mut ends = memchr_iter(b'\n', lines.as_bytes());
    let start = match number.checked_sub(1) {
        None => 0,
        Some(before) => ends.nth(before)? + 1,
    };
    lines.get(start..ends.next()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(files: &[Vec<u8>; 3], rows: usize) -> Result<Stored, String> {
        let [packed, starts, firsts] = files.each_ref().map(|file| Mapped::copy_of(file).unwrap());
        Stored::new(packed, starts, firsts, rows)
    }

    fn written(texts: &[Option<String>]) -> StoredWriter {
        let mut writer = StoredWriter::new();
        texts.iter().for_each(|text| writer.push(text.as_deref()));
        writer
    }

    fn texts() -> impl Strategy<Value = Vec<Option<String>>> {
        let text = ("[ab\"\\\\\né\u{1}]{0,9}", 0..2500_usize);
        let text = text.prop_map(|(text, times)| text.repeat(times));
        prop::collection::vec(prop::option::of(text), 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn texts_come_back_in_any_order(
            texts in texts(),
            order in prop::collection::vec(prop::option::of(0..30_usize), 0..40),
        ) {
            let all: Vec<Option<usize>> = (0..texts.len()).map(Some).collect();
            let sources = order.iter().map(|at| at.filter(|&at| at < texts.len())).collect();
            for sources in [all, sources] {
                let stored = open(&written(&texts).into_files(&sources), sources.len()).unwrap();
                let expected: Vec<Option<String>> =
                    sources.iter().map(|at| at.and_then(|at| texts[at].clone())).collect();
                for row in (0..expected.len()).chain((0..expected.len()).rev().step_by(3)) {
                    prop_assert_eq!(&stored.text(row), &expected[row]);
                }
                prop_assert_eq!(stored.text(expected.len()), None);
                prop_assert_eq!(stored.verify(&|row| expected[row].is_none(), &|| true), Ok(true));
                if !expected.is_empty() {
                    prop_assert_eq!(stored.verify(&|_| true, &|| false), Ok(false));
                    prop_assert!(stored.verify(&|row| expected[row].is_some(), &|| true).is_err());
                }
            }
        }
    }

    #[test]
    fn any_gzip_unpacks_the_file_and_long_texts_take_less_room() {
        let texts: Vec<_> = (0..2000).map(|n| Some(format!("the text of row {n}"))).collect();
        let all: Vec<_> = (0..2000).map(Some).collect();
        let files = written(&texts).into_files(&all);
        let mut lines = String::new();
        flate2::read::MultiGzDecoder::new(&files[0][..]).read_to_string(&mut lines).unwrap();
        let expected: String =
            texts.iter().flatten().map(|text| format!("{}\n", serde_json::json!(text))).collect();
        assert_eq!(lines, expected);
        let stored = open(&files, 2000).unwrap();
        assert!(stored.starts.all().len() > 3, "several blocks");
        assert!(files[0].len() * 2 < lines.len());
        assert_eq!(stored.text(1234).as_deref(), Some("the text of row 1234"));
    }

    #[test]
    fn damage_is_found_and_nothing_panics() {
        let texts: Vec<_> = (0..3000).map(|n| Some(format!("the text of row {n}"))).collect();
        let all: Vec<_> = (0..3000).map(Some).collect();
        let files = written(&texts).into_files(&all);
        assert!(open(&files, 2999).is_err());
        for at in (0..files[0].len()).step_by(97) {
            let mut damaged = files.clone();
            damaged[0][at] ^= 0x55;
            let stored = open(&damaged, 3000).unwrap();
            // Some bytes of a member's header mean nothing to a reader; the file's checksum finds
            // them.
            let is_right = stored.verify(&|_| false, &|| true) == Ok(true);
            for row in (0..3000).step_by(131) {
                let found = stored.text(row);
                assert!(found.is_none() || found == texts[row], "byte {at}, row {row}");
                assert!(!is_right || found.is_some());
            }
        }
        for file in 1..3 {
            for at in (128..files[file].len()).step_by(8) {
                let mut damaged = files.clone();
                damaged[file][at] ^= 1;
                let stored = open(&damaged, 3000);
                let stored = stored.and_then(|stored| stored.verify(&|_| false, &|| true));
                assert!(stored.is_err(), "file {file}, byte {at}");
            }
        }
        // A row whose text is another's, because it has no line: it is missing.
        let texts = ["a", "b", "c"].map(|text| Some(text.to_owned()));
        let stored = open(&written(&texts).into_files(&[Some(0), None, Some(2)]), 3).unwrap();
        assert_eq!((stored.text(1), stored.text(2).as_deref()), (None, Some("c")));
        let empty = StoredWriter::new().into_files(&[]);
        assert_eq!(open(&empty, 0).unwrap().text(0), None);
    }
}
