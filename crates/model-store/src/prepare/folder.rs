use std::fs::{self, DirEntry, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::leftovers::{lock, remove_leftovers};
use super::vectors_file::VectorsFile;
use crate::ModelError;
use crate::format::{INDEX_FILE, VECTORS_FILE, WORDS_FILE};

/// A folder that appears in its place whole, or not at all: made beside it under another name,
/// written to the disk, then renamed. Dropped before that, it vanishes.
pub(crate) struct NewFolder {
    out: PathBuf,
    replace: bool,
    temporary: TempDir,
    /// Held as long as somebody works in the folder.
    _lock: Option<File>,
    /// Dropped after the folder in them.
    made: Option<MadeFolders>,
}

/// Folders that were made for the new one, and vanish with it.
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(folder: &Path) -> std::io::Result<Self> {
        let missing = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
        let made = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(folder)?;
        Ok(made)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Somebody else may have put something there: then it is not empty, and stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// What temporary folders are called, before their random part.
const TEMPORARY: &str = ".kindred-prepare-";

impl NewFolder {
    /// Whether `out` may be taken.
    pub(crate) fn check(out: &Path, replace: bool) -> Result<(), ModelError> {
        check_free(&resolve(out)?, replace)
    }

    /// A folder that will become `out`. Looks first whether `out` may be taken.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        let out = resolve(out)?;
        check_free(&out, replace)?;
        let parent = parent(&out);
        let made = MadeFolders::make(parent).map_err(ModelError::io("create", parent))?;
        remove_leftovers(parent, TEMPORARY, is_temporary_model);
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY);
        #[cfg(unix)]
        {
            // As `mkdir` would: others may read the model if the user's umask says so.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o777));
        }
        let temporary =
            builder.tempdir_in(parent).map_err(ModelError::io("create a folder in", parent))?;
        let handle = File::open(temporary.path()).ok();
        let lock = handle.filter(|handle| lock(handle).is_some());
        Ok(Self { out, replace, temporary, _lock: lock, made: Some(made) })
    }

    /// Where it is for now.
    pub(crate) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// The file that takes the rows as they come.
    pub(crate) fn create_vectors(&self) -> Result<BufWriter<VectorsFile>, ModelError> {
        let path = self.path().join(VECTORS_FILE);
        let file = VectorsFile::create(&path).map_err(ModelError::io("create", &path))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Writes the other files, makes sure that all of it is on the disk, and moves it into place.
    pub(crate) fn complete(
        self,
        vectors: BufWriter<VectorsFile>,
        words: &[u8],
        index: &[u8],
    ) -> Result<(), ModelError> {
        let vectors_path = self.path().join(VECTORS_FILE);
        vectors
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(VectorsFile::finish)
            .map_err(ModelError::io("write", &vectors_path))?;
        for (name, bytes) in [(WORDS_FILE, words), (INDEX_FILE, index)] {
            let path = self.path().join(name);
            File::create_new(&path)
                .and_then(|mut file| {
                    file.write_all(bytes)?;
                    file.sync_all()
                })
                .map_err(ModelError::io("write", &path))?;
        }
        sync_folder(self.path())?;
        self.put_in_place()
    }

    fn put_in_place(mut self) -> Result<(), ModelError> {
        let made = self.made.take();
        let out = &self.out;
        // Time has passed since the start: what is there now may be something else.
        check_free(out, self.replace)?;
        if self.replace && out.exists() && !is_empty_folder(out) {
            exchange(self.path(), out).map_err(ModelError::io("replace", out))?;
            // What the temporary folder holds now is the older model; it vanishes with it.
        } else {
            // Replaces an empty folder, and fails if someone filled it in the meantime.
            fs::rename(self.path(), out).map_err(ModelError::io("rename the new model to", out))?;
            let _ = self.temporary.keep();
        }
        if let Some(mut made) = made {
            made.0.clear();
        }
        sync_folder(parent(out))
    }
}

/// A real folder that holds nothing but files of a model.
fn is_temporary_model(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds_only_model_files(&entry.path())
}

/// `out` may be absent, an empty folder or, if that was asked for, a model.
fn check_free(out: &Path, replace: bool) -> Result<(), ModelError> {
    let in_the_way = |reason| Err(ModelError::OutputInTheWay { path: out.to_owned(), reason });
    if !out.exists() || is_empty_folder(out) {
        Ok(())
    } else if !holds_only_a_model(out) {
        in_the_way("exists, but is not a model or holds other files too; choose another --out")
    } else if !replace {
        in_the_way("already holds a model; choose another --out, or add --replace")
    } else {
        Ok(())
    }
}

/// Whatever else is in the folder is somebody's, and would be lost with it.
fn holds_only_a_model(path: &Path) -> bool {
    path.join(VECTORS_FILE).is_file() && holds_only_model_files(path)
}

fn holds_only_model_files(path: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(path) else { return false };
    let ours = |name: &std::ffi::OsStr| {
        [VECTORS_FILE, WORDS_FILE, INDEX_FILE].iter().any(|&ours| name == ours)
    };
    entries.all(|entry| entry.is_ok_and(|entry| ours(&entry.file_name())))
}

/// Where a path leads: links are followed, so that what they lead to is replaced and not the link.
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

/// The folder that a name stands in.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A rename is on the disk only when the folder that holds the names is.
fn sync_folder(path: &Path) -> Result<(), ModelError> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|folder| folder.sync_all())
            .map_err(ModelError::io("write", path))?;
    }
    Ok(())
}

/// Swaps two folders. In one step where the system can; elsewhere the older one moves aside first.
fn exchange(new: &Path, old: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let aside = TempDir::new_in(parent(old))?;
    let aside_path = aside.path().join("older-model");
    fs::rename(old, &aside_path)?;
    if let Err(e) = fs::rename(new, old) {
        // Put the older one back; if even that fails, keep it where it is.
        if fs::rename(&aside_path, old).is_err() {
            let _ = aside.keep();
        }
        return Err(e);
    }
    Ok(())
}
