//! Both tables of a graph in their file: rows are written and read at their places.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::npz::{Layout, Rows};
use super::{GraphError, Identity};

/// Both tables. Threads that write rows share them.
pub(super) struct Tables {
    pub(super) identity: Identity,
    pub(super) file: File,
    pub(super) layout: Layout,
    pub(super) folder: PathBuf,
}

impl Tables {
    /// Writes rows of a table, and returns their checksum.
    pub(super) fn write(&self, table: Rows, row: u64, bytes: &[u8]) -> Result<u32, GraphError> {
        write_at(&self.file, self.layout.at(table, row), bytes)
            .map_err(GraphError::io("write", &self.folder))?;
        Ok(crc32fast::hash(bytes))
    }
}

/// Writes at this place, beside other threads that write at others.
pub(super) fn write_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(not(unix))]
    compile_error!("writing at a place of a file");
}

/// Reads from this place.
pub(super) fn read_at(file: &File, at: u64, bytes: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, at);
    #[cfg(not(unix))]
    compile_error!("reading at a place of a file");
}
