//! The few calls by which changes are written: tests replace them by a disk that fails, stops and
//! forgets.

mod disk;
#[cfg(test)]
pub(crate) mod simulated;

use std::any::Any;
use std::io;
use std::path::PathBuf;

pub(crate) use disk::Disk;

use super::fields::Aligned;

/// Held while this process writes.
pub(crate) type Lock = Box<dyn Any + Send + Sync>;

/// A folder of changes, which may not be there yet.
pub(crate) trait Storage: Send + Sync {
    /// The path of a file in the folder, for messages. Without a name, that of the folder.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of all files; `None` if there is no folder.
    fn list(&self) -> io::Result<Option<Vec<String>>>;

    /// The whole content of a file.
    fn read(&self, name: &str) -> io::Result<Aligned>;

    /// Makes the folder; it is on disk when this returns.
    fn make(&self) -> io::Result<()>;

    /// Takes the lock of those who write; `None` if another process has it.
    fn lock(&self) -> io::Result<Option<Lock>>;

    /// Makes an empty file, in the place of another.
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>>;

    /// Opens a file, to which more is appended.
    fn append(&self, name: &str) -> io::Result<Box<dyn LogFile>>;

    /// Syncs the content of a file that somebody else may have written.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Renames a file. It is on disk after [`sync_names`](Self::sync_names).
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Syncs the names of files.
    fn sync_names(&self) -> io::Result<()>;

    /// Raises the base's format version, so that a program that knows no changes refuses it; it is
    /// on disk when this returns.
    fn raise_format(&self) -> io::Result<()>;
}

/// A log that is appended to.
pub(crate) trait LogFile: Send {
    /// Appends all of these bytes, or an unknown part of them if it fails.
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()>;

    /// Waits until the content is on disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Leaves only the first bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}
