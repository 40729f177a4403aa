use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flate2::read::MultiGzDecoder;

use super::{Input, Summary};
use crate::ModelError;
use crate::format::{Checksum, Provenance};

/// A vectors file that is being read: unpacked on the way, counted and hashed as it lies on the disk.
pub(crate) struct Source {
    path: PathBuf,
    format: &'static str,
    bytes_total: u64,
    seen: Arc<Mutex<Seen>>,
    reader: Box<dyn Read + Send>,
}

/// What went by, before it was unpacked.
#[derive(Default)]
struct Seen {
    bytes: u64,
    hasher: blake3::Hasher,
}

struct Watched<R> {
    inner: R,
    seen: Arc<Mutex<Seen>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        let mut seen = self.seen.lock().expect("nothing panics while it holds this lock");
        seen.bytes += n as u64;
        seen.hasher.update(&buffer[..n]);
        Ok(n)
    }
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 256 * 1024;

impl Source {
    /// Opens the input, plain or gzip: its first bytes tell, not its name.
    pub(crate) fn open(input: Input<'_>) -> Result<Self, ModelError> {
        let path = match input {
            Input::File(path) => path,
            Input::Bytes { name, bytes } => {
                return Self::new(name.into(), Cursor::new(bytes), bytes.len() as u64);
            }
        };
        let file = File::open(path).map_err(ModelError::io("open", path))?;
        let metadata = file.metadata().map_err(ModelError::io("read", path))?;
        if metadata.is_dir() {
            let reason = "it is a folder; `prepare` reads a vectors file".to_owned();
            return Err(ModelError::BadInput { path: path.to_owned(), reason });
        }
        Self::new(path.to_owned(), file, metadata.len())
    }

    fn new(
        path: PathBuf,
        raw: impl Read + Send + 'static,
        bytes_total: u64,
    ) -> Result<Self, ModelError> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watched = Watched { inner: raw, seen: seen.clone() };
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, watched);
        let start = peek(&mut buffered).map_err(ModelError::io("read", &path))?;
        let (format, reader): (_, Box<dyn Read + Send>) = if start == GZIP_MAGIC {
            ("glove text, gzip", Box::new(MultiGzDecoder::new(buffered)))
        } else {
            ("glove text", Box::new(buffered))
        };
        Ok(Self { path, format, bytes_total, seen, reader })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes read so far, before unpacking.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.seen.lock().expect("nothing panics while it holds this lock").bytes
    }

    /// Size of the file, before unpacking.
    pub(crate) fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Reads on, until the buffer is full or the file ends.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ModelError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.read_error(e)),
            }
        }
        Ok(filled)
    }

    fn read_error(&self, error: io::Error) -> ModelError {
        let path = self.path.clone();
        if self.format.ends_with("gzip")
            && matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::InvalidData
            )
        {
            let bytes = self.bytes_read();
            let reason = format!(
                "the gzip data is cut short or damaged, at or before byte {bytes} ({error}); \
                 fetch the file again (`gzip -t` checks it)"
            );
            return ModelError::BadInput { path, reason };
        }
        ModelError::Io { action: "read", path, source: error }
    }

    /// What to write into the model about this source, once it was read to its end.
    pub(crate) fn provenance(&self, summary: &Summary) -> Provenance {
        let seen = self.seen.lock().expect("nothing panics while it holds this lock");
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        Provenance {
            source: name.to_string_lossy().into_owned(),
            source_format: self.format.to_owned(),
            source_bytes: seen.bytes,
            source_checksum: Checksum::from_hasher(&seen.hasher),
            prepared_by: Provenance::this_program(),
            prepared_at: Provenance::now(),
            bad_rows_skipped: summary.bad_rows_skipped,
            duplicate_words_dropped: summary.duplicate_words_dropped,
        }
    }
}

/// The first two bytes, or fewer if there are no more, without taking them.
fn peek<R: Read>(reader: &mut BufReader<R>) -> io::Result<Vec<u8>> {
    use io::BufRead;
    let start = reader.fill_buf()?;
    Ok(start[..start.len().min(GZIP_MAGIC.len())].to_vec())
}
