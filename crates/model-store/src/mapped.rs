//! The one place that maps files into memory.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::ModelError;

/// Read-only bytes that are shared and never move: a mapped file, or memory of our own.
#[derive(Debug, Clone)]
pub(crate) struct Mapped(Arc<Mmap>);

impl Mapped {
    /// Maps a whole file.
    #[allow(unsafe_code)]
    pub(crate) fn open(path: &Path) -> Result<Self, ModelError> {
        let file = File::open(path).map_err(ModelError::io("open", path))?;
        // SAFETY: the bytes of a mapping must not change while it is borrowed. A model folder is
        // made complete under another name, renamed into place and never written again (`prepare`
        // replaces the folder, not its files), and this mapping is private and read-only. Someone
        // who edits the files of a model that is being served breaks this; the documentation of the
        // format says not to.
        let map = unsafe { Mmap::map(&file) }.map_err(ModelError::io("map", path))?;
        Ok(Self(Arc::new(map)))
    }

    /// Copies bytes into anonymous memory, aligned as a mapped file is.
    pub(crate) fn copy_of(bytes: &[u8]) -> std::io::Result<Self> {
        let mut map = MmapMut::map_anon(bytes.len())?;
        map.copy_from_slice(bytes);
        Ok(Self(Arc::new(map.make_read_only()?)))
    }

    /// Tells the system that all of it will be read soon.
    pub(crate) fn will_need(&self) {
        // Advice only: where it is not understood nothing is lost but time.
        let _ = self.0.advise(memmap2::Advice::WillNeed);
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
