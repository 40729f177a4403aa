//! Damaged attributes of a model folder: refused when it is opened or verified, with the file.

use std::fs;
use std::path::{Path, PathBuf};

use contract::Row;
use model_store::{ModelError, ModelStore};

use super::support::with;
use crate::formats::support::Scratch;

const LINES: &str = r#"{"t": "x\"", "l": ["y", "x"], "i": 1, "n": 0.5, "b": true}
{"d": "1970-01-01T00:00:00Z"}
{"t": "w", "l": [], "i": -1}
{}
"#;

fn model() -> Scratch {
    let scratch = Scratch::new();
    scratch.prepare("a 1 0\nz 1 2\nb 0 1\nc 1 1\n", &with(&scratch, LINES)).unwrap();
    scratch
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("attributes")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Opens it, reads all values, and verifies it.
fn open_and_verify(folder: &Path) -> Result<(), ModelError> {
    let model = ModelStore::open(folder)?;
    let attributes = model.attributes().unwrap();
    for row in (0..model.rows() as u32).map(Row) {
        assert_eq!(attributes.get(row).count(), 6);
    }
    for column in attributes.columns() {
        let _ = column.summary(3);
    }
    model.verify(|_| ())
}

#[test]
fn any_changed_bit_is_found_and_nothing_panics() {
    let scratch = model();
    let all = files(&scratch.out());
    assert_eq!(all.len(), 18, "{all:?}");
    for path in all {
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&path, &bad).unwrap();
            let found = std::panic::catch_unwind(|| open_and_verify(&scratch.out()));
            let found = found.unwrap_or_else(|_| panic!("{path:?}, byte {at}: panics"));
            assert!(found.is_err(), "{path:?}, byte {at}: not noticed");
        }
        fs::write(&path, &good).unwrap();
        open_and_verify(&scratch.out()).unwrap();
    }
}

#[test]
fn files_that_are_cut_longer_or_gone_are_named_when_it_is_opened() {
    let scratch = model();
    for path in files(&scratch.out()) {
        let good = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for bad in [&good[..good.len() - 1], &good[..0], &[&good[..], b"\n"].concat()[..]] {
            fs::write(&path, bad).unwrap();
            let said = ModelStore::open(&scratch.out()).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("prepare"), "{said}");
        }
        fs::remove_file(&path).unwrap();
        let said = ModelStore::open(&scratch.out()).unwrap_err().to_string();
        assert!(said.contains(name), "{said}");
        fs::write(&path, good).unwrap();
    }
    open_and_verify(&scratch.out()).unwrap();
}

#[test]
fn a_folder_that_the_header_does_not_know_is_refused() {
    let (one, other) = (model(), model());
    fs::remove_dir_all(one.out()).unwrap();
    one.prepare("a 1 0\nb 0 1\nc 1 1\n", &Default::default()).unwrap();
    fs::rename(other.out().join("attributes"), one.out().join("attributes")).unwrap();
    let said = ModelStore::open(&one.out()).unwrap_err().to_string();
    assert!(said.contains("prepared without attributes"), "{said}");
    let said = ModelStore::open(&other.out()).unwrap_err().to_string();
    assert!(said.contains("attributes.json"), "{said}");
}
