//! Heads in a service: `/classify` and `/heads`.

use serde_json::{Value, json};

use super::{Scratch, data};
use crate::support::{Service, errors, kindred, prepared};

#[test]
fn a_service_classifies() {
    let scratch = Scratch::new();
    let dev = data();
    let head = scratch.trained("requests", &["--dev", dev.to_str().unwrap(), "--static"]);
    let short = scratch.trained("short", &["--dev", dev.to_str().unwrap(), "--limit", "2"]);
    let (model, head) = (scratch.model.to_str().unwrap(), head.to_str().unwrap());
    let named = format!("other={}", short.display());
    let service = Service::start(&["--model", model, "--head", head, "--head", &named]);
    let heads = service.get("/heads").json();
    let names = heads["heads"].as_array().unwrap().iter().map(|head| head["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["requests", "other"]);
    assert_eq!(heads["heads"][0]["labels"], json!(["billing", "delivery", "technical"]));

    let ask = |body: Value| service.post("/classify", &body);
    let text = "I can't log in to my zzxqy account.";
    let answer =
        ask(json!({"text": text, "head": "requests", "explain": true, "scores": true})).json();
    assert_eq!(answer["labels"][0]["label"], "technical", "{answer}");
    let probabilities = answer["labels"].as_array().unwrap().iter();
    let sum: f64 = probabilities.map(|label| label["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-12 && answer["unknown"] == json!(["zzxqy"]), "{answer}");
    let why = &answer["explanation"];
    let score = answer["labels"][0]["score"].as_f64().unwrap();
    assert!((score - why["score"].as_f64().unwrap()).abs() < 1e-5, "{answer}");
    for one in why["ngrams"].as_array().unwrap() {
        let [start, end] = ["start", "end"].map(|field| one[field].as_u64().unwrap() as usize);
        assert_eq!(one["text"], text[start..end]);
    }

    // Any label can be explained, shown or not.
    let other = ask(json!({"text": text, "head": "requests", "explain_label": "billing", "top": 1,
        "scores": true}));
    let why = &other.json()["explanation"];
    let billing = answer["labels"].as_array().unwrap().iter().find(|one| one["label"] == "billing");
    let score = billing.unwrap()["score"].as_f64().unwrap();
    assert_eq!(
        (&why["label"], &other.json()["labels"][0]["label"]),
        (&json!("billing"), &json!("technical"))
    );
    assert!((score - why["score"].as_f64().unwrap()).abs() < 1e-5, "{why}");
    let parts = why["ngrams"].as_array().unwrap().iter().map(|one| one["share"].as_f64().unwrap());
    let sum = parts.sum::<f64>() + why["base"].as_f64().unwrap() + why["others"].as_f64().unwrap();
    assert!((sum - why["score"].as_f64().unwrap()).abs() < 1e-9, "{why}");
    let off =
        json!({"text": text, "head": "requests", "explain": false, "explain_label": "billing"});
    assert!(ask(off).json().get("explanation").is_none());

    // The same bits for a text in every batch, whole or as words.
    let words = json!(["where", "is", "my", "package"]);
    let all = json!({"texts": ["where is my package", words, "", "zzxqy", "refund my money"],
        "head": "requests", "scores": true});
    let results = ask(all).json()["results"].clone();
    let alone =
        ask(json!({"text": "where is my package", "head": "requests", "scores": true})).json();
    assert_eq!(results[0]["labels"], alone["labels"]);
    assert_eq!(results[1]["labels"], alone["labels"]);
    assert_eq!(results[2]["error"]["code"], "invalid_value");
    assert_eq!(results[3]["error"]["code"], "unknown_word");
    assert_eq!(results[4]["labels"][0]["label"], "billing");
    let top = ask(json!({"text": "where is my package", "head": "requests", "top": 1})).json();
    assert_eq!(top["labels"].as_array().unwrap().len(), 1);
    let sure =
        ask(json!({"text": "where is my package", "head": "requests", "threshold": 1.0})).json();
    assert_eq!(sure["labels"], json!([]));
    let cut = ask(json!({"text": "where is my package", "head": "other"})).json();
    assert_eq!(cut["cut"], true);

    // A text as large as a body may be.
    let large = "package ".repeat(500_000);
    assert_eq!(ask(json!({"text": large, "head": "other"})).json()["cut"], true);
    let foreign = ask(json!({"text": "我的包裹在哪里", "head": "requests"}));
    assert_eq!((foreign.status, &foreign.json()["code"]), (404, &json!("unknown_word")));

    for (body, status, code) in [
        (json!({"text": "where"}), 404, "no_such_head"),
        (json!({"text": "where", "head": "x"}), 404, "no_such_head"),
        (json!({"text": "", "head": "requests"}), 422, "invalid_value"),
        (json!({"text": 5, "head": "requests"}), 422, "invalid_value"),
        (json!({"texts": [], "head": "requests"}), 422, "invalid_value"),
        (json!({"text": "a", "texts": ["a"], "head": "requests"}), 422, "invalid_request"),
        (json!({"text": "a", "head": "requests", "threshold": 2}), 422, "invalid_value"),
        (json!({"text": "a", "head": "requests", "top": 0}), 422, "invalid_value"),
        (json!({"text": "a", "head": "requests", "explain_label": "x"}), 422, "invalid_value"),
        (
            json!({"texts": vec!["a"; 17], "head": "requests", "explain": true}),
            422,
            "too_many_results",
        ),
        (json!({"text": "a", "head": "requests", "k": 3}), 422, "unknown_field"),
    ] {
        let reply = ask(body.clone());
        assert_eq!((reply.status, &reply.json()["code"]), (status, &json!(code)), "{body}");
    }
    let metrics = service.get("/metrics").text().to_owned();
    for name in ["classified_texts", "cut_texts", "texts_with_unknown_words"] {
        assert!(metrics.contains(&format!("kindred_{name}_total")), "{name}: {metrics}");
    }
}

#[test]
fn a_head_of_another_model_is_refused_and_one_that_was_trained_again_is_reloaded() {
    let scratch = Scratch::new();
    let head = scratch.trained("requests", &[]);
    let (other, folder) = prepared("a 1 0\nb 0 1\n");
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--model"]);
    let refused = command.arg(&folder).arg("--head").arg(&head).output().unwrap();
    let said = errors(&refused);
    assert!(
        said.contains("was made for the model") && said.contains("serve it with that model"),
        "{said}"
    );
    drop(other);

    let arguments = ["--model", scratch.model.to_str().unwrap(), "--head", head.to_str().unwrap()];
    let service = Service::start_with_keys(&arguments);
    let seed = || service.get("/heads").json()["heads"][0]["training"]["seed"].clone();
    assert_eq!(seed(), 1);
    let asked = "/classify?text=where+is+my+package";
    let tag = || service.get(asked).header("etag").expect("an entity tag").to_owned();
    let tag_before = tag();
    scratch.trained("requests", &["--seed", "7", "--replace"]);
    let reloaded = service.send("POST", b"/admin/reload", &[], b"");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(seed(), 7);
    assert_ne!(tag(), tag_before, "another head of the same name has other answers");

    // A model that the head was not made for does not take the head away.
    let before = service.get("/model").json()["version"].clone();
    let other = scratch.path("other.txt");
    std::fs::write(&other, "a 1 0\nb 0 1\n").unwrap();
    let mut prepare = kindred(&["prepare", "--replace"]);
    let replaced = prepare.arg(other).arg("--out").arg(&scratch.model).output().unwrap();
    assert!(replaced.status.success(), "{}", errors(&replaced));
    let refused = service.send("POST", b"/admin/reload", &[], b"");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("was made for the model"), "{}", refused.text());
    assert_eq!(service.get("/model").json()["version"], before);
    assert_eq!(seed(), 7);
}

#[test]
fn the_built_in_model_has_a_head_and_others_say_how_to_make_one() {
    let service = Service::with_default_model();
    assert_eq!(service.get("/heads").json()["heads"][0]["name"], "sentiment");
    for (text, label) in
        [("a moving and funny film", "positive"), ("what a waste of time", "negative")]
    {
        let answer = service.post("/classify", &json!({"text": text})).json();
        assert_eq!(answer["labels"][0]["label"], label, "{answer}");
    }

    let scratch = Scratch::new();
    let service = Service::start(&["--model", scratch.model.to_str().unwrap()]);
    assert_eq!(service.get("/heads").json()["heads"], json!([]));
    let reply = service.post("/classify", &json!({"text": "hello"}));
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        reply.status == 404
            && detail.contains("kindred train classifier")
            && detail.contains("--head"),
        "{detail}"
    );
}
