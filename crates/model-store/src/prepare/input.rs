//! Reads the vectors file from disk, counting and hashing it.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::Input;
use super::signature::{
    BZIP2_BYTES, SAFETENSORS_BYTES, is_bzip2, is_safetensors, may_be_safetensors,
};
use crate::error::Reason;
use crate::format::Checksum;
use crate::{ModelError, lfs};

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Bzip2,
    Zstd,
    Xz,
    Zip,
}

impl Packing {
    /// Detects compression by the first bytes of a file.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        if is_safetensors(start) {
            return None;
        }
        if is_bzip2(start) {
            return Some(Self::Bzip2);
        }
        // zstd may start with a skippable frame, as pzstd writes it.
        if matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]) {
            return Some(Self::Zstd);
        }
        let magics: [(&[u8], Self); 5] = [
            (b"\x1f\x8b", Self::Gzip),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
            (b"\xfd7zXZ\0", Self::Xz),
            (b"PK\x03\x04", Self::Zip),
            // An empty archive.
            (b"PK\x05\x06", Self::Zip),
        ];
        magics.into_iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, packing)| packing)
    }

    /// The command that decompresses a file.
    pub(super) fn unpacker(self) -> &'static str {
        match self {
            Self::Gzip => "gunzip",
            Self::Bzip2 => "bunzip2",
            Self::Zstd => "unzstd",
            Self::Xz => "unxz",
            Self::Zip => "unzip",
        }
    }

    /// The command that checks a file.
    pub(super) fn tester(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -t",
            Self::Bzip2 => "bzip2 -t",
            Self::Zstd => "zstd -t",
            Self::Xz => "xz -t",
            Self::Zip => "unzip -t",
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Zip => "zip",
        })
    }
}

/// How far a file has been read, for other threads.
#[derive(Clone)]
pub(super) struct ReadSoFar {
    pub(super) path: PathBuf,
    pub(super) packing: Option<Packing>,
    /// The size on disk; unknown for a pipe.
    pub(super) bytes_total: Option<u64>,
    seen: Arc<Mutex<Seen>>,
}

impl ReadSoFar {
    /// Before decompression.
    pub(super) fn bytes_read(&self) -> u64 {
        lock(&self.seen).bytes
    }

    /// Zero bytes were found after compressed data.
    pub(super) fn see_padding(&self, bytes: u64) {
        lock(&self.seen).padding += bytes;
    }

    /// Zero bytes after compressed data.
    pub(super) fn padding(&self) -> u64 {
        lock(&self.seen).padding
    }

    /// Size and checksum of the file on disk, once it was read to its end.
    pub(super) fn finish(&self) -> Result<(u64, Checksum), ModelError> {
        let whole = lock(&self.seen).whole.take();
        match whole {
            Some(Whole::Hashed(bytes, checksum)) => Ok((bytes, checksum)),
            Some(Whole::Hashing(thread)) => thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the hashing thread panicked")))
                .map_err(ModelError::io("read", &self.path)),
            None => {
                let seen = lock(&self.seen);
                Ok((seen.bytes, Checksum::from_hasher(&seen.hasher)))
            }
        }
    }

    pub(super) fn bad(&self, reason: impl Into<Reason>) -> ModelError {
        ModelError::BadInput { path: self.path.clone(), reason: reason.into() }
    }
}

/// The number of bytes used to detect compression.
const START_BYTES: usize = 6;

/// The source of bytes.
pub(super) enum Raw<'a> {
    File(File),
    Bytes(&'a [u8]),
    /// A source that can be read only once, including the first bytes.
    Pipe(Box<dyn Read + Send>),
}

/// The bytes seen so far.
#[derive(Default)]
struct Seen {
    bytes: u64,
    /// Zero bytes after compressed data.
    padding: u64,
    hasher: blake3::Hasher,
    /// Hashes a whole archive separately, because only a part of it is read.
    whole: Option<Whole>,
}

enum Whole {
    Hashed(u64, Checksum),
    Hashing(JoinHandle<io::Result<(u64, Checksum)>>),
}

/// Opens an input before decompression.
pub(super) fn open(input: Input<'_>) -> Result<(ReadSoFar, Raw<'_>), ModelError> {
    let mut start = Vec::new();
    let (path, bytes_total, raw) = match input {
        Input::Bytes { name, bytes } => {
            read_start(&mut &*bytes, &mut start)
                .map_err(ModelError::io("read", Path::new(name)))?;
            (name.into(), Some(bytes.len() as u64), Raw::Bytes(bytes))
        }
        Input::Stdin => {
            let path = PathBuf::from("standard input");
            let raw = pipe(io::stdin(), &mut start).map_err(ModelError::io("read", &path))?;
            (path, None, raw)
        }
        Input::File(path) => {
            let mut file = File::open(path).map_err(ModelError::io("open", path))?;
            let can_not_read = |e| ModelError::io("read", path)(e);
            let metadata = file.metadata().map_err(can_not_read)?;
            if metadata.is_dir() {
                let reason = "it is a folder; give a file".into();
                return Err(ModelError::BadInput { path: path.to_owned(), reason });
            }
            if metadata.is_file() {
                read_start(&mut file, &mut start).map_err(can_not_read)?;
                file.seek(SeekFrom::Start(0)).map_err(can_not_read)?;
                (path.to_owned(), Some(metadata.len()), Raw::File(file))
            } else {
                (path.to_owned(), None, pipe(file, &mut start).map_err(can_not_read)?)
            }
        }
    };
    match lfs::reason(&start) {
        None => {
            let packing = Packing::of(&start);
            Ok((ReadSoFar { path, packing, bytes_total, seen: Arc::default() }, raw))
        }
        Some(reason) => Err(ModelError::BadInput { path, reason: reason.into() }),
    }
}

/// Reads the first bytes. More than [`START_BYTES`] only where they matter: the writer of a pipe
/// may wait for an answer.
fn read_start(reader: &mut impl Read, start: &mut Vec<u8>) -> io::Result<()> {
    reader.take(START_BYTES as u64).read_to_end(start)?;
    if start.len() == START_BYTES {
        let more = telling_bytes(start).saturating_sub(START_BYTES);
        reader.take(more as u64).read_to_end(start)?;
    }
    Ok(())
}

/// The number of first bytes that tell what a file is that begins like this.
fn telling_bytes(start: &[u8]) -> usize {
    match Packing::of(start) {
        Some(Packing::Bzip2) => BZIP2_BYTES,
        Some(_) if may_be_safetensors(start) => SAFETENSORS_BYTES,
        None if lfs::may_begin(start) => lfs::POINTER_BYTES,
        _ => START_BYTES,
    }
}

fn pipe(mut reader: impl Read + Send + 'static, start: &mut Vec<u8>) -> io::Result<Raw<'static>> {
    read_start(&mut reader, start)?;
    Ok(Raw::Pipe(Box::new(Cursor::new(start.clone()).chain(reader))))
}

impl<'a> Raw<'a> {
    /// Reads from start to end, and notes the bytes.
    pub(super) fn watched(self, so_far: &ReadSoFar) -> Box<dyn Read + Send + 'a> {
        let (seen, hashes) = (so_far.seen.clone(), true);
        match self {
            Self::File(inner) => Box::new(Watched { inner, seen, hashes }),
            Self::Bytes(bytes) => Box::new(Watched { inner: Cursor::new(bytes), seen, hashes }),
            Self::Pipe(inner) => Box::new(Watched { inner, seen, hashes }),
        }
    }

    /// For archives, whose directory is at their end. `None` for sources that can be read only
    /// once.
    pub(super) fn seekable(self, so_far: &ReadSoFar) -> io::Result<Option<Box<dyn ReadSeek + 'a>>> {
        let (seen, hashes) = (so_far.seen.clone(), false);
        match self {
            Self::File(inner) => {
                lock(&seen).whole = Some(hash_beside(File::open(&so_far.path)?)?);
                Ok(Some(Box::new(Watched { inner, seen, hashes })))
            }
            Self::Bytes(bytes) => {
                let hashed = Whole::Hashed(bytes.len() as u64, Checksum::of(bytes));
                lock(&seen).whole = Some(hashed);
                Ok(Some(Box::new(Watched { inner: Cursor::new(bytes), seen, hashes })))
            }
            Self::Pipe(_) => Ok(None),
        }
    }
}

/// The source of an archive.
pub(super) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("nothing panics while it holds this lock")
}

fn hash_beside(mut file: File) -> io::Result<Whole> {
    let thread = std::thread::Builder::new().name("kindred-hash".into()).spawn(move || {
        let mut hasher = blake3::Hasher::new();
        let bytes = io::copy(&mut file, &mut hasher)?;
        Ok((bytes, Checksum::from_hasher(&hasher)))
    })?;
    Ok(Whole::Hashing(thread))
}

struct Watched<R> {
    inner: R,
    seen: Arc<Mutex<Seen>>,
    hashes: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let mut seen = lock(&self.seen);
        seen.bytes += n as u64;
        if self.hashes {
            seen.hasher.update(&buffer[..n]);
        }
        Ok(n)
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
