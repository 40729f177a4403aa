//! A file of a new base: written in large pieces, hashed as it is written, and synced.

use std::io::{self, Write};
use std::path::PathBuf;

use model_store::format::Checksum;

use crate::error::ChangeError;
use crate::storage::{LogFile, Root};

/// Bytes that are written together.
const TOGETHER: usize = 4 << 20;
/// After this many bytes the disk is waited for: a commit beside it may have to wait for what was
/// written and is not on disk, as on ext4.
const BETWEEN_SYNCS: u64 = 16 << 20;

/// A file that is written from its beginning to its end.
pub(super) struct NewFile {
    path: PathBuf,
    file: Box<dyn LogFile>,
    buffer: Vec<u8>,
    hasher: blake3::Hasher,
    bytes: u64,
    unsynced: u64,
}

impl NewFile {
    /// Makes a file in a model folder.
    pub(super) fn create(root: &dyn Root, name: &str) -> Result<Self, ChangeError> {
        let path = root.path(name);
        let file = root.create(name).map_err(ChangeError::io("make", &path))?;
        let hasher = blake3::Hasher::new();
        Ok(Self { path, file, buffer: Vec::new(), hasher, bytes: 0, unsynced: 0 })
    }

    /// Appends bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), ChangeError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= TOGETHER {
            self.send()?;
        }
        Ok(())
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    /// The checksum of what was written since the last one.
    pub(super) fn checksum(&mut self) -> Result<Checksum, ChangeError> {
        self.send()?;
        let checksum = Checksum::from_hasher(&self.hasher);
        self.hasher.reset();
        Ok(checksum)
    }

    /// Puts these bytes in the place of the first ones.
    pub(super) fn put_first(&mut self, bytes: &[u8]) -> Result<(), ChangeError> {
        self.send()?;
        let written = self.file.write_at(0, bytes);
        written.map_err(ChangeError::io("write", &self.path))
    }

    /// Waits until all of it is on disk. Returns its length.
    pub(super) fn finish(mut self) -> Result<u64, ChangeError> {
        self.send()?;
        self.file.sync().map_err(ChangeError::io("sync", &self.path))?;
        Ok(self.bytes)
    }

    fn send(&mut self) -> Result<(), ChangeError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.hasher.update_rayon(&self.buffer);
        self.file.write(&[&self.buffer]).map_err(ChangeError::io("write", &self.path))?;
        self.bytes += self.buffer.len() as u64;
        self.unsynced += self.buffer.len() as u64;
        self.buffer.clear();
        if self.unsynced >= BETWEEN_SYNCS {
            self.unsynced = 0;
            self.file.sync().map_err(ChangeError::io("sync", &self.path))?;
        }
        Ok(())
    }
}

/// For the map of words, which writes itself.
impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
