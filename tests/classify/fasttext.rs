//! Classifiers of fastText as heads: imported, verified, asked on the command line and in a service.

use std::fs;
use std::path::{Path, PathBuf};

use encoders::FastTextClassifier;
use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::subwords::fasttext::{File, classifier};
use crate::support::{Reply, Service, errors, kindred, objects, piped};

/// A folder with the file `good.bin` and the head `good` of it.
fn imported(file: &File) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("good.bin"), folder.path().join("good"));
    fs::write(&input, file.bytes()).unwrap();
    let mut import = kindred(&["import-head"]);
    let made = import.arg(&input).arg("--out").arg(&out).output().unwrap();
    assert!(made.status.success(), "{}", errors(&made));
    (folder, out)
}

/// The labels of a text with their probabilities, by the crate that has fastText's formulas.
fn expected(folder: &Path, text: &str) -> Vec<(String, f64)> {
    let model = FastTextClassifier::open(&folder.join("good.bin")).unwrap();
    let (ranges, _) = FastTextClassifier::words_of(text);
    let words: Vec<&[u8]> = ranges.into_iter().map(|at| &text.as_bytes()[at]).collect();
    let scored = model.scored(&model.products(&model.read(&words, 0, || true).vector));
    let mut labels: Vec<(String, f64)> =
        model.labels().iter().cloned().zip(scored.iter().map(|one| one.probability)).collect();
    labels.sort_by(|a, b| b.1.total_cmp(&a.1));
    labels
}

fn found(answer: &Value) -> Vec<(String, f64)> {
    let label = |one: &Value| {
        (one["label"].as_str().unwrap().to_owned(), one["probability"].as_f64().unwrap())
    };
    answer["labels"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(label).collect()
}

fn ask(service: &Service, body: &Value) -> Reply {
    let reply = service.post("/classify", body);
    Contract::read().check("POST", "/classify", &reply);
    reply
}

#[test]
fn a_service_has_the_labels_of_fasttext_beside_any_model() {
    let (folder, head) = imported(&File { maxn: 0, ..classifier() });
    let service = Service::start(&["--head", head.to_str().unwrap()]);
    let heads = service.get("/heads").json();
    let about = &heads["heads"][0];
    assert_eq!((&about["name"], &about["kind"]), (&json!("good"), &json!("classifier")));
    assert_eq!(about["labels"], json!(["up", "down"]));
    assert_eq!(about["tokens"]["tokeniser"], "fasttext");
    assert_eq!(about["training"]["imported_from"], "good.bin");
    Contract::read().check("GET", "/heads", &service.get("/heads"));

    for text in ["good", "bad good", "über good", "good bad </s> bad", " ", "", "a\nb good"] {
        let answer = ask(&service, &json!({"text": text})).json();
        assert_eq!(found(&answer), expected(folder.path(), text), "{text:?}");
    }
    // The same bits in every batch, whole or as words, and by GET.
    let words = json!(["bad", "good"]);
    let batch = ask(&service, &json!({"texts": ["bad good", words, "x bad"], "scores": true}));
    let results = &batch.json()["results"];
    assert_eq!(found(&results[0]), expected(folder.path(), "bad good"));
    assert_eq!(results[0]["labels"], results[1]["labels"]);
    assert_eq!(results[2]["unknown"], json!(["x"]));
    let by_get = service.get("/classify?text=bad+good&scores=true");
    assert_eq!(by_get.json()["labels"], results[0]["labels"]);
    let tag = by_get.header("etag").expect("a tag").to_owned();
    let again = service.send(
        "GET",
        b"/classify?text=bad+good&scores=true",
        &[("If-None-Match", &tag)],
        b"",
    );
    assert_eq!(again.status, 304);
    let metrics = service.get("/metrics");
    let with_unknown = metrics.text().lines().filter(|line| line.contains("unknown"));
    let with_unknown = with_unknown.filter(|line| !line.starts_with('#') && line.ends_with(" 3"));
    assert_eq!(with_unknown.count(), 1, "{}", metrics.text());
    // Words that are given one by one are taken as they are.
    let odd = ask(&service, &json!({"text": ["bad good"]})).json();
    assert_eq!(odd["unknown"], json!(["bad good"]));
}

#[test]
fn an_explanation_adds_up_and_names_words_and_pairs() {
    let (_folder, head) = imported(&File { maxn: 0, ..classifier() });
    let service = Service::start(&["--head", head.to_str().unwrap()]);
    let text = "good  bad";
    for label in ["up", "down"] {
        let body = json!({"text": text, "explain_label": label, "scores": true});
        let answer = ask(&service, &body).json();
        let why = &answer["explanation"];
        let ngrams = why["ngrams"].as_array().unwrap();
        let share = |one: &Value| one["share"].as_f64().unwrap();
        let sum = ngrams.iter().map(share).sum::<f64>() + why["base"].as_f64().unwrap();
        assert!((sum - why["score"].as_f64().unwrap()).abs() < 1e-12, "{why}");
        let labels = answer["labels"].as_array().unwrap();
        let of = labels.iter().find(|one| one["label"] == label).unwrap();
        assert!((of["score"].as_f64().unwrap() - sum).abs() < 1e-5, "{answer}");
        assert_eq!(why["exact"], true);
        let mut texts: Vec<&str> = ngrams.iter().map(|one| one["text"].as_str().unwrap()).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["bad", "good", "good  bad"]);
        for one in ngrams {
            let [start, end] = ["start", "end"].map(|at| one[at].as_u64().unwrap() as usize);
            assert_eq!(one["text"], text[start..end]);
        }
    }
    // An answer to words has the places of the words with a space between each two.
    let answer = ask(&service, &json!({"text": ["good", "x y"], "explain": true})).json();
    let ngrams = answer["explanation"]["ngrams"].as_array().unwrap();
    assert!(ngrams.iter().any(|one| one["text"] == "good x y"), "{answer}");
}

#[test]
fn a_text_without_any_row_is_an_error_that_names_its_words() {
    let mut file = File { maxn: 0, word_ngrams: 1, ..classifier() };
    file.entries.remove(0);
    let (_folder, head) = imported(&file);
    let service = Service::start(&["--head", head.to_str().unwrap()]);
    let refused = ask(&service, &json!({"text": "x y x"}));
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert_eq!(refused.json()["code"], "unknown_word");
    assert!(refused.text().contains("\"y\""), "{}", refused.text());
    let results = ask(&service, &json!({"texts": ["good", "x"]})).json()["results"].clone();
    assert_eq!(results[0]["labels"].as_array().unwrap().len(), 2);
    assert_eq!(results[1]["error"]["code"], "unknown_word");
}

#[test]
fn the_command_line_asks_verifies_and_evaluates_it() {
    let (folder, head) = imported(&classifier());
    let head = head.to_str().unwrap();
    let asked = kindred(&["classify", "--json", "--head", head, "good über"]).output().unwrap();
    assert_eq!(found(&objects(&asked)[0]), expected(folder.path(), "good über"));
    let verified = kindred(&["verify", "--head", head]).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(
        said.contains("a classifier of fastText of up, down, served beside any model"),
        "{said}"
    );

    let best = &expected(folder.path(), "good")[0].0;
    fs::write(folder.path().join("set.tsv"), format!("{best}\tgood\n")).unwrap();
    let mut eval = kindred(&["eval", "--head", head, "--classification"]);
    let eval = eval.arg(folder.path().join("set.tsv")).output().unwrap();
    let said = String::from_utf8_lossy(&eval.stdout).into_owned();
    assert!(said.contains("accuracy 100.00 %"), "{said}{}", errors(&eval));

    let mut bulk = kindred(&["bulk", "classify", "--head", head, "--from", "csv", "--to", "jsonl"]);
    bulk.args(["--in", "-", "--out", "-"]);
    let done = piped(bulk, "text\ngood\nbad good\n");
    let rows = objects(&done);
    assert_eq!(rows.len(), 2, "{}", errors(&done));
    assert_eq!(found(&rows[1]), expected(folder.path(), "bad good"));
}

#[test]
fn damage_and_options_of_pytorch_are_refused_with_the_cure() {
    let (folder, head) = imported(&classifier());
    let import = |name: &str, more: &[&str]| {
        let mut import = kindred(&["import-head", "--replace", "--out"]);
        import.arg(folder.path().join("other")).arg(folder.path().join(name)).args(more);
        let output = import.output().unwrap();
        assert!(!output.status.success());
        errors(&output)
    };
    fs::write(folder.path().join("words.bin"), File::default().bytes()).unwrap();
    fs::write(folder.path().join("cut.bin"), &classifier().bytes()[..200]).unwrap();
    for (name, more, said) in [
        ("good.bin", &["--labels", "a,b"][..], "--labels is for models of PyTorch"),
        ("good.bin", &["--expander"], "--expander is for models of PyTorch"),
        ("good.bin", &["--sha256", "00"], "the input is no address"),
        ("words.bin", &[], "word model"),
        ("cut.bin", &[], "the file ends after"),
        ("none.bin", &["--labels", "a,b"], "can't read"),
    ] {
        let error = import(name, more);
        assert!(error.contains(said), "{name} {more:?}: {error}");
    }
    assert!(!folder.path().join("other").exists());

    let file = head.join("fasttext.bin");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let asked = kindred(&["classify", "--head", head.to_str().unwrap(), "good"]).output().unwrap();
    let said = errors(&asked);
    assert!(said.contains("fasttext.bin") && said.contains("checksum"), "{said}");
    // An expander is asked of an expander.
    let other = kindred(&["expand", "--head", head.to_str().unwrap(), "good"]).output().unwrap();
    assert!(errors(&other).contains("a classifier of fastText"), "{}", errors(&other));
}
