//! Sets that can't be evaluated.

use serde_json::{Value, json};

use super::case::*;

const TARGET: &str = "/evaluate";

pub(crate) fn evaluations() -> Vec<Case> {
    let invalid = |name, body: Value, field: &str| {
        post(name, TARGET, body.to_string(), 422, "invalid_value").extra("field", field)
    };
    let wrong = |name, body: &str, code| post(name, TARGET, body, 422, code);
    let question = ["east", "west", "north", "south"];
    let questions = |number| json!({"name": "q", "questions": vec![question; number]});
    let pairs = |number| json!({"name": "p", "pairs": vec![json!(["east", "west", 1]); number]});
    let asked = |question: Value| json!({"analogies": [{"name": "q", "questions": [question]}]});
    let scored = |pair: Value| json!({"similarities": [{"name": "p", "pairs": [pair]}]});
    let with = |field: &str, value: Value| json!({"analogies": [questions(1)], field: value});
    vec![
        wrong("nothing to evaluate", "{}", "invalid_request").detail("`analogies`, `similarities`"),
        wrong("methods alone", r#"{"methods": ["3cosadd"]}"#, "invalid_request"),
        wrong("a list of sets", "[]", "invalid_request").detail("JSON object"),
        wrong("sets that are null", r#"{"analogies": null}"#, "invalid_value"),
        wrong("a field of the command", r#"{"json": true}"#, "unknown_field")
            .extra("known", json!(["analogies", "similarities", "methods", "case", "timeout_ms"])),
        invalid("no sets of analogies", json!({"analogies": []}), "analogies").detail("1 to 64"),
        invalid("no sets of pairs", json!({"similarities": []}), "similarities").detail("1 to 64"),
        wrong(
            "65 sets",
            &json!({"analogies": vec![questions(1); 33], "similarities": vec![pairs(1); 32]})
                .to_string(),
            "invalid_request",
        )
        .detail("65 sets together, but the maximum is 64"),
        invalid(
            "1,001 questions",
            json!({"analogies": [questions(500), questions(501)]}),
            "analogies",
        )
        .detail("at most 1000 questions in total, not 1001; split them over several requests"),
        invalid("10,001 pairs", json!({"similarities": [pairs(10_000), pairs(1)]}), "similarities")
            .detail("at most 10000 pairs in total, not 10001; split them over several requests"),
        invalid(
            "a set as a list",
            json!({"analogies": [questions(1), ["q", [question]]]}),
            "analogies[1]",
        )
        .detail("`questions`"),
        invalid("a set without pairs", json!({"similarities": [{"name": "p"}]}), "similarities[0]")
            .detail("`pairs`"),
        wrong("a set with both", r#"{"analogies": [{"name": "q", "pairs": []}]}"#, "unknown_field")
            .extra("field", "analogies[0].pairs")
            .extra("known", json!(["name", "questions"])),
        invalid(
            "a set whose name is a number",
            json!({"analogies": [{"name": 1, "questions": [question]}]}),
            "analogies[0].name",
        ),
        invalid(
            "a set without a question",
            json!({"analogies": [questions(1), questions(0)]}),
            "analogies[1].questions",
        )
        .detail("a list of questions"),
        invalid(
            "a set without a pair",
            json!({"similarities": [pairs(0)]}),
            "similarities[0].pairs",
        )
        .detail("with their scores"),
        invalid(
            "a question of three words",
            asked(json!(["east", "west", "north"])),
            "analogies[0].questions[0]",
        )
        .detail("four words"),
        invalid(
            "a question of five words",
            asked(json!(["east", "west", "north", "south", "up"])),
            "analogies[0].questions[0]",
        ),
        invalid(
            "a question with a number",
            asked(json!(["east", "west", "north", 4])),
            "analogies[0].questions[0][3]",
        ),
        invalid(
            "a pair without a score",
            scored(json!(["east", "west"])),
            "similarities[0].pairs[0]",
        )
        .detail("two words and their score"),
        invalid(
            "a pair whose score is a text",
            scored(json!(["east", "west", "3"])),
            "similarities[0].pairs[0]",
        ),
        invalid(
            "a pair whose score is first",
            scored(json!([1, "east", "west"])),
            "similarities[0].pairs[0]",
        ),
        invalid(
            "a pair whose score is null",
            scored(json!(["east", "west", null])),
            "similarities[0].pairs[0][2]",
        ),
        invalid("two scores", scored(json!(["east", "west", 1, 2])), "similarities[0].pairs[0]"),
        wrong(
            "a score beyond float64",
            r#"{"similarities": [{"name": "p", "pairs": [["east", "west", 1e999]]}]}"#,
            "invalid_value",
        ),
        invalid("no methods", with("methods", json!([])), "methods").detail("1 to 3"),
        invalid(
            "four methods",
            with("methods", json!(["3cosadd", "3cosadd", "3cosadd", "3cosadd"])),
            "methods",
        ),
        invalid(
            "a method as results name it",
            with("methods", json!(["3cosadd", "3CosMul"])),
            "methods[1]",
        )
        .detail("`3cosmul`"),
        invalid("a method as an object", with("methods", json!([{"3cosmul": null}])), "methods[0]"),
        invalid("upper case", with("case", json!("upper")), "case").detail("`lower` or `exact`"),
        post("sets that are no JSON", TARGET, r#"{"analogies": ["#, 400, "not_json"),
        post("sets as text", TARGET, "{}", 415, "unsupported_media_type").declared_as("text/plain"),
        post(
            "a parameter beside sets",
            "/evaluate?case=exact",
            asked(json!(question)).to_string(),
            422,
            "invalid_request",
        )
        .detail("`case`"),
    ]
}
