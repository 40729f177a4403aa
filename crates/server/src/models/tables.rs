//! The folder of tables whose rows change: one folder for each, with its name.

use std::fs;
use std::path::PathBuf;

use tracing::warn;

use super::LoadError;
use crate::config::Config;

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
