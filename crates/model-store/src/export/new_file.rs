use std::fs::{DirEntry, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::ModelError;
use crate::prepare::{lock, parent, remove_leftovers};

/// What temporary files are called, before their random part.
const TEMPORARY: &str = ".kindred-export-";

/// A file that appears in its place whole, or not at all: written beside it under another name, then renamed.
/// Dropped before that, it vanishes.
pub(crate) struct NewFile {
    out: PathBuf,
    replace: bool,
    temporary: BufWriter<NamedTempFile>,
}

/// Whether a file of this name may be written.
///
/// # Errors
/// If something is there that may not be replaced, or is no file.
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
    /// A file that will become `out`. Looks first whether `out` may be taken.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        check_free(out, replace)?;
        // A link is followed, so that what it leads to is replaced and not the link.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let parent = parent(&out);
        let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
        remove_leftovers(parent, TEMPORARY, is_file);
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY);
        #[cfg(unix)]
        {
            // As any new file: others may read it if the user's umask says so.
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

    /// Makes sure that all of it is on the disk, and moves it into place.
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
