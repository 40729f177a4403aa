//! Weights of words in texts: files of counts that are wrong, and folders that are damaged.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use model_store::prepare::{Frequencies, Input, PrepareOptions, prepare_folder, prepare_in_memory};
use model_store::{ModelError, ModelStore};

const VECTORS: &str = "the 1 0\nnew york 3 4\nqueen 0 -1\n";

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn prepare(
        &self,
        text_weights: Frequencies,
        limit: Option<usize>,
    ) -> Result<ModelStore, ModelError> {
        fs::write(self.path("v.txt"), VECTORS).unwrap();
        let limit = limit.and_then(std::num::NonZeroUsize::new);
        let options = PrepareOptions {
            text_weights: Some(text_weights),
            dim: std::num::NonZeroUsize::new(2),
            replace: true,
            limit,
            ..PrepareOptions::default()
        };
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(&self.path("v.txt")), &self.path("m"), &options, go_on)?;
        ModelStore::open(&self.path("m"))
    }

    fn with_counts(&self, counts: &[u8]) -> Result<ModelStore, ModelError> {
        fs::write(self.path("counts.txt"), counts).unwrap();
        self.prepare(Frequencies::Counts(self.path("counts.txt")), None)
    }
}

#[test]
fn wrong_counts_name_the_line_and_the_cure() {
    let scratch = Scratch::new();
    const GOOD: &str = "the 7\nnew york 2\n";
    for (counts, said) in [
        ("queen", &["line 3: it has no count", "a word and how often it occurs on each line"][..]),
        ("queen -2", &["line 3: the count `-2` is negative", "such as `frog 12`"]),
        ("queen 0.5", &["line 3: the count `0.5` is not a whole number"]),
        ("queen many", &["line 3: the count `many` is not a whole number"]),
        ("queen 99999999999999999999", &["line 3: the count `99999999999999999999` is above"]),
        (" 7", &["line 3: it has no word"]),
        ("the 7\nqueen 2", &["line 3: the word `the` has a count already, in line 1; remove one"]),
        ("\nqueen 2", &["line 3: it is empty"]),
        ("king 4", &["it has no count of `queen` (row 2); add a line", "count 0"]),
    ] {
        let error = scratch.with_counts(format!("{GOOD}{counts}\n").as_bytes()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("counts.txt"), "{error}");
        assert!(said.iter().all(|said| error.contains(said)), "{counts:?}: {error}");
        assert!(!scratch.path("m").exists(), "{counts:?}");
    }
    for (counts, said) in [
        (&b""[..], "no count above 0"),
        (b"the 0\nnew york 0\nqueen 0\n", "no count above 0"),
        (b"the 1\nking 2\n", "no count of `new york` (row 1), `queen` (row 2);"),
        (b"the 1\nqueen 2\nn\xe9w 3\n", "line 3: the word is not valid UTF-8"),
        (b"PK\x03\x04", "zip"),
    ] {
        let error = scratch.with_counts(counts).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("counts.txt"), "{error}");
    }
    let missing = Frequencies::Counts(scratch.path("nowhere.txt"));
    let error = scratch.prepare(missing, None).unwrap_err().to_string();
    assert!(error.contains("nowhere.txt"), "{error}");
}

#[test]
fn counts_of_other_words_are_counted_and_any_order_will_do() {
    let scratch = Scratch::new();
    let all = |model: ModelStore| model.text_weights().unwrap().all().to_vec();
    let wanted = [5.0, 3.0, 0.0].map(|count| 1e-3 / (1e-3 + count / 10.0));
    let found = all(scratch.with_counts(b"queen\t0\nking 2\nnew york 3\r\nthe  5").unwrap());
    assert_eq!(found, wanted);
    assert_eq!(found[2], 1.0);
    let format = &scratch.with_counts(b"queen 1\nthe 1\nnew york 1\n\n").unwrap();
    let format = &format.header().provenance.source_format;
    assert!(format.contains("weights of texts: SIF by counts in counts.txt"), "{format}");
    // The ranks are those of the rows that the model has.
    let two = all(scratch.prepare(Frequencies::ByRank, Some(2)).unwrap());
    assert_eq!(two, [1.0 / 1.0, 1.0 / 2.0].map(|zipf| 1e-3 / (1e-3 + zipf / 1.5)));
    let bytes = fs::read(scratch.path("m/encoder/weights.npy")).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY") && bytes.ends_with(&two[1].to_le_bytes()));
}

#[test]
fn damaged_weights_are_found() {
    let scratch = Scratch::new();
    drop(scratch.prepare(Frequencies::ByRank, None).unwrap());
    let folder = scratch.path("m/encoder");
    let (weights, description) = (folder.join("weights.npy"), folder.join("encoder.json"));
    let whole = fs::read(&weights).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&weights, damaged).unwrap();
        let found = ModelStore::open(&scratch.path("m")).and_then(|model| model.verify(|_| {}));
        let error = found.unwrap_err().to_string();
        assert!(error.contains("weights.npy"), "byte {at}: {error}");
    }
    for shorter in [0, 100, whole.len() - 8] {
        fs::write(&weights, &whole[..shorter]).unwrap();
        let error = ModelStore::open(&scratch.path("m")).unwrap_err().to_string();
        assert!(error.contains("weights.npy"), "{shorter}: {error}");
    }
    fs::remove_file(&weights).unwrap();
    assert!(ModelStore::open(&scratch.path("m")).unwrap_err().to_string().contains("weights.npy"));
    fs::write(&weights, &whole).unwrap();
    let text = fs::read_to_string(&description).unwrap();
    assert!(text.contains("\"kind\": \"words\"") && text.contains("\"sif\""), "{text}");
    fs::write(&description, text.replace("sif", "tfi")).unwrap();
    let error = ModelStore::open(&scratch.path("m")).unwrap_err().to_string();
    assert!(error.contains("encoder.json") && error.contains("checksum"), "{error}");
    fs::write(&description, text).unwrap();
    ModelStore::open(&scratch.path("m")).unwrap().verify(|_| {}).unwrap();
}

#[test]
fn a_model_in_memory_has_no_weights() {
    let input = Input::Bytes { name: "v", bytes: b"a 1 2\n" };
    let text_weights = Some(Frequencies::ByRank);
    let options = PrepareOptions { text_weights, ..PrepareOptions::default() };
    let error = prepare_in_memory(input, &options).unwrap_err().to_string();
    assert!(error.contains("kept in a folder"), "{error}");
}
