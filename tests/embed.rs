//! `POST /embed`: the vectors of texts are those that a search for each text has.

use serde_json::{Value, json};

use crate::openapi::Contract;
use crate::support::{Reply, Service};

const TEXTS: [&str; 5] =
    ["a small boat", "The king, of Spain!", "frog", "frog frog toad", "a qwertyish ship"];

fn embed(service: &Service, body: &Value) -> Reply {
    let reply = service.post("/embed", body);
    Contract::read().check("POST", "/embed", &reply);
    reply
}

fn array(service: &Service, body: &Value) -> Reply {
    let headers = [("Content-Type", "application/json"), ("Accept", "application/x-npy")];
    service.send("POST", b"/embed", &headers, body.to_string().as_bytes())
}

fn vector(value: &Value) -> Vec<f32> {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn a_text_is_searched_for_by_its_vector() {
    let service = Service::with_default_model();
    let answer = embed(&service, &json!({"texts": TEXTS})).json();
    assert_eq!(
        (&answer["model"], answer["results"].as_array().unwrap().len()),
        (&json!("demo"), 5)
    );
    for (text, result) in TEXTS.iter().zip(answer["results"].as_array().unwrap()) {
        assert_eq!(result["vector"].as_array().unwrap().len(), 100);
        let body = json!({"text": text, "k": 7, "include_query": true});
        let by_text = service.post("/nearest", &body).json();
        let body = json!({"vector": result["vector"], "k": 7});
        let by_vector = service.post("/nearest", &body).json();
        assert_eq!(by_text["neighbors"], by_vector["neighbors"], "{text}");
        for note in ["used", "skipped"] {
            assert_eq!(result[note], by_text[note], "{text}");
        }
        // Alone it is the same to the bit.
        let alone = embed(&service, &json!({"texts": [text]})).json();
        assert_eq!(&alone["results"][0], result);
        let squares: f64 = vector(&result["vector"]).iter().map(|&x| f64::from(x).powi(2)).sum();
        assert!((squares - 1.0).abs() < 1e-6, "{text}: {squares}");
    }
}

#[test]
fn an_array_has_the_same_numbers() {
    let service = Service::with_default_model();
    let body = json!({"texts": TEXTS});
    let (json, array) = (embed(&service, &body).json(), array(&service, &body));
    assert_eq!((array.status, array.header("content-type")), (200, Some("application/x-npy")));
    let expected: Vec<u8> = json["results"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|result| vector(&result["vector"]))
        .flat_map(f32::to_le_bytes)
        .collect();
    let head = String::from_utf8_lossy(&array.body[..array.body.len() - expected.len()]);
    assert!(head.contains("'descr': '<f4'") && head.contains("'shape': (5, 100)"), "{head}");
    assert!(array.body.ends_with(&expected));
}

#[test]
fn faults_stay_with_their_text_but_in_an_array() {
    let service = Service::with_default_model();
    let long = "frog ".repeat(257);
    let texts = json!(["frog", "qqqzzz", "", long, 7, "toad"]);
    let answer = embed(&service, &json!({"texts": texts})).json();
    let results = answer["results"].as_array().unwrap();
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    let (none, invalid) = (&Value::Null, &json!("invalid_value"));
    assert_eq!(codes, [none, &json!("unknown_word"), invalid, invalid, invalid, none]);
    assert_eq!(results[4]["error"]["field"], "texts[4]");
    let refused = array(&service, &json!({"texts": ["frog", "qqqzzz"]}));
    assert_eq!((refused.status, &refused.json()["query"]), (404, &json!(1)));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("`texts[1]`: the model does not have `qqqzzz`"), "{detail}");

    let unknown = json!({"texts": ["a qwertyish ship"], "unknown": "error"});
    assert_eq!(embed(&service, &unknown).json()["results"][0]["error"]["status"], 404);
    for (body, code) in [
        (json!({}), "invalid_value"),
        (json!({"texts": []}), "invalid_value"),
        (json!({"texts": "frog"}), "invalid_value"),
        (json!({"texts": vec!["frog"; 1025]}), "invalid_value"),
        (json!({"texts": null}), "invalid_value"),
        (json!({"texts": ["frog"], "inputs": "frog"}), "unknown_field"),
        (json!({"texts": ["frog"], "unknown": "perhaps"}), "invalid_value"),
        (json!({"texts": ["frog"], "unknown": "subwords"}), "invalid_value"),
    ] {
        let reply = embed(&service, &body);
        let found = match reply.status {
            200 => reply.json()["results"][0]["error"]["code"].clone(),
            _ => reply.json()["code"].clone(),
        };
        assert_eq!(found, code, "{body}");
    }
    let many = embed(&service, &json!({"texts": vec!["a small boat"; 1024]}));
    assert_eq!(many.json()["results"].as_array().unwrap().len(), 1024);
}

#[test]
fn other_words_for_the_route_lead_to_it() {
    let service = Service::with_default_model();
    for path in ["/embeddings", "/v1/embeddings", "/encode"] {
        let said = service.post(path, &json!({"texts": ["frog"]})).text().to_owned();
        assert!(said.contains("/embed"), "{path}: {said}");
    }
}
