//! Both tables of a graph in one file: rows are written and read at their places.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use super::Identity;
use super::places::{read_exact_at, write_all_at};
use crate::error::JobError;

/// A table, with one line for each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// The neighbours' rows, int64 `[rows, k]`.
    Indices,
    /// Their scores, float64 `[rows, k]`.
    Scores,
}

/// Both tables, one after the other. Threads that write rows share them.
pub(super) struct Tables {
    pub(super) identity: Identity,
    pub(super) file: File,
    pub(super) folder: PathBuf,
}

impl Tables {
    /// The length of both, in bytes.
    pub(super) fn length(identity: &Identity) -> u64 {
        2 * identity.rows * identity.k * 8
    }

    /// Where a row of a table begins.
    fn at(&self, table: Table, row: u64) -> u64 {
        (table as u64 * self.identity.rows + row) * self.identity.k * 8
    }

    /// Writes rows of a table, beside other threads that write others. Returns their checksum.
    pub(super) fn write(&self, table: Table, row: u64, bytes: &[u8]) -> Result<u32, JobError> {
        let written = write_all_at(&self.file, bytes, self.at(table, row));
        written.map_err(JobError::io("write", &self.folder))?;
        Ok(crc32fast::hash(bytes))
    }

    /// Reads rows of a table in place of what `bytes` has.
    pub(super) fn read(
        &self,
        table: Table,
        rows: &Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> io::Result<()> {
        bytes.resize(((rows.end - rows.start) * self.identity.k * 8) as usize, 0);
        read_exact_at(&self.file, bytes, self.at(table, rows.start))
    }

    /// Whether the rows of a range have these checksums, of indices and scores.
    pub(super) fn has(&self, range: u64, checksums: [u32; 2], bytes: &mut Vec<u8>) -> bool {
        let rows = self.identity.range(range);
        [Table::Indices, Table::Scores].into_iter().zip(checksums).all(|(table, checksum)| {
            let read = self.read(table, &rows, bytes);
            read.is_ok() && crc32fast::hash(bytes) == checksum
        })
    }
}
