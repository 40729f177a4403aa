//! What the fuzz targets share: a file in, a model out, and what must hold of it.

pub mod checks;
pub mod service;

use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, VectorsFormat, prepare_in_memory};

/// Four words, for formats that have none. Kept as long as the process.
static WORDS: LazyLock<PathBuf> = LazyLock::new(|| {
    let mut file = tempfile::NamedTempFile::new().expect("a file for the words");
    file.write_all(b"the\nof\nand\nto\n").expect("the words are written");
    file.into_temp_path().keep().expect("the file stays")
});

/// A file of this format; `has_words` says that its words are in another.
pub fn options(format: Option<VectorsFormat>, has_words: bool) -> PrepareOptions {
    PrepareOptions { format, words: has_words.then(|| WORDS.clone()), ..Default::default() }
}

/// Whatever the bytes are: they are refused, or become a model of which everything holds.
pub fn refused_or_a_model(bytes: &[u8], options: &PrepareOptions) {
    for skip_bad_rows in [false, true] {
        let options = PrepareOptions { skip_bad_rows, ..options.clone() };
        let input = Input::Bytes { name: "fuzzed", bytes };
        if let Ok(files) = prepare_in_memory(input, &options) {
            let model = ModelStore::from_memory("fuzzed", &files).expect("what was prepared opens");
            model.verify(|_| ()).expect("what was prepared is whole");
        }
    }
}
