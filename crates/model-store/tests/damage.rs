//! Damaged model folders: refused, with the file's name and the cure.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use model_store::format::{DATA_START, INDEX_FILE, VECTORS_FILE, WORDS_FILE};
use model_store::head::HEAD_FILE;
use model_store::prepare::{Input, PrepareOptions, prepare_folder};
use model_store::{ModelError, ModelStore};
use tempfile::TempDir;

fn model_folder() -> (TempDir, PathBuf) {
    let scratch = TempDir::new().unwrap();
    let out = scratch.path().join("model");
    let bytes = b"the 1 0 0\nking 3 4 0\nqueen 0 -1 0.5\n";
    let input = Input::Bytes { name: "three.txt", bytes };
    prepare_folder(input, &out, &PrepareOptions::default(), &mut |_| ControlFlow::Continue(()))
        .unwrap();
    (scratch, out)
}

/// What `serve` does, then what `kindred verify` does.
fn open_and_verify(folder: &Path) -> Result<(), ModelError> {
    ModelStore::open(folder)?.verify(|_| ())
}

#[test]
fn truncated_files_are_refused_when_opened() {
    for name in [VECTORS_FILE, WORDS_FILE, INDEX_FILE] {
        let whole = {
            let (_place, folder) = model_folder();
            fs::metadata(folder.join(name)).unwrap().len()
        };
        for length in [0, 1, 7, 8, 100, whole / 2, whole - 1] {
            if length >= whole {
                continue;
            }
            let (_place, folder) = model_folder();
            let file = fs::File::options().write(true).open(folder.join(name)).unwrap();
            file.set_len(length).unwrap();
            let said = ModelStore::open(&folder).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains("prepare"), "{length}: {said}");
        }
    }
}

#[test]
fn files_with_something_appended_are_refused_when_opened() {
    for name in [VECTORS_FILE, WORDS_FILE, INDEX_FILE] {
        let (_place, folder) = model_folder();
        let mut content = fs::read(folder.join(name)).unwrap();
        content.push(b'\n');
        fs::write(folder.join(name), content).unwrap();
        assert!(ModelStore::open(&folder).unwrap_err().to_string().contains(name));
    }
}

#[test]
fn any_changed_bit_is_found() {
    for name in [VECTORS_FILE, WORDS_FILE, INDEX_FILE] {
        let (_place, folder) = model_folder();
        let path = folder.join(name);
        let good = fs::read(&path).unwrap();
        // Every byte of text and data, and some bytes of the header's padding.
        let text_end = good.iter().rposition(|&b| b == b'}').unwrap_or(0);
        let padding = text_end + 20..DATA_START - 20;
        for at in (0..good.len()).filter(|at| !padding.contains(at) || at % 1000 == 0) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&path, &bad).unwrap();
            let result = std::panic::catch_unwind(|| open_and_verify(&folder));
            let result = result.unwrap_or_else(|_| panic!("{name}, byte {at}: panics"));
            assert!(result.is_err(), "{name}, byte {at}: not noticed");
        }
        fs::write(&path, &good).unwrap();
        open_and_verify(&folder).unwrap();
    }
}

#[test]
fn another_version_is_refused_by_its_number() {
    let (_place, folder) = model_folder();
    let path = folder.join(VECTORS_FILE);
    let mut bytes = fs::read(&path).unwrap();
    let key = br#""kindred_format":"1""#;
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at + key.len() - 2] = b'9';
    fs::write(&path, bytes).unwrap();
    let said = ModelStore::open(&folder).unwrap_err().to_string();
    assert!(said.contains("model format 9") && said.contains("reads formats 1 and 2"), "{said}");
    assert!(said.contains("prepare the model again"), "{said}");
}

#[test]
fn what_is_no_model_is_refused_with_the_cure() {
    let scratch = TempDir::new().unwrap();
    let not_ours = scratch.path().join("not-ours");
    fs::create_dir(&not_ours).unwrap();
    let json = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    let other = [&(json.len() as u64).to_le_bytes()[..], json, &[0; 4]].concat();
    fs::write(not_ours.join(VECTORS_FILE), other).unwrap();
    let text = scratch.path().join("glove.txt");
    fs::write(&text, "the 1 2\n").unwrap();
    let head = scratch.path().join("head");
    fs::create_dir(&head).unwrap();
    fs::write(head.join(HEAD_FILE), "{}").unwrap();
    for (path, reason) in [
        (scratch.path().join("nowhere"), "there is no such folder"),
        (scratch.path().to_owned(), "it has no file vectors.safetensors"),
        (head, "it is a head, which is named with --head"),
        (text, "it is a file, not a folder"),
        (not_ours, "it has no metadata"),
    ] {
        let said = ModelStore::open(&path).unwrap_err().to_string();
        assert!(said.contains(reason) && said.contains("kindred prepare"), "{said}");
    }
}
