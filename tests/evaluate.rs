//! `POST /evaluate`: the numbers of `kindred eval`, its bounds, and what other callers feel of it.

use std::path::Path;
use std::time::Duration;

use crate::support::{ROYAL, Service, kindred, prepared, random_vectors};
use serde_json::{Value, json};

fn service(model: &Path, arguments: &[&str]) -> Service {
    let model = ["--model", model.to_str().unwrap(), "--device", "cpu"];
    Service::start(&[&model, arguments].concat())
}

/// An answer of the service.
fn evaluated(service: &Service, body: &Value) -> Value {
    let reply = service.post("/evaluate", body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// What the command finds in the sets of a request, as files of their names, by these flags besides.
fn by_command(model: &Path, body: &Value, flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kindred(&["eval", "--json", "--device", "cpu"]);
    command.arg(model).args(flags);
    for (kind, flag, lines) in
        [("analogies", "--analogies", "questions"), ("similarities", "--similarities", "pairs")]
    {
        let sets = body[kind].as_array().into_iter().flatten();
        let files = sets.map(|set| {
            let line = |fields: &Value| {
                let fields = fields.as_array().unwrap().iter();
                let texts = fields.map(|f| f.as_str().map_or_else(|| f.to_string(), str::to_owned));
                texts.collect::<Vec<_>>().join("\t") + "\n"
            };
            let text: String = set[lines].as_array().unwrap().iter().map(line).collect();
            let path = folder.path().join(set["name"].as_str().unwrap()).with_extension("txt");
            std::fs::write(&path, text).unwrap();
            path
        });
        let files: Vec<_> = files.collect();
        if !files.is_empty() {
            command.arg(flag).args(files);
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The numbers alone: neither how long they took, nor what the engine of either program runs on.
fn numbers(mut report: Value) -> Value {
    assert!(report["engine"]["detail"].is_string());
    report["engine"].as_object_mut().unwrap().remove("detail");
    for result in report["analogies"].as_array_mut().unwrap() {
        let (total, sections) = (result["total"].take(), result["sections"].take());
        let mut all: Vec<Value> = sections.as_array().unwrap().clone();
        all.push(total);
        for method in all.iter_mut().flat_map(|one| one["methods"].as_object_mut().unwrap()) {
            let seconds = method.1.as_object_mut().unwrap().remove("seconds").unwrap();
            assert!(seconds.as_f64().unwrap() >= 0.0);
        }
        result["sections"] = all.into();
    }
    report
}

/// Questions and pairs about this number of words. Some of the words are unknown, and some are in upper case.
fn sets(words: usize, questions: usize, pairs: usize) -> Value {
    let word = |number: usize| {
        let letter = if number.is_multiple_of(5) { "W" } else { "w" };
        format!("{letter}{}", number % (words + 3))
    };
    let question = |n: usize| json!([word(n * 7), word(n * 11 + 1), word(n * 13), word(n * 17)]);
    let pair = |n: usize| json!([word(n * 3), word(n * 19 + 2), n * n % 101]);
    let half: Vec<Value> = (0..questions / 2).map(question).collect();
    let other: Vec<Value> = (questions / 2..questions).map(question).collect();
    let judged: Vec<Value> = (0..pairs).map(pair).collect();
    json!({
        "analogies": [{"name": "half", "questions": half}, {"name": "other", "questions": other}],
        "similarities": [{"name": "judged", "pairs": judged}],
    })
}

#[test]
fn the_numbers_are_those_of_the_command() {
    let (_folder, model) = prepared(ROYAL);
    let royal = json!({
        "analogies": [{"name": "royal", "questions": [
            ["Man", "Woman", "King", "Queen"], ["man", "woman", "boy", "girl"],
            ["man", "king", "woman", "stone"], ["man", "man", "king", "king"],
            ["nothing", "woman", "king", "queen"],
        ]}],
        "similarities": [{"name": "judged", "pairs": [
            ["man", "woman", 9], ["Man", "princess", 5.5], ["man", "stone", -1], ["man", "nobody", 3],
        ]}],
    });
    let found = evaluated(&service(&model, &[]), &royal);
    assert_eq!(numbers(found.clone()), numbers(by_command(&model, &royal, &[])));
    // And those are right: 3CosMul divides by the similarity to `man`, so his opposite always wins.
    let total = &found["analogies"][0]["total"];
    let right = ["3CosAdd", "3CosMul", "PairDirection"].map(|m| &total["methods"][m]["right"]);
    assert_eq!(right, [2, 1, 2]);
    assert_eq!((&total["questions"], &total["in_vocabulary"]), (&json!(5), &json!(5)));
    let judged = &found["similarities"][0];
    assert_eq!((&judged["found"], &judged["spearman"]), (&json!(3), &json!(1.0)));

    // More questions than go to the engine together, and a body that is read aside.
    let (_folder, model) = prepared(&random_vectors((0..150).map(|n| format!("w{n}"))));
    let (service, mut body) = (service(&model, &[]), sets(150, 500, 4000));
    assert!(body.to_string().len() > 64 << 10);
    let reply = service.post("/evaluate", &body);
    let version = service.get("/model").json()["version"].as_str().unwrap().to_owned();
    let beginning = format!(
        r#"{{"model":{{"name":"tiny","version":"{version}","rows":150,"dim":3}},"engine":"#
    );
    assert!(reply.text().starts_with(&beginning));
    assert_eq!(numbers(reply.json()), numbers(by_command(&model, &body, &[])));
    for (case, methods) in
        [("exact", &["3cosmul", "3cosadd", "3cosmul"][..2]), ("lower", &["pairdirection"])]
    {
        (body["case"], body["methods"]) = (json!(case), json!(methods));
        let flags = ["--case", case, "--methods", &methods.join(",")];
        let found = numbers(evaluated(&service, &body));
        assert_eq!(found["case"], case);
        assert_eq!(found, numbers(by_command(&model, &body, &flags)));
    }
    // One kind of sets alone; a method that is written twice counts once.
    body.as_object_mut().unwrap().remove("similarities");
    body["methods"] = json!(["3cosadd", "3cosadd"]);
    let found = numbers(evaluated(&service, &body));
    let flags = ["--methods", "3cosadd"];
    assert_eq!(found, numbers(by_command(&model, &body, &flags)));
    assert_eq!(found["similarities"], json!([]));
}

#[test]
fn unknown_words_are_no_errors() {
    let (_folder, model) = prepared(ROYAL);
    let service = service(&model, &[]);
    let body = json!({
        "analogies": [{"name": "", "questions": [["", "x", "y", "z"], ["man", "woman", "king", "z"]]}],
        "similarities": [{"name": "none", "pairs": [["x", "man", 1], ["man", "nothing", 2]]}],
    });
    let found = evaluated(&service, &body);
    let total = &found["analogies"][0]["total"];
    assert_eq!((&total["questions"], &total["in_vocabulary"]), (&json!(2), &json!(0)));
    assert_eq!(total["methods"].as_object().unwrap().len(), 3);
    for method in total["methods"].as_object().unwrap().values() {
        assert_eq!((&method["right"], &method["accuracy"]), (&json!(0), &json!(0.0)));
    }
    let expected = json!({"set": "none", "pairs": 2, "found": 0, "spearman": null});
    assert_eq!(found["similarities"][0], expected);
}

#[test]
fn as_much_as_the_bounds_allow_is_answered_by_the_smallest_queue() {
    let (_folder, model) = prepared(&random_vectors((0..150).map(|n| format!("w{n}"))));
    let service = service(&model, &["--queue-capacity-queries", "1"]);
    let mut body = sets(150, 1000, 9939);
    let more = (0..61).map(|n| json!({"name": n.to_string(), "pairs": [["w1", "w2", n]]}));
    body["similarities"].as_array_mut().unwrap().extend(more);
    let found = evaluated(&service, &body);
    let sum = |kind: &str, count: &dyn Fn(&Value) -> u64| -> u64 {
        found[kind].as_array().unwrap().iter().map(count).sum()
    };
    assert_eq!(sum("analogies", &|set| set["total"]["questions"].as_u64().unwrap()), 1000);
    assert_eq!(sum("similarities", &|set| set["pairs"].as_u64().unwrap()), 10_000);
    assert_eq!(sum("analogies", &|_| 1) + sum("similarities", &|_| 1), 64);
    // One more of anything is too much.
    let question = body["analogies"][0]["questions"][0].clone();
    for (what, index) in [
        ("1001", "/analogies/0/questions"),
        ("10001", "/similarities/0/pairs"),
        ("65 sets", "/similarities"),
    ] {
        let mut body = body.clone();
        body.pointer_mut(index).unwrap().as_array_mut().unwrap().push(match what {
            "1001" => question.clone(),
            "10001" => json!(["w1", "w2", 3]),
            _ => json!({"name": "65", "pairs": [["w1", "w2", 3]]}),
        });
        let reply = service.post("/evaluate", &body);
        assert_eq!(reply.status, 422, "{what}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(what) && detail.contains("over several requests"), "{detail}");
    }
}

/// As many questions as one request may have.
fn many(methods: &[&str]) -> Value {
    let question = ["man", "king", "woman", "queen"];
    json!({"analogies": [{"name": "many", "questions": vec![question; 1000]}], "methods": methods})
}

#[test]
fn what_takes_too_long_is_answered_504_and_holds_nobody_up() {
    let service = Service::start(&["--threads", "1"]);
    assert_eq!(
        evaluated(&service, &many(&["3cosadd"]))["analogies"][0]["total"]["questions"],
        1000
    );
    let late = Service::start(&["--request-timeout-ms", "1", "--threads", "1"]);
    for methods in [&["3cosadd"][..], &["3cosmul"], &["3cosadd", "pairdirection"]] {
        let by_service = late.post("/evaluate", &many(methods));
        let mut body = many(methods);
        body["timeout_ms"] = json!(1);
        for reply in [by_service, service.post("/evaluate", &body)] {
            assert_eq!((reply.status, &reply.json()["code"]), (504, &json!("deadline_passed")));
        }
    }
    // Not of `late`: on a busy machine, even this takes more than a millisecond.
    let pairs = json!({"similarities": [{"name": "s", "pairs": [["king", "queen", 1]]}]});
    assert_eq!(evaluated(&service, &pairs)["similarities"][0]["found"], 1);
    for service in [&service, &late] {
        assert_eq!(service.get("/health/ready").status, 200);
    }
}

#[test]
fn other_callers_are_answered_meanwhile() {
    let service = Service::start(&["--threads", "1"]);
    // Different words, so that each question takes vectors of its own.
    let words = service.get("/words?prefix=&limit=1000").json();
    let words: Vec<&Value> =
        words["words"].as_array().unwrap().iter().map(|w| &w["word"]).collect();
    let question = |n: usize| [0, 251, 503, 757].map(|step| words[(n + step) % 1000]);
    let questions: Vec<_> = (0..1000).map(question).collect();
    let methods = ["3cosadd", "3cosmul", "pairdirection"];
    let body = json!({"analogies": [{"name": "many", "questions": questions}], "methods": methods});
    std::thread::scope(|scope| {
        let long = scope.spawn(|| service.post("/evaluate", &body));
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(service.get("/nearest?word=frog").status, 200);
        let rank = json!({"words": ["toad"], "word": "frog"});
        assert_eq!(service.post("/rank", &rank).status, 200);
        assert!(!long.is_finished(), "1,000 questions take longer than a search and a full pass");
        assert_eq!(long.join().unwrap().status, 200);
    });
}
