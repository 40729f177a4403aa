//! The only place that maps files into memory.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use crate::{ModelError, lfs};

/// Shared, read-only bytes that never move: a mapped file, or anonymous memory. They are
/// page-aligned.
#[derive(Debug, Clone)]
pub struct Mapped(Arc<Mmap>);

impl Mapped {
    /// Maps a whole file, which must not change while it is mapped. Files of a model folder, and
    /// files that an engine saves beside it, are written under a temporary name, renamed into
    /// place, and never changed.
    ///
    /// # Errors
    /// If the file can't be opened or mapped.
    #[allow(unsafe_code)]
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let file = File::open(path).map_err(ModelError::io("open", path))?;
        // SAFETY: the bytes of a mapping must not change while it is borrowed. A model folder is
        // written under a temporary name, renamed into place, and never changed (`prepare` replaces
        // the folder, not its files). Engines do the same with their files. This mapping is private
        // and read-only. One byte is an exception: the first change of a row raises a digit of the
        // header, which is read when the model is opened and never again; either digit is right.
        // Editing the files of a served model would break this; the documentation forbids it.
        let map = unsafe { Mmap::map(&file) }.map_err(ModelError::io("map", path))?;
        if let Some(reason) = lfs::reason(&map) {
            return Err(ModelError::BadInput { path: path.to_owned(), reason: reason.into() });
        }
        Ok(Self(Arc::new(map)))
    }

    /// Maps a file without a name, which nobody else can change or cut. The path names it in errors.
    ///
    /// # Errors
    /// If it can't be mapped.
    #[allow(unsafe_code)]
    pub fn of_unnamed(file: File, path: &Path) -> Result<Self, ModelError> {
        // SAFETY: as above. The file has no name, so that no other process can open it, and its
        // only handle ends here.
        let map = unsafe { Mmap::map(&file) }.map_err(ModelError::io("map", path))?;
        Ok(Self(Arc::new(map)))
    }

    /// The same file, if it has this size. The path names it in errors.
    pub(crate) fn of_size(self, expected: u64, path: &Path) -> Result<Self, ModelError> {
        match self.len() as u64 {
            found if found == expected => Ok(self),
            found => Err(ModelError::Size { path: path.to_owned(), found, expected }),
        }
    }

    /// Copies bytes into anonymous memory, aligned like a mapped file.
    ///
    /// # Errors
    /// If the system has no memory for it.
    pub fn copy_of(bytes: &[u8]) -> std::io::Result<Self> {
        let mut map = MappedMut::zeroed(bytes.len())?;
        map.copy_from_slice(bytes);
        map.freeze()
    }

    /// Advises the system that all of it will be read soon.
    pub fn will_need(&self) {
        advice::will_need(&self.0);
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

/// Anonymous, zeroed memory that is filled and then becomes [`Mapped`]. A page is allocated when it
/// is first written, near the core that writes it.
#[derive(Debug)]
pub struct MappedMut(MmapMut);

impl MappedMut {
    /// Allocates this many zero bytes.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeroed(bytes: usize) -> std::io::Result<Self> {
        Ok(Self(MmapMut::map_anon(bytes)?))
    }

    /// Requests huge pages, for fewer look-ups of pages during a scan.
    pub fn in_huge_pages(self) -> Self {
        advice::huge_pages(&self.0);
        self
    }

    /// Makes the bytes read-only.
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

/// Advice to the system. If it ignores it, or takes none as Windows does, that costs only time.
mod advice {
    #[cfg(unix)]
    use memmap2::Advice;
    use memmap2::{Mmap, MmapMut};

    #[cfg(unix)]
    pub(super) fn will_need(map: &Mmap) {
        let _ = map.advise(Advice::WillNeed);
    }

    #[cfg(not(unix))]
    pub(super) fn will_need(_map: &Mmap) {}

    #[cfg(target_os = "linux")]
    pub(super) fn huge_pages(map: &MmapMut) {
        let _ = map.advise(Advice::HugePage);
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn huge_pages(_map: &MmapMut) {}
}
