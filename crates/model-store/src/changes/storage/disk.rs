//! Changes in a folder on disk, beside the files of the base.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::{Lock, LogFile, Storage};
use crate::changes::fields::Aligned;
use crate::format::{CHANGES_FOLDER, VECTORS_FILE, raise_format};
use crate::moves::{sync_folder, sync_parent};

/// The file that is locked while a process writes.
const LOCK_FILE: &str = "lock";

/// The folder `changes` of a model folder.
#[derive(Debug)]
pub(crate) struct Disk {
    base: PathBuf,
    folder: PathBuf,
}

impl Disk {
    pub(crate) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), folder: base.join(CHANGES_FOLDER) }
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
        raise_format(&self.base.join(VECTORS_FILE))
    }
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

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}
