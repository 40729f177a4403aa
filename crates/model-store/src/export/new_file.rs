use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::ModelError;

/// A file that appears in its place whole, or not at all: written beside it under another name, then renamed.
/// Dropped before that, it vanishes.
pub(crate) struct NewFile {
    out: PathBuf,
    replace: bool,
    temporary: BufWriter<NamedTempFile>,
}

impl NewFile {
    /// A file that will become `out`. Looks first whether `out` may be taken.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        if !replace && (out.exists() || out.is_symlink()) {
            let reason = "is there already; choose another name, or replace it with --replace";
            return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
        }
        if out.is_dir() {
            let reason = "is a folder; give the name of a file";
            return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
        }
        let parent = match out.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".kindred-export-");
        #[cfg(unix)]
        {
            // As any new file: others may read it if the user's umask says so.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let temporary =
            builder.tempfile_in(parent).map_err(ModelError::io("make a file in", parent))?;
        let temporary = BufWriter::with_capacity(1 << 20, temporary);
        Ok(Self { out: out.to_owned(), replace, temporary })
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
