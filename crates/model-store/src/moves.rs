//! Moves of finished files and folders into their places, and how systems differ in that.
//!
//! - Linux and macOS exchange two folders in one step. Elsewhere, and on file systems that can't,
//!   the older one moves aside first: for a moment there is none.
//! - Windows does not rename a folder to one that is there, not even to an empty one, nor replace
//!   a file that a process has mapped. Then the older one moves aside first, too. A folder with
//!   open files stays where it is: the error says so.
//! - Only Unix syncs folders; elsewhere a rename is on disk when the system writes it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The prefix of the names of folders in which older files and folders stand aside.
const ASIDE: &str = ".kindred-older-";

/// Exchanges two folders: in one step where the system supports it; otherwise the older one moves
/// aside first.
///
/// # Errors
/// If a folder can't be renamed; the older one is in its place then, unless the error names
/// another.
pub(crate) fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    if exchange_in_one_step(new, old) {
        return Ok(());
    }
    with_old_aside(old, || fs::rename(new, old)).map_err(|error| explained(error, is_in_use))
}

/// Whether the system exchanged them; if not, nothing has changed.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange_in_one_step(new: &Path, old: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange_in_one_step(_new: &Path, _old: &Path) -> bool {
    false
}

/// Renames a folder to a name at which there is nothing, or an empty folder.
///
/// # Errors
/// If there is something else, or the system refuses.
pub(crate) fn move_to_free_place(new: &Path, out: &Path) -> io::Result<()> {
    match fs::rename(new, out) {
        Err(_) if out.is_dir() => move_to_empty_folder(new, out),
        moved => moved,
    }
}

fn move_to_empty_folder(new: &Path, out: &Path) -> io::Result<()> {
    // Fails if it is not empty.
    fs::remove_dir(out)?;
    fs::rename(new, out)
}

/// Renames a file, in the place of an older one if there is one.
///
/// # Errors
/// If the system refuses; the older file is in its place then, unless the error names another.
pub fn replace_file(new: &Path, old: &Path) -> io::Result<()> {
    replace_by(old, || fs::rename(new, old))
}

/// Has `put` replace a file. Where the system does not replace a file in use, the older one moves
/// aside, and `put` is called once more.
///
/// # Errors
/// Those of `put`; see [`replace_file`].
pub(crate) fn replace_by(old: &Path, put: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    replace_where(old, put, is_in_use)
}

fn replace_where(
    old: &Path,
    mut put: impl FnMut() -> io::Result<()>,
    is_in_use: impl Fn(&io::Error) -> bool,
) -> io::Result<()> {
    match put() {
        Err(error) if is_in_use(&error) && old.is_file() => {
            with_old_aside(old, put).map_err(|error| explained(error, is_in_use))
        }
        done => done,
    }
}

/// Moves a file or folder aside, puts the new one in its place, and deletes the older one. On
/// Windows a mapped file can't be deleted: it stays where it is.
fn with_old_aside(old: &Path, put: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let aside = tempfile::Builder::new().prefix(ASIDE).tempdir_in(parent(old))?;
    let older = aside.path().join("older");
    fs::rename(old, &older)?;
    let Err(error) = put() else { return Ok(()) };
    if fs::rename(&older, old).is_ok() {
        return Err(error);
    }
    let _ = aside.keep();
    let text = format!("{error}; the older one is now {}", older.display());
    Err(io::Error::new(error.kind(), text))
}

/// Whether an error says that a process has the file, or one in the folder, open or mapped: only
/// Windows minds.
fn is_in_use(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    const USER_MAPPED_FILE: i32 = 1224;
    let codes = [ACCESS_DENIED, SHARING_VIOLATION, USER_MAPPED_FILE];
    cfg!(windows) && error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// The error, with the cure if something is in use.
fn explained(error: io::Error, is_in_use: impl Fn(&io::Error) -> bool) -> io::Error {
    if !is_in_use(&error) {
        return error;
    }
    let cure = "a process may have it open: end that process, or choose another name";
    io::Error::new(error.kind(), format!("{error}; {cure}"))
}

/// The parent folder of a path.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs the folder that this file or folder is in: a rename is on disk only after that.
///
/// # Errors
/// If the folder can't be opened or written.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    sync_folder(parent(path))
}

/// Syncs a folder, where the system can.
///
/// # Errors
/// If the folder can't be opened or written.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder with one file, whose text is the folder's name.
    fn folder(scratch: &Path, name: &str) -> PathBuf {
        let folder = scratch.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), name).unwrap();
        folder
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(folder).unwrap().map(name);
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn folders_are_exchanged() {
        let scratch = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| folder(scratch.path(), name));
        exchange(&new, &old).unwrap();
        assert_eq!(text(&old.join("file")), "new");
    }

    #[test]
    fn without_an_exchange_in_one_step_the_older_folder_moves_aside_and_goes() {
        let scratch = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| folder(scratch.path(), name));
        with_old_aside(&old, || fs::rename(&new, &old)).unwrap();
        assert_eq!(text(&old.join("file")), "new");
        assert_eq!(names(scratch.path()), ["old"]);
    }

    #[test]
    fn if_the_new_one_can_not_be_put_the_older_one_is_in_its_place_again() {
        let scratch = tempfile::tempdir().unwrap();
        let old = folder(scratch.path(), "old");
        let missing = scratch.path().join("missing");
        let error = with_old_aside(&old, || fs::rename(&missing, &old)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(text(&old.join("file")), "old");
        assert_eq!(names(scratch.path()), ["old"]);
    }

    #[test]
    fn if_the_older_one_can_not_go_back_the_error_says_where_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let old = folder(scratch.path(), "old");
        // Something else takes the place, and can't be put there as a whole.
        let put = || {
            folder(scratch.path(), "old");
            Err(io::Error::other("no"))
        };
        let error = with_old_aside(&old, put).unwrap_err().to_string();
        let older = error.strip_prefix("no; the older one is now ").unwrap();
        assert_eq!(text(&Path::new(older).join("file")), "old");
    }

    #[test]
    fn a_folder_moves_to_a_free_place_and_to_an_empty_folder_only() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other, full] = ["one", "other", "full"].map(|name| folder(scratch.path(), name));
        let [free, empty] = ["free", "empty"].map(|name| scratch.path().join(name));
        fs::create_dir(&empty).unwrap();
        move_to_free_place(&one, &free).unwrap();
        assert_eq!(text(&free.join("file")), "one");
        assert!(move_to_free_place(&other, &full).is_err());
        assert!(move_to_empty_folder(&other, &full).is_err());
        assert_eq!(text(&full.join("file")), "full");
        // As on Windows, where the first rename fails.
        move_to_empty_folder(&other, &empty).unwrap();
        assert_eq!(text(&empty.join("file")), "other");
    }

    #[test]
    fn a_file_in_use_moves_aside() {
        let scratch = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| scratch.path().join(name));
        let write = || {
            fs::write(&new, "new").unwrap();
            fs::write(&old, "old").unwrap();
        };
        write();
        replace_file(&new, &old).unwrap();
        assert_eq!((text(&old), names(scratch.path())), ("new".into(), vec!["old".to_owned()]));
        // As on Windows, where a file that is mapped is not replaced.
        write();
        let put = || match old.exists() {
            true => Err(io::Error::other("in use")),
            false => fs::rename(&new, &old),
        };
        replace_where(&old, put, |_| true).unwrap();
        assert_eq!((text(&old), names(scratch.path())), ("new".into(), vec!["old".to_owned()]));
        // If it can't be put there either, the older one stays, and the error says why.
        let put = || Err(io::Error::other("in use"));
        let error = replace_where(&old, put, |_| true).unwrap_err().to_string();
        assert!(error.starts_with("in use; a process may have it open"), "{error}");
        assert_eq!((text(&old), names(scratch.path())), ("new".into(), vec!["old".to_owned()]));
        // Other errors are those of `put`, which is called once.
        let mut calls = 0;
        let put = || {
            calls += 1;
            Err(io::Error::other("full"))
        };
        let error = replace_where(&old, put, |_| false).unwrap_err().to_string();
        assert_eq!((&error[..], calls), ("full", 1));
    }
}
