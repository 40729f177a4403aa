//! Arrays of numbers in NumPy files, read whole.

use std::path::Path;

use super::Input;
use super::blank_end::BlankEnd;
use super::formats::{MAX_RECORD_BYTES, is_padding};
use super::kind::FileKind;
use super::lines::CHUNK_BYTES;
use super::unpack::{self, Unpacked};
use crate::ModelError;
use crate::npy::Numbers;

/// An array of numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// Its numbers, each the nearest float32; those out of range are infinite.
    pub numbers: Vec<f32>,
    /// A warning if zero bytes after the last number were left out.
    pub warning: Option<String>,
}

/// Reads a NumPy file (.npy) of float32, float64 or float16, compressed or not, of a shape that
/// `check` accepts.
///
/// # Errors
/// If it can't be read, is no such file, or does not have the numbers of its shape. Each names the
/// file and the cure.
pub fn read_array(
    path: &Path,
    check: impl FnOnce(&[u64]) -> Result<(), String>,
) -> Result<Array, ModelError> {
    unpack::read(Input::File(path), None, |unpacked| {
        let mut head = Vec::new();
        let more = unpacked.fill(&mut head, MAX_RECORD_BYTES)?;
        if !Numbers::begins(&head) {
            let kind = FileKind::of(&head).map(|kind| format!("{}, and ", kind.name()));
            let reason = format!(
                "it is {}not a NumPy file (.npy); save it with numpy.save(path, array)",
                kind.unwrap_or_default()
            );
            return Err(unpacked.progress().bad(reason));
        }
        read_npy(unpacked, head, more, check)
    })
}

/// Reads a NumPy file whose first bytes have been read; there are `more` of them or not.
pub(super) fn read_npy(
    unpacked: &mut Unpacked<'_>,
    mut bytes: Vec<u8>,
    mut more: bool,
    check: impl FnOnce(&[u64]) -> Result<(), String>,
) -> Result<Array, ModelError> {
    let so_far = unpacked.progress().clone();
    let header = Numbers::read(&bytes).map_err(|reason| so_far.bad(reason))?;
    check(&header.shape).map_err(|reason| so_far.bad(reason))?;
    while more {
        more = unpacked.fill(&mut bytes, CHUNK_BYTES)?;
    }
    let mut left_out = BlankEnd::default();
    let end = header.end().and_then(|end| usize::try_from(end).ok());
    if let Some(end) = end.filter(|&end| bytes.get(end..).is_some_and(is_padding)) {
        left_out.zeros = (bytes.len() - end) as u64;
        bytes.truncate(end);
    }
    let found = header.bytes(&bytes).map_err(|reason| so_far.bad(reason))?;
    let mut numbers = Vec::new();
    header.number.read(found, &mut numbers);
    // An array with a length of 0 may have others of any size.
    let length = |&length: &u64| usize::try_from(length).unwrap_or(usize::MAX);
    let shape = header.shape.iter().map(length).collect();
    Ok(Array { shape, numbers, warning: left_out.warning() })
}
