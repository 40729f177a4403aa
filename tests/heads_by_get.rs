//! `GET /classify` and `GET /expand`: the answers of POST, and what every GET has.

use serde_json::{Value, json};

use crate::support::Service;

/// A route, the query string of a GET, and the same as the body of a POST.
fn same() -> Vec<(&'static str, &'static str, Value)> {
    let film = "a moving and funny film";
    vec![
        ("/classify", "text=a+moving+and+funny+film", json!({"text": film})),
        ("/models/demo/classify", "text=a+moving+and+funny+film", json!({"text": film})),
        (
            "/classify",
            "text=a+moving+and+funny+film&head=sentiment&top=1&scores=true&explain=true",
            json!({"text": film, "head": "sentiment", "top": 1, "scores": true, "explain": true}),
        ),
        (
            "/classify",
            "text=a+film&explain_label=negative&threshold=0.1&timeout_ms=9000",
            json!({"text": "a film", "explain_label": "negative", "threshold": 0.1}),
        ),
        (
            "/classify",
            "text=%22a%22+%5B1%5D+film+qwertyish",
            json!({"text": "\"a\" [1] film qwertyish"}),
        ),
        ("/expand", "text=cheap+flights", json!({"text": "cheap flights"})),
        (
            "/expand",
            "text=cheap+flights&head=nearby&top=3&explain=true&max_ratio=0.4&min_weight=0.1",
            json!({
                "text": "cheap flights", "head": "nearby", "top": 3, "explain": true,
                "max_ratio": 0.4, "min_weight": 0.1,
            }),
        ),
        (
            "/expand",
            "text=%7B%22vectors%22%3A1%7D+frog&format=rank_features",
            json!({"text": "{\"vectors\":1} frog", "format": "rank_features"}),
        ),
    ]
}

#[test]
fn a_text_by_get_has_the_answer_that_it_has_by_post() {
    let service = Service::with_default_model();
    for (path, query, body) in same() {
        let target = format!("{path}?{query}");
        let got = service.send("GET", target.as_bytes(), &[], b"");
        let posted = service.post(path, &body);
        assert_eq!((got.status, posted.status), (200, 200), "{query}: {}", got.text());
        assert_eq!(got.text(), posted.text(), "{path}?{query}");
        let timing = got.header("server-timing").expect("Server-Timing");
        assert!(timing.contains("engine;desc="), "{timing}");
        // By HEAD there is the same without the answer itself.
        let head = service.send("HEAD", target.as_bytes(), &[], b"");
        assert_eq!((head.status, head.body.len()), (200, 0), "{query}");
        assert_eq!(head.header("content-length"), got.header("content-length"), "{query}");
        assert_eq!(head.header("etag"), got.header("etag"), "{query}");
    }
}

#[test]
fn who_has_the_answer_of_this_model_and_head_gets_304() {
    let service = Service::with_default_model();
    let ask = |target: &str, tag: &str| {
        service.send("GET", target.as_bytes(), &[("If-None-Match", tag)], b"")
    };
    let (labels, terms) = ("/classify?text=a+film", "/expand?text=a+film");
    let tag = |target: &str| service.get(target).header("etag").expect("a tag").to_owned();
    assert_ne!(tag(labels), tag(terms), "of different heads");
    assert_ne!(tag(labels), tag("/nearest?word=film"));
    for target in [labels, terms] {
        let tag = tag(target);
        let known = ask(target, &tag);
        assert_eq!((known.status, known.body.len()), (304, 0), "{target}");
        assert_eq!(known.header("etag"), Some(&tag[..]));
        assert_eq!(known.header("cache-control"), Some("no-cache"));
        assert_eq!(ask(target, "\"0\"").status, 200);
        // A wrong question has no answer that anybody could have.
        assert_eq!(ask(&format!("{target}&top=0"), &tag).status, 422);
        assert_eq!(ask(&target.replace("a+film", "qwertyish"), &tag).status, 404);
        let model = tag.split_once('-').map(|(model, _)| format!("{model}\"")).unwrap();
        assert_eq!(ask(target, &model).status, 200, "the tag of another route");
    }
    let posted = service.post("/classify", &json!({"text": "a film"}));
    assert_eq!((posted.status, posted.header("etag")), (200, None));
}

#[test]
fn pages_of_other_origins_and_callers_without_a_key_are_treated_as_everywhere() {
    let open = Service::start(&["--cors-origins", "https://a.org"]);
    let closed = Service::start_with_keys(&[]);
    for target in ["/classify?text=a+film", "/expand?text=a+film", "/version"] {
        let from_page = open.send("GET", target.as_bytes(), &[("Origin", "https://a.org")], b"");
        assert_eq!(from_page.header("access-control-allow-origin"), Some("https://a.org"));
        let refused = closed.raw(
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        assert_eq!(refused.status, 401, "{target}");
    }
}

#[test]
fn an_unknown_word_is_suggested_for_and_a_missing_head_is_named() {
    let service = Service::with_default_model();
    let problem = service.get("/classify?text=dictionery").json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("unknown_word")));
    assert_eq!(problem["unknown"][0]["suggestions"], json!(["dictionary"]));
    let problem = service.get("/expand?text=frog&head=none").json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("no_such_head")));
    let empty = service.get("/expand?text=");
    assert_eq!((empty.status, &empty.json()["field"]), (422, &json!("text")));
}

#[test]
fn a_text_as_long_as_a_query_string_may_be_is_read_and_counted() {
    let service = Service::with_default_model();
    let text = vec!["frog"; 1600].join("+");
    let cut = service.get(&format!("/classify?text={text}"));
    assert_eq!((cut.status, &cut.json()["cut"]), (200, &json!(true)), "{}", cut.text());
    assert_eq!(service.get(&format!("/expand?text={text}&top=1")).status, 200);
}
