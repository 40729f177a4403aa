//! What docs/formats.md says of a head's folder and of a header's metadata is what is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use contract::Row;
use contract::classifier::{Classifier, Convolution, Layer};
use model_store::attributes::AttributeType;
use model_store::head::{
    Cut, Description, ExpanderDescription, ExpanderWeights, FASTTEXT_FILE, FastTextDescription,
    HEAD_FILE, HEAD_VERSION, HeadKind, MadeFor, Parts, Probabilities, TermsFrom, Tokeniser, Tokens,
    WEIGHTS_FILE, write_expander,
};
use model_store::prepare::{
    AttributesFile, MadeRows, PrepareOptions, prepare_in_memory, prepare_made,
};
use model_store::{ModelStore, NewEncoder, NewNgrams, NgramLengths, NgramVectors};
use safetensors::SafeTensors;
use serde_json::Value;

use crate::metric::support::with_biases;
use crate::pages::{names, rows_below};

/// Checks that the tables name the fields of these objects, and those inside of them, and no
/// others.
fn check_fields(lines: [&str; 2], written: &[Value]) {
    let rows = lines.map(rows_below).concat();
    let documented: BTreeSet<&str> = rows.iter().flat_map(|row| names(&row[0])).collect();
    let found = written.iter().flat_map(|one| one.as_object().unwrap().keys().map(String::as_str));
    assert_eq!(documented, found.collect::<BTreeSet<_>>());
    for (field, value) in written.iter().flat_map(|one| one.as_object().unwrap()) {
        let inner = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let Some(object) = inner.as_object().filter(|_| field != "training") else { continue };
        let row = rows.iter().find(|row| names(&row[0]).any(|name| name == field)).unwrap();
        for name in object.keys() {
            assert!(row[1].contains(&format!("`{name}`")), "{field}: {name} is not in {row:?}");
        }
    }
}

/// Checks that the table names these tensors, with their types and shapes, and no others.
fn check_tensors(line: &str, file: &[u8], sizes: &[(&str, usize)]) {
    let sizes: BTreeMap<&str, usize> = sizes.iter().copied().collect();
    let mut documented = BTreeMap::new();
    for row in rows_below(line) {
        let (kind, shape) = row[1].split_once(" [").unwrap();
        let shape =
            shape.trim_end_matches(']').split(", ").map(|name| sizes[name]).collect::<Vec<_>>();
        let name = names(&row[0]).next().unwrap().replace(".N.", ".0.");
        documented.insert(name, (kind.to_owned(), shape));
    }
    let tensors = SafeTensors::deserialize(file).unwrap();
    let written = tensors.tensors().into_iter();
    let written = written
        .map(|(name, tensor)| (name, (format!("{:?}", tensor.dtype()), tensor.shape().to_vec())));
    assert_eq!(documented, written.collect::<BTreeMap<_, _>>());
}

fn written(folder: &Path) -> (Value, Vec<u8>) {
    let json = fs::read(folder.join(HEAD_FILE)).unwrap();
    (serde_json::from_slice(&json).unwrap(), fs::read(folder.join(WEIGHTS_FILE)).unwrap())
}

fn training() -> serde_json::Map<String, Value> {
    serde_json::Map::from_iter([("seed".to_owned(), 1.into())])
}

#[test]
fn a_heads_folder_has_what_its_format_lists() {
    let folder = tempfile::tempdir().unwrap();
    let rows: [(&str, &[f32]); 3] = [("a", &[1.0, 0.0]), ("b", &[0.0, 2.0]), ("c", &[3.0, 4.0])];
    let model = Arc::new(ModelStore::from_rows("m", 2, rows).unwrap());
    let tokens = Tokens { tokeniser: Tokeniser::Ptb, lower_case: true, limit: 512, cut: Cut::End };
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(&model),
        tokens: tokens.clone(),
        labels: ["x", "y", "z", "u", "v"].map(str::to_owned).into(),
        probabilities: Probabilities::Softmax,
        temperature: 1.5,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: ["new", "newer", "newest"].map(str::to_owned).into(),
        other_words: 0.5,
        weights: String::new(),
        training: training(),
        checksum: None,
    };
    let convolution =
        Convolution { width: 4, padding: 1, weights: vec![1.0; 6 * 4 * 2], bias: vec![0.0; 6] };
    let layer = Layer { weights: vec![1.0; 6 * 5], bias: vec![0.0; 5] };
    let parts = Parts {
        description,
        classifier: Classifier::new(2, vec![convolution], vec![layer]).unwrap(),
        tuned: (vec![Row(1)], vec![1.0, 2.0]),
        added: vec![1.0; 6],
        unknown: Some(vec![0.5, 0.5]),
    };
    let out = folder.path().join("classifier");
    parts.write(&out, false).unwrap();
    let (json, weights) = written(&out);
    check_fields(["`head.json`, of every head over", "Of a classifier:"], &[json]);
    let sizes = [
        ("channels", 6),
        ("width", 4),
        ("dim", 2),
        ("inputs", 6),
        ("outputs", 5),
        ("tuned", 1),
        ("words", 3),
    ];
    check_tensors("Of a classifier, for each convolution", &weights, &sizes);

    let of_fasttext = folder.path().join("fasttext");
    let labels = ["x", "y"].map(str::to_owned).into();
    let description = FastTextDescription::new(labels, Probabilities::Sigmoid, training());
    description.write(&of_fasttext, false, b"as it was").unwrap();
    let json = fs::read(of_fasttext.join(HEAD_FILE)).unwrap();
    let table = "Of a classifier of fastText,";
    check_fields([table, table], &[serde_json::from_slice(&json).unwrap()]);
    assert_eq!(fs::read(of_fasttext.join(FASTTEXT_FILE)).unwrap(), b"as it was");

    // With the terms of the model, and of another folder.
    let (terms, biases) = (folder.path().join("terms"), folder.path().join("biases.txt"));
    fs::write(&biases, "1\n2\n").unwrap();
    fs::write(folder.path().join("terms.txt"), "x 1 0 1\ny 0 2 0\n").unwrap();
    let file = folder.path().join("terms.txt");
    let input = model_store::prepare::Input::File(&file);
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    model_store::prepare::prepare_folder(input, &terms, &with_biases(biases), go_on).unwrap();
    let from = TermsFrom::Folder {
        path: "../terms".into(),
        model: MadeFor::of(&ModelStore::open(&terms).unwrap()),
    };
    let of_model = ExpanderDescription {
        stop_words: vec!["the".to_owned()],
        training: training(),
        ..ExpanderDescription::of_model(&model, tokens)
    };
    let of_folder = ExpanderDescription { terms: from, ..of_model.clone() };
    let weights = ExpanderWeights {
        rows: Some(vec![Row(1)]),
        vectors: Some(vec![1.0; 3]),
        biases: Some(vec![1.0]),
        projection: Some(vec![1.0; 6]),
    };
    let none = ExpanderWeights::default();
    let expander = |name: &str, description, weights| {
        let out = folder.path().join(name);
        write_expander(&out, false, description, weights, &model).unwrap();
        written(&out)
    };
    let (of_model, _) = expander("of-model", &of_model, &none);
    let (of_folder, file) = expander("of-folder", &of_folder, &weights);
    check_fields(["`head.json`, of every head over", "Of an expander:"], &[of_model, of_folder]);
    check_tensors("Of an expander, all optional", &file, &[("terms", 1), ("size", 3), ("dim", 2)]);
}

#[test]
fn a_headers_metadata_are_what_the_format_lists() {
    let scratch = tempfile::tempdir().unwrap();
    let biases = scratch.path().join("biases.txt");
    fs::write(&biases, "1\n").unwrap();
    let input = model_store::prepare::Input::Bytes { name: "m", bytes: b"a 1 2\n" };
    let keys = |options| -> BTreeSet<String> {
        let files = prepare_in_memory(input, &options).unwrap();
        let (_, header) = SafeTensors::read_metadata(&files.vectors).unwrap();
        header.metadata().as_ref().unwrap().keys().cloned().collect()
    };
    let rows = rows_below("Its metadata, all of them texts:");
    let documented: BTreeSet<String> =
        rows.iter().flat_map(|row| names(&row[0])).map(str::to_owned).collect();
    let path = scratch.path().join("attributes.csv");
    fs::write(&path, "a\n1\n").unwrap();
    let attributes = Some(AttributesFile { path, ..AttributesFile::default() });
    let (cosine, dot) = (keys(PrepareOptions::default()), keys(with_biases(biases.clone())));
    let (source, out) = (scratch.path().join("source"), scratch.path().join("model"));
    fs::write(&source, "").unwrap();
    let options = PrepareOptions { attributes, ..with_biases(biases) };
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    prepare_made(&source, &OneRow, &out, &options, go_on).unwrap();
    let file = fs::read(out.join("vectors.safetensors")).unwrap();
    let (_, header) = SafeTensors::read_metadata(&file).unwrap();
    let all: BTreeSet<String> = header.metadata().as_ref().unwrap().keys().cloned().collect();
    assert_eq!(all, documented);
    let only = |of: &BTreeSet<String>, beside: &BTreeSet<String>| -> Vec<String> {
        of.difference(beside).cloned().collect()
    };
    assert_eq!(only(&dot, &cosine), ["checksum_biases", "metric"]);
    assert_eq!(only(&all, &dot), ["checksum_attributes", "checksum_encoder"]);
}

/// A row and an n-gram.
struct OneRow;

impl MadeRows for OneRow {
    fn format(&self) -> String {
        "one row".to_owned()
    }

    fn rows(&self) -> u32 {
        1
    }

    fn dim(&self) -> usize {
        2
    }

    fn word(&self, _: u32) -> (&[u8], u64) {
        (b"a", 0)
    }

    fn vector(&self, _: u32, vector: &mut [f32]) {
        vector.copy_from_slice(&[1.0, 2.0]);
    }

    fn encoder(&self) -> Option<NewEncoder<'_>> {
        let lengths = NgramLengths { minn: 1, maxn: 1, buckets: 1 };
        let vectors = NgramVectors::Stored(&[0; 8]);
        Some(NewEncoder::Ngrams(NewNgrams { lengths, vectors }))
    }
}

#[test]
fn a_folder_of_attributes_has_the_files_that_its_format_lists() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("attributes.jsonl");
    let line = r#"{"t": "x", "l": ["y"], "i": 1, "n": 0.5, "b": true, "d": "1970-01-01T00:00:00Z",
        "s": "z"}"#
        .replace('\n', "");
    fs::write(&path, format!("{line}\n{{}}\n")).unwrap();
    let types = vec![("s".to_owned(), AttributeType::Stored)];
    let attributes = Some(AttributesFile { path, types, ..AttributesFile::default() });
    let options = PrepareOptions { attributes, ..PrepareOptions::default() };
    let input = model_store::prepare::Input::Bytes { name: "m", bytes: b"a 1 2\nb 3 4\n" };
    let files = prepare_in_memory(input, &options).unwrap().attributes.unwrap();
    // Behind `0-name.`.
    let end = |name: &str| name.split_once('.').map_or(String::new(), |(_, end)| end.to_owned());
    let written: BTreeSet<String> = files.files()[1..].iter().map(|(name, _)| end(name)).collect();
    let rows = rows_below("Each column `N` of the name `NAME` has some of these files:");
    let documented: BTreeSet<String> =
        rows.iter().flat_map(|row| names(&row[0])).map(end).collect();
    assert_eq!(written, documented);
    let description: Value = serde_json::from_slice(&files.files()[0].1).unwrap();
    let columns = description["columns"].as_array().unwrap();
    let kinds: BTreeSet<&str> =
        columns.iter().map(|column| column["type"].as_str().unwrap()).collect();
    let rows = rows_below("Types of attributes:");
    let documented: BTreeSet<&str> = rows.iter().flat_map(|row| names(&row[0])).collect();
    assert_eq!(kinds, documented);
}
