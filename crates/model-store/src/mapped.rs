//! The one place that maps files into memory.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use memmap2::{Advice, Mmap, MmapMut};

use crate::ModelError;

/// Read-only bytes that are shared and never move: a mapped file, or memory of our own. They begin at a
/// page.
#[derive(Debug, Clone)]
pub struct Mapped(Arc<Mmap>);

impl Mapped {
    /// Maps a whole file, which nobody may change while it is mapped: files of a model folder, and
    /// what an engine keeps beside it, are made complete under another name, renamed into place and never
    /// written again.
    ///
    /// # Errors
    /// If the file can't be opened or mapped.
    #[allow(unsafe_code)]
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let file = File::open(path).map_err(ModelError::io("open", path))?;
        // SAFETY: the bytes of a mapping must not change while it is borrowed. A model folder is
        // made complete under another name, renamed into place and never written again (`prepare`
        // replaces the folder, not its files), engines do the same with their files, and this mapping is
        // private and read-only. Someone who edits the files of a model that is being served breaks
        // this; the documentation of the format says not to.
        let map = unsafe { Mmap::map(&file) }.map_err(ModelError::io("map", path))?;
        Ok(Self(Arc::new(map)))
    }

    /// Copies bytes into anonymous memory, aligned as a mapped file is.
    pub(crate) fn copy_of(bytes: &[u8]) -> std::io::Result<Self> {
        let mut map = MappedMut::zeroed(bytes.len())?;
        map.copy_from_slice(bytes);
        map.freeze()
    }

    /// Tells the system that all of it will be read soon.
    pub fn will_need(&self) {
        // Advice only: where it is not understood nothing is lost but time.
        let _ = self.0.advise(Advice::WillNeed);
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

/// Memory of our own, zero at first, until it is filled and becomes [`Mapped`]. A page of it is taken where
/// and when it is first written: near the core that fills it.
#[derive(Debug)]
pub struct MappedMut(MmapMut);

impl MappedMut {
    /// So many bytes of zeros.
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn zeroed(bytes: usize) -> std::io::Result<Self> {
        Ok(Self(MmapMut::map_anon(bytes)?))
    }

    /// Asks for huge pages: fewer of them to look up on the way through a table.
    pub fn in_huge_pages(self) -> Self {
        // Advice only, and only Linux takes it.
        #[cfg(target_os = "linux")]
        let _ = self.0.advise(Advice::HugePage);
        self
    }

    /// The same bytes, never to change again.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn freeze(self) -> std::io::Result<Mapped> {
        Ok(Mapped(Arc::new(self.0.make_read_only()?)))
    }
}

impl Deref for MappedMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for MappedMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
