//! Decompresses input: gzip, bzip2, zstd, xz and zip are detected by their first bytes.

use std::borrow::Cow;
use std::io::{self, BufReader, Cursor, Read};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use zip::result::ZipError;
use zip::{CompressionMethod, SUPPORTED_COMPRESSION_METHODS, ZipArchive};

use super::Input;
use super::encoding::TextEncoding;
use super::input::{Packing, ReadSeek, ReadSoFar, open};
use super::kind::FileKind;
use super::members::Members;
use super::zstd::ZstdReader;
use crate::ModelError;
use crate::error::because;

/// Maximum expansion. Numbers as text compress to about a third, so more suggests a decompression
/// bomb.
const MOST_EXPANSION: u64 = 100;
/// Smaller output may expand more, because a few rows may be very similar.
const ALWAYS_ALLOWED: u64 = 64 << 20;
/// Memory limit for xz.
const XZ_MEMORY: u64 = 1 << 30;
const BUFFER_BYTES: usize = 256 << 10;

/// The maximum size of the output for n compressed bytes.
fn allowed(packed: u64) -> u64 {
    packed.saturating_mul(MOST_EXPANSION).saturating_add(ALWAYS_ALLOWED)
}

#[derive(Debug, thiserror::Error)]
#[error(
    "it expands to more than {MOST_EXPANSION} times its size, which is implausible; \
     if this is intended, decompress it first"
)]
struct ExpandsTooMuch;

/// A reader of decompressed bytes.
pub struct Unpacked<'a> {
    reader: Box<dyn Read + Send + 'a>,
    /// The file on disk, which `reader` reads from. None of an archive, which is hashed separately.
    raw: Option<Shared<'a>>,
    progress: ReadSoFar,
    bytes: u64,
}

/// The file on disk, for its decompressor and for what nobody decompresses.
#[derive(Clone)]
struct Shared<'a>(Arc<Mutex<Box<dyn Read + Send + 'a>>>);

impl Read for Shared<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::Error::other("a reader panicked"))?.read(buffer)
    }
}

/// Opens and decompresses an input and lets `f` read it. `member` names one of several files in an
/// archive.
pub(super) fn read<T>(
    input: Input<'_>,
    member: Option<&str>,
    f: impl FnOnce(&mut Unpacked<'_>) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    let (mut f, mut result) = (Some(f), None);
    let mut once = |unpacked: &mut Unpacked<'_>| {
        if let Some(f) = f.take() {
            result = Some(f(unpacked)?);
        }
        Ok(())
    };
    with_reader(input, member, &mut once)?;
    Ok(result.expect("what is opened is read"))
}

/// A use of a reader.
type Use<'a> = &'a mut dyn FnMut(&mut Unpacked<'_>) -> Result<(), ModelError>;

/// The same, compiled once for all uses.
fn with_reader(input: Input<'_>, member: Option<&str>, f: Use<'_>) -> Result<(), ModelError> {
    let (progress, raw) = open(input)?;
    let can_not_read = |e| ModelError::io("read", &progress.path)(e);
    if progress.packing == Some(Packing::Zip) {
        let Some(archive) = raw.seekable(&progress).map_err(can_not_read)? else {
            return Err(progress.bad(
                "a zip archive can't be read from a pipe, because its directory is at its end; save it to a \
                 file first",
            ));
        };
        return with_member(archive, member, progress, f);
    }
    if let Some(member) = member {
        return Err(
            progress.bad(format!("it is not a zip archive, so it has no member `{member}`"))
        );
    }
    let raw = Shared(Arc::new(Mutex::new(raw.watched(&progress))));
    let rest = Some(raw.clone());
    let buffered = |raw| BufReader::with_capacity(BUFFER_BYTES, raw);
    let so_far = progress.clone();
    let see_padding = move |bytes| so_far.see_padding(bytes);
    let reader: Box<dyn Read + Send + '_> = match progress.packing {
        Some(Packing::Gzip) => {
            Box::new(Members::<GzDecoder<_>, _>::new(buffered(raw), see_padding))
        }
        Some(Packing::Bzip2) => {
            Box::new(Members::<BzDecoder<_>, _>::new(buffered(raw), see_padding))
        }
        Some(Packing::Zstd) => {
            let so_far = progress.clone();
            let allows = move |bytes| match bytes > allowed(so_far.bytes_read()) {
                true => Err(io::Error::other(ExpandsTooMuch)),
                false => Ok(()),
            };
            Box::new(ZstdReader::new(buffered(raw), allows, see_padding))
        }
        Some(Packing::Xz) => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED);
            let stream = stream.map_err(|e| can_not_read(e.into()))?;
            Box::new(XzDecoder::new_stream(buffered(raw), stream))
        }
        Some(Packing::Zip) | None => Box::new(raw),
    };
    f(&mut Unpacked { reader, raw: rest, progress, bytes: 0 })
}

fn with_member(
    archive: Box<dyn ReadSeek + '_>,
    member: Option<&str>,
    progress: ReadSoFar,
    f: Use<'_>,
) -> Result<(), ModelError> {
    let damaged = |e: ZipError| {
        let text = format!(
            "the zip archive is cut off or damaged ({e}); download the file again (`unzip -t` checks it)"
        );
        progress.bad(because(text, e))
    };
    let mut archive = ZipArchive::new(archive).map_err(damaged)?;
    // Folders, and files that macOS adds, are not vectors.
    let is_file = |name: &String| !name.ends_with('/') && !name.starts_with("__MACOSX/");
    let names = archive.file_names().map(|name| name.map(Cow::into_owned));
    let names: Vec<String> = names.collect::<Result<_, _>>().map_err(damaged)?;
    let names: Vec<String> = names.into_iter().filter(is_file).collect();
    // PyTorch's archives have no file of vectors. Who names one of their files means it.
    let kind = FileKind::of_archive(names.iter().map(String::as_str)).filter(|_| member.is_none());
    if let Some(kind) = kind {
        return Err(progress.bad(kind.reason()));
    }
    let listed = || {
        let shown: Vec<String> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > shown.len() { ", …" } else { "" };
        shown.join(", ") + more
    };
    let name = match (member, names.as_slice()) {
        (_, []) => return Err(progress.bad("the zip archive contains no file")),
        (Some(member), names) if names.iter().any(|name| name == member) => member.to_owned(),
        (Some(member), _) => {
            let reason = format!("the zip archive has no member `{member}`; it has {}", listed());
            return Err(progress.bad(reason));
        }
        (None, [one]) => one.clone(),
        (None, _) => {
            let reason = format!(
                "the zip archive contains several files; choose one with --member: {}",
                listed()
            );
            return Err(progress.bad(reason));
        }
    };
    let file = archive.by_name(&name).map_err(|e| {
        let text = match e {
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
                not_read(&name, "encrypted")
            }
            _ => format!("the member `{name}` of the zip archive can't be read: {e}"),
        };
        progress.bad(because(text, e))
    })?;
    let method = file.compression();
    if !SUPPORTED_COMPRESSION_METHODS.contains(&method) {
        let how = format!("compressed with {}", method_name(method));
        return Err(progress.bad(not_read(&name, &how)));
    }
    let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, file));
    f(&mut Unpacked { reader, raw: None, progress: progress.clone(), bytes: 0 })
}

/// The fault of a member that is compressed or encrypted in a way that is not read.
fn not_read(name: &str, how: &str) -> String {
    format!(
        "the member `{name}` of the zip archive is {how}, which is not read; unpack the archive \
         first: 7z x FILE"
    )
}

/// The usual name of a method of zip archives.
fn method_name(method: CompressionMethod) -> String {
    let names = [
        (CompressionMethod::DEFLATE64, "Deflate64"),
        (CompressionMethod::LZMA, "LZMA"),
        (CompressionMethod::PPMD, "PPMd"),
        (CompressionMethod::XZ, "xz"),
        (CompressionMethod::ZSTD, "zstd"),
    ];
    let found = names.iter().find(|(known, _)| *known == method);
    found.map_or_else(|| format!("another method ({method})"), |(_, name)| (*name).to_owned())
}

impl Unpacked<'_> {
    /// The read position in the file.
    pub(super) fn progress(&self) -> &ReadSoFar {
        &self.progress
    }

    /// Bytes read from the file so far, before decompression.
    pub fn bytes_read(&self) -> u64 {
        self.progress.bytes_read()
    }

    /// Reads on, until `bytes` more are in the buffer or the file ends: `false` then.
    ///
    /// # Errors
    /// If the file can't be read, or its compressed data is damaged.
    pub fn fill(&mut self, buffer: &mut Vec<u8>, bytes: usize) -> Result<bool, ModelError> {
        let before = buffer.len();
        let read = (&mut self.reader).take(bytes as u64).read_to_end(buffer);
        read.map_err(|e| self.read_error(e))?;
        let read = buffer.len() - before;
        self.bytes += read as u64;
        let is_packed = self.progress.packing.is_some();
        if is_packed && self.bytes > allowed(self.progress.bytes_read()) {
            return Err(self.progress.bad(ExpandsTooMuch));
        }
        Ok(read == bytes)
    }

    /// From here on, reads text in this encoding as UTF-8. It begins with `start`, which was read.
    pub(super) fn decode(&mut self, encoding: TextEncoding, start: Vec<u8>) {
        self.bytes = self.bytes.saturating_sub(start.len() as u64);
        let rest = mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(encoding.reader(Cursor::new(start).chain(rest)));
    }

    /// Reads on in the file on disk without decompressing it, only for its size and checksum:
    /// `false` at its end.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn skip(&mut self) -> Result<bool, ModelError> {
        const BYTES: usize = 1 << 20;
        let Some(raw) = &mut self.raw else { return Ok(false) };
        let mut skipped = Vec::with_capacity(BYTES);
        let read = raw.take(BYTES as u64).read_to_end(&mut skipped);
        Ok(read.map_err(ModelError::io("read", &self.progress.path))? == BYTES)
    }

    fn read_error(&self, error: io::Error) -> ModelError {
        let ReadSoFar { path, packing, .. } = &self.progress;
        if error.get_ref().is_some_and(|error| error.is::<ExpandsTooMuch>()) {
            return self.progress.bad(ExpandsTooMuch);
        }
        match packing {
            // System errors have a number; the others are from decompressors. Any other
            // kind is one of their limits.
            Some(packing)
                if error.raw_os_error().is_none()
                    && !matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof
                            | io::ErrorKind::InvalidData
                            | io::ErrorKind::InvalidInput
                    )
                    && error.to_string().contains("memory") =>
            {
                let text = format!(
                    "decompressing this {packing} file needs more memory than allowed ({error}); decompress \
                     it first"
                );
                self.progress.bad(because(text, error))
            }
            Some(packing) if error.raw_os_error().is_none() => {
                let test = packing.tester();
                let text = format!(
                    "the {packing} data is cut off or damaged, at or before byte {} ({error}); download the \
                     file again (`{test}` checks it)",
                    self.progress.bytes_read()
                );
                self.progress.bad(because(text, error))
            }
            _ => ModelError::io("read", path)(error),
        }
    }
}

/// For messages that contain the file's name.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
