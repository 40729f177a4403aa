//! Files and folders that appear whole or not at all: written under a temporary name beside their
//! target, then renamed. What a killed process has left is removed by the next.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

use crate::ModelError;
use crate::moves::{exchange, move_to_free_place, parent, replace_by, sync_folder, sync_parent};

/// A folder that appears complete or not at all: created under a temporary name beside its target,
/// written to disk, then renamed. If it is dropped earlier, it is deleted.
pub(crate) struct NewFolder {
    kind: &'static FolderKind,
    out: PathBuf,
    replace: Replace,
    temporary: TempDir,
    /// Locked while this process works in the folder; `None` if the system has no locks.
    _lock: Option<File>,
    /// Dropped after the folder in them.
    made: Option<MadeFolders>,
}

/// What a folder is: which files it has, and what is said if something is in the way.
pub(crate) struct FolderKind {
    /// All of its files. The first is always there.
    pub(crate) files: &'static [&'static str],
    /// Folders that may be in it.
    pub(crate) inner: &'static [InnerFolder],
    /// Folders of any of these names, with what is in them.
    pub(crate) nested: Option<(IsOwn, &'static FolderKind)>,
    /// If something else is there.
    pub(crate) is_other: &'static str,
    /// If one of this kind is there, and may not be replaced.
    pub(crate) is_taken: &'static str,
}

/// What may be replaced by a new folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    Nothing,
    /// A folder of its kind, as it was made.
    Unchanged,
    /// With all that was changed since.
    WithChanges,
}

impl From<bool> for Replace {
    fn from(replace: bool) -> Self {
        if replace { Self::Unchanged } else { Self::Nothing }
    }
}

/// Parent folders created for the new one, and deleted with it.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(folder: &Path) -> io::Result<Self> {
        let missing = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
        let made = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(folder)?;
        Ok(made)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // If something else was put there meanwhile, it is not empty, and stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A folder in a folder of some kind.
pub(crate) struct InnerFolder {
    pub(crate) name: &'static str,
    /// Whether one of its files may have this name.
    pub(crate) is_own: IsOwn,
    /// Which of its files are changes, and what is said if they would be lost.
    pub(crate) changes: Option<(IsOwn, &'static str)>,
}

/// Whether a file with this name is one of some kind.
pub(crate) type IsOwn = fn(&str) -> bool;

impl NewFolder {
    /// The prefix of temporary folders' names.
    const TEMPORARY: &str = ".kindred-prepare-";

    /// Checks that `out` may be written.
    pub(crate) fn check(kind: &FolderKind, out: &Path, replace: Replace) -> Result<(), ModelError> {
        kind.check_free(&resolve(out)?, replace)
    }

    /// Creates a folder that will become `out`. First checks that `out` may be written.
    pub(crate) fn beside(
        kind: &'static FolderKind,
        out: &Path,
        replace: Replace,
    ) -> Result<Self, ModelError> {
        let out = resolve(out)?;
        kind.check_free(&out, replace)?;
        let parent = parent(&out);
        let made = MadeFolders::make(parent).map_err(ModelError::io("create", parent))?;
        remove_leftovers(parent, Self::TEMPORARY, |entry| kind.is_temporary(entry));
        let temporary = temporary(Self::TEMPORARY, 0o777)
            .tempdir_in(parent)
            .map_err(ModelError::io("create a folder in", parent))?;
        let handle = File::open(temporary.path()).ok();
        let lock = handle.filter(|handle| handle.try_lock().is_ok());
        Ok(Self { kind, out, replace, temporary, _lock: lock, made: Some(made) })
    }

    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes a folder in it, and writes these files there, synced to disk.
    pub(crate) fn write_folder(
        &self,
        name: &str,
        files: &[(String, Vec<u8>)],
    ) -> Result<(), ModelError> {
        let folder = self.path().join(name);
        fs::create_dir(&folder).map_err(ModelError::io("create", &folder))?;
        files.iter().try_for_each(|(name, bytes)| write_new(&folder.join(name), bytes))?;
        sync_folder(&folder).map_err(ModelError::io("write", &folder))
    }

    /// Writes these files, syncs everything to disk, and moves the folder into place.
    pub(crate) fn complete(self, files: &[(&str, &[u8])]) -> Result<(), ModelError> {
        files.iter().try_for_each(|(name, bytes)| write_new(&self.path().join(name), bytes))?;
        sync_folder(self.path()).map_err(ModelError::io("write", self.path()))?;
        self.put_in_place()
    }

    fn put_in_place(mut self) -> Result<(), ModelError> {
        let made = self.made.take();
        let out = &self.out;
        // Check again: something else may have appeared since the start.
        self.kind.check_free(out, self.replace)?;
        if self.replace != Replace::Nothing && out.exists() && !is_empty_folder(out) {
            exchange(self.path(), out).map_err(ModelError::io("replace", out))?;
            // Now the temporary folder contains the older one, and is deleted with it.
        } else {
            // Replaces an empty folder, and fails if it has been filled meanwhile.
            move_to_free_place(self.path(), out)
                .map_err(ModelError::io("rename the new folder to", out))?;
            let _ = self.temporary.keep();
        }
        if let Some(mut made) = made {
            made.0.clear();
        }
        sync_parent(out).map_err(ModelError::io("write", parent(out)))
    }
}

impl FolderKind {
    /// `out` may be missing, an empty folder or, if requested, one of this kind.
    fn check_free(&self, out: &Path, replace: Replace) -> Result<(), ModelError> {
        let in_the_way = |reason| Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
        if !out.exists() || is_empty_folder(out) {
            Ok(())
        } else if !(out.join(self.files[0]).is_file() && self.holds_only_own_files(out)) {
            // Other files in the folder belong to the user, and would be lost with it.
            in_the_way(self.is_other)
        } else {
            match (replace, self.lost_changes(out)) {
                (Replace::Nothing, _) => in_the_way(self.is_taken),
                (Replace::Unchanged, Some(reason)) => in_the_way(reason),
                (Replace::Unchanged | Replace::WithChanges, _) => Ok(()),
            }
        }
    }

    /// What is said of changes that would be lost with the folder, if it has any.
    fn lost_changes(&self, out: &Path) -> Option<&'static str> {
        self.inner.iter().find_map(|inner| {
            let (is_change, reason) = inner.changes?;
            let mut entries = fs::read_dir(out.join(inner.name)).ok()?.flatten();
            entries.any(|entry| entry.file_name().to_str().is_some_and(is_change)).then_some(reason)
        })
    }

    /// Whether it is a real folder with only such files.
    fn is_temporary(&self, entry: &DirEntry) -> bool {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && self.holds_only_own_files(&entry.path())
    }

    fn holds_only_own_files(&self, path: &Path) -> bool {
        let is_file = |entry: &DirEntry| self.files.iter().any(|&own| entry.file_name() == own);
        let is_folder = |entry: &DirEntry| {
            self.inner.iter().any(|inner| {
                let is_own = |name: &OsStr| name.to_str().is_some_and(inner.is_own);
                entry.file_name() == inner.name
                    && all_are(&entry.path(), |file| is_own(&file.file_name()))
            })
        };
        let is_nested = |entry: &DirEntry| {
            self.nested.is_some_and(|(is_own, kind)| {
                entry.file_name().to_str().is_some_and(is_own)
                    && kind.holds_only_own_files(&entry.path())
            })
        };
        all_are(path, |entry| is_file(entry) || is_folder(entry) || is_nested(entry))
    }
}

/// Whether this is a folder in which all entries are such ones.
fn all_are(folder: &Path, are: impl Fn(&DirEntry) -> bool) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| are(&entry)))
}

/// Writes a new file, synced to disk.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), ModelError> {
    File::create_new(path)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(ModelError::io("write", path))
}

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
    /// The prefix of temporary files' names.
    const TEMPORARY: &str = ".kindred-export-";

    /// Creates a file that will become `out`. First checks that `out` may be written.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        check_free(out, replace)?;
        // Follow links, so that the target is replaced and not the link.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let parent = parent(&out);
        let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
        remove_leftovers(parent, Self::TEMPORARY, is_file);
        let temporary = temporary(Self::TEMPORARY, 0o666)
            .tempfile_in(parent)
            .map_err(ModelError::io("create a file in", parent))?;
        // Held until the file is closed, if the system has locks.
        let _ = temporary.as_file().try_lock();
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
        if !replace {
            let kept = temporary.persist_noclobber(&out);
            return kept.map(drop).map_err(|e| can_not_write(e.error));
        }
        let mut temporary = Some(temporary);
        let put = || match temporary.take().map(|file| file.persist(&out)) {
            Some(Err(e)) => {
                temporary = Some(e.file);
                Err(e.error)
            }
            Some(Ok(_)) | None => Ok(()),
        };
        replace_by(&out, put).map_err(can_not_write)
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

/// Makes files and folders whose names begin like this, with the usual permissions of new ones: the
/// umask decides who may read them.
#[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix has a mode"))]
fn temporary(prefix: &'static str, mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(mode));
    }
    builder
}

/// Resolves links, so that their target is replaced and not the link.
fn resolve(out: &Path) -> Result<PathBuf, ModelError> {
    if out.exists() {
        return out.canonicalize().map_err(ModelError::io("find", out));
    }
    if out.is_symlink() {
        let reason = "is a link that leads nowhere; choose another --out";
        return Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
    }
    Ok(out.to_owned())
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes files and folders in `parent` whose names start with `prefix`, which `is_ours`
/// recognises, and which no process works in. The lock is taken shortly after creation, so recent
/// ones are kept too. Where folders have no locks, as on Windows, they stay.
pub(crate) fn remove_leftovers(parent: &Path, prefix: &str, is_ours: impl Fn(&DirEntry) -> bool) {
    const SURELY_LOCKED_AFTER: Duration = Duration::from_secs(10);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) || !is_ours(&entry) {
            continue;
        }
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|at| at.elapsed().ok());
        let path = entry.path();
        if age.is_some_and(|age| age >= SURELY_LOCKED_AFTER)
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            // Anything that can't be removed stays.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}
