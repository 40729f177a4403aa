//! A small model, and a folder for preparing files of it.

use std::fs;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use model_store::prepare::{Input, PrepareOptions, Separator, Summary, prepare_folder};
use model_store::{ModelError, ModelStore};
use ruzstd::encoding::CompressionLevel;
use tempfile::TempDir;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// The compressions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Bzip2,
    Zstd,
    Xz,
    Zip,
}

impl Packing {
    pub(crate) const ALL: [Self; 6] =
        [Self::Plain, Self::Gzip, Self::Bzip2, Self::Zstd, Self::Xz, Self::Zip];

    pub(crate) fn pack(self, content: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => content.to_vec(),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Self::Bzip2 => {
                let mut encoder =
                    bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Self::Zstd => ruzstd::encoding::compress_to_vec(content, CompressionLevel::Fastest),
            Self::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
            Self::Zip => zip(&[("folder/vectors", content)]),
        }
    }
}

/// An archive of these files.
pub(crate) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    zip_with(CompressionMethod::Deflated, files)
}

/// An archive of these files, each compressed by this method.
pub(crate) fn zip_with(method: CompressionMethod, files: &[(&str, &[u8])]) -> Vec<u8> {
    let level = (method != CompressionMethod::Stored).then_some(9);
    let options = SimpleFileOptions::default().compression_method(method).compression_level(level);
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A folder for one preparation.
pub(crate) struct Scratch(TempDir);

pub(crate) const INPUT: &str = "vectors.any";
pub(crate) const WORDS: &str = "words.any";

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.path("model")
    }

    /// Writes the words beside the vectors. Returns the options that name them.
    pub(crate) fn with_words(&self, words: impl AsRef<[u8]>) -> PrepareOptions {
        fs::write(self.path(WORDS), words).unwrap();
        PrepareOptions { words: Some(self.path(WORDS)), ..Default::default() }
    }

    pub(crate) fn prepare(
        &self,
        content: impl AsRef<[u8]>,
        options: &PrepareOptions,
    ) -> Result<Summary, ModelError> {
        fs::write(self.path(INPUT), content).unwrap();
        let on_progress = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(&self.path(INPUT)), &self.out(), options, on_progress)
    }

    pub(crate) fn open(&self) -> ModelStore {
        let model = ModelStore::open(&self.out()).unwrap();
        model.verify(|_| ()).unwrap();
        model
    }

    /// The error for a refused input. Nothing may be left behind.
    pub(crate) fn refused(&self, content: impl AsRef<[u8]>, options: &PrepareOptions) -> String {
        let error = self.prepare(content, options).expect_err("it is refused");
        let names = fs::read_dir(self.0.path()).unwrap();
        for entry in names {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == INPUT || name == WORDS, "{name} was left behind after: {error}");
        }
        error.to_string()
    }
}

/// Checks that a file is refused, and that the error has these parts.
#[track_caller]
pub(crate) fn refused(content: impl AsRef<[u8]>, options: &PrepareOptions, expected: &[&str]) {
    let error = Scratch::new().refused(content, options);
    for part in expected {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }
}

/// The version of the model of this file, which is that of its words and numbers, and the
/// description of the file.
pub(crate) fn version(content: impl AsRef<[u8]>, options: &PrepareOptions) -> (String, String) {
    let scratch = Scratch::new();
    let what = String::from_utf8_lossy(content.as_ref()).chars().take(60).collect::<String>();
    let summary = scratch.prepare(content, options).unwrap_or_else(|e| panic!("{what:?}: {e}"));
    (scratch.open().version().to_owned(), summary.provenance.source_format)
}

/// Options with this separator.
pub(crate) fn separated(separator: Separator) -> PrepareOptions {
    PrepareOptions { separator, ..Default::default() }
}

/// Rows that files of all formats are made of.
pub(crate) const ROWS: [(&str, [f32; 3]); 4] = [
    ("the", [0.5, -1.25, 3.0]),
    ("naïve", [-0.0, 1e-3, -7.5]),
    ("zero", [0.0, 0.0, 0.0]),
    ("Zürich", [100.0, 0.25, -0.125]),
];

pub(crate) fn words_text() -> String {
    ROWS.iter().map(|(word, _)| format!("{word}\n")).collect()
}

/// All components as little-endian float32.
pub(crate) fn components() -> Vec<u8> {
    ROWS.iter().flat_map(|(_, row)| row).flat_map(|x| x.to_le_bytes()).collect()
}
