//! Wrong items of `queries`, each answered in its place.

use serde_json::{Value, json};

use super::case::*;
use crate::support::{Service, words};

/// One wrong item of `queries`, which is answered in its place.
pub(crate) struct Item {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) item: &'static str,
    pub(crate) expected: Problem,
}

pub(crate) fn items() -> Vec<Item> {
    let item = |path, name, item, status, code, extras: &[(&'static str, Value)]| Item {
        name,
        path,
        item,
        expected: Problem { extras: extras.to_vec(), ..Problem::new(status, code) },
    };
    let nearest =
        |name, text, status, code, extras: &[_]| item("/nearest", name, text, status, code, extras);
    let analogy =
        |name, text, status, code, extras: &[_]| item("/analogy", name, text, status, code, extras);
    let field = |name: &str| [("field", json!(name))];
    vec![
        nearest("null", "null", 422, "invalid_request", &[]),
        nearest("a number", "7", 422, "invalid_request", &[]),
        nearest("a word without an object", r#""east""#, 422, "invalid_request", &[]),
        nearest("an empty list", "[]", 422, "invalid_request", &[]),
        nearest("a list of a word", r#"["east"]"#, 422, "invalid_request", &[]),
        nearest("no field", "{}", 422, "invalid_request", &[]),
        nearest(
            "word and vector",
            r#"{"word": "east", "vector": [1, 0]}"#,
            422,
            "invalid_request",
            &[],
        ),
        nearest(
            "a field twice",
            r#"{"word": "east", "word": "west"}"#,
            422,
            "invalid_request",
            &[],
        ),
        nearest(
            "queries in queries",
            r#"{"queries": [{"word": "east"}]}"#,
            422,
            "invalid_request",
            &[],
        ),
        nearest(
            "queries beside a word",
            r#"{"word": "east", "queries": []}"#,
            422,
            "invalid_request",
            &[],
        ),
        nearest(
            "a field that does not exist",
            r#"{"word": "east", "surprise": 1}"#,
            422,
            "unknown_field",
            &field("surprise"),
        ),
        nearest("k is 0", r#"{"word": "east", "k": 0}"#, 422, "invalid_value", &field("k")),
        nearest("k is null", r#"{"word": "east", "k": null}"#, 422, "invalid_value", &field("k")),
        nearest(
            "a component beyond float64",
            r#"{"vector": [1e400, 0]}"#,
            422,
            "invalid_value",
            &field("vector[0]"),
        ),
        nearest("a component beyond float32", r#"{"vector": [1e39, 0]}"#, 422, "not_finite", &[]),
        nearest(
            "a vector too long",
            r#"{"vector": [1, 0, 0]}"#,
            422,
            "dimension_mismatch",
            &[("found", json!(3))],
        ),
        nearest("a zero vector", r#"{"vector": [0, 0]}"#, 422, "zero_query", &[]),
        nearest("a zero row", r#"{"word": "zero"}"#, 422, "zero_query", &[]),
        nearest(
            "an unknown word",
            r#"{"word": "xyz"}"#,
            404,
            "unknown_word",
            &[("unknown", json!([{"word": "xyz", "suggestions": []}]))],
        ),
        analogy(
            "a bad expression",
            r#"{"expression": "east +"}"#,
            400,
            "bad_expression",
            &[("column", json!(7))],
        ),
        analogy(
            "a bad expression before a wrong field",
            r#"{"expression": "east +", "k": 0}"#,
            400,
            "bad_expression",
            &[],
        ),
        analogy(
            "expression and positive",
            r#"{"expression": "east", "positive": ["east"]}"#,
            422,
            "invalid_request",
            &[],
        ),
        analogy("a list of an expression", r#"["east"]"#, 422, "invalid_request", &[]),
        analogy(
            "a field of the other route",
            r#"{"word": "east"}"#,
            422,
            "unknown_field",
            &field("word"),
        ),
        analogy(
            "a weight that is a string",
            r#"{"positive": [{"word": "east", "weight": "2"}]}"#,
            422,
            "invalid_value",
            &field("positive[0].weight"),
        ),
        analogy("words that cancel", r#"{"expression": "east - east"}"#, 422, "zero_query", &[]),
        analogy("weights too large", r#"{"expression": "1e300*east"}"#, 422, "not_finite", &[]),
        analogy(
            "unknown words",
            r#"{"expression": "xyz - est"}"#,
            404,
            "unknown_word",
            &[(
                "unknown",
                json!([
                    {"word": "xyz", "suggestions": []},
                    {"word": "est", "suggestions": ["east", "west"]},
                ]),
            )],
        ),
    ]
}

impl Item {
    /// Between two right items, whose answers it must not touch.
    pub(crate) fn check(&self, service: &Service) -> Result<(), String> {
        let right = if self.path == "/nearest" {
            r#"{"word": "east"}"#
        } else {
            r#"{"expression": "east"}"#
        };
        let body = format!(r#"{{"queries": [{right}, {}, {right}], "k": 1}}"#, self.item);
        let reply = service.send(
            "POST",
            self.path.as_bytes(),
            &[("Content-Type", "application/json")],
            body.as_bytes(),
        );
        if reply.status != 200 {
            return Err(format!("status {} with {}", reply.status, reply.text()));
        }
        has_server_timing(&reply)?;
        let answer = reply.json();
        let results = answer["results"].as_array().ok_or("there are no results")?;
        if results.len() != 3 || words(&results[0]) != ["East"] || words(&results[2]) != ["East"] {
            return Err(format!("the right items are answered wrong: {}", shortened(&answer)));
        }
        if results[1].get("neighbors").is_some() {
            return Err(format!("the item is answered: {}", shortened(&results[1])));
        }
        self.expected.check(&results[1]["error"])
    }
}
