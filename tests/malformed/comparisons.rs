//! Words that can't be compared or ranked.

use serde_json::json;

use super::case::*;

pub(crate) fn comparisons() -> Vec<Case> {
    let invalid = |name, target: &str, body: &str, field: &str| {
        post(name, target, body, 422, "invalid_value").extra("field", field)
    };
    let pairs = |name, body: &str| invalid(name, "/similarity", body, "pairs").detail("1024");
    let words = |name, body: &str| invalid(name, "/odd-one-out", body, "words").detail("3 to 256");
    let many_pairs = json!({"pairs": vec![["east", "west"]; 1025]}).to_string();
    let many_words = json!({"words": vec!["east"; 257]}).to_string();
    vec![
        pairs("no pairs", "{}"),
        pairs("pairs that are none", r#"{"pairs": []}"#),
        pairs("pairs that are null", r#"{"pairs": null}"#),
        pairs("1025 pairs", &many_pairs),
        invalid(
            "unknown is maybe",
            "/similarity",
            r#"{"pairs": [["east", "west"]], "unknown": "maybe"}"#,
            "unknown",
        ),
        post("a list of pairs", "/similarity", r#"[["east", "west"]]"#, 422, "invalid_request"),
        post(
            "pairs that are no JSON",
            "/similarity",
            r#"{"pairs": [["east", "west"]}"#,
            400,
            "not_json",
        ),
        post("an option of searches", "/similarity", r#"{"k": 3}"#, 422, "unknown_field")
            .extra("known", json!(["pairs", "unknown"])),
        invalid("no words to rank", "/rank", r#"{"word": "east"}"#, "words").detail("1000"),
        invalid(
            "words to rank that are none",
            "/rank",
            r#"{"word": "east", "words": []}"#,
            "words",
        ),
        post("nothing to rank them by", "/rank", r#"{"words": ["east"]}"#, 422, "invalid_request")
            .detail("exactly one of `word`, `vector`, `text`, `expression`"),
        post("a rank as a list", "/rank", "[]", 422, "invalid_request").detail("JSON object"),
        post(
            "a minimum above the maximum, of a rank",
            "/rank",
            r#"{"words": ["east"], "word": "west", "min_score": 1, "max_score": -1}"#,
            422,
            "invalid_request",
        )
        .detail("`min_score` (1)"),
        words("no words to compare", "{}"),
        words("two words", r#"{"words": ["east", "west"]}"#).detail("to compare, not 2"),
        words("257 words to compare", &many_words).detail("not 257"),
        words("words that are a word", r#"{"words": "east"}"#),
        invalid(
            "a word that is a number",
            "/odd-one-out",
            r#"{"words": ["east", 1, 2]}"#,
            "words[1]",
        ),
        post(
            "a zero row to compare",
            "/odd-one-out",
            r#"{"words": ["east", "west", "zero"]}"#,
            422,
            "zero_query",
        )
        .detail("`zero`"),
        post(
            "words that cancel",
            "/odd-one-out",
            r#"{"words": ["east", "west", "east", "west"]}"#,
            422,
            "zero_query",
        ),
        post("words as text", "/odd-one-out", "[]", 415, "unsupported_media_type")
            .declared_as("text/plain"),
    ]
}
