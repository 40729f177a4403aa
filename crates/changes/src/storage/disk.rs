//! Changes in a folder on disk, beside the files of the base.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model_store::format::{CHANGES_FOLDER, Pointer, VECTORS_FILE, raise_format};
use model_store::{Mapped, ModelError, ModelStore, replace_file, sync_folder, sync_parent};

use super::{Lock, LogFile, Root, Storage};
use crate::fields::Aligned;

/// The file that is locked while a process writes.
const LOCK_FILE: &str = "lock";

/// The folder `changes` of a model folder.
#[derive(Debug)]
pub(crate) struct Disk {
    root: DiskRoot,
    folder: PathBuf,
}

/// A model folder.
#[derive(Debug)]
struct DiskRoot {
    folder: PathBuf,
    /// The name of its model; `None` for that of the folder.
    name: Option<String>,
}

impl Disk {
    /// The changes of a model folder, whose model has another name if one is given.
    pub(crate) fn new(base: &Path, name: Option<&str>) -> Self {
        let root = DiskRoot { folder: base.to_owned(), name: name.map(str::to_owned) };
        Self { root, folder: base.join(CHANGES_FOLDER) }
    }
}

impl Storage for Disk {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.clone() } else { self.folder.join(name) }
    }

    fn list(&self) -> io::Result<Option<Vec<String>>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<_>>().map(Some)
    }

    fn read(&self, name: &str) -> io::Result<Aligned> {
        let mut file = File::open(self.path(name))?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let mut content = Aligned::zeroed(length);
        let mut filled = 0;
        while filled < length {
            match file.read(&mut content.bytes_mut()[filled..]) {
                // It was cut meanwhile.
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                Err(e) => return Err(e),
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.folder) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
            _ => sync_parent(&self.folder),
        }
    }

    fn lock(&self) -> io::Result<Option<Lock>> {
        let path = self.path(LOCK_FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(DiskLog(File::create(self.path(name))?)))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(DiskLog(OpenOptions::new().append(true).open(self.path(name))?)))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        // Only Windows wants to write what it syncs.
        let mut options = OpenOptions::new();
        options.read(true).write(cfg!(windows)).open(self.path(name))?.sync_data()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }

    fn raise_format(&self) -> io::Result<()> {
        raise_format(&self.root.path(VECTORS_FILE))
    }

    fn root(&self) -> &dyn Root {
        &self.root
    }
}

impl Root for DiskRoot {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.clone() } else { self.folder.join(name) }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.folder)?;
        names.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, name: &str) -> Result<Mapped, ModelError> {
        Mapped::open(&self.path(name))
    }

    fn open_base(&self) -> Result<(Arc<ModelStore>, bool), ModelError> {
        let (model, has_changes) = ModelStore::open_base(&self.folder)?;
        let model = match &self.name {
            Some(name) => model.named(name),
            None => model,
        };
        Ok((Arc::new(model), has_changes))
    }

    fn open_pointer(&self) -> Result<Option<Pointer>, ModelError> {
        Pointer::read(&self.path(VECTORS_FILE), &self.open(VECTORS_FILE)?)
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(DiskLog(File::create(self.path(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        if from.is_dir() { fs::rename(from, to) } else { replace_file(&from, &to) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        match fs::symlink_metadata(&path)?.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        sync_folder(&self.path(name))
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        free_bytes(&self.folder)
    }

    fn age(&self, name: &str) -> Option<Duration> {
        fs::metadata(self.path(name)).ok()?.modified().ok()?.elapsed().ok()
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn free_bytes(folder: &Path) -> io::Result<Option<u64>> {
    let system = rustix::fs::statvfs(folder)?;
    Ok(Some(system.f_bavail.saturating_mul(system.f_frsize)))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn free_bytes(_folder: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}

/// A log on disk.
struct DiskLog(File);

impl LogFile for DiskLog {
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        /// Parts that every system takes together.
        const TOGETHER: usize = 512;
        for parts in parts.chunks(TOGETHER) {
            let mut slices: Vec<IoSlice<'_>> =
                parts.iter().map(|part| IoSlice::new(part)).collect();
            let mut rest = &mut slices[..];
            while !rest.is_empty() {
                match self.0.write_vectored(rest) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(bytes) => IoSlice::advance_slices(&mut rest, bytes),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => (),
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = self.0.stream_position()?;
        self.0.seek(SeekFrom::Start(at))?;
        self.0.write_all(bytes)?;
        self.0.seek(SeekFrom::Start(end)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}
