//! fastText's models become folders whose rows and n-grams have the same bits.

use std::fs;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use changes::{BatchBuilder, ChangeOptions, Changes, Durability};
use contract::Row;
use encoders::{MAX_SUBWORD_BYTES, prepare_folder, subwords, vector_of_subwords};
use flate2::Compression;
use flate2::write::GzEncoder;
use model_store::prepare::{Input, PrepareOptions, Summary};
use model_store::{ModelError, ModelStore};

use crate::support::{File, words};

struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn prepare(&self, input: &Path, options: &PrepareOptions) -> Result<Summary, ModelError> {
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(input), &self.path("model"), options, go_on)
    }

    fn model(&self) -> ModelStore {
        ModelStore::open(&self.path("model")).unwrap()
    }
}

fn larger() -> File {
    let entries = words(&[b"the", "né".as_bytes(), b"a", b"unknown", b"of"]);
    File { dim: 3, bucket: 40, minn: 2, maxn: 4, entries, ..File::default() }
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|component| component.to_bits()).collect()
}

const UNKNOWN: [&str; 7] = ["th", "unknowns", "", " ", "東京", "</s>", "the the"];

#[test]
fn rows_and_unknown_words_have_the_bits_of_the_file() {
    for (is_packed, file) in [(false, larger()), (true, larger())] {
        let scratch = Scratch::new();
        let bytes = file.bytes();
        let input = if is_packed {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&bytes).unwrap();
            scratch.write("m.bin.gz", &packed.finish().unwrap())
        } else {
            scratch.write("m.bin", &bytes)
        };
        let summary = scratch.prepare(&input, &PrepareOptions::default()).unwrap();
        assert_eq!((summary.rows, summary.dim, summary.ngrams), (5, 3, Some(40)));
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
        let format = &summary.provenance.source_format;
        assert_eq!(format, if is_packed { "fastText model, gzip" } else { "fastText model" });
        assert_eq!(summary.provenance.source_bytes, fs::metadata(&input).unwrap().len());
        let (model, original) = (scratch.model(), file.model().unwrap());
        model.verify(|_| {}).unwrap();
        let (mut expected, mut found) = (vec![0.0; 3], vec![0.0; 3]);
        for row in 0..5 {
            let word = original.word(row);
            assert_eq!(model.words().word(Row(row)).as_bytes(), word);
            original.vector(word, &mut expected);
            assert_eq!(bits(model.table().row(Row(row))), bits(&expected));
        }
        let ngrams = model.ngrams().expect("it has n-grams");
        for word in UNKNOWN {
            let parts = original.vector(word.as_bytes(), &mut expected);
            assert_eq!(vector_of_subwords(ngrams, word, &mut found), Some(parts), "{word:?}");
            assert_eq!(bits(&found), bits(&expected), "{word:?}");
            let texts = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap();
            let parts = original.subwords(word.as_bytes()).into_iter();
            let parts: Vec<_> = parts.map(|part| (texts(&part.text), true)).collect();
            assert_eq!(subwords(ngrams, word), parts);
        }
        let left = fs::read_dir(scratch.folder.path()).unwrap().count();
        assert_eq!(left, 2, "the file and the model");
    }
}

#[test]
fn long_words_have_no_vector_and_trained_ngrams_are_told_from_others() {
    let scratch = Scratch::new();
    let zeros = |at: usize| if at < 15 { 1.0 } else { 0.0 };
    let input = scratch.write("m.bin", &File { component: zeros, ..larger() }.bytes());
    scratch.prepare(&input, &PrepareOptions::default()).unwrap();
    let model = scratch.model();
    let (ngrams, mut vector) = (model.ngrams().unwrap(), vec![0.0; 3]);
    let long = |bytes: usize| vector_of_subwords(ngrams, &"x".repeat(bytes), &mut [0.0; 3]);
    assert!(long(MAX_SUBWORD_BYTES).is_some());
    assert_eq!(long(MAX_SUBWORD_BYTES + 1), None);
    assert!(vector_of_subwords(ngrams, "unknowns", &mut vector).unwrap() > 9);
    assert_eq!(vector, [0.0; 3]);
    let parts = subwords(ngrams, "unknowns");
    assert!(parts.len() > 9 && parts.iter().all(|(_, is_trained)| !is_trained));
}

#[test]
fn without_all_words_or_without_buckets_there_are_no_vectors_of_ngrams() {
    let none = |file: &File, options: &PrepareOptions| {
        let scratch = Scratch::new();
        let input = scratch.write("m.bin", &file.bytes());
        let summary = scratch.prepare(&input, options).unwrap();
        assert!(scratch.model().ngrams().is_none());
        assert!(!scratch.path("model").join("encoder").exists());
        summary
    };
    let two = PrepareOptions { limit: std::num::NonZeroUsize::new(2), ..Default::default() };
    let summary = none(&larger(), &two);
    assert_eq!((summary.rows, summary.warnings.len()), (2, 1));
    assert!(summary.warnings[0].contains("does not have all words"), "{:?}", summary.warnings);
    let summary = none(&File { maxn: 0, ..larger() }, &PrepareOptions::default());
    assert!(summary.warnings.is_empty());
    let skip = PrepareOptions { skip_bad_rows: true, ..Default::default() };
    let long = "x".repeat(4097);
    let entries = words(&[b"a", b"b", long.as_bytes()]);
    assert_eq!(none(&File { entries, ..larger() }, &skip).warnings.len(), 1);
    let nan = |at: usize| if at == 4 { f32::NAN } else { 1.0 };
    let summary = none(&File { component: nan, ..larger() }, &skip);
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (4, 1));
    assert_eq!(summary.warnings.len(), 1);
}

#[test]
fn bad_words_and_options_that_do_not_fit_are_named() {
    let fault = |file: &File, options: &PrepareOptions| {
        let scratch = Scratch::new();
        let input = scratch.write("m.bin", &file.bytes());
        let error = scratch.prepare(&input, options).expect_err("it is refused");
        assert!(!scratch.path("model").exists());
        error.to_string()
    };
    let plain = PrepareOptions::default();
    let entries = words(&[b"a", b"\xff", b"b"]);
    let bad = File { entries, ..larger() };
    let said = fault(&bad, &plain);
    assert!(said.contains("m.bin, row 1, byte 103") && said.contains("not UTF-8"), "{said}");
    for (options, expected) in [
        (PrepareOptions { words: Some("w".into()), ..Default::default() }, "without --words"),
        (PrepareOptions { tensor: Some("t".into()), ..Default::default() }, "without --tensor"),
        (PrepareOptions { dim: std::num::NonZeroUsize::new(9), ..Default::default() }, "not 9"),
    ] {
        let said = fault(&larger(), &options);
        assert!(said.contains("it is a fastText model") && said.contains(expected), "{said}");
    }
    let said = fault(&File { model: 3, ..larger() }, &plain);
    assert!(said.contains("m.bin: it is a classifier of fastText"), "{said}");
    // Nobody can ask for the word that is left out.
    let scratch = Scratch::new();
    let input = scratch.write("m.bin", &bad.bytes());
    let skip = PrepareOptions { skip_bad_rows: true, ..Default::default() };
    assert_eq!(scratch.prepare(&input, &skip).unwrap().rows, 2);
    assert!(scratch.model().ngrams().is_some());
}

#[test]
fn damage_is_found_when_the_folder_is_opened_or_verified() {
    let scratch = Scratch::new();
    let input = scratch.write("m.bin", &larger().bytes());
    scratch.prepare(&input, &PrepareOptions::default()).unwrap();
    let encoder = scratch.path("model").join("encoder");
    let names = ["encoder.json", "ngrams.npy"];
    for name in names {
        let path = encoder.join(name);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, &bad).unwrap();
            let opened = ModelStore::open(&scratch.path("model"));
            let error = opened.and_then(|model| model.verify(|_| {})).expect_err("damage");
            assert!(error.to_string().contains("encoder"), "{name} {at}: {error}");
        }
        fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(ModelStore::open(&scratch.path("model")).is_err(), "{name} is cut");
        fs::remove_file(&path).unwrap();
        assert!(ModelStore::open(&scratch.path("model")).is_err(), "{name} is missing");
        fs::write(&path, &good).unwrap();
    }
    scratch.model().verify(|_| {}).unwrap();
    // A folder of another model is not taken for this one's.
    let other = Scratch::new();
    let file = File { entries: words(&[b"x"]), maxn: 0, ..larger() };
    other.prepare(&other.write("m.bin", &file.bytes()), &PrepareOptions::default()).unwrap();
    let moved = other.path("model").join("encoder");
    fs::create_dir(&moved).unwrap();
    for name in names {
        fs::copy(encoder.join(name), moved.join(name)).unwrap();
    }
    let error = ModelStore::open(&other.path("model")).expect_err("not its own").to_string();
    assert!(error.contains("without an encoder"), "{error}");
}

#[test]
fn a_model_with_ngrams_is_replaced_and_folded_with_them() {
    let scratch = Scratch::new();
    let input = scratch.write("m.bin", &larger().bytes());
    scratch.prepare(&input, &PrepareOptions::default()).unwrap();
    let version = scratch.model().version().to_owned();
    let replace = PrepareOptions { replace: true, ..Default::default() };
    scratch.prepare(&input, &replace).unwrap();
    assert_eq!(scratch.model().version(), version, "the same content");
    let without = scratch.write("n.bin", &File { maxn: 0, ..larger() }.bytes());
    scratch.prepare(&without, &replace).unwrap();
    assert_ne!(scratch.model().version(), version);
    scratch.prepare(&input, &replace).unwrap();

    let folder = scratch.path("model");
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    let mut batch = BatchBuilder::new(changes.schema());
    batch.delete("of");
    let batch = batch.finish().unwrap().unwrap();
    changes.commit(batch, Durability::Synced, None).unwrap();
    changes.fold(&mut |_| ControlFlow::Continue(())).unwrap().expect("it was changed");
    changes.remove_old(Duration::ZERO).unwrap();
    changes.close().unwrap();
    let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
    let base = changes.base();
    assert_eq!((base.version(), base.rows()), (&*version, 4));
    base.verify(|_| {}).unwrap();
    let mut found = [0.0; 3];
    let ngrams = base.ngrams().expect("it still has them");
    assert_eq!(vector_of_subwords(ngrams, "of", &mut found), Some(6));
}
