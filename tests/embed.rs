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
    let long = "frog ".repeat(8193);
    let texts = json!(["frog", "qqqzzz", "", long, 7, "toad"]);
    let answer = embed(&service, &json!({"texts": texts})).json();
    let results = answer["results"].as_array().unwrap();
    let codes: Vec<&Value> = results.iter().map(|result| &result["error"]["code"]).collect();
    let (none, invalid) = (&Value::Null, &json!("invalid_value"));
    assert_eq!(codes, [none, &json!("unknown_word"), invalid, none, invalid, none]);
    let cut = json!({"count": 8192, "unknown": 0, "truncated": true});
    assert_eq!(results[3]["tokens"], cut, "what is too long is cut, and said");
    let whole = embed(&service, &json!({"texts": texts, "truncate": false})).json();
    assert_eq!(whole["results"][3]["error"]["field"], "text");
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
        (json!({"texts": ["frog"], "input": "frog"}), "unknown_field"),
        (json!({"texts": ["frog"], "normalize": 1}), "invalid_value"),
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
fn vectors_have_unit_length_or_are_the_mean() {
    let service = Service::with_default_model();
    let of = |text: &str, normalize: Option<bool>| {
        let mut body = json!({"texts": [text]});
        if let Some(normalize) = normalize {
            body["normalize"] = json!(normalize);
        }
        vector(&embed(&service, &body).json()["results"][0]["vector"])
    };
    let length = |vector: &[f32]| vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let searched = of("frog toad", None);
    assert_eq!(of("frog toad", Some(true)), searched);
    let mean = of("frog toad", Some(false));
    let (frog, toad) = (of("frog", None), of("toad", None));
    for ((mean, frog), toad) in mean.iter().zip(&frog).zip(&toad) {
        assert!((mean - (frog + toad) / 2.0).abs() < 1e-6);
    }
    assert!(length(&mean) < 0.99 && (length(&searched) - 1.0).abs() < 1e-6);
}

#[test]
fn clients_of_other_services_get_the_same_vectors_in_their_form() {
    let service = Service::with_default_model();
    let own = embed(&service, &json!({"texts": TEXTS})).json();
    let expected: Vec<Vec<f32>> =
        own["results"].as_array().unwrap().iter().map(|one| vector(&one["vector"])).collect();

    let posted = |path: &str, body: Value| {
        let reply = service.post(path, &body);
        Contract::read().check("POST", path, &reply);
        reply
    };
    let absent = json!({"inputs": TEXTS, "truncate": null, "normalize": null, "parameters": {}});
    for (path, body) in [("/embed", absent.clone()), ("/", absent)] {
        let found: Vec<Vec<f32>> = serde_json::from_value(posted(path, body).json()).unwrap();
        assert_eq!(found, expected, "{path}");
    }
    let found: Vec<Vec<f32>> =
        serde_json::from_value(posted("/embed", json!({"inputs": TEXTS[0]})).json()).unwrap();
    assert_eq!(found, expected[..1], "one text is a list of one");

    let path = "/v1/embeddings";
    let body = json!({"input": TEXTS, "model": "text-embedding-3-small", "dimensions": 100});
    let answer = posted(path, body).json();
    let tokens: u64 = own["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            one["tokens"]["count"].as_u64().unwrap() + one["tokens"]["unknown"].as_u64().unwrap()
        })
        .sum();
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("demo")));
    assert_eq!(answer["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
    let body = json!({"input": TEXTS, "encoding_format": "base64", "user": null});
    let in_base64 = posted(path, body).json();
    for (at, expected) in expected.iter().enumerate() {
        let one = &answer["data"][at];
        assert_eq!((&one["index"], &one["object"]), (&json!(at), &json!("embedding")));
        assert_eq!(&vector(&one["embedding"]), expected);
        let bytes = base64(in_base64["data"][at]["embedding"].as_str().unwrap());
        let numbers = bytes.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap()));
        assert_eq!(&numbers.collect::<Vec<_>>(), expected);
    }
    // What another form would need: texts are at most 1024 there.
    let many = posted(path, json!({"input": vec!["frog"; 2048]})).json();
    assert_eq!(many["data"].as_array().unwrap().len(), 2048);
    let info = service.get("/info").json();
    assert_eq!((&info["model_id"], &info["max_input_length"]), (&json!("demo"), &json!(8192)));
}

/// The bytes of a text in base64.
fn base64(text: &str) -> Vec<u8> {
    const SIGNS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |sign: u8| SIGNS.iter().position(|&other| other == sign).unwrap_or(0) as u32;
    let bytes = text.as_bytes().chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, &sign| bits << 6 | value(sign));
        let padding = four.iter().filter(|&&sign| sign == b'=').count();
        bits.to_be_bytes()[1..4 - padding].to_vec()
    });
    bytes.collect()
}

#[test]
fn other_forms_have_errors_of_their_own_shape() {
    let service = Service::with_default_model();
    let path = "/v1/embeddings";
    for (body, param, said) in [
        (json!({}), json!("input"), "`input` must be"),
        (json!({"input": null}), json!("input"), "`input` must be"),
        (json!({"input": []}), json!("input"), "a list of 0"),
        (json!({"input": vec!["frog"; 2049]}), json!("input"), "a list of 2049"),
        (json!({"input": ["frog", ""]}), json!("input[1]"), "`input[1]` must be"),
        (json!({"input": ["frog", "qqqzzz"]}), json!("input[1]"), "does not have `qqqzzz`"),
        (json!({"input": [1, 2]}), json!("input[0]"), "check_embedding_ctx_length=False"),
        (json!({"input": [[1, 2]]}), json!("input[0]"), "check_embedding_ctx_length=False"),
        (json!({"input": 3}), json!("input"), "check_embedding_ctx_length=False"),
        (json!({"input": {"a": 1}}), json!("input"), "`input` must be"),
        (json!({"input": "frog", "dimensions": 10}), json!("dimensions"), "100, the model's"),
        (json!({"input": "frog", "encoding_format": "md5"}), json!("encoding_format"), "base64"),
        (json!({"input": "frog", "inputs": "frog"}), json!("inputs"), "known fields: input"),
        (json!({"input": "frog", "model": 7}), json!("model"), "the name of a model"),
    ] {
        let reply = service.post(path, &body);
        Contract::read().check("POST", path, &reply);
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["param"]), (400, &param), "{body}: {error}");
        assert_eq!(error["type"], "invalid_request_error", "{body}");
        assert!(error["message"].as_str().unwrap().contains(said), "{body}: {error}");
    }
    for (body, said) in [
        (json!({"inputs": []}), "`inputs` cannot be empty"),
        (json!({"inputs": ["frog", ""]}), "`inputs[1]` cannot be empty"),
        (json!({"inputs": ""}), "`inputs` cannot be empty"),
        (json!({"inputs": [" "]}), "`inputs[0]`"),
        (json!({"inputs": "qqqzzz"}), "`inputs`: the model does not have"),
        (json!({"inputs": [[3, 4]]}), "ids of tokens"),
        (json!({"inputs": "frog", "texts": ["frog"]}), "`texts` and `inputs`"),
        (json!({"inputs": "frog", "truncation_direction": "Left"}), "the beginning"),
        (json!({"inputs": "frog", "prompt_name": "query"}), "prompts"),
        (json!({"inputs": "frog ".repeat(8193), "truncate": false}), "only 8192"),
    ] {
        for path in ["/embed", "/"] {
            let reply = service.post(path, &body);
            Contract::read().check("POST", path, &reply);
            let error = reply.json();
            let (status, kind) =
                if said.contains("cannot be empty") { (400, "Empty") } else { (422, "Validation") };
            assert_eq!((reply.status, &error["error_type"]), (status, &json!(kind)), "{body}");
            assert!(error["error"].as_str().unwrap().contains(said), "{body}: {error}");
        }
    }
}

#[test]
fn the_page_is_public_and_vectors_at_its_path_need_a_key() {
    let mut service = Service::start_with_keys(&[]);
    let json = [("Content-Type", "application/json")];
    assert_eq!(service.send("POST", b"/", &json, br#"{"inputs": "frog"}"#).status, 200);
    service.key = None;
    assert_eq!(service.send("GET", b"/", &[], b"").status, 200);
    for (path, body) in [
        ("/", r#"{"inputs": "frog"}"#),
        ("/embed", r#"{"inputs": "frog"}"#),
        ("/v1/embeddings", r#"{"input": "frog"}"#),
    ] {
        let refused = service.send("POST", path.as_bytes(), &json, body.as_bytes());
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{path}");
    }
    let refused = service.send("POST", b"/v1/embeddings", &json, br#"{"input": "frog"}"#);
    assert_eq!(refused.json()["error"]["code"], "unauthorized");
}

#[test]
fn other_words_for_the_route_lead_to_it() {
    let service = Service::with_default_model();
    for path in ["/embeddings", "/v1/embed", "/encode"] {
        let said = service.post(path, &json!({"texts": ["frog"]})).text().to_owned();
        assert!(said.contains("/embed"), "{path}: {said}");
    }
}
