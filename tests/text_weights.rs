//! Words of texts with weights: prepared, served, and told.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::support::{Reply, Service, errors, kindred, objects};

const WORDS: &str = "the 1 0.5\nfrog 1 0\ntoad 1 1\npond 0 1\n";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs `kindred prepare` with these arguments. Returns what it says on both.
fn prepare(arguments: &[&str]) -> Result<String, String> {
    let output = kindred(&["prepare"]).args(arguments).output().unwrap();
    let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn posted(service: &Service, path: &str, body: &Value) -> Reply {
    let reply = service.post(path, body);
    Contract::read().check("POST", path, &reply);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

#[test]
fn every_route_has_the_same_vector_of_a_text() {
    let scratch = tempfile::tempdir().unwrap();
    let [input, counts, model, docs, of_docs] =
        ["w.txt", "c.txt", "sif", "docs.jsonl", "docs"].map(|name| scratch.path().join(name));
    fs::write(&input, WORDS).unwrap();
    fs::write(&counts, "the 900\nfrog 9\ntoad 1\npond 0\nother 90\n").unwrap();
    let given = [text(&input), "--out", text(&model), "--text-weights", "sif"];
    let said = prepare(&[&given[..], &["--counts", text(&counts)]].concat()).unwrap();
    assert!(said.contains("weights of texts: SIF by counts in c.txt"), "{said}");
    let lines = "{\"text\": \"The frog\"}\n{\"text\": \"toad, pond\"}\n";
    fs::write(&docs, lines).unwrap();
    prepare(&[text(&docs), "--encoder", text(&model), "--out", text(&of_docs)]).unwrap();

    let service = Service::start(&["--model", text(&model)]);
    let about = service.get("/model");
    Contract::read().check("GET", "/model", &about);
    let about = about.json();
    let told = ["encoder", "text_weights", "tokeniser"].map(|name| about[name].clone());
    assert_eq!(told, ["words", "sif", "unicode"].map(Value::from));

    let embedded = posted(&service, "/embed", &json!({"texts": ["The frog"]})).json();
    let vector = embedded["results"][0]["vector"].clone();
    // p is 0.9 and 0.009, and the vectors are divided by their lengths.
    let (the, frog) = (0.001 / 0.901 / 1.25f64.sqrt(), 0.001 / 0.010);
    let sum = [the + frog, the * 0.5];
    let length = (sum[0] * sum[0] + sum[1] * sum[1]).sqrt();
    for (found, wanted) in vector.as_array().unwrap().iter().zip(sum) {
        let (found, wanted) = (found.as_f64().unwrap(), wanted / length);
        assert!((found - wanted).abs() < 1e-7, "{found} {wanted}");
    }
    let by_vector = json!({"vector": vector, "k": 4});
    let wanted = posted(&service, "/nearest", &by_vector).json()["neighbors"].clone();
    let by_text = json!({"text": "The frog", "k": 4, "include_query": true});
    let found = posted(&service, "/nearest", &by_text).json()["neighbors"].clone();
    assert_eq!(found, wanted);
    let by_get = service.get("/nearest?text=The+frog&k=4&include_query=true").json();
    assert_eq!(by_get["neighbors"], wanted);
    let ranks = |mut query: Value| {
        query["words"] = json!(["the", "pond"]);
        query["include_query"] = json!(true);
        posted(&service, "/rank", &query).json()["ranked"].clone()
    };
    let scores = |of: Value| {
        of.as_array().unwrap().iter().map(|one| one["score"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        scores(ranks(json!({"text": "The frog"}))),
        scores(ranks(json!({"vector": vector})))
    );
    let output = kindred(&["embed", "--model", text(&model), "The frog"]).output().unwrap();
    assert_eq!(objects(&output)[0]["vector"], vector);
    let (texts, answers) = (scratch.path().join("q.txt"), scratch.path().join("answers.jsonl"));
    fs::write(&texts, "The frog\n").unwrap();
    let mut bulk = kindred(&["bulk", "nearest", "--texts", "--include-query", "-k", "4"]);
    let bulk = bulk.args(["--model", text(&model), "--in", text(&texts), "--out", text(&answers)]);
    assert!(bulk.output().unwrap().status.success());
    let answer: Value = serde_json::from_str(&fs::read_to_string(&answers).unwrap()).unwrap();
    assert_eq!(answer["neighbors"], wanted);
    let openai = json!({"input": "The frog"});
    let openai = posted(&service, "/v1/embeddings", &openai).json();
    assert_eq!(openai["data"][0]["embedding"], vector);
    drop(service);

    let service = Service::start(&["--model", text(&of_docs)]);
    let about = service.get("/model").json();
    assert_eq!((&about["encoder"], &about["text_weights"]), (&json!("words"), &json!("sif")));
    let found = json!({"text": "The frog", "k": 1, "with_vectors": true});
    let found = posted(&service, "/nearest", &found).json();
    assert_eq!(
        (&found["neighbors"][0]["word"], &found["neighbors"][0]["vector"]),
        (&json!("1"), &vector)
    );
}

#[test]
fn weights_that_belong_nowhere_are_refused_with_a_cure() {
    let scratch = tempfile::tempdir().unwrap();
    let [input, counts, out, docs] =
        ["w.txt", "c.txt", "m", "docs.jsonl"].map(|name| scratch.path().join(name));
    fs::write(&input, WORDS).unwrap();
    fs::write(&counts, "the 9\nfrog 2\ntoad 1\npond -1\n").unwrap();
    fs::write(&docs, "{\"text\": \"The frog\"}\n").unwrap();
    let to = ["--out", text(&out)];
    for (given, said) in [
        (&[text(&input), "--counts", text(&counts)][..], "--text-weights"),
        (&[text(&input), "--text-weights", "idf"], "sif"),
        (
            &[text(&input), "--text-weights", "sif", "--counts", text(&counts)],
            "line 4: the count `-1`",
        ),
        (&[text(&docs), "--text-weights", "sif", "--encoder", text(&input)], "--encoder"),
    ] {
        let error = prepare(&[given, &to].concat()).unwrap_err();
        assert!(error.contains(said), "{given:?}: {error}");
        assert!(!out.exists());
    }
}
