//! Writes the files of a new base: the rows of the old one that live, then those behind it.
//!
//! ```text
//! for each tensor, in pieces:
//!     piece ← a copy of the old one's; hash it, for the old checksum
//!     write the rows of the piece that live; hash them, for the new checksum
//! write those of the tail; compare the old checksum
//! ```
//!
//! A piece is copied before it is hashed, and written from that copy. So what is damaged in the old
//! base, in memory or on the disk, is never written with a checksum that says that it is right.

use std::ops::{ControlFlow, Range};

use contract::{Metric, Row};
use fst::{IntoStreamer as _, Streamer as _};
use model_store::attributes::{AttributeFiles, Attributes, ColumnBuilder};
use model_store::format::{
    ATTRIBUTES_FOLDER, Checksum, Checksums, DATA_START, Folded, Header, INDEX_FILE, Layout,
    Provenance, REQUESTS_FILE, VECTORS_FILE, WORDS_FILE,
};
use model_store::{ModelError, ModelStore};

use super::file::NewFile;
use super::live::{LiveRows, live_tail};
use super::{FoldProgress, OnFold};
use crate::error::ChangeError;
use crate::requests::Requests;
use crate::state::{Snapshot, TailRow};
use crate::storage::Root;

/// Bytes of a tensor that are copied together.
const PIECE: usize = 4 << 20;

/// The sources of a new base.
pub(super) struct Source<'a> {
    pub(super) base: &'a ModelStore,
    pub(super) snapshot: &'a Snapshot,
    pub(super) live: &'a LiveRows,
    pub(super) requests: &'a Requests,
    /// What it will say of itself, but for what is known when it is written.
    pub(super) folded: Folded,
}

/// Writes a base into a folder that is there and empty. Everything in it is on disk then.
pub(super) fn write(
    source: &Source<'_>,
    root: &dyn Root,
    folder: &str,
    on_progress: OnFold<'_>,
) -> Result<(), ChangeError> {
    let name = |file: &str| format!("{folder}/{file}");
    let mut vectors = NewFile::create(root, &name(VECTORS_FILE))?;
    let mut words = NewFile::create(root, &name(WORDS_FILE))?;
    let rows = source.rows();
    let mut writing = Writing { source, on_progress, of: rows };
    let mut sums = writing.numbers(&mut vectors, &mut words)?;
    let words_bytes = words.finish()?;
    let (index, index_bytes) = writing.index(NewFile::create(root, &name(INDEX_FILE))?)?;
    sums.index = index;
    let requests = writing.requests(NewFile::create(root, &name(REQUESTS_FILE))?)?;
    if let Some(attributes) = source.base.attributes() {
        sums.attributes = Some(writing.attributes(attributes, root, &name(ATTRIBUTES_FOLDER))?);
    }
    let header = Header {
        rows,
        dim: source.base.dim(),
        metric: source.base.metric(),
        words_bytes,
        index_bytes,
        checksums: sums,
        table_id: None,
        folded: Some(Folded { rows: vectors.checksum()?, requests, ..source.folded.clone() }),
        provenance: Provenance::again(&source.base.header().provenance),
    };
    vectors.put_first(&header.to_bytes().expect("there is room for a header that was read"))?;
    vectors.finish()?;
    let path = root.path(folder);
    root.sync_folder(folder).map_err(ChangeError::io("sync", &path))
}

impl Source<'_> {
    fn rows(&self) -> usize {
        self.snapshot.live_rows()
    }

    fn tail(&self) -> impl Iterator<Item = TailRow<'_>> {
        live_tail(self.snapshot)
    }

    /// Bytes that the files will take, and a little more.
    pub(super) fn bytes(&self) -> u64 {
        const MORE: u64 = 1 << 20;
        let (base, has_biases) = (self.base, self.base.metric() == Metric::Dot);
        let layout = Layout::new(self.rows(), base.dim(), has_biases, true);
        let numbers = DATA_START + layout.map_or(0, |layout| layout.end());
        let of_base = base.words().text().len() + base.words().index_bytes().len();
        let of_attributes = base.attributes().map_or(0, Attributes::bytes);
        // A key is in both files of words; a value is as large as it is in memory, or smaller.
        let of_row = |row: TailRow<'_>| {
            let values = row.attributes.iter().flatten().map(|value| value.bytes() + 16);
            3 * row.key.len() + 16 + values.sum::<usize>()
        };
        let of_tail: usize = self.tail().map(of_row).sum();
        let of_sources = self.snapshot.sources().line().map_or(0, |line| line.len());
        let all = numbers + of_base + of_tail + self.requests.bytes() + of_sources;
        all as u64 + of_attributes + MORE
    }
}

struct Writing<'a> {
    source: &'a Source<'a>,
    on_progress: OnFold<'a>,
    of: usize,
}

impl Writing<'_> {
    fn tell(&mut self, step: &'static str, done: usize) -> Result<(), ChangeError> {
        match (self.on_progress)(FoldProgress { step, done, of: self.of }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ChangeError::FoldStopped),
        }
    }

    /// All tensors, and the words. The checksum of the last tensor, which has the numbers of the
    /// rows, is still to be taken.
    fn numbers(
        &mut self,
        out: &mut NewFile,
        words: &mut NewFile,
    ) -> Result<Checksums, ChangeError> {
        let source = self.source;
        let (base, sums) = (source.base, source.base.header().checksums);
        let is_dot = base.metric() == Metric::Dot;
        base.check_alignment()?;
        let layout = Layout::new(source.rows(), base.dim(), is_dot, true);
        let layout = layout.expect("there are numbers for all rows");
        out.put(&vec![0; DATA_START])?;
        out.checksum()?;

        self.tensor(out, "vectors", (base.vectors_bytes(), base.dim() * 4), Some(sums.vectors))?;
        for row in source.tail() {
            out.put(bytemuck::cast_slice(row.vector))?;
        }
        let vectors = out.checksum()?;
        out.put(&vec![0; layout.alignment.len()])?;
        out.checksum()?;

        self.tensor(out, "norms", (base.norms_bytes(), 8), Some(sums.norms))?;
        for row in source.tail() {
            out.put(&row.norm.to_le_bytes())?;
        }
        let norms = out.checksum()?;
        let words_sum = self.words(out, words)?;
        let word_offsets = out.checksum()?;
        let mut biases = None;
        if is_dot {
            match base.biases_bytes() {
                Some(bytes) => self.tensor(out, "biases", (bytes, 4), sums.biases)?,
                None => {
                    for run in source.live.runs(0..base.rows()) {
                        run.into_iter().try_for_each(|_| out.put(&0_f32.to_le_bytes()))?;
                    }
                }
            }
            for row in source.tail() {
                out.put(&row.bias.unwrap_or(0.0).to_le_bytes())?;
            }
            biases = Some(out.checksum()?);
        }
        match base.numbers_bytes() {
            Some((bytes, sum)) => self.tensor(out, "rows", (bytes, 4), Some(sum))?,
            None => {
                for run in source.live.runs(0..base.rows()) {
                    run.into_iter().try_for_each(|row| out.put(&(row as u32).to_le_bytes()))?;
                }
            }
        }
        for row in source.tail() {
            out.put(&source.snapshot.number(row.row).to_le_bytes())?;
        }
        Ok(Checksums {
            vectors,
            norms,
            word_offsets,
            words: words_sum,
            index: words_sum,
            biases,
            attributes: None,
            encoder: base.header().checksums.encoder,
        })
    }

    /// The rows of a tensor that live; `each` bytes for a row.
    fn tensor(
        &mut self,
        out: &mut NewFile,
        step: &'static str,
        (old, each): (&[u8], usize),
        expected: Option<Checksum>,
    ) -> Result<(), ChangeError> {
        let source = self.source;
        let (mut hasher, mut piece) = (blake3::Hasher::new(), Vec::new());
        for rows in pieces(source.base.rows(), each) {
            piece.clear();
            piece.extend_from_slice(&old[rows.start * each..rows.end * each]);
            hasher.update_rayon(&piece);
            for run in source.live.runs(rows.clone()) {
                out.put(&piece[(run.start - rows.start) * each..(run.end - rows.start) * each])?;
            }
            self.tell(step, rows.end.min(self.of))?;
        }
        self.compare(VECTORS_FILE, step, Checksum::from_hasher(&hasher), expected)
    }

    /// An old checksum that is another one is damage of the old base.
    fn compare(
        &self,
        file: &str,
        step: &str,
        found: Checksum,
        expected: Option<Checksum>,
    ) -> Result<(), ChangeError> {
        match expected.filter(|expected| *expected != found) {
            None => Ok(()),
            Some(expected) => {
                let reason = format!("the checksum of its {step} is {found}, not {expected}");
                Err(ModelError::damaged(&self.source.base.file(file), reason).into())
            }
        }
    }

    /// The offsets of the words, and the words.
    fn words(&mut self, out: &mut NewFile, words: &mut NewFile) -> Result<Checksum, ChangeError> {
        let source = self.source;
        let (base, sums) = (source.base, source.base.header().checksums);
        let (text, offsets) = (base.words().text(), base.words().offsets());
        let (mut of_text, mut of_offsets) = (blake3::Hasher::new(), blake3::Hasher::new());
        out.put(&0_u64.to_le_bytes())?;
        for rows in pieces(base.rows(), 512) {
            let own = offsets[rows.start..=rows.end].to_vec();
            of_offsets.update(bytemuck::cast_slice(&own[..rows.len()]));
            let first = own[0] as usize;
            let lines = text[first..own[rows.len()] as usize].to_vec();
            of_text.update_rayon(&lines);
            for row in source.live.runs(rows.clone()).flatten() {
                let at = row - rows.start;
                words.put(&lines[own[at] as usize - first..own[at + 1] as usize - first])?;
                out.put(&words.bytes().to_le_bytes())?;
            }
            self.tell("words", rows.end.min(self.of))?;
        }
        of_offsets.update(&offsets[base.rows()].to_le_bytes());
        let found = Checksum::from_hasher(&of_offsets);
        self.compare(VECTORS_FILE, "word offsets", found, Some(sums.word_offsets))?;
        let found = Checksum::from_hasher(&of_text);
        self.compare(WORDS_FILE, "words", found, Some(sums.words))?;
        for row in source.tail() {
            words.put(row.key.as_bytes())?;
            words.put(b"\n")?;
            out.put(&words.bytes().to_le_bytes())?;
        }
        words.checksum()
    }

    /// The map from words to rows: the old one's, in its order, with the keys of the tail between.
    fn index(&mut self, out: NewFile) -> Result<(Checksum, u64), ChangeError> {
        let source = self.source;
        self.tell("word map", self.of)?;
        let first = source.live.count();
        let tail = source.tail().zip(first..).map(|(row, place)| (row.key, place));
        let mut tail: Vec<(&str, u32)> = tail.collect();
        tail.sort_unstable();
        let mut tail = tail.into_iter().peekable();
        let path = source.base.file(INDEX_FILE);
        let failed = |error: fst::Error| match error {
            fst::Error::Io(error) => match error.downcast::<ChangeError>() {
                Ok(error) => error,
                Err(error) => ChangeError::io("write", &path)(error),
            },
            // Words that are not in order, or there twice.
            error => ModelError::damaged(&path, error).into(),
        };
        let mut map = fst::MapBuilder::new(out).map_err(failed)?;
        let mut old = base_map(source.base).into_stream();
        while let Some((word, row)) = old.next() {
            let row = u32::try_from(row).ok().filter(|row| (*row as usize) < source.base.rows());
            let row =
                row.ok_or_else(|| ModelError::damaged(&path, "it names a row that is not there"));
            let Some(place) = source.live.place(Row(row?)) else { continue };
            while let Some((key, place)) = tail.next_if(|(key, _)| key.as_bytes() < word) {
                map.insert(key, u64::from(place)).map_err(failed)?;
            }
            map.insert(word, u64::from(place.0)).map_err(failed)?;
        }
        for (key, place) in tail {
            map.insert(key, u64::from(place)).map_err(failed)?;
        }
        let found = Checksum::of(source.base.words().index_bytes());
        let expected = source.base.header().checksums.index;
        self.compare(INDEX_FILE, "word map", found, Some(expected))?;
        let mut out = map.into_inner().map_err(failed)?;
        let checksum = out.checksum()?;
        Ok((checksum, out.finish()?))
    }

    fn requests(&mut self, mut out: NewFile) -> Result<(u64, Checksum), ChangeError> {
        let sources = self.source.snapshot.sources().line();
        let mut lines = sources.into_iter().chain(self.source.requests.lines());
        lines.try_for_each(|line| out.put(line.as_bytes()))?;
        let checksum = out.checksum()?;
        Ok((out.finish()?, checksum))
    }

    /// The folder of the attributes, one column after the other: one is in memory at a time.
    fn attributes(
        &mut self,
        old: &Attributes,
        root: &dyn Root,
        folder: &str,
    ) -> Result<Checksum, ChangeError> {
        let (source, rows) = (self.source, self.of);
        let path = root.path(folder);
        root.make_folder(folder).map_err(ChangeError::io("make", &path))?;
        let mut columns = AttributeFiles::one_by_one(rows);
        for (index, column) in old.columns().iter().enumerate() {
            let mut new = ColumnBuilder::new(column.name(), column.kind());
            for rows in pieces(old.rows(), 64) {
                let live = source.live.runs(rows).flatten();
                live.for_each(|row| new.push(column.get(Row(row as u32))));
                self.tell("attributes", new.len())?;
            }
            source.tail().for_each(|row| new.push(row.attributes[index].clone()));
            for (name, content) in columns.add(new) {
                put_whole(root, &format!("{folder}/{name}"), &content)?;
            }
        }
        // After it was read: damage that was there then is there now.
        old.verify_while(&|| true)?;
        let (name, description) = columns.finish();
        put_whole(root, &format!("{folder}/{name}"), &description)?;
        root.sync_folder(folder).map_err(ChangeError::io("sync", &path))?;
        Ok(Checksum::of(&description))
    }
}

fn put_whole(root: &dyn Root, name: &str, content: &[u8]) -> Result<(), ChangeError> {
    let mut file = NewFile::create(root, name)?;
    content.chunks(PIECE).try_for_each(|piece| file.put(piece))?;
    file.finish().map(drop)
}

fn base_map(base: &ModelStore) -> &fst::Map<model_store::Mapped> {
    base.words().index()
}

/// Rows in pieces of about [`PIECE`] bytes, if each has so many.
fn pieces(rows: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    let together = (PIECE / each.max(1)).max(1);
    (0..rows).step_by(together).map(move |start| start..(start + together).min(rows))
}
