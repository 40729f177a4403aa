//! The numbers of a base's rows, and what else a fold needs of a base.

use std::path::PathBuf;

use bytemuck::cast_slice;

use super::ModelStore;
use crate::ModelError;
use crate::format::{Checksum, VECTORS_FILE};
use contract::Row;

impl ModelStore {
    /// The number of a row, which answers tell: its place, unless the rows were folded from others
    /// that had it before.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn number(&self, row: Row) -> u32 {
        match self.numbers() {
            Some(numbers) => numbers[row.index()],
            None => row.0,
        }
    }

    /// Whether each row's number is its place.
    pub fn numbers_are_places(&self) -> bool {
        // They ascend.
        let last = self.rows().checked_sub(1).map(|last| Row(last as u32));
        last.is_none_or(|last| self.number(last) == last.0)
    }

    /// The first row whose number is not below this one; the one behind the last if there is none.
    pub fn row_from(&self, number: u32) -> Row {
        match self.numbers() {
            Some(numbers) => Row(numbers.partition_point(|&before| before < number) as u32),
            None => Row(number.min(self.rows() as u32)),
        }
    }

    /// The number that the first row behind these has.
    pub fn next_number(&self) -> u32 {
        let folded = self.header.folded.as_ref();
        folded.map_or(self.rows() as u32, |folded| folded.next_row)
    }

    /// The version of these files: another than [`version`](Self::version) if they are the base of a
    /// fold. What is derived from the rows by their places belongs to it.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The number of the base: 1 before the first fold.
    pub fn generation(&self) -> u64 {
        self.header.folded.as_ref().map_or(1, |folded| folded.generation)
    }

    /// The path of a file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    /// The idempotency keys, and the positions of sources, that a fold has kept, as lines of JSON.
    pub fn requests(&self) -> &[u8] {
        self.requests.as_deref().unwrap_or_default()
    }

    /// The components as the file has them.
    pub fn vectors_bytes(&self) -> &[u8] {
        cast_slice(self.components())
    }

    /// The norms as the file has them.
    pub fn norms_bytes(&self) -> &[u8] {
        self.data(self.header.layout().norms)
    }

    /// The biases as the file has them, if there are any.
    pub fn biases_bytes(&self) -> Option<&[u8]> {
        self.biases().map(cast_slice)
    }

    /// The numbers of the rows with their checksum, if they are not their places.
    pub fn numbers_bytes(&self) -> Option<(&[u8], Checksum)> {
        let folded = self.header.folded.as_ref()?;
        Some((self.data(self.header.layout().numbers), folded.rows))
    }

    fn numbers(&self) -> Option<&[u32]> {
        Some(cast_slice(self.numbers_bytes()?.0))
    }

    /// Numbers ascend and are below that of the next row: look-ups rely on it.
    pub(super) fn check_numbers(&self) -> Result<(), ModelError> {
        let Some(numbers) = self.numbers() else { return Ok(()) };
        let ascend = numbers.windows(2).all(|two| two[0] < two[1]);
        match ascend && numbers.last().is_none_or(|&last| last < self.next_number()) {
            true => Ok(()),
            false => {
                let reason = "the numbers of its rows do not ascend";
                Err(ModelError::damaged(&self.file(VECTORS_FILE), reason))
            }
        }
    }
}
