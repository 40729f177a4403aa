//! The file beside a folder of documents while their texts are encoded, `OUT.partial`: the vectors
//! that are there, so that a preparation which was stopped goes on where it ended.
//!
//! ```text
//! file  = head, entries
//! head  = a line: "kindred documents", the format, the program's version, a hash of the encoder,
//!         the dimension
//! entry = number of the batch, of records, of vectors: three u64
//!         BLAKE3 of the batch's keys and texts, BLAKE3 of all else in the entry: 32 bytes each
//!         a byte for each record: 1 if it has a vector; then the vectors, float32
//! ```
//!
//! The input is read again from its start, which takes little time beside the encoding. An entry
//! counts only for the batch whose keys and texts it was made of: an input that was changed, or an
//! entry that was torn, costs time and never an answer. So nothing needs to be synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::encoder::NewEncoder;

/// Preparations that take less time begin anew, and write nothing twice.
const KEEP_AFTER: Duration = Duration::from_secs(10);

/// The begin of a file.
const BEGIN: &str = "kindred documents ";

/// The numbers and the checksums of an entry.
const ENTRY_HEAD: usize = 3 * 8 + 2 * 32;

/// The key and the text of a record, or its fault. Where texts are not read, they are empty.
pub(super) type Record = Result<(String, String), String>;

/// The vectors of texts that were encoded, in their order.
pub(super) struct Partial {
    path: PathBuf,
    head: String,
    dim: usize,
    begun: Instant,
    keep_after: Duration,
    /// Where to read and write. `None`: there is no file, or none that can be used.
    file: Option<Open>,
    /// Records whose vectors were there.
    pub(super) found: u64,
}

struct Open {
    file: BufReader<File>,
    /// Whether entries may follow that were not read.
    may_follow: bool,
}

/// The vectors of a batch: for each record whether it has one, and these, one behind another.
pub(super) struct Known {
    pub(super) has_vector: Vec<bool>,
    pub(super) vectors: Vec<f32>,
}

impl Partial {
    /// Opens the file beside `out`, if there is one of the same encoder.
    pub(super) fn beside(out: &Path, encoder: &NewEncoder<'_>, dim: usize) -> Self {
        Self::new(out, encoder, dim, KEEP_AFTER)
    }

    fn new(out: &Path, encoder: &NewEncoder<'_>, dim: usize, keep_after: Duration) -> Self {
        let (version, encoder) = (env!("CARGO_PKG_VERSION"), identity(encoder));
        let (path, head) = (path_of(out), format!("{BEGIN}1 {version} {encoder} {dim}\n"));
        let mut new =
            Self { path, head, dim, begun: Instant::now(), keep_after, file: None, found: 0 };
        if let Ok(file) = OpenOptions::new().read(true).write(true).open(&new.path) {
            // What can't be read is made again.
            new.file = new.opened(file).ok().flatten();
        }
        new
    }

    /// The file behind its head, if no other process writes it. One of another encoder begins anew.
    fn opened(&self, mut file: File) -> io::Result<Option<Open>> {
        if file.try_lock().is_err() || !is_own(&mut file)? {
            return Ok(None);
        }
        let (mut file, mut head) =
            (BufReader::with_capacity(1 << 20, file), vec![0; self.head.len()]);
        let is_same = file.read_exact(&mut head).is_ok() && head == self.head.as_bytes();
        if !is_same {
            file.seek(SeekFrom::Start(0))?;
            file.get_ref().set_len(0)?;
            file.get_mut().write_all(self.head.as_bytes())?;
        }
        Ok(Some(Open { file, may_follow: is_same }))
    }

    /// The vectors of a batch, if they are there.
    pub(super) fn take(&mut self, batch: u64, records: &[Record]) -> Option<Known> {
        let open = self.file.as_mut().filter(|open| open.may_follow)?;
        match read(&mut open.file, batch, records, self.dim) {
            Ok(Some(known)) => {
                self.found += records.len() as u64;
                Some(known)
            }
            // It is of a later batch.
            Ok(None) => None,
            // From here on, there is nothing of use.
            Err(at) => {
                open.may_follow = false;
                let end = at.and_then(|at| {
                    open.file.seek(SeekFrom::Start(at))?;
                    open.file.get_ref().set_len(at)
                });
                if end.is_err() {
                    self.file = None;
                }
                None
            }
        }
    }

    /// Whether vectors are kept now: entries of later batches are not there already, and the work
    /// takes long enough.
    pub(super) fn keeps(&self) -> bool {
        match &self.file {
            Some(open) => !open.may_follow,
            None => self.begun.elapsed() >= self.keep_after,
        }
    }

    /// Keeps the vectors of a batch. If the disk is full, nothing is kept, because the model needs
    /// the room.
    pub(super) fn put(&mut self, batch: u64, records: &[Record], known: &Known) {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&self.path);
            // It is tried once: the file may be another's.
            self.keep_after = Duration::MAX;
            self.file = file.and_then(|file| self.opened(file)).ok().flatten();
            if let Some(open) = &mut self.file {
                open.may_follow = false;
            }
        }
        let Some(open) = &mut self.file else { return };
        let numbers = [batch, records.len() as u64, (known.vectors.len() / self.dim) as u64];
        let content = numbers.map(u64::to_le_bytes).concat();
        let has_vector: Vec<u8> = known.has_vector.iter().map(|&has| u8::from(has)).collect();
        let vectors: &[u8] = bytemuck::cast_slice(&known.vectors);
        let of_texts = hash_of(records);
        let sum = sum_of(&content, &of_texts, &has_vector, vectors);
        let parts: [&[u8]; 5] =
            [&content, of_texts.as_bytes(), sum.as_bytes(), &has_vector, vectors];
        let written = parts.iter().try_for_each(|part| open.file.get_mut().write_all(part));
        if written.is_err() {
            self.remove();
        }
    }

    /// The file, if it has vectors.
    pub(super) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|_| &*self.path)
    }

    /// Removes the file, because the model is complete, or there is no room for it.
    pub(super) fn remove(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a file is empty, or begins as one of these. Goes back to its start.
fn is_own(file: &mut File) -> io::Result<bool> {
    let mut begin = Vec::with_capacity(BEGIN.len());
    file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(begin.is_empty() || begin == BEGIN.as_bytes())
}

/// The name of the file.
fn path_of(out: &Path) -> PathBuf {
    // `out/` names the same folder as `out`.
    let mut name = out.components().as_path().as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Reads the next entry. `None`, if it is of a later batch; then it will be read again. Fails with
/// the byte where it begins, if it is none of this batch, or was torn.
fn read(
    file: &mut BufReader<File>,
    batch: u64,
    records: &[Record],
    dim: usize,
) -> Result<Option<Known>, io::Result<u64>> {
    let start = file.stream_position().map_err(Err)?;
    let mut head = [0; ENTRY_HEAD];
    file.read_exact(&mut head).map_err(|_| Ok(start))?;
    let number = |index: usize| {
        let bytes = head[8 * index..8 * (index + 1)].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let [of_batch, count, with_vector] = [number(0), number(1), number(2)];
    if of_batch > batch {
        file.seek_relative(-(ENTRY_HEAD as i64)).map_err(Err)?;
        return Ok(None);
    }
    let of_texts = hash_of(records);
    let is_of_batch = of_batch == batch
        && count == records.len() as u64
        && with_vector <= count
        && head[24..56] == *of_texts.as_bytes();
    if !is_of_batch {
        return Err(Ok(start));
    }
    let mut has_vector = vec![0; records.len()];
    let mut vectors = vec![0.0_f32; with_vector as usize * dim];
    let whole = file
        .read_exact(&mut has_vector)
        .and_then(|()| file.read_exact(bytemuck::cast_slice_mut(&mut vectors)));
    let sum = sum_of(&head[..24], &of_texts, &has_vector, bytemuck::cast_slice(&vectors));
    let flags = has_vector.iter().filter(|&&has| has == 1).count() as u64;
    if whole.is_err() || head[56..] != *sum.as_bytes() || flags != with_vector {
        return Err(Ok(start));
    }
    Ok(Some(Known { has_vector: has_vector.iter().map(|&has| has == 1).collect(), vectors }))
}

/// The hash of an entry without it.
fn sum_of(
    numbers: &[u8],
    of_texts: &blake3::Hash,
    has_vector: &[u8],
    vectors: &[u8],
) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    [numbers, of_texts.as_bytes(), has_vector, vectors].iter().for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize()
}

/// The hash of the keys and the texts of a batch, or of their faults.
fn hash_of(records: &[Record]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for record in records {
        match record {
            Ok((key, text)) => [key, text].into_iter().for_each(|text| add(text)),
            Err(fault) => ["", "", fault].into_iter().for_each(&mut add),
        }
    }
    hasher.finalize()
}

/// All that decides which vector an encoder makes of a text.
fn identity(encoder: &NewEncoder<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    if let NewEncoder::Files(files) = encoder {
        hasher.update(files.kind.as_bytes());
        hasher.update(files.settings.to_string().as_bytes());
        for (name, content) in &files.files {
            hasher.update(name.as_bytes());
            hasher.update(&(content.len() as u64).to_le_bytes());
            hasher.update_rayon(content);
        }
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::documents::{Documents, prepare};
    use super::super::{DocumentFields, DocumentVectors, PrepareOptions, Summary, TextVectors};
    use super::*;
    use crate::ModelError;
    use crate::encoder::{NO_ENCODER, NewFiles};
    use crate::format::{DATA_START, VECTORS_FILE, WORDS_FILE};

    /// Makes vectors of the lengths of texts, and counts them. Texts that are empty have none.
    #[derive(Default)]
    struct Lengths {
        made: AtomicUsize,
    }

    impl TextVectors for Lengths {
        fn dim(&self) -> usize {
            3
        }

        fn encode(&self, text: &str, vector: &mut [f32]) -> Result<(), String> {
            self.made.fetch_add(1, Ordering::Relaxed);
            vector.copy_from_slice(&[1.0, text.len() as f32, 0.5]);
            if text.is_empty() { Err("the text is empty".to_owned()) } else { Ok(()) }
        }

        fn encoder(&self) -> NewEncoder<'_> {
            let (settings, files) = (serde_json::json!({}), Vec::new());
            NewEncoder::Files(NewFiles { kind: NO_ENCODER, settings, files })
        }

        fn name(&self) -> String {
            "lengths".to_owned()
        }
    }

    const RECORDS: usize = 30_000;

    fn lines(change: impl Fn(usize) -> usize) -> String {
        let line = |n: usize| match n % 1000 {
            7 => format!("{n},\n"),
            _ => format!("{n},{}\n", "x".repeat(1 + change(n) % 50)),
        };
        std::iter::once("key,text\n".to_owned()).chain((0..RECORDS).map(line)).collect()
    }

    /// Prepares, and stops after `calls` calls of progress. Also returns the number of texts that
    /// were encoded.
    fn run(folder: &Path, lines: &str, calls: usize) -> (Result<Summary, ModelError>, usize) {
        let (input, out) = (folder.join("docs.csv"), folder.join("docs"));
        fs::write(&input, lines).unwrap();
        let by = Lengths::default();
        let fields = DocumentFields { text: "text".into(), key: Some("key".into()), parquet: None };
        let vectors = DocumentVectors::Encoded(&by);
        let documents = Documents { input: &input, fields: &fields, vectors };
        let partial = Partial::new(&out, &by.encoder(), 3, Duration::ZERO);
        let options =
            PrepareOptions { skip_bad_rows: true, replace: true, ..PrepareOptions::default() };
        let mut left = calls;
        let mut on_progress = |_| match left.checked_sub(1) {
            None => ControlFlow::Break(()),
            Some(less) => {
                left = less;
                ControlFlow::Continue(())
            }
        };
        let done = prepare(documents, Some(partial), &out, &options, &mut on_progress);
        (done, by.made.into_inner())
    }

    /// The model's vectors and keys. Its header says when it was made.
    fn content(folder: &Path) -> [Vec<u8>; 2] {
        let read = |name: &str| fs::read(folder.join("docs").join(name)).unwrap();
        [read(VECTORS_FILE).split_off(DATA_START), read(WORDS_FILE)]
    }

    #[test]
    fn a_preparation_that_was_stopped_goes_on_and_makes_the_same_model() {
        let scratch = tempfile::tempdir().unwrap();
        let [whole, half] = ["whole", "half"].map(|name| scratch.path().join(name));
        [&whole, &half].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let text = lines(|n| n);
        let (done, all) = run(&whole, &text, usize::MAX);
        assert_eq!((done.unwrap().resumed, all), (0, RECORDS));
        let file = half.join("docs.partial");
        assert!(!whole.join("docs.partial").exists(), "of a model that is complete");
        let (stopped, _) = run(&half, &text, 2);
        assert!(matches!(stopped, Err(ModelError::CancelledHalf { path }) if path == file));
        let (done, more) = run(&half, &text, usize::MAX);
        let summary = done.unwrap();
        let resumed = summary.resumed as usize;
        assert!((2 * 4096..RECORDS).contains(&resumed), "{resumed}");
        let faults = text[..].lines().skip(1).take(resumed).filter(|line| line.ends_with(','));
        assert_eq!(
            more,
            RECORDS - resumed + faults.count(),
            "texts without a vector are tried again"
        );
        assert_eq!(content(&half), content(&whole));
        assert_eq!(summary.provenance.bad_rows_skipped, 30);
        assert!(!file.exists());
    }

    #[test]
    fn what_was_changed_or_torn_is_made_again() {
        let scratch = tempfile::tempdir().unwrap();
        let whole = scratch.path();
        let text = lines(|n| n);
        run(whole, &text, usize::MAX).0.unwrap();
        let expected = content(whole);
        let file = whole.join("docs.partial");
        assert!(run(whole, &text, 3).0.is_err());
        let kept = fs::read(&file).unwrap();
        // One text is another: only what is before its batch is used.
        let (done, _) = run(whole, &lines(|n| if n == 9000 { 3 } else { n }), usize::MAX);
        assert_eq!(done.unwrap().resumed, 8192);
        assert_ne!(content(whole), expected);
        // Any byte: of the head, of an entry's head, of its flags, of its vectors; or the end.
        for at in (0..kept.len()).step_by(kept.len() / 40).chain([0, 40, 70, 120, 300]) {
            let mut damaged = kept.clone();
            damaged[at] ^= 1;
            for left in [&damaged[..], &kept[..at]] {
                fs::write(&file, left).unwrap();
                let (done, made) = run(whole, &text, usize::MAX);
                let summary = done.unwrap();
                assert!(made + summary.resumed as usize >= RECORDS);
                assert_eq!(content(whole), expected, "byte {at}");
            }
            let _ = fs::remove_file(&file);
        }
    }

    #[test]
    fn vectors_of_another_encoder_and_files_of_others_are_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, text) = (scratch.path(), lines(|n| n));
        let file = folder.join("docs.partial");
        fs::write(&file, "my own").unwrap();
        let (done, made) = run(folder, &text, usize::MAX);
        assert_eq!((done.unwrap().resumed, made), (0, RECORDS));
        assert_eq!(fs::read(&file).unwrap(), b"my own");
        fs::remove_file(&file).unwrap();
        assert!(run(folder, &text, 3).0.is_err());
        let other = NewEncoder::Files(NewFiles {
            kind: "static",
            settings: serde_json::json!({}),
            files: vec![("rows", b"other")],
        });
        let mut partial = Partial::new(&folder.join("docs"), &other, 3, Duration::ZERO);
        assert!(partial.take(0, &[]).is_none());
        assert!(fs::metadata(&file).unwrap().len() < 200, "begun anew");
        // While a process works with it, another keeps nothing.
        let (done, made) = run(folder, &text, usize::MAX);
        assert_eq!((done.unwrap().resumed, made), (0, RECORDS));
        assert!(file.exists());
        partial.remove();
        assert!(!file.exists());
    }
}
