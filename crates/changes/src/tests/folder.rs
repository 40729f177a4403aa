//! Changes in a real folder.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;

use contract::{Metric, Row};
use model_store::prepare::{Input, PrepareOptions, prepare_folder};
use model_store::{ModelError, ModelStore};

use crate::{
    Access, BatchBuilder, ChangeError, ChangeOptions, Changes, Committed, Durability, Upsert,
};

fn prepared(folder: &Path, metric: Metric) {
    let input = Input::Bytes { name: "m", bytes: b"a 1 2\nb 3 4\nc 0 1\n" };
    let options = PrepareOptions { metric, ..PrepareOptions::default() };
    prepare_folder(input, folder, &options, &mut |_| ControlFlow::Continue(())).unwrap();
}

fn put(changes: &Changes, key: &str, vector: &[f32]) -> Committed {
    let mut batch = BatchBuilder::new(changes.schema());
    batch.upsert(Upsert { key, vector, bias: None, attributes: &[] });
    changes.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None).unwrap()
}

fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_base_stays_as_it_is_but_for_one_digit_that_the_first_change_raises() {
    for (metric, digit) in [(Metric::Cosine, b'3'), (Metric::Dot, b'4')] {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("m");
        prepared(&folder, metric);
        let before = content(&folder);
        let version = ModelStore::open(&folder).unwrap().version().to_owned();
        let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
        assert_eq!(changes.snapshot().row_of("b"), Some(Row(1)));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "nothing is made before a change");
        drop(changes);
        assert_eq!(content(&folder), before);

        let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
        assert_eq!(put(&changes, "b", &[5.0, 6.0]).counts.replaced, 1);
        put(&changes, "d", &[7.0, 8.0]);
        let after = content(&folder);
        let mut new = Vec::new();
        for ((_, old), (_, now)) in before.iter().zip(&after) {
            assert_eq!(old.len(), now.len());
            new.extend(old.iter().zip(now).filter(|(old, now)| old != now).map(|(_, &now)| now));
        }
        assert_eq!(new, [digit]);
        // As a program would see it that knows no changes, and this one where it reads none.
        let file = fs::read(folder.join("vectors.safetensors")).unwrap();
        let (_, header) = safetensors::SafeTensors::read_metadata(&file).unwrap();
        let format = header.metadata().as_ref().unwrap()["kindred_format"].clone();
        assert_eq!(format.as_bytes(), [digit]);
        assert!(matches!(ModelStore::open(&folder), Err(ModelError::HasChanges { .. })));
        let (base, has_changes) = ModelStore::open_base(&folder).unwrap();
        assert_eq!((base.version(), has_changes), (&*version, true));
        base.verify(|_| ()).unwrap();
        drop(changes);

        let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
        let snapshot = changes.snapshot();
        assert_eq!((snapshot.position(), snapshot.rows(), snapshot.live_rows()), (2, 5, 4));
        assert_eq!(snapshot.row_of("b"), Some(Row(3)));
        assert_eq!(changes.base().rows(), 3);
        let bias = snapshot.tail_row(Row(4)).unwrap().bias;
        assert_eq!(bias, (metric == Metric::Dot).then_some(0.0));
        assert_eq!(content(&folder), after);
    }
}

#[test]
fn two_handles_to_one_folder_exclude_each_other() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    prepared(&folder, Metric::Cosine);
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    put(&changes, "d", &[1.0, 1.0]);
    let error = Changes::open(&folder, ChangeOptions::default()).unwrap_err();
    assert!(matches!(&error, ChangeError::Locked { path } if path.ends_with("changes/lock")));
    let options = ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
    assert_eq!(Changes::open(&folder, options).unwrap().snapshot().position(), 1);
    drop(changes);
    assert!(Changes::open(&folder, ChangeOptions::default()).is_ok());
}

#[test]
fn threads_commit_to_a_real_folder_and_a_copy_of_it_opens_meanwhile() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    prepared(&folder, Metric::Cosine);
    let options = ChangeOptions { max_log_bytes: 4000, ..ChangeOptions::default() };
    let changes = Changes::open(&folder, options).unwrap();
    put(&changes, "first", &[1.0, 1.0]);
    thread::scope(|scope| {
        for thread in 0..4 {
            let changes = &changes;
            scope.spawn(move || {
                for index in 0..50 {
                    let key = format!("{thread}/{index}");
                    let committed = put(changes, &key, &[thread as f32, index as f32]);
                    assert!(committed.is_durable && changes.snapshot().row_of(&key).is_some());
                }
            });
        }
        for copy in 0..10 {
            let copied = scratch.path().join(format!("copy-{copy}"));
            let before = changes.snapshot().position();
            copy_folder(&folder, &copied);
            let after = changes.snapshot().position();
            let position = Changes::open(&copied, options).unwrap().snapshot().position();
            // A batch of each thread may be written and not yet shown.
            assert!((before..=after + 4).contains(&position), "{before} {position} {after}");
        }
    });
    drop(changes);
    let changes = Changes::open(&folder, options).unwrap();
    let snapshot = changes.snapshot();
    assert_eq!((snapshot.position(), snapshot.live_rows()), (201, 204));
    for (thread, index) in (0..4).flat_map(|thread| (0..50).map(move |index| (thread, index))) {
        let row = snapshot.row_of(&format!("{thread}/{index}")).unwrap();
        let vector = snapshot.tail_row(row).unwrap().vector.to_vec();
        assert_eq!(vector, [thread as f32, index as f32]);
    }
    assert!(fs::read_dir(folder.join("changes")).unwrap().count() > 3);
}

/// As `cp -r` does: it lists a folder, then copies what it has listed.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let entries: Vec<_> = fs::read_dir(from).unwrap().map(Result::unwrap).collect();
    for entry in entries {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            // The header of a new log is written under another name, which goes.
            false => drop(fs::copy(entry.path(), to)),
        }
    }
}

#[cfg(unix)]
#[test]
fn a_base_with_other_names_is_not_marked() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    prepared(&folder, Metric::Cosine);
    let other = scratch.path().join("vectors");
    fs::hard_link(folder.join("vectors.safetensors"), &other).unwrap();
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    let batch = || {
        let mut batch = BatchBuilder::new(changes.schema());
        batch.delete("a");
        batch.finish().unwrap().unwrap()
    };
    let error = changes.commit(batch(), Durability::Synced, None).unwrap_err().to_string();
    assert!(error.contains("copy the model folder without links"), "{error}");
    assert_eq!(changes.snapshot().position(), 0);
    assert!(ModelStore::open(&folder).is_ok(), "nothing was changed");
    fs::remove_file(other).unwrap();
    assert_eq!(changes.commit(batch(), Durability::Synced, None).unwrap().position, 1);
}

#[test]
fn a_folder_with_changes_is_replaced_only_with_them() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    prepared(&folder, Metric::Cosine);
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    put(&changes, "d", &[1.0, 1.0]);
    drop(changes);
    let replace = |discard_changes| {
        let input = Input::Bytes { name: "m", bytes: b"x 1 2\n" };
        let options = PrepareOptions { replace: true, discard_changes, ..Default::default() };
        prepare_folder(input, &folder, &options, &mut |_| ControlFlow::Continue(()))
    };
    let error = replace(false).unwrap_err().to_string();
    assert!(error.contains("whose rows were changed"), "{error}");
    assert!(error.ends_with("add --discard-changes"), "{error}");
    let snapshot = Changes::open(&folder, ChangeOptions::default()).unwrap().snapshot();
    assert_eq!(snapshot.live_rows(), 4, "nothing was lost");
    // Files that are not the model's are never replaced.
    fs::write(folder.join("changes/notes.txt"), "mine").unwrap();
    assert!(replace(true).unwrap_err().to_string().contains("other files"));
    fs::remove_file(folder.join("changes/notes.txt")).unwrap();
    replace(true).unwrap();
    assert_eq!(ModelStore::open(&folder).unwrap().rows(), 1);
    assert!(!folder.join("changes").exists());
}
