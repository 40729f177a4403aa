//! The rows of a NumPy file, read a few at a time.

use std::path::Path;

use super::formats::{MAX_RECORD_BYTES, is_padding};
use super::input::ReadSoFar;
use super::kind::FileKind;
use super::unpack::{self, Unpacked};
use super::{Input, MAX_DIM};
use crate::ModelError;
use crate::npy::Numbers;
use crate::number::Number;

/// A file whose first numbers are about to be read.
pub(super) struct NpyRows<'a, 'b> {
    unpacked: &'a mut Unpacked<'b>,
    so_far: ReadSoFar,
    /// Bytes that are read, but not yet taken.
    buffer: Vec<u8>,
    number: Number,
    rows: u64,
    dim: usize,
    taken: u64,
}

/// The number of rows of the file, and the components of each.
pub(super) fn shape(path: &Path) -> Result<(u64, usize), ModelError> {
    read(path, |rows| Ok((rows.rows, rows.dim)))
}

/// Lets `f` read the rows of a file of float32, float64 or float16, compressed or not.
pub(super) fn read<T>(
    path: &Path,
    f: impl FnOnce(&mut NpyRows<'_, '_>) -> Result<T, ModelError>,
) -> Result<T, ModelError> {
    unpack::read(Input::File(path), None, |unpacked| f(&mut NpyRows::begin(unpacked)?))
}

impl<'a, 'b> NpyRows<'a, 'b> {
    fn begin(unpacked: &'a mut Unpacked<'b>) -> Result<Self, ModelError> {
        let mut buffer = Vec::new();
        unpacked.fill(&mut buffer, MAX_RECORD_BYTES)?;
        let so_far = unpacked.progress().clone();
        if !Numbers::begins(&buffer) {
            let kind = FileKind::of(&buffer).map(|kind| format!("{}, and ", kind.name()));
            let reason = format!(
                "it is {}not a NumPy file (.npy); save it with numpy.save(path, array)",
                kind.unwrap_or_default()
            );
            return Err(so_far.bad(reason));
        }
        let Numbers { shape, number, start } =
            Numbers::read(&buffer).map_err(|reason| so_far.bad(reason))?;
        let &[rows, dim] = &shape[..] else {
            let reason = format!(
                "its array has {} dimensions instead of 2 (a row for each record); save it with \
                 numpy.save(path, array.reshape(records, -1))",
                shape.len()
            );
            return Err(so_far.bad(reason));
        };
        let Some(dim) = usize::try_from(dim).ok().filter(|dim| (1..=MAX_DIM).contains(dim)) else {
            let reason = format!("its rows have {dim} components, but must have 1 to {MAX_DIM}");
            return Err(so_far.bad(reason));
        };
        buffer.drain(..buffer.len().min(start as usize));
        Ok(Self { unpacked, so_far, buffer, number, rows, dim, taken: 0 })
    }

    /// Components in a row.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// How many rows are left.
    pub(super) fn left(&self) -> u64 {
        self.rows - self.taken
    }

    /// The next `count` rows, of those that are left, as the nearest float32.
    pub(super) fn next(&mut self, count: usize) -> Result<Vec<f32>, ModelError> {
        debug_assert!(count as u64 <= self.left(), "there are so many");
        let bytes = count * self.dim * self.number.bytes();
        let missing = bytes.saturating_sub(self.buffer.len());
        self.unpacked.fill(&mut self.buffer, missing)?;
        if self.buffer.len() < bytes {
            let reason = format!(
                "it ends before row {} of the {} that its header announces; the file is cut off, or its \
                 header is wrong",
                self.taken + (self.buffer.len() / (bytes / count)) as u64,
                self.rows
            );
            return Err(self.so_far.bad(reason));
        }
        let mut numbers = Vec::with_capacity(count * self.dim);
        self.number.read(&self.buffer[..bytes], &mut numbers);
        self.buffer.drain(..bytes);
        self.taken += count as u64;
        Ok(numbers)
    }

    /// Checks that nothing follows the last row but zero bytes.
    pub(super) fn end(&mut self) -> Result<(), ModelError> {
        let mut more = true;
        while more {
            if !is_padding(&self.buffer) {
                let reason = format!(
                    "it goes on after the {} rows that its header announces; its header is wrong",
                    self.rows
                );
                return Err(self.so_far.bad(reason));
            }
            self.buffer.clear();
            more = self.unpacked.fill(&mut self.buffer, MAX_RECORD_BYTES)?;
        }
        Ok(())
    }
}
