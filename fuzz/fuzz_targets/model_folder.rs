//! A model folder in which some bytes were changed, cut off or added: it is refused when it is opened or when
//! it is verified, and until then nothing that is asked of it panics. The first byte says which format it has: 1, or 2 with biases.
#![no_main]

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::LazyLock;

use contract::{Metric, Row};
use libfuzzer_sys::fuzz_target;
use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, prepare_folder};

const FILES: [&str; 3] = ["vectors.safetensors", "words.txt", "words.fst"];

/// A folder to write in, and what a good model has in its files, under each metric.
static GOOD: LazyLock<(PathBuf, [[Vec<u8>; 3]; 2])> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let biases = folder.join("biases.txt");
    fs::write(&biases, "0.5\n-1\n0\n2\n").expect("the biases are written");
    let under_dot =
        PrepareOptions { metric: Metric::Dot, biases: Some(biases), ..Default::default() };
    let files = [("cosine", PrepareOptions::default()), ("dot", under_dot)].map(|(name, options)| {
        let folder = folder.join(name);
        let input = Input::Bytes {
            name: "good",
            bytes: b"the 1 2 3\nof -1 0 0.5\nna\xc3\xafve 0 0 0\nand 7 8 9\n",
        };
        let on_progress = &mut |_| ControlFlow::Continue(());
        prepare_folder(input, &folder, &options, on_progress).expect("a good model");
        FILES.map(|name| fs::read(folder.join(name)).expect("a model has this file"))
    });
    (folder.join("cosine"), files)
});

/// Changes, five bytes each: which file and what, where (two bytes), and with which byte.
fn change(files: &mut [Vec<u8>; 3], changes: &[u8]) {
    for change in changes.chunks_exact(5) {
        let file = &mut files[usize::from(change[0] % 3)];
        let mut index = usize::from(u16::from_le_bytes([change[1], change[2]]));
        // Behind the header, too, which is longer than two bytes can count with a safe rest.
        if change[0] & 64 != 0 {
            index = file.len().saturating_sub(1 + index);
        }
        match (file.get_mut(index), change[3] % 4) {
            (Some(byte), 0 | 1) => *byte = change[4],
            (Some(_), 2) => file.truncate(index),
            _ => file.push(change[4]),
        }
    }
}

fuzz_target!(|input: (bool, &[u8])| {
    let (is_under_dot, changes) = input;
    let (folder, good) = &*GOOD;
    let good = &good[usize::from(is_under_dot)];
    let mut files = good.clone();
    change(&mut files, changes);
    for (name, content) in FILES.iter().zip(&files) {
        // Written anew, never changed: somebody may have the old one mapped.
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        fs::write(path, content).expect("the file is written");
    }
    let Ok(model) = ModelStore::open(folder) else { return };
    for row in (0..model.rows() as u32).map(Row) {
        let word = model.words().word(row);
        let _ = (model.words().row(word), model.words().suggestions(word));
        let table = model.table();
        let _ = table.score(table.row(row), table.norm(row), row);
    }
    assert_eq!(model.verify(|_| ()).is_ok(), files == *good, "a change is found, and nothing else");
});
