//! The files of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that tools make and that are not part of the repository.
const NOT_OURS: [&str; 7] =
    ["staged", "node_modules", "dist", "corpus", "artifacts", "shared", "__pycache__"];

/// The top of the repository.
pub(crate) fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the top")
}

/// The files below a folder whose names are wanted, as paths from the top, in order.
pub(crate) fn below(
    top: &Path,
    folder: &Path,
    wanted: impl Fn(&str) -> bool + Copy,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top.join(folder)).expect("the folder can be listed") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        let (path, kind) = (folder.join(&name), entry.file_type().expect("a type"));
        let is_hidden = name.starts_with('.') && name != ".ci";
        let is_ours = !is_hidden && !name.starts_with("target") && !NOT_OURS.contains(&&name[..]);
        if kind.is_dir() && is_ours {
            found.extend(below(top, &path, wanted));
        } else if kind.is_file() && wanted(&name) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A file's text, whatever it is.
pub(crate) fn read(top: &Path, path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(top.join(path)).expect("the file can be read")).into_owned()
}
