//! Documents with vectors that were made elsewhere: row n of an array belongs to record n.

use std::fs;
use std::path::{Path, PathBuf};

use kindred::npy;
use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::support::{Reply, Service, errors, kindred};

const DOCS: &str = "{\"id\": \"one\", \"body\": \"a to\", \"year\": 2001}\n\
                    {\"id\": \"two\", \"body\": \"boundary\", \"year\": 2002}\n\
                    {\"id\": 3, \"body\": \"! x\", \"year\": 2003}\n";

const VECTORS: [[f32; 2]; 3] = [[1.0, 0.0], [1.5, 1.5], [0.0, -2.0]];

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    fn text(&self, name: &str) -> String {
        text(&self.path(name)).to_owned()
    }

    /// Prepares these documents and this array, with these arguments, as `name`.
    fn prepare(
        &self,
        name: &str,
        docs: &str,
        array: &[u8],
        more: &[&str],
    ) -> Result<String, String> {
        let (docs, array) = (self.write("docs.jsonl", docs), self.write("v.npy", array));
        let out = self.text(name);
        let given = [&*docs, "--vectors", &array, "--out", &out];
        let output = kindred(&["prepare"]).args(given).args(more).output().unwrap();
        let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
        if output.status.success() { Ok(said) } else { Err(said) }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A NumPy file of float32.
fn array(shape: &[u64], numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let numbers = numbers.into_iter().flat_map(f32::to_le_bytes);
    npy::head("'<f4'", shape).into_iter().chain(numbers).collect()
}

fn three() -> Vec<u8> {
    array(&[3, 2], VECTORS.concat())
}

fn posted(service: &Service, path: &str, body: &Value) -> Reply {
    let reply = service.post(path, body);
    Contract::read().check("POST", path, &reply);
    reply
}

#[test]
fn documents_are_found_by_vectors_and_texts_are_refused_with_the_cure() {
    let scratch = Scratch::new();
    let docs = scratch.text("docs.jsonl");
    let more = ["--text", "body", "--key", "id", "--keep-text", "--attributes", &docs];
    let said = scratch.prepare("tables/docs", DOCS, &three(), &more).unwrap();
    assert!(said.contains("3 rows × 2 dimensions") && said.contains("vectors in v.npy"), "{said}");
    let output = kindred(&["verify", &scratch.text("tables/docs")]).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let service = Service::start(&["--models-dir", &scratch.text("tables")]);
    let about = service.get("/model");
    Contract::read().check("GET", "/model", &about);
    let about = about.json();
    assert_eq!((&about["encoder"], &about["tokeniser"]), (&json!("none"), &json!("none")));
    let body = json!({"vector": [1, 0.1], "k": 3, "with_attributes": true, "with_vectors": true});
    let found = posted(&service, "/nearest", &body).json();
    let of = |at: usize, name: &str| found["neighbors"][at][name].clone();
    assert_eq!([of(0, "word"), of(1, "word"), of(2, "word")], ["one", "two", "3"].map(Value::from));
    assert_eq!(of(1, "vector"), json!(VECTORS[1]));
    assert_eq!(of(1, "attributes"), json!({"body": "boundary", "year": 2002}));
    let refused = |path: &str, body: Value| {
        let reply = posted(&service, path, &body);
        let text = reply.text().to_owned();
        assert!(text.contains("no encoder of texts") && text.contains("its `vector`"), "{text}");
        reply.status
    };
    // Also if the text has a word that is a key.
    assert_eq!(refused("/nearest", json!({"text": "one"})), 422);
    assert_eq!(refused("/rank", json!({"text": "one", "words": ["two"]})), 422);
    assert_eq!(refused("/rows", json!({"rows": [{"key": "four", "text": "one"}]})), 422);
    assert_eq!(refused("/v1/embeddings", json!({"input": "one"})), 400);
    refused("/embed", json!({"texts": ["one"]}));
    let row = json!({"rows": [{"key": "four", "vector": [3, 0.3]}]});
    assert_eq!(posted(&service, "/rows", &row).status, 200);
    assert_eq!(service.post("/fold", &json!({})).status, 200);
    let found = posted(&service, "/nearest", &json!({"vector": [1, 0.1], "k": 1})).json();
    assert_eq!(found["neighbors"][0]["word"], "four");
    assert_eq!(refused("/nearest", json!({"text": "one"})), 422);
    drop(service);
    // Nor does it encode other documents.
    let (docs, encoder) = (scratch.text("docs.jsonl"), scratch.text("plain"));
    scratch.prepare("plain", DOCS, &three(), &[]).unwrap();
    let given = [&*docs, "--encoder", &encoder, "--text", "body", "--out", &scratch.text("more")];
    let output = kindred(&["prepare"]).args(given).output().unwrap();
    assert!(errors(&output).contains("it has no encoder"), "{}", errors(&output));
}

#[test]
fn every_type_of_number_is_read_and_keys_may_be_numbers_of_records() {
    let scratch = Scratch::new();
    let plain = scratch.prepare("m", DOCS, &three(), &[]).unwrap();
    assert!(plain.contains("3 rows × 2 dimensions"), "{plain}");
    let version =
        |name: &str| kindred::Model::open(scratch.path(name)).unwrap().version().to_owned();
    let model = kindred::Model::open(scratch.path("m")).unwrap();
    assert_eq!((model.word(0), model.word(2)), (Some("1"), Some("3")));
    let doubles = VECTORS.concat().into_iter().flat_map(|x| f64::from(x).to_le_bytes());
    let doubles: Vec<u8> = npy::head("'<f8'", &[3, 2]).into_iter().chain(doubles).collect();
    // 1, 0, 1.5, 1.5, 0 and -2.
    let halves = [0x3c00, 0, 0x3e00, 0x3e00, 0, 0xc000_u16].into_iter().flat_map(u16::to_le_bytes);
    let halves: Vec<u8> = npy::head("'<f2'", &[3, 2]).into_iter().chain(halves).collect();
    let padded = [three(), vec![0; 100]].concat();
    for (name, bytes) in [("f8", doubles), ("f2", halves), ("padded", padded)] {
        scratch.prepare(name, DOCS, &bytes, &[]).unwrap();
        assert_eq!(version(name), version("m"), "{name}");
    }
}

#[test]
fn rows_belong_to_records_whatever_is_skipped_or_repeated() {
    /// More than are read together.
    const MANY: usize = 10_000;
    let scratch = Scratch::new();
    let is_bad = |n: usize| n.is_multiple_of(3);
    let line = |n: usize| match n {
        n if is_bad(n) => "{\"id\": [\"a\"]}\n".to_owned(),
        // The one before has the key already.
        n if n % 100 == 1 => format!("{{\"id\": {}}}\n", if is_bad(n - 1) { n } else { n - 1 }),
        n => format!("{{\"id\": {n}}}\n"),
    };
    let docs: String = (0..MANY).map(line).collect();
    let numbers = (0..MANY).flat_map(|n| [n as f32, 1.0]);
    let bytes = array(&[MANY as u64, 2], numbers);
    scratch.prepare("m", &docs, &bytes, &["--key", "id", "--skip-bad-rows"]).unwrap();
    let model = kindred::Model::open(scratch.path("m")).unwrap();
    assert!(model.rows() > MANY / 2);
    for row in 0..model.rows() as u32 {
        let key: f32 = model.word(row).unwrap().parse().unwrap();
        assert_eq!(model.vector(row), Some(&[key, 1.0][..]), "{key}");
    }
    let given = ["--key", "id", "--limit", "2", "--skip-bad-rows", "--replace"];
    scratch.prepare("m", &docs, &bytes, &given).unwrap();
    assert_eq!(kindred::Model::open(scratch.path("m")).unwrap().rows(), 1);
    for (records, rows) in [(MANY, MANY - 1), (MANY - 1, MANY), (MANY, 4096), (4096, MANY), (1, 0)]
    {
        let docs: String = (0..records).map(|n| format!("{{\"id\": {n}}}\n")).collect();
        let bytes = array(&[rows as u64, 1], (0..rows).map(|n| n as f32 + 1.0));
        let error = scratch.prepare("bad", &docs, &bytes, &["--key", "id"]).unwrap_err();
        let said = format!("v.npy: it has {rows} rows, and docs.jsonl {records} records");
        assert!(error.contains(&said) && error.contains("a row for each record"), "{error}");
        assert!(!scratch.path("bad").exists());
    }
}

#[test]
fn arrays_and_options_that_do_not_fit_are_refused_with_a_cure() {
    let scratch = Scratch::new();
    let cut = &three()[..three().len() - 4];
    let more = [three(), vec![1; 8]].concat();
    let infinite = array(&[3, 2], [1.0, 0.0, f32::INFINITY, 0.0, 1.0, 1.0]);
    for (bytes, said) in [
        (&array(&[6], VECTORS.concat())[..], "1 dimensions instead of 2"),
        (&array(&[3, 0], []), "have 0 components"),
        (cut, "it ends before row 2 of the 3"),
        (&more, "it goes on after the 3 rows"),
        (&infinite, "record 2: "),
        (b"1 0\n1 1\n0 2\n", "not a NumPy file"),
        (b"", "not a NumPy file"),
    ] {
        let error = scratch.prepare("m", DOCS, bytes, &[]).unwrap_err();
        assert!(error.contains(said), "{said}: {error}");
        assert!(!scratch.path("m").exists());
    }
    for (given, said) in [
        (&["--encoder", "models/static"][..], "--encoder"),
        (&["--text-weights", "sif"], "--text-weights"),
        (&["--key", "name"], "it has no `name`, which --key names; it has id, body, year"),
        (&["--dim", "3"], "with 2 components, not 3"),
        (&["--words", "w.txt"], "--words"),
    ] {
        let error = scratch.prepare("m", DOCS, &three(), given).unwrap_err();
        assert!(error.contains(said), "{given:?}: {error}");
    }
    // The fault of the records comes before what follows from it.
    let error = scratch.prepare("m", &DOCS.replace("2003}", "2003"), &three(), &[]).unwrap_err();
    assert!(error.contains("docs.jsonl") && error.contains("line 3"), "{error}");
    let output = kindred(&["prepare", "docs.jsonl", "--keep-text", "--out", "m"]).output().unwrap();
    assert!(errors(&output).contains("--encoder"), "{}", errors(&output));
}
