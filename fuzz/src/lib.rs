//! What the fuzz targets share: a file in, a model out, and what must hold of it.

pub mod changes;
pub mod checks;
pub mod encoders;
pub mod rows;
pub mod service;

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::LazyLock;

use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, Separator, VectorsFormat, prepare_in_memory};

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

/// The options as they are, and with other separators, encodings, words and numbers of rows.
fn variants(options: &PrepareOptions) -> [PrepareOptions; 5] {
    let encoding = |name: &str| Some(name.parse().expect("an encoding of the standard"));
    let own = || options.clone();
    [
        own(),
        PrepareOptions { skip_bad_rows: true, ..own() },
        PrepareOptions { separator: Separator::Tab, limit: NonZeroUsize::new(2), ..own() },
        PrepareOptions { separator: Separator::Comma, encoding: encoding("shift_jis"), ..own() },
        PrepareOptions { allow_numeric_words: true, encoding: encoding("utf-16le"), ..own() },
    ]
}

/// Whatever the bytes are: they are refused, or become a model of which everything holds.
pub fn refused_or_a_model(bytes: &[u8], options: &PrepareOptions) {
    for options in variants(options) {
        let input = Input::Bytes { name: "fuzzed", bytes };
        if let Ok(files) = prepare_in_memory(input, &options) {
            let model = ModelStore::from_memory("fuzzed", &files).expect("what was prepared opens");
            model.verify(|_| ()).expect("what was prepared is whole");
        }
    }
}
