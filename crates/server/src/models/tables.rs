//! The folder of tables whose rows change: one folder for each, with its name.

use std::path::{Path, PathBuf};
use std::{fs, io};

use kindred::background::start_in_background;
use tracing::warn;

use super::LoadError;
use crate::config::Config;

/// The beginning of the name of a folder whose table was deleted, until it is gone.
const DELETED: &str = ".deleted-";

/// The tables that are there, by their names, in alphabetical order. Other folders are passed over.
///
/// # Errors
/// If the folder can't be listed.
pub(super) fn found(config: &Config) -> Result<Vec<(String, PathBuf)>, LoadError> {
    let folder = &config.models_dir;
    if folder.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let cant = |source| LoadError::Tables { folder: folder.clone(), source };
    let mut tables = Vec::new();
    for entry in fs::read_dir(folder).map_err(cant)? {
        let path = entry.map_err(cant)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| !name.starts_with('.')) else { continue };
        if path.join("vectors.safetensors").is_file() {
            tables.push((name.to_owned(), path));
        } else if path.is_dir() {
            warn!("{} is no model folder, so it is not served", path.display());
        }
    }
    tables.sort_unstable();
    Ok(tables)
}

/// Removes what is left of tables that were deleted before a process ended.
pub(super) fn remove_deleted(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(DELETED)) {
            remove(entry.path());
        }
    }
}

/// Removes a folder that nobody opens any more, beside the answers.
pub(super) fn remove(folder: PathBuf) {
    let remove = move || {
        if let Err(error) = fs::remove_dir_all(&folder) {
            warn!("{} of a deleted table can't be removed: {error}", folder.display());
        }
    };
    // Without a thread, the next start removes it.
    let _ = start_in_background(remove);
}

/// Moves the folder of a table away, at once, so that a new one may have its name. Returns the
/// folder that is to be removed.
///
/// # Errors
/// If it can't be moved.
pub(super) fn move_away(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let away = folder.join(format!("{DELETED}{name}-{:016x}", fastrand::u64(..)));
    fs::rename(folder.join(name), &away)?;
    Ok(away)
}
