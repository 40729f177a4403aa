//! Pages, and the best of each value, on every surface: they are parts of the whole ranking.

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Service, kindred, objects, piped, products, random_vectors};

/// The definition: of all neighbours the first of each value, then the page.
fn expected(all: &[Value], attribute: Option<&str>, offset: usize, k: usize) -> Vec<Value> {
    let mut seen = HashSet::new();
    let stays = |one: &&Value| match attribute.map(|name| &one["attributes"][name]) {
        None | Some(Value::Null) => true,
        Some(value) => seen.insert(value.to_string()),
    };
    all.iter().filter(stays).skip(offset).take(k).cloned().collect()
}

fn neighbors(answer: &Value) -> Vec<Value> {
    answer["neighbors"].as_array().unwrap_or_else(|| panic!("no neighbors: {answer}")).clone()
}

fn without_attributes(mut all: Vec<Value>) -> Vec<Value> {
    for one in &mut all {
        one.as_object_mut().unwrap().remove("attributes");
    }
    all
}

/// A model of 900 rows. Nearly all have the same `shop`; no two have the same `id`.
fn shops() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let words = (0..900).map(|n| format!("w{n}"));
    fs::write(folder.path().join("v.txt"), random_vectors(words)).unwrap();
    let line = |n: usize| match n % 90 {
        0 => format!("{{\"name\": \"w{n}\", \"id\": {n}}}\n"),
        1 => format!("{{\"name\": \"w{n}\", \"id\": {n}, \"shop\": \"s{n}\"}}\n"),
        _ => format!("{{\"name\": \"w{n}\", \"id\": {n}, \"shop\": \"large\"}}\n"),
    };
    fs::write(folder.path().join("a.jsonl"), (0..900).map(line).collect::<String>()).unwrap();
    let arguments = ["prepare", "v.txt", "--attributes", "a.jsonl", "--key", "name", "--out", "m"];
    let output = kindred(&arguments).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = folder.path().join("m").to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn requests_of_every_form_have_the_same_pages() {
    let (_folder, path) = shops();
    let service = Service::start(&["--model", &path, "--device", "cpu"]);
    let whole = |route: &str, target: &Value| {
        let mut asked = target.clone();
        asked["k"] = json!(1000);
        asked["with_attributes"] = json!(true);
        neighbors(&service.post(route, &asked).json())
    };
    let targets = [
        ("/nearest", json!({"word": "w7"}), "word=w7"),
        ("/nearest", json!({"text": "w3 w4"}), "text=w3+w4"),
        ("/analogy", json!({"expression": "w1 - w2 + w3"}), "expression=w1+-+w2+%2B+w3"),
        (
            "/analogy",
            json!({"expression": "w1 - w2 + w3", "method": "3cosmul"}),
            "expression=w1+-+w2+%2B+w3&method=3cosmul",
        ),
    ];
    for (route, target, in_url) in &targets {
        let all = whole(route, target);
        let (mut together, mut answers) = (Vec::new(), Vec::new());
        for (distinct, offset, k) in [
            (None, 0, 10),
            (None, 20, 10),
            (None, 890, 100),
            (Some("shop"), 0, 12),
            (Some("shop"), 5, 6),
            (Some("shop"), 500, 6),
            (Some("id"), 3, 4),
        ] {
            let mut asked = target.clone();
            asked["offset"] = json!(offset);
            asked["k"] = json!(k);
            let mut query = format!("{route}?{in_url}&k={k}&offset={offset}");
            if let Some(attribute) = distinct {
                asked["distinct"] = json!(attribute);
                query += &format!("&distinct={attribute}");
            }
            let expected = without_attributes(expected(&all, distinct, offset, k));
            let by_post = service.post(route, &asked);
            assert_eq!(by_post.status, 200, "{}", by_post.text());
            assert_eq!(neighbors(&by_post.json()), expected, "{route} {asked}");
            assert_eq!(service.get(&query).json(), by_post.json(), "{query}");
            together.push(asked);
            answers.push(expected);
        }
        let results = service.post(route, &json!({"queries": together})).json();
        for (result, expected) in results["results"].as_array().unwrap().iter().zip(&answers) {
            assert_eq!(&neighbors(result), expected, "{route}");
        }
        // For all queries that do not say otherwise.
        let own = json!({"offset": 0, "k": 10, "distinct": "id"});
        let mut other = target.clone();
        other.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let common = json!({"queries": [target, other], "offset": 5, "k": 6, "distinct": "shop"});
        let results = service.post(route, &common).json()["results"].clone();
        assert_eq!(neighbors(&results[0]), answers[4]);
        assert_eq!(neighbors(&results[1]), answers[0]);
    }
}

#[test]
fn arrays_the_command_line_the_console_and_bulk_work_have_them() {
    let (folder, path) = shops();
    let service = Service::start(&["--model", &path, "--device", "cpu"]);
    let asked = json!({"word": "w7", "k": 4, "offset": 2, "distinct": "shop"});
    let expected = neighbors(&service.post("/nearest", &asked).json());
    assert_eq!(expected.len(), 4);

    let vector = service.get("/words/w7?with_vector=true").json()["vector"].clone();
    let numbers = vector.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32);
    let numbers: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
    let shape = [1, vector.as_array().unwrap().len() as u64];
    let body = [model_store::npy::head("'<f4'", &shape), numbers].concat();
    let target = "/nearest?k=4&offset=2&distinct=shop&exclude=w7";
    let headers = [("Content-Type", "application/x-npy")];
    let of_array = service.send("POST", target.as_bytes(), &headers, &body).json();
    assert_eq!(neighbors(&of_array["results"][0]), expected);

    let flags = ["--offset", "2", "--distinct", "shop", "-k", "4", "--device", "cpu"];
    let here = |command: &[&str]| kindred(&[command, &["--model", &path], &flags[..]].concat());
    let output = here(&["nearest", "w7", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(neighbors(&printed), expected);
    let output = piped(here(&["console", "--json"]), "w7\n");
    assert_eq!(neighbors(&objects(&output)[0]), expected);
    let plain = kindred(&["console", "--json", "--model", &path, "--device", "cpu"]);
    let lines =
        ":k 4\nw7\n:offset 2\n:distinct shop\nw7\n:offset 0\n:distinct\nw7\n:distinct no\nw7\n";
    let output = piped(plain, lines);
    let answers: Vec<_> = objects(&output).iter().map(neighbors).collect();
    assert_eq!(answers.len(), 3, "the last attribute is not there: {output:?}");
    assert_eq!((&answers[1], &answers[2]), (&expected, &answers[0]));
    assert_ne!(answers[0], expected);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("line 10: `distinct` must be an attribute"), "{said}");

    let [words, out] = ["in.txt", "out.jsonl"].map(|name| folder.path().join(name));
    fs::write(&words, "w7\n").unwrap();
    let mut bulk = here(&["bulk", "nearest"]);
    let output = bulk.arg("--in").arg(&words).arg("--out").arg(&out).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let line: Value = serde_json::from_str(&fs::read_to_string(&out).unwrap()).unwrap();
    let words = |all: &[Value]| -> Vec<Value> { all.iter().map(|n| n["word"].clone()).collect() };
    assert_eq!(words(&neighbors(&line)), words(&expected));
}

#[test]
fn they_go_together_with_filters_and_other_options() {
    let (_folder, path) = products::prepared();
    let path = path.to_str().unwrap();
    let service = Service::start(&["--model", path, "--device", "cpu"]);
    for options in [
        json!({"filter": "price > 40"}),
        json!({"filter": "category = shoes"}),
        json!({"min_score": 0.5, "include_query": true}),
        json!({"exclude": ["gym bag", "sandal"], "max_score": 0.9}),
        json!({"vocab_limit": 12}),
    ] {
        let ask = |more: Value| {
            let mut asked = json!({"word": "sneaker", "with_attributes": true});
            for fields in [&options, &more] {
                asked.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            }
            neighbors(&service.post("/nearest", &asked).json())
        };
        let all = ask(json!({"k": 1000}));
        for attribute in ["category", "price", "stock", "on_sale", "added"] {
            for (offset, k) in [(0, 3), (1, 10), (2, 1), (30, 5)] {
                let found = ask(json!({"distinct": attribute, "offset": offset, "k": k}));
                let expected = expected(&all, Some(attribute), offset, k);
                assert_eq!(found, expected, "{options} {attribute} {offset} {k}");
            }
        }
    }
    // Explanations are those of the neighbours.
    let asked = json!({"word": "sneaker", "distinct": "category", "offset": 1, "explain": true});
    let explained = service.post("/nearest", &asked).json();
    assert_eq!(explained["inputs"][0]["rank"], 1);
    assert!(neighbors(&explained).iter().all(|one| one["terms"].is_array()), "{explained}");
}

#[test]
fn what_a_request_may_ask_for_counts_pages_before_its_own() {
    let service = Service::with_default_model();
    let ask = |count: usize, k: usize, offset: usize| {
        let queries = vec![json!({"word": "frog"}); count];
        service.post("/nearest", &json!({"queries": queries, "k": k, "offset": offset}))
    };
    assert_eq!(ask(65, 1, 999).status, 200);
    let refused = ask(66, 1, 999);
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("too_many_results")));
    assert_eq!(
        refused.json()["detail"],
        "the sum of `k` + `offset` over all queries is 66000; the maximum is 65536"
    );
}
