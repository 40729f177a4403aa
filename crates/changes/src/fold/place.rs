//! Where bases are: the switch from one to the next, and the removal of what is left of others.

use std::io;
use std::time::Duration;

use model_store::ModelStore;
use model_store::format::{
    ATTRIBUTES_FOLDER, Header, INDEX_FILE, NEW_POINTER_FILE, Pointer, UNFINISHED, VECTORS_FILE,
    WORDS_FILE, is_base_or_unfinished,
};

use crate::error::ChangeError;
use crate::replay::{name_of, numbers_in};
use crate::storage::{Root, Storage};

/// Refuses to begin where there is too little room.
pub(super) fn check_room(root: &dyn Root, needed: u64) -> Result<(), ChangeError> {
    let path = root.path("");
    let free = root.free_bytes().map_err(ChangeError::io("ask for the free space of", &path))?;
    match free.filter(|&free| free < needed) {
        Some(free) => Err(ChangeError::NoSpaceToFold { path, needed, free }),
        None => Ok(()),
    }
}

/// Gives a base that is on disk its name, and makes it the one that counts.
pub(super) fn switch(root: &dyn Root, unfinished: &str, name: &str) -> Result<(), ChangeError> {
    let path = root.path(name);
    let failed = || ChangeError::io("make", &path);
    root.rename(unfinished, name).map_err(failed())?;
    root.sync_folder("").map_err(failed())?;
    let pointer = Pointer { base: name.to_owned() }.to_bytes();
    let written = root.create(NEW_POINTER_FILE).and_then(|mut file| {
        file.write(&[&pointer])?;
        file.sync()
    });
    let path = root.path(VECTORS_FILE);
    written.map_err(ChangeError::io("write", &root.path(NEW_POINTER_FILE)))?;
    root.rename(NEW_POINTER_FILE, VECTORS_FILE).map_err(ChangeError::io("replace", &path))?;
    root.sync_folder("").map_err(ChangeError::io("sync", &path))
}

/// Removes a base that is known not to count. After a sync that failed, either may.
pub(super) fn give_up(root: &dyn Root, unfinished: &str, name: &str) {
    let is_known =
        root.open_pointer().is_ok_and(|pointer| pointer.is_none_or(|pointer| pointer.base != name));
    if is_known {
        let _ = root.remove(NEW_POINTER_FILE);
        let _ = root.remove(unfinished);
        let _ = root.remove(name);
    }
}

/// Removes what folds have left: bases that do not count, and the logs before. The base before the
/// one that counts stays for this long, with its logs. Returns whether it is still there, or
/// something that can't be removed, which stays until the next time.
///
/// The lock of those who write must be held, and no fold be running.
pub(crate) fn remove_old(storage: &dyn Storage, base: &ModelStore, keep: Duration) -> bool {
    let root = storage.root();
    let Ok(names) = root.list() else { return false };
    // Remains of a fold that did not end.
    for name in &names {
        let is_unfinished = name.ends_with(UNFINISHED) && is_base_or_unfinished(name);
        if is_unfinished || name == NEW_POINTER_FILE {
            let _ = root.remove(name);
        }
    }
    let Some(folded) = &base.header().folded else { return false };
    let Ok(Some(current)) = root.open_pointer() else { return false };
    // After a switch that failed, another counts than the one that is used here.
    if !base.file("").ends_with(&current.base) {
        return true;
    }
    let is_other = |name: &&str| is_base_or_unfinished(name) && **name != *current.base;
    let mut old: Vec<&str> = names.iter().map(String::as_str).filter(is_other).collect();
    // Names are in the order of the bases.
    let before = old.iter().copied().filter(|name| **name < *current.base).max();
    let of_first = |name: &&str| [WORDS_FILE, INDEX_FILE, ATTRIBUTES_FOLDER].contains(name);
    let first: Vec<&str> = names.iter().map(String::as_str).filter(of_first).collect();
    let mut first_log = folded.first_log;
    let is_kept = root.age(VECTORS_FILE).is_none_or(|age| age < keep);
    let mut is_left = false;
    match before.filter(|_| is_kept) {
        Some(before) => {
            old.retain(|name| *name != before);
            old.extend(first);
            first_log = first_log_of(root, before).unwrap_or(0);
            is_left = true;
        }
        None if is_kept && !first.is_empty() => (first_log, is_left) = (0, true),
        None => old.extend(first),
    }
    let logs = numbers_in(&storage.list().ok().flatten().unwrap_or_default());
    let logs: Vec<u64> = logs.into_iter().filter(|&log| log < first_log).collect();
    if old.is_empty() && logs.is_empty() {
        return is_left;
    }
    // The process that switched may have been killed before the switch was on disk.
    if root.sync_folder("").is_err() {
        return true;
    }
    let mut removed = |removed: io::Result<()>| {
        is_left |= removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
    };
    // The tables first: whoever copies meanwhile has no base for the logs that are left.
    for name in old.iter().filter(|name| is_base_or_unfinished(name)) {
        removed(root.remove(&format!("{name}/{VECTORS_FILE}")));
    }
    old.into_iter().for_each(|name| removed(root.remove(name)));
    logs.into_iter().for_each(|log| removed(storage.remove(&name_of(log))));
    is_left
}

/// The first log behind a base.
fn first_log_of(root: &dyn Root, base: &str) -> Option<u64> {
    let name = format!("{base}/{VECTORS_FILE}");
    let file = root.open(&name).ok()?;
    let (header, _) = Header::of_base(&root.path(&name), &file).ok()?;
    Some(header.folded?.first_log)
}
