//! Requests that are wrong in some way, through the real program on a real port: each gets the
//! answer that is documented for it, and the process lives on.

mod bytes;
mod case;
mod comparisons;
mod expressions;
mod fields;
mod items;
mod not_quite_http;
mod query_strings;
mod words_and_routes;

use std::io::Write;

use self::bytes::*;
use self::case::Case;
use self::comparisons::comparisons;
use self::expressions::bad_expressions;
use self::fields::*;
use self::items::items;
use self::not_quite_http::{check_refused, not_quite_http};
use self::query_strings::query_strings;
use self::words_and_routes::*;
use crate::support::{Service, TINY, prepared, words};
use serde_json::json;

#[test]
fn what_is_malformed_gets_its_documented_answer_and_the_process_lives() {
    let (_folder, model) = prepared(TINY);
    let mut service = Service::start(&["--model", model.to_str().unwrap(), "--device", "cpu"]);
    let groups: [(&str, Vec<Case>); 14] = [
        ("JSON syntax", json_syntax()),
        ("not UTF-8", not_utf8()),
        ("bad expressions", bad_expressions()),
        ("too large", too_large()),
        ("media types", media_types()),
        ("wrong shapes", wrong_shapes()),
        ("wrong values", wrong_values()),
        ("impossible queries", impossible_queries()),
        ("wrong fields of analogies", wrong_analogy_fields()),
        ("comparisons", comparisons()),
        ("query strings", query_strings()),
        ("unknown words", unknown_words()),
        ("routes and methods", routes_and_methods()),
        ("negotiation", negotiation()),
    ];
    let mut number_of_cases = 0;
    let mut failures = Vec::new();
    let mut record = |group: &str, name: &str, result: Result<(), String>| {
        number_of_cases += 1;
        failures.extend(result.err().map(|fault| format!("{group}: {name}: {fault}")));
    };
    for (group, cases) in &groups {
        for case in cases {
            record(group, case.name, case.check(&service));
        }
    }
    for item in items() {
        record(&format!("items of {}", item.path), item.name, item.check(&service));
    }
    for (name, bytes) in not_quite_http() {
        record("not quite HTTP", name, check_refused(&service, &bytes));
    }
    // A client that gives up in the middle of its body takes nothing with it.
    let mut impolite = service.connect();
    impolite
        .write_all(b"POST /nearest HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"word\"")
        .expect("it can be sent");
    drop(impolite);

    assert_eq!(service.raw(b"GET /model HTTP/1.1\r\nConnection: close\r\n\r\n").status, 400);
    assert_eq!(service.raw(b"GET /model HTTP/1.0\r\n\r\n").status, 200, "1.0 has no Host");
    let answer = service.post("/nearest", &json!({"word": "east", "k": 2}));
    assert_eq!(answer.status, 200);
    assert_eq!(words(&answer.json()), ["East", "northeast"]);
    assert_eq!(service.get("/health/ready").status, 200);
    assert!(service.child.try_wait().expect("it can be asked").is_none(), "the process lives");

    assert!(
        failures.is_empty(),
        "{} of {number_of_cases} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(number_of_cases >= 100, "only {number_of_cases} cases");
    println!("{number_of_cases} cases");
}
