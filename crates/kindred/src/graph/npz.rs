//! Where everything lies in a graph's .npz: a zip of stored .npy arrays, whose size is known before
//! the first score is.
//!
//! So rows are written where they belong, in any order and by several threads, and the file is
//! never copied. The crate `zip` writes entries one after another. Every record has its zip64 form,
//! so that there is one form to test for all sizes. Arrays begin at multiples of 64 bytes of the
//! file.

use crc32fast::Hasher;
use model_store::npy::head;

use super::Identity;

/// Arrays begin at multiples of this, in bytes, as NumPy aligns them in its own files.
const ALIGNMENT: u64 = 64;
/// The version of zip that has zip64.
const VERSION: u16 = 45;
/// 1980-01-01: the same graph is the same file, whenever it was made.
const DATE: u16 = 0x21;
/// Says that a size or place is in the zip64 record.
const IN_ZIP64: u32 = u32::MAX;
/// The local header without name and extra fields.
const LOCAL_BYTES: u64 = 30;
/// The zip64 record of a local header: two sizes.
const LOCAL_ZIP64_BYTES: u64 = 20;
/// The smallest padding: an extra field of its own.
const PADDING_BYTES: u64 = 6;
/// The extra field that others use for padding (zipalign of Android).
const PADDING_ID: u16 = 0xd935;

/// An array of the file.
struct Entry {
    name: &'static str,
    /// What `.npy` begins with.
    npy: Vec<u8>,
    /// The array, if it is no table of rows.
    content: Option<Vec<u8>>,
    /// Length of the array, in bytes.
    length: u64,
    /// Where the local header begins.
    at: u64,
    /// Where the `.npy` begins.
    npy_at: u64,
}

impl Entry {
    fn data_at(&self) -> u64 {
        self.npy_at + self.npy.len() as u64
    }

    fn size(&self) -> u64 {
        self.npy.len() as u64 + self.length
    }

    fn end(&self) -> u64 {
        self.data_at() + self.length
    }
}

/// A table of the file, with one line for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// The neighbours' rows, int64 `[rows, k]`.
    Indices,
    /// Their scores, float64 `[rows, k]`.
    Scores,
}

/// Where everything lies.
pub(super) struct Layout {
    /// Indices and scores first.
    entries: Vec<Entry>,
    bytes_per_row: u64,
}

impl Layout {
    pub(super) fn new(identity: &Identity) -> Self {
        let Identity { rows, k, .. } = *identity;
        let table = [rows, k];
        let length = rows * k * 8;
        let arrays = [
            ("indices.npy", "'<i8'".to_owned(), &table[..], None),
            ("scores.npy", "'<f8'".to_owned(), &table, None),
            ("k.npy", "'<i8'".to_owned(), &[], Some(k.to_le_bytes().to_vec())),
            text("model.npy", &identity.model),
            text("version.npy", &identity.version),
            text("metric.npy", &identity.metric),
        ];
        let mut at = 0;
        let entries = arrays.into_iter().map(|(name, kind, shape, content)| {
            let length = content.as_ref().map_or(length, |content| content.len() as u64);
            let least = at + LOCAL_BYTES + name.len() as u64 + LOCAL_ZIP64_BYTES + PADDING_BYTES;
            let npy_at = least.next_multiple_of(ALIGNMENT);
            let entry = Entry { name, npy: head(&kind, shape), content, length, at, npy_at };
            at = entry.end();
            entry
        });
        Self { entries: entries.collect(), bytes_per_row: k * 8 }
    }

    fn entry(&self, table: Rows) -> &Entry {
        &self.entries[table as usize]
    }

    /// Where a row of a table begins.
    pub(super) fn at(&self, table: Rows, row: u64) -> u64 {
        self.entry(table).data_at() + row * self.bytes_per_row
    }

    /// The length of the whole file, in bytes.
    pub(super) fn size(&self) -> u64 {
        let (_, end) = self.end(&[0, 0]);
        self.directory_at() + end.len() as u64
    }

    fn directory_at(&self) -> u64 {
        self.entries.last().map_or(0, Entry::end)
    }

    /// Everything but the tables, and where it lies; for the checksums of indices and scores.
    pub(super) fn around(&self, tables: [&Hasher; 2]) -> Vec<(u64, Vec<u8>)> {
        let checksums = self.checksums(tables);
        let local = self.entries.iter().zip(&checksums).map(|(entry, checksum)| {
            let mut bytes = local_header(entry, *checksum);
            bytes.extend_from_slice(&entry.npy);
            bytes.extend(entry.content.iter().flatten());
            (entry.at, bytes)
        });
        local.chain([self.end(&checksums)]).collect()
    }

    fn checksums(&self, tables: [&Hasher; 2]) -> Vec<u32> {
        let checksum = |(index, entry): (usize, &Entry)| {
            let mut checksum = Hasher::new();
            checksum.update(&entry.npy);
            match &entry.content {
                Some(content) => checksum.update(content),
                None => checksum.combine(tables[index]),
            }
            checksum.finalize()
        };
        self.entries.iter().enumerate().map(checksum).collect()
    }

    /// The directory, which ends the file.
    fn end(&self, checksums: &[u32]) -> (u64, Vec<u8>) {
        let at = self.directory_at();
        let mut bytes = Vec::new();
        // The length does not depend on the checksums.
        let checksums = checksums.iter().copied().chain(std::iter::repeat(0));
        for (entry, checksum) in self.entries.iter().zip(checksums) {
            central_header(entry, checksum, &mut bytes);
        }
        let (length, count) = (bytes.len() as u64, self.entries.len() as u64);
        // The zip64 end record, and where it is.
        put(&mut bytes, &[b"PK\x06\x06", &44u64.to_le_bytes()]);
        put(&mut bytes, &[&VERSION.to_le_bytes(), &VERSION.to_le_bytes(), &[0; 8]]);
        for number in [count, count, length, at] {
            put(&mut bytes, &[&number.to_le_bytes()]);
        }
        put(&mut bytes, &[b"PK\x06\x07", &[0; 4], &(at + length).to_le_bytes()]);
        put(&mut bytes, &[&1u32.to_le_bytes()]);
        // The end record.
        let count = (count as u16).to_le_bytes();
        put(&mut bytes, &[b"PK\x05\x06", &[0; 4], &count, &count]);
        put(&mut bytes, &[&(length as u32).to_le_bytes(), &IN_ZIP64.to_le_bytes(), &[0; 2]]);
        (at, bytes)
    }
}

fn put(bytes: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
}

/// A text as an array without dimensions: UTF-32, as NumPy keeps text.
fn text<'a>(name: &'static str, text: &str) -> (&'static str, String, &'a [u64], Option<Vec<u8>>) {
    // NumPy has no text of length 0; zeros at the end are no part of a text.
    let padded = text.chars().map(u32::from).chain(text.is_empty().then_some(0));
    let content: Vec<u8> = padded.flat_map(u32::to_le_bytes).collect();
    (name, format!("'<U{}'", content.len() / 4), &[], Some(content))
}

/// What a local and a central header have in common: version, flags, method (stored), time, date,
/// checksum, sizes, length of the name.
fn common(entry: &Entry, checksum: u32, bytes: &mut Vec<u8>) {
    put(bytes, &[&VERSION.to_le_bytes(), &[0; 6], &DATE.to_le_bytes()]);
    put(bytes, &[&checksum.to_le_bytes(), &IN_ZIP64.to_le_bytes(), &IN_ZIP64.to_le_bytes()]);
    put(bytes, &[&(entry.name.len() as u16).to_le_bytes()]);
}

fn local_header(entry: &Entry, checksum: u32) -> Vec<u8> {
    let without_extra = LOCAL_BYTES + entry.name.len() as u64;
    let extra = entry.npy_at - entry.at - without_extra;
    let padding = extra - LOCAL_ZIP64_BYTES - 4;
    let mut bytes = b"PK\x03\x04".to_vec();
    common(entry, checksum, &mut bytes);
    put(&mut bytes, &[&(extra as u16).to_le_bytes(), entry.name.as_bytes()]);
    put(&mut bytes, &[&1u16.to_le_bytes(), &16u16.to_le_bytes()]);
    put(&mut bytes, &[&entry.size().to_le_bytes(), &entry.size().to_le_bytes()]);
    put(&mut bytes, &[&PADDING_ID.to_le_bytes(), &(padding as u16).to_le_bytes()]);
    put(&mut bytes, &[&(ALIGNMENT as u16).to_le_bytes()]);
    bytes.resize((entry.npy_at - entry.at) as usize, 0);
    bytes
}

fn central_header(entry: &Entry, checksum: u32, bytes: &mut Vec<u8>) {
    /// Made on Unix, a plain file that its owner may write.
    const MADE_BY: u16 = 3 << 8 | VERSION;
    const ATTRIBUTES: u32 = 0o100_644 << 16;
    put(bytes, &[b"PK\x01\x02", &MADE_BY.to_le_bytes()]);
    common(entry, checksum, bytes);
    // Length of the extra fields; no comment, disk 0, no internal attributes.
    put(bytes, &[&28u16.to_le_bytes(), &[0; 6], &ATTRIBUTES.to_le_bytes()]);
    put(bytes, &[&IN_ZIP64.to_le_bytes(), entry.name.as_bytes()]);
    put(bytes, &[&1u16.to_le_bytes(), &24u16.to_le_bytes()]);
    for number in [entry.size(), entry.size(), entry.at] {
        put(bytes, &[&number.to_le_bytes()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(rows: u64, k: u64) -> Identity {
        let (model, version, metric) = ("grün 🐸".into(), "7fbc".into(), "dot".into());
        Identity { format: 1, model, version, metric, rows, k, min_score: None, rows_per_range: 4 }
    }

    #[test]
    fn arrays_are_aligned_and_nothing_overlaps_beyond_4_gib_as_well() {
        for (rows, k) in [(1, 1), (5, 3), (2_196_016, 10), (100_000_000, 1000)] {
            let layout = Layout::new(&identity(rows, k));
            let mut end = 0;
            for entry in &layout.entries {
                assert_eq!(entry.at, end);
                assert_eq!((entry.npy_at % 64, entry.data_at() % 64), (0, 0));
                let header = local_header(entry, 0);
                assert_eq!(header.len() as u64, entry.npy_at - entry.at);
                let extra = u64::from(u16::from_le_bytes([header[28], header[29]]));
                assert_eq!(LOCAL_BYTES + entry.name.len() as u64 + extra, header.len() as u64);
                end = entry.end();
            }
            assert_eq!(layout.at(Rows::Scores, 0) - layout.at(Rows::Indices, rows), {
                layout.entries[1].data_at() - layout.entries[1].at
            });
            let around = layout.around([&Hasher::new(), &Hasher::new()]);
            let last = around.last().unwrap();
            assert_eq!(last.0 + last.1.len() as u64, layout.size());
        }
    }

    #[test]
    fn a_file_of_8_gib_has_its_sizes_where_zip64_has_them() {
        let layout = Layout::new(&identity(100_000_000, 10));
        let around = layout.around([&Hasher::new(), &Hasher::new()]);
        let bytes = &around.last().unwrap().1;
        let size = layout.entries[1].size();
        assert!(size > u64::from(u32::MAX));
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        // The second central header: after 46 bytes, name and 28 bytes of the first.
        let second = 46 + "indices.npy".len() + 28;
        assert_eq!(&bytes[second..second + 4], b"PK\x01\x02");
        let zip64 = second + 46 + "scores.npy".len() + 4;
        assert_eq!([number(zip64), number(zip64 + 8)], [size, size]);
        assert_eq!(number(zip64 + 16), layout.entries[1].at);
    }
}
