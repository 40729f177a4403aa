//! Finds and removes the leftovers of killed processes.

use std::fs::{self, DirEntry, File};
use std::path::Path;
use std::time::Duration;

/// A lock that a process holds while it works in a temporary file or folder. `None` if another
/// process holds it, or the system has no locks.
pub(crate) fn lock(file: &File) -> Option<()> {
    file.try_lock().ok()
}

/// Removes files and folders in `parent` whose names start with `prefix`, which `is_ours`
/// recognises, and which no process works in. The lock is taken shortly after creation, so recent
/// ones are kept too.
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
            // Anything that can't be removed stays.
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}
