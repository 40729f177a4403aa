//! The few calls by which changes are written: tests replace them by a disk that fails, stops and
//! forgets.

mod disk;
#[cfg(test)]
pub(crate) mod simulated;

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use disk::Disk;

use super::fields::Aligned;
use model_store::format::Pointer;
use model_store::{Mapped, ModelError, ModelStore};

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

    /// The model folder that the folder of changes is in.
    fn root(&self) -> &dyn Root;

    /// Raises the base's format version, so that a program that knows no changes refuses it; it is
    /// on disk when this returns.
    fn raise_format(&self) -> io::Result<()>;
}

/// A model folder, in which bases are. Names may lead into folders: `base-…/words.txt`.
pub(crate) trait Root: Send + Sync {
    /// The path of a file or folder, for messages. Without a name, that of the model folder.
    fn path(&self, name: &str) -> PathBuf;

    /// The names of all files and folders that are in it itself.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read it.
    fn open(&self, name: &str) -> Result<Mapped, ModelError>;

    /// Opens the base that counts, and tells whether there are changes beside it.
    fn open_base(&self) -> Result<(Arc<ModelStore>, bool), ModelError>;

    /// The file that says which base counts, if a fold has made one.
    fn open_pointer(&self) -> Result<Option<Pointer>, ModelError>;

    /// Makes a folder.
    fn make_folder(&self, name: &str) -> io::Result<()>;

    /// Makes an empty file, in the place of another.
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>>;

    /// Renames a file or folder. It is on disk after [`sync_folder`](Self::sync_folder) of those
    /// that it is in.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file, or a folder with all that is in it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Syncs the names in a folder.
    fn sync_folder(&self, name: &str) -> io::Result<()>;

    /// Bytes that are free; `None` if the system does not tell.
    fn free_bytes(&self) -> io::Result<Option<u64>>;

    /// The time since a file was last written.
    fn age(&self, name: &str) -> Option<Duration>;
}

/// A file that is appended to.
pub(crate) trait LogFile: Send {
    /// Appends all of these bytes, or an unknown part of them if it fails.
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()>;

    /// Puts bytes in the place of those that are there.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until the content is on disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Leaves only the first bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}
