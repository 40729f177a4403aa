//! Files that appear whole or not at all.

use std::fs::{DirEntry, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::ModelError;
use crate::whole::{lock, parent, remove_leftovers};

/// The prefix of temporary files' names.
const TEMPORARY: &str = ".kindred-export-";

/// A file that appears complete or not at all: written under a temporary name beside its target,
/// then renamed. If it is dropped earlier, it is deleted.
pub(crate) struct NewFile {
    out: PathBuf,
    replace: bool,
    temporary: BufWriter<NamedTempFile>,
}

/// Checks that a file of this name may be written.
///
/// # Errors
/// If something exists there that may not be replaced or is not a file.
pub fn check_free(out: &Path, replace: bool) -> Result<(), ModelError> {
    if out.exists() && !out.is_file() && !out.is_dir() {
        let reason = "is a device or a pipe; `-` writes to standard output";
        return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
    }
    if !replace && (out.exists() || out.is_symlink()) {
        let reason = "is there already; choose another name, or replace it with --replace";
        return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
    }
    if out.is_dir() {
        let reason = "is a folder; give the name of a file";
        return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
    }
    Ok(())
}

impl NewFile {
    /// Creates a file that will become `out`. First checks that `out` may be written.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        check_free(out, replace)?;
        // Follow links, so that the target is replaced and not the link.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let parent = parent(&out);
        let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
        remove_leftovers(parent, TEMPORARY, is_file);
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY);
        #[cfg(unix)]
        {
            // The usual permissions of a new file: the umask decides who may read it.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary =
            builder.tempfile_in(parent).map_err(ModelError::io("create a file in", parent))?;
        // Held until the file is closed.
        let _ = lock(temporary.as_file());
        let temporary = BufWriter::with_capacity(1 << 20, temporary);
        Ok(Self { out, replace, temporary })
    }

    /// Syncs it to disk and moves it into place.
    pub(crate) fn complete(self) -> Result<(), ModelError> {
        let Self { out, replace, temporary } = self;
        let can_not_write = |e: io::Error| ModelError::io("write", &out)(e);
        let temporary = temporary
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .map_err(can_not_write)?;
        temporary.as_file().sync_all().map_err(can_not_write)?;
        let kept: Result<File, _> =
            if replace { temporary.persist(&out) } else { temporary.persist_noclobber(&out) };
        kept.map(drop).map_err(|e| can_not_write(e.error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.flush()
    }
}
