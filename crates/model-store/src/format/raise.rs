//! The format version of a base beside which there are changes.
//!
//! A program that knows no changes would answer from the base alone, so the first change raises the
//! format version, by [`CHANGES`]: a single digit of the header. The other bytes stay, and so do the
//! checksums, which are those of the header with the digit before.

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use super::DATA_START;
use memchr::memmem;

/// By how much changes raise the format version.
pub(crate) const CHANGES: u8 = 2;

/// What stands before the digit. In a text of the header its quotes would be escaped.
const BEFORE: &[u8] = b"\"kindred_format\":\"";

/// The place of the digit in a file that begins with a header. None in a file of another program,
/// or if the version has two digits.
fn digit(header: &[u8]) -> Option<usize> {
    let at = memmem::find(header, BEFORE)? + BEFORE.len();
    (header.get(at + 1) == Some(&b'"') && header[at].is_ascii_digit()).then_some(at)
}

/// The header as it was before the first change, and whether it has been raised.
pub(super) fn lowered(header: &[u8]) -> (Cow<'_, [u8]>, bool) {
    match digit(header) {
        Some(at) if is_raised(header[at]) => {
            let mut lowered = header.to_vec();
            lowered[at] -= CHANGES;
            (Cow::Owned(lowered), true)
        }
        _ => (Cow::Borrowed(header), false),
    }
}

/// The byte of a header that the first change replaces, and the one that is put there; `None` if it
/// has been, or there is no such byte.
pub fn raised(header: &[u8]) -> Option<(usize, u8)> {
    let at = digit(header).filter(|&at| matches!(header[at], b'1' | b'2'))?;
    Some((at, header[at] + CHANGES))
}

fn is_raised(digit: u8) -> bool {
    matches!(digit, b'3' | b'4')
}

/// Raises the version of a file `vectors.safetensors`, unless it has been raised; it is on disk
/// when this returns. Readers see either digit.
///
/// # Errors
/// If the file can't be written, is not a file of its own, or has no such header.
pub fn raise_format(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() || has_other_names(&metadata) {
        let reason = "the file has other names, whose models would change with it; copy the model \
                      folder without links, and change the copy";
        return Err(io::Error::other(reason));
    }
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut header = Vec::new();
    (&file).take(DATA_START as u64).read_to_end(&mut header)?;
    digit(&header).ok_or_else(|| io::Error::other("it is not the table of a model"))?;
    // A file that leads to the base of a fold says that there are changes as it is.
    if let Some((at, raised)) = raised(&header) {
        file.seek(SeekFrom::Start(at as u64))?;
        file.write_all(&[raised])?;
    }
    file.sync_data()
}

#[cfg(unix)]
fn has_other_names(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(_metadata: &fs::Metadata) -> bool {
    false
}
