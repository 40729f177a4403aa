//! A fastText model, prepared and served: no word is unknown, unless that is asked for.

#[path = "../crates/encoders/tests/support.rs"]
#[allow(dead_code)]
pub(crate) mod fasttext;

use std::path::{Path, PathBuf};
use std::process::Command;

use encoders::FastText;
use fasttext::{File, mixed, words};
use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::support::{Reply, Service, errors, kindred, objects, program};

const KNOWN: [&str; 5] = ["the", "frog", "toad", "pond", "water"];

fn file() -> File {
    let entries = words(&KNOWN.map(str::as_bytes));
    File { dim: 8, bucket: 80, minn: 2, maxn: 4, entries, component: mixed, ..File::default() }
}

/// A scratch folder with the prepared model in it, and that model.
fn prepared() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let (input, out) = (scratch.path().join("m.bin"), scratch.path().join("demo"));
    std::fs::write(&input, file().bytes()).unwrap();
    let prepare =
        Command::new(program()).arg("prepare").arg(&input).arg("--out").arg(&out).output();
    let output = prepare.unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    (scratch, out)
}

fn serve(model: &Path) -> Service {
    Service::start(&["--model", model.to_str().unwrap()])
}

/// The answer to a request that the contract has.
fn answered(service: &Service, path: &str, body: Option<&Value>) -> Reply {
    let contract = Contract::read();
    let (method, reply) = match body {
        Some(body) => ("POST", service.post(path, body)),
        None => ("GET", service.get(path)),
    };
    contract.check(method, path, &reply);
    reply
}

fn vector_of(word: &str) -> Vec<f32> {
    let model: FastText = file().model().unwrap();
    let mut vector = vec![0.0; 8];
    model.vector(word.as_bytes(), &mut vector);
    vector
}

#[test]
fn an_unknown_word_is_asked_about_as_its_vector_is() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let by_word = answered(&service, "/nearest?word=frogs", None).json();
    let body = json!({"vector": vector_of("frogs")});
    let by_vector = answered(&service, "/nearest", Some(&body)).json();
    assert_eq!(by_word["neighbors"], by_vector["neighbors"]);
    assert_eq!(by_word["subwords"], json!([{"word": "frogs"}]));
    assert!(by_vector.get("subwords").is_none());
    let known = answered(&service, "/nearest?word=frog", None).json();
    assert!(known.get("subwords").is_none());

    let explained = answered(&service, "/nearest?word=fro&explain=true&k=1", None).json();
    let ngrams = json!(["<f", "<fr", "<fro", "fr", "fro", "fro>", "ro", "ro>", "o>"]);
    assert_eq!(explained["subwords"], json!([{"word": "fro", "ngrams": ngrams}]));
    assert_eq!(explained["neighbors"][0]["terms"][0]["word"], "fro");
    assert_eq!(explained["inputs"], json!([]));

    let text = answered(&service, "/nearest?text=frogs+and+toads", None).json();
    assert_eq!((&text["used"], text["subwords"].as_array().map(Vec::len)), (&json!([]), Some(3)));
    let sum = answered(&service, "/analogy?expression=frogs+-+frog+%2B+toad", None).json();
    assert_eq!(sum["subwords"], json!([{"word": "frogs"}]));
    let batch = json!({"queries": [{"word": "frog"}, {"word": "toads"}, {"text": "ponds"}]});
    let batch = answered(&service, "/nearest", Some(&batch)).json();
    let told = |at: usize| batch["results"][at]["subwords"].clone();
    assert_eq!((told(0), told(1)), (Value::Null, json!([{"word": "toads"}])));
}

#[test]
fn words_are_unknown_where_that_is_asked_for_or_their_rows_are_needed() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let code = |reply: Reply| (reply.status, reply.json()["code"].clone());
    let unknown = (404, json!("unknown_word"));
    let asked = |path: &str| code(answered(&service, path, None));
    assert_eq!(asked("/nearest?word=frogs&unknown=error"), unknown);
    assert_eq!(asked("/nearest?word=frogs&unknown=skip"), unknown);
    assert_eq!(asked("/nearest?text=frogs&unknown=error"), unknown);
    let long = json!({"word": "x".repeat(65_537)});
    assert_eq!(code(answered(&service, "/nearest", Some(&long))), unknown);
    assert_eq!(
        answered(&service, "/nearest", Some(&json!({"word": "x".repeat(9000)}))).status,
        200
    );
    assert_eq!(asked("/nearest?word=%3C/s%3E"), (422, json!("zero_query")));
    let ranked = json!({"words": ["frogs"], "word": "frog"});
    assert_eq!(code(answered(&service, "/rank", Some(&ranked))), unknown);
    let plain = Service::with_default_model();
    let refused = answered(&plain, "/nearest?word=frog&unknown=subwords", None);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("not prepared from a fastText"), "{}", refused.text());
}

#[test]
fn other_routes_take_unknown_words() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let pairs = json!({"pairs": [["frogs", "frog"], ["frog", "toad"]]});
    let pairs = answered(&service, "/similarity", Some(&pairs)).json();
    assert_eq!(pairs["results"][0]["subwords"], json!([{"word": "frogs"}]));
    assert!(pairs["results"][1].get("subwords").is_none());
    let odd = json!({"words": ["frogs", "frog", "toad", "waters"]});
    let odd = answered(&service, "/odd-one-out", Some(&odd)).json();
    let ranked = odd["ranked"].as_array().unwrap();
    for one in ranked {
        let is_known = KNOWN.contains(&one["word"].as_str().unwrap());
        assert_eq!(one.get("row").is_some(), is_known, "{one}");
    }
    assert_eq!((ranked.len(), odd["subwords"].as_array().map(Vec::len)), (4, Some(2)));
    let rank = json!({"words": ["frog", "toad"], "word": "frogs"});
    let rank = answered(&service, "/rank", Some(&rank)).json();
    assert_eq!(rank["subwords"], json!([{"word": "frogs"}]));

    let word = answered(&service, "/words/frogs?with_vector=true", None).json();
    let vector: Vec<f32> = serde_json::from_value(word["vector"].clone()).unwrap();
    assert_eq!(vector, vector_of("frogs"));
    assert!(word.get("row").is_none() && word["ngrams"].as_array().unwrap().len() > 5, "{word}");
    let array = service.send("GET", b"/words/frogs", &[("Accept", "application/x-npy")], b"");
    let numbers: Vec<u8> = vector_of("frogs").into_iter().flat_map(f32::to_le_bytes).collect();
    assert!(array.status == 200 && array.body.ends_with(&numbers));
    let texts = json!({"texts": ["frogs", "the frog"]});
    let embedded = answered(&service, "/embed", Some(&texts)).json();
    assert_eq!(embedded["results"][0]["subwords"], json!([{"word": "frogs"}]));
    assert_eq!(embedded["results"][1]["used"], json!(["the", "frog"]));
    assert_eq!(answered(&service, "/model", None).json()["encoder"], "fasttext");
    let known = answered(&service, "/words/frog", None).json();
    assert!(known["row"] == 1 && known.get("ngrams").is_none());
    assert_eq!(answered(&service, &format!("/words/{}", "x".repeat(4097)), None).status, 200);
}

#[test]
fn the_command_line_says_which_words_are_no_rows() {
    let (_scratch, model) = prepared();
    let run = |arguments: &[&str]| {
        let output = Command::new(program()).args(arguments).arg("--model").arg(&model).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    };
    let told = "`frogs` is unknown; it has the vector of its subwords";
    for arguments in [
        &["nearest", "frogs"][..],
        &["analogy", "frogs - frog + toad"],
        &["similarity", "frogs", "frog"],
        &["odd-one-out", "frogs", "frog", "toad"],
        &["rank", "toad", "--word", "frogs"],
    ] {
        let said = run(arguments);
        assert!(said.contains(told), "{arguments:?}: {said}");
    }
    assert!(run(&["nearest", "frogs", "--explain"]).contains("subwords: <f <fr <fro"));
    let refused = Command::new(program())
        .args(["similarity", "frogs", "frog", "--unknown", "error", "--model"])
        .arg(&model)
        .output()
        .unwrap();
    assert!(!refused.status.success() && errors(&refused).contains("does not have `frogs`"));
}

#[test]
fn synthetic_models_may_have_vectors_for_all_words() {
    let scratch = tempfile::tempdir().unwrap();
    let (with, without) = (scratch.path().join("with"), scratch.path().join("without"));
    let synth = |out: &std::path::Path, more: &[&str]| {
        let mut synth = kindred(&["synth", "--rows", "500", "--dim", "12", "--out"]);
        let output = synth.arg(out).args(more).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    };
    synth(&with, &["--buckets", "3000"]);
    synth(&without, &[]);
    let nearest = |folder: &std::path::Path, word: &str| {
        let mut nearest = kindred(&["nearest", word, "--json", "--model"]);
        nearest.arg(folder).output().unwrap()
    };
    let found = nearest(&with, "qwertyish");
    assert!(found.status.success(), "{}", errors(&found));
    assert!(!nearest(&without, "qwertyish").status.success());
    // Rows are those of the model without n-grams.
    let neighbors = |folder| objects(&nearest(folder, "baba"))[0]["neighbors"].clone();
    assert_eq!(neighbors(&with), neighbors(&without));
    let verified = kindred(&["verify"]).arg(&with).output().unwrap();
    assert!(verified.status.success(), "{}", errors(&verified));
    let output = kindred(&["synth", "--rows", "5", "--dim", "2", "--text", "x", "--buckets", "9"]);
    let error = { output }.output().unwrap();
    assert!(errors(&error).contains("--out"), "{}", errors(&error));
}
