//! What a program leaves behind that was killed, and who may clear it away.

use std::fs::{self, DirEntry, File};
use std::path::Path;
use std::time::Duration;

/// Whoever works in a temporary file or folder holds this. `None` where somebody else does, or the system
/// locks nothing.
pub(crate) fn lock(file: &File) -> Option<()> {
    file.try_lock().ok()
}

/// Removes the files and folders in `parent` whose names begin with `prefix`, which `is_ours` says are what
/// we make, and which nobody works in. The lock is taken moments after they are made: so younger ones are
/// left alone, too.
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
            && lock(&file).is_some()
        {
            // What can't be removed stays, as it would have without us.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}
