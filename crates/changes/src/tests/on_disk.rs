//! Folds in real folders.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use contract::{Metric, Row};
use model_store::prepare::{Input, PrepareOptions, prepare_folder};
use model_store::{ModelError, ModelStore};

use crate::{
    Access, BatchBuilder, ChangeOptions, Changes, Durability, Schema, Upsert, create, list,
};

fn options(keep_old: Duration) -> ChangeOptions {
    ChangeOptions { keep_old, ..ChangeOptions::default() }
}

fn put(changes: &Changes, key: &str, vector: &[f32]) {
    let mut batch = BatchBuilder::new(changes.schema());
    batch.upsert(Upsert { key, vector, bias: None, attributes: &[] });
    let batch = batch.finish().unwrap().unwrap();
    changes.commit(batch, Durability::Synced, Some(key)).unwrap();
}

fn fold(changes: &Changes) {
    changes.fold(&mut |_| ControlFlow::Continue(())).unwrap().unwrap();
}

/// A folder with three rows, one of which was replaced, and a fourth.
fn folded(folder: &Path, metric: Metric, keep_old: Duration) -> Changes {
    let input = Input::Bytes { name: "m", bytes: b"a 1 2\nb 3 4\nc 0 1\n" };
    let prepared = PrepareOptions { metric, ..PrepareOptions::default() };
    prepare_folder(input, folder, &prepared, &mut |_| ControlFlow::Continue(())).unwrap();
    let changes = Changes::open(folder, options(keep_old)).unwrap();
    put(&changes, "b", &[5.0, 6.0]);
    put(&changes, "d", &[7.0, 8.0]);
    fold(&changes);
    changes
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn base_of(folder: &Path) -> PathBuf {
    folder.join(names(folder).into_iter().find(|name| name.starts_with("base-")).unwrap())
}

fn format_of(file: &Path) -> String {
    let file = fs::read(file).unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&file).unwrap();
    header.metadata().as_ref().unwrap()["kindred_format"].clone()
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        match from.is_dir() {
            true => copied(&from, &to),
            false => drop(fs::copy(from, to).unwrap()),
        }
    }
}

#[test]
fn a_folder_that_was_folded_is_told_from_all_others() {
    for (metric, format) in [(Metric::Cosine, "5"), (Metric::Dot, "6")] {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("m");
        let changes = folded(&folder, metric, Duration::ZERO);
        let base = base_of(&folder);
        let own = base.file_name().unwrap().to_str().unwrap();
        assert_eq!(names(&folder), [own, "changes", "vectors.safetensors"]);
        assert_eq!(names(&folder.join("changes")), ["00000002.log", "lock"]);
        // Programs of earlier versions refuse these numbers, by name of the file.
        assert_eq!(format_of(&folder.join("vectors.safetensors")), "7");
        assert_eq!(format_of(&base.join("vectors.safetensors")), format);
        assert!(matches!(ModelStore::open(&folder), Err(ModelError::HasChanges { .. })));
        let error = ModelStore::open(&base).unwrap_err().to_string();
        assert!(error.contains("open the folder that this one is in"), "{error}");

        let (model, has_changes) = ModelStore::open_base(&folder).unwrap();
        assert!(has_changes && model.name() == "m" && model.folder() == Some(&*folder));
        assert_ne!(model.version(), model.content());
        model.verify(|_| ()).unwrap();
        let snapshot = changes.snapshot();
        let numbers: Vec<u32> = (0..4).map(|row| snapshot.number(Row(row))).collect();
        assert_eq!(numbers, [0, 2, 3, 4]);
        drop(changes);
        let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
        put(&changes, "a", &[1.0, 1.0]);
        put(&changes, "e", &[1.0, 1.0]);
        let listing = list(&folder, &mut |_| ()).unwrap();
        assert_eq!((listing.generation, listing.base_position, listing.position), (2, 2, 4));
        assert_eq!((listing.logs.len(), listing.live_rows), (1, 5));
        let now = changes.snapshot();
        assert_eq!(now.row_of("a").map(|row| now.number(row)), Some(5));
        assert_eq!((now.rows(), now.number(Row(5))), (6, 6));
        // A copy is the table as well.
        let copy = scratch.path().join("copy");
        copied(&folder, &copy);
        assert_eq!(
            Changes::open(&copy, ChangeOptions::default()).unwrap().snapshot().position(),
            4
        );

        let input = Input::Bytes { name: "m", bytes: b"x 1 2\n" };
        let go_on = &mut |_| ControlFlow::Continue(());
        let replace = PrepareOptions { replace: true, ..PrepareOptions::default() };
        let error = prepare_folder(input, &folder, &replace, go_on).unwrap_err().to_string();
        assert!(error.contains("--discard-changes"), "{error}");
        drop(changes);
        fs::write(copy.join(own).join("mine.txt"), "mine").unwrap();
        let discard = PrepareOptions { discard_changes: true, ..replace };
        let error = prepare_folder(input, &copy, &discard, go_on).unwrap_err().to_string();
        assert!(error.contains("holds other files"), "{error}");
        prepare_folder(input, &folder, &discard, go_on).unwrap();
        assert_eq!(ModelStore::open(&folder).unwrap().rows(), 1);
        assert_eq!(names(&folder), ["vectors.safetensors", "words.fst", "words.txt"]);
    }
}

#[test]
fn those_who_open_a_folder_while_it_is_folded_see_some_position() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    create(&folder, &Schema { dim: 2, metric: Metric::Cosine, columns: Vec::new() }).unwrap();
    let changes = Changes::open(&folder, options(Duration::ZERO)).unwrap();
    put(&changes, "first", &[1.0, 1.0]);
    let is_over = AtomicBool::new(false);
    let opened = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut opened, mut last) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let read = ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
                let now = Changes::open(&folder, read).unwrap().snapshot();
                assert!(now.position() >= last && now.live_rows() as u64 == now.position());
                last = now.position();
                opened += 1;
            }
            opened
        });
        for round in 0..40 {
            put(&changes, &format!("k{round}"), &[1.0, round as f32]);
            fold(&changes);
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(opened > 3, "{opened}");
    assert_eq!(changes.current().number(), 41);
    // Those who look at old rows see them, though the files are gone.
    assert_eq!(changes.snapshot().live_rows(), 41);
}
