//! Models under the metric `dot`, from the vectors file to every route.

use std::fs;

use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::support::{Service, kindred};

/// Not unit vectors; `zero` has only its bias.
const VECTORS: &str = "a 1 2\nb 3 -1\nlong 20 30\nzero 0 0\nc -1 1\n";
const BIASES: &str = "0.5\n-1\n-100\n4\n0\n";

/// A folder with the model `items` of these vectors, with or without the biases.
fn prepare(biases: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("vectors.txt"), VECTORS).unwrap();
    let mut command = kindred(&["prepare", "--metric", "dot"]);
    command.arg(path("vectors.txt")).arg("--out").arg(path("items"));
    if let Some(biases) = biases {
        fs::write(path("biases.txt"), biases).unwrap();
        command.arg("--bias").arg(path("biases.txt"));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// A service of it.
fn serve(biases: Option<&str>) -> (tempfile::TempDir, Service) {
    let folder = prepare(biases);
    let items = folder.path().join("items");
    let service = Service::start(&["--model", items.to_str().unwrap(), "--device", "cpu"]);
    (folder, service)
}

/// Words with scores.
fn found(answer: &Value) -> Vec<(String, f64)> {
    let one =
        |hit: &Value| (hit["word"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap());
    answer.as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(one).collect()
}

#[track_caller]
fn same(found: Vec<(String, f64)>, expected: &[(&str, f64)]) {
    let expected: Vec<_> = expected.iter().map(|&(word, score)| (word.to_owned(), score)).collect();
    assert_eq!(found, expected);
}

#[test]
fn nearest_words_are_by_dot_product_and_bias() {
    let (_folder, service) = serve(Some(BIASES));
    let near = |query: &str| found(&service.get(&format!("/nearest?{query}")).json()["neighbors"]);
    // a: (1, 2). b: 1 − 1. long: 80 − 100. zero: 4. c: 1.
    same(near("word=a"), &[("zero", 4.0), ("c", 1.0), ("b", 0.0), ("long", -20.0)]);
    same(near("word=a&min_score=0&max_score=1"), &[("c", 1.0), ("b", 0.0)]);
    same(near("word=a&vocab_limit=2"), &[("b", 0.0)]);
    // A word whose vector is zero is a query like others: only biases count.
    same(near("word=zero&k=2"), &[("a", 0.5), ("c", 0.0)]);
    let vectors = json!({"queries": [{"vector": [0, 1], "k": 2}, {"vector": [0, 0], "k": 1}]});
    let answers = service.post("/nearest", &vectors).json();
    same(found(&answers["results"][0]["neighbors"]), &[("zero", 4.0), ("a", 2.5)]);
    same(found(&answers["results"][1]["neighbors"]), &[("zero", 4.0)]);

    let (_folder, plain) = serve(None);
    let near = |query: &str| found(&plain.get(&format!("/nearest?{query}")).json()["neighbors"]);
    same(near("word=a&k=2"), &[("long", 80.0), ("b", 1.0)]);
    assert_eq!(plain.get("/health/ready").status, 200);
    assert_eq!(plain.get("/model").json()["metric"], "dot");
}

#[test]
fn sums_are_not_scaled_and_are_explained() {
    let (_folder, service) = serve(Some(BIASES));
    let asked = json!({"expression": "b - a", "k": 2, "explain": true});
    let answer = service.post("/analogy", &asked).json();
    // b − a is (2, −3). zero: 4. c: −5. long: −50 − 100.
    same(found(&answer["neighbors"]), &[("zero", 4.0), ("c", -5.0)]);
    let terms = &answer["neighbors"][1]["terms"];
    let of =
        |index: usize| (&terms[index]["word"], &terms[index]["dot"], &terms[index]["contribution"]);
    assert_eq!(of(0), (&json!("b"), &json!(-4.0), &json!(-4.0)), "{answer}");
    assert_eq!(of(1), (&json!("a"), &json!(1.0), &json!(-1.0)), "{answer}");
    assert!(terms[0].get("cosine").is_none());

    let ranked = service.post("/rank", &json!({"words": ["long", "zero"], "word": "a"})).json();
    let (long, zero) = (&ranked["ranked"][0], &ranked["ranked"][1]);
    assert_eq!((&zero["rank"], &zero["score"]), (&json!(1), &json!(4.0)), "{ranked}");
    assert_eq!((&long["rank"], &long["score"]), (&json!(4), &json!(-20.0)), "{ranked}");
}

#[test]
fn answers_are_as_documented() {
    let (_folder, service) = serve(Some(BIASES));
    let contract = Contract::read();
    for path in ["/nearest?word=a&explain=true", "/words/zero?with_vector=true", "/model"] {
        contract.check("GET", path, &service.get(path));
    }
    for (path, body) in [
        ("/nearest", json!({"queries": [{"vector": [0, 0]}, {"word": "long"}, {"text": "a b"}]})),
        ("/analogy", json!({"expression": "2*a - b", "explain": true, "with_vectors": true})),
        ("/analogy", json!({"expression": "a - b + c", "method": "3cosmul"})),
        ("/rank", json!({"words": ["long", "zero"], "word": "a"})),
        ("/similarity", json!({"pairs": [["a", "long"], [["a", "b"], "c"], ["a", "none"]]})),
        ("/odd-one-out", json!({"words": ["a", "b", "c"]})),
        ("/expand", json!({"text": "a b", "explain": true})),
    ] {
        contract.check("POST", path, &service.post(path, &body));
    }
}

#[test]
fn what_needs_cosines_is_refused_with_the_reason() {
    let (_folder, service) = serve(Some(BIASES));
    for method in ["3cosmul", "pairdirection"] {
        let reply = service.post("/analogy", &json!({"expression": "a - b + c", "method": method}));
        let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(reply.status == 422 && detail.contains("metric is `dot`"), "{detail}");
    }
    let reply = service.post("/odd-one-out", &json!({"words": ["a", "b", "c"]}));
    let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(reply.status == 422 && detail.contains("metric is `dot`"), "{} {detail}", reply.status);
    // Similarities are dot products, without biases.
    let pairs = json!({"pairs": [["a", "b"], ["a", "zero"], [["a", "b"], "c"]]});
    let answer = service.post("/similarity", &pairs).json();
    let scores: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().map(|one| &one["score"]).collect();
    assert_eq!(scores, [&json!(1.0), &json!(0.0), &json!(-3.0)], "{answer}");
}

#[test]
fn analogies_by_formulas_of_cosines_are_refused_and_not_counted_wrong() {
    let folder = prepare(None);
    let questions = folder.path().join("questions.txt");
    fs::write(&questions, ": s\na b c long\n").unwrap();
    let eval = |flags: &[&str]| {
        let mut command = kindred(&["eval", "--json"]);
        command.args(flags).arg("--analogies").arg(&questions);
        command.arg("--").arg(folder.path().join("items")).output().unwrap()
    };
    for method in ["3cosmul", "pairdirection"] {
        let output = eval(&["--methods", method]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("`--metric cosine`"), "{error}");
    }
    let output = eval(&[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let total = &report["analogies"][0]["total"];
    assert_eq!(total["questions"], 1, "{report}");
    assert_eq!(total["methods"].as_object().unwrap().len(), 1, "{report}");
}
