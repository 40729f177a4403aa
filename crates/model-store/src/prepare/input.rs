//! Reads the vectors file from disk, counting and hashing it.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::Input;
use crate::format::Checksum;
use crate::{ModelError, lfs};

/// An input before decompression.
pub(super) struct Packed<'a> {
    /// Its name in messages.
    pub(super) path: PathBuf,
    /// Its size; unknown for a pipe.
    pub(super) bytes_total: Option<u64>,
    /// Its first bytes: [`START_BYTES`] at least, or all if there are fewer.
    pub(super) start: Vec<u8>,
    pub(super) seen: Arc<Seen>,
    pub(super) raw: Raw<'a>,
}

/// The number of bytes used to detect compression.
const START_BYTES: u64 = 6;

/// The source of bytes.
pub(super) enum Raw<'a> {
    File(File),
    Bytes(&'a [u8]),
    /// A source that can be read only once, including the first bytes.
    Pipe(Box<dyn Read + Send>),
}

/// The bytes seen so far.
#[derive(Default)]
pub(super) struct Seen(Mutex<SeenState>);

#[derive(Default)]
struct SeenState {
    bytes: u64,
    hasher: blake3::Hasher,
    /// Hashes a whole archive separately, because only a part of it is read.
    whole: Option<Whole>,
}

enum Whole {
    Hashed(u64, Checksum),
    Hashing(JoinHandle<io::Result<(u64, Checksum)>>),
}

impl<'a> Packed<'a> {
    pub(super) fn open(input: Input<'a>) -> Result<Self, ModelError> {
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
            None => Ok(Self { path, bytes_total, start, seen: Arc::default(), raw }),
            Some(reason) => Err(ModelError::BadInput { path, reason: reason.into() }),
        }
    }
}

/// Reads the first bytes. More than [`START_BYTES`] only where they matter: the writer of a pipe
/// may wait for an answer.
fn read_start(reader: &mut impl Read, start: &mut Vec<u8>) -> io::Result<()> {
    reader.take(START_BYTES).read_to_end(start)?;
    if start.len() as u64 == START_BYTES && lfs::may_begin(start) {
        reader.take(lfs::POINTER_BYTES as u64 - START_BYTES).read_to_end(start)?;
    }
    Ok(())
}

fn pipe(mut reader: impl Read + Send + 'static, start: &mut Vec<u8>) -> io::Result<Raw<'static>> {
    read_start(&mut reader, start)?;
    Ok(Raw::Pipe(Box::new(Cursor::new(start.clone()).chain(reader))))
}

impl<'a> Raw<'a> {
    /// Reads from start to end, and records the bytes in `seen`.
    pub(super) fn watched(self, seen: &Arc<Seen>) -> Box<dyn Read + Send + 'a> {
        fn watch<'a>(inner: impl Read + Send + 'a, seen: &Arc<Seen>) -> Box<dyn Read + Send + 'a> {
            Box::new(Watched { inner, seen: seen.clone(), hashes: true })
        }
        match self {
            Self::File(file) => watch(file, seen),
            Self::Bytes(bytes) => watch(Cursor::new(bytes), seen),
            Self::Pipe(pipe) => watch(pipe, seen),
        }
    }

    /// For archives, whose directory is at their end. `None` for sources that can be read only
    /// once.
    pub(super) fn seekable(
        self,
        path: &Path,
        seen: &Arc<Seen>,
    ) -> io::Result<Option<Box<dyn ReadSeek + 'a>>> {
        match self {
            Self::File(inner) => {
                seen.hash_beside(File::open(path)?)?;
                Ok(Some(Box::new(Watched { inner, seen: seen.clone(), hashes: false })))
            }
            Self::Bytes(bytes) => {
                let hashed = Whole::Hashed(bytes.len() as u64, Checksum::of(bytes));
                seen.lock().whole = Some(hashed);
                let inner = Cursor::new(bytes);
                Ok(Some(Box::new(Watched { inner, seen: seen.clone(), hashes: false })))
            }
            Self::Pipe(_) => Ok(None),
        }
    }
}

/// The source of an archive.
pub(super) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

impl Seen {
    fn lock(&self) -> std::sync::MutexGuard<'_, SeenState> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Bytes read so far.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn hash_beside(&self, mut file: File) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("kindred-hash".into()).spawn(move || {
            let mut hasher = blake3::Hasher::new();
            let bytes = io::copy(&mut file, &mut hasher)?;
            Ok((bytes, Checksum::from_hasher(&hasher)))
        })?;
        self.lock().whole = Some(Whole::Hashing(thread));
        Ok(())
    }

    /// Size and checksum, once all has been read.
    pub(super) fn finish(&self) -> io::Result<(u64, Checksum)> {
        let whole = self.lock().whole.take();
        match whole {
            Some(Whole::Hashed(bytes, checksum)) => Ok((bytes, checksum)),
            Some(Whole::Hashing(thread)) => thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the hashing thread panicked"))),
            None => {
                let seen = self.lock();
                Ok((seen.bytes, Checksum::from_hasher(&seen.hasher)))
            }
        }
    }
}

struct Watched<R> {
    inner: R,
    seen: Arc<Seen>,
    hashes: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let mut seen = self.seen.lock();
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
