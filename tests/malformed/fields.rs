//! JSON of the wrong form, and fields with wrong values.

use serde_json::{Value, json};

use super::case::*;

const WEIGHED: &str = r#"{"positive": [{"word": "east", "Weight": 2}]}"#;

/// Bodies that are JSON, but not a request.
pub(crate) fn wrong_shapes() -> Vec<Case> {
    let request = |name, body: &str| post(name, "/nearest", body, 422, "invalid_request");
    let not_an_object = |name, body: &str| request(name, body).detail("JSON object");
    let unknown = |name, target: &str, body: &str, field: &str| {
        post(name, target, body, 422, "unknown_field").extra("field", field)
    };
    let many_queries = json!({"queries": vec![json!({"word": "east", "k": 1}); 1025]}).to_string();
    let exactly_one = "exactly one of `word`, `vector`, `text` or `queries`";
    vec![
        not_an_object("null", "null"),
        not_an_object("true", "true"),
        not_an_object("a number", "42"),
        not_an_object("a string", "\"east\"").detail("not the string \"east\""),
        not_an_object("an empty list", "[]").detail("not []"),
        // A list is no object, even if its elements happen to have the types of the fields.
        not_an_object("a list of a word", r#"["east"]"#),
        not_an_object("a list of an object", r#"[{"word": "east"}]"#),
        not_an_object("a list of a list", r#"[["east"]]"#),
        not_an_object("a deep list", &("[".repeat(100_000) + &"]".repeat(100_000))),
        post("a list as an analogy", "/analogy", r#"["east"]"#, 422, "invalid_request")
            .detail("JSON object"),
        request("no field", "{}").detail(exactly_one),
        request("options alone", r#"{"k": 3}"#).detail(exactly_one),
        request("word and vector", r#"{"word": "east", "vector": [1, 0]}"#).detail(exactly_one),
        request("word and queries", r#"{"word": "east", "queries": [{"word": "east"}]}"#)
            .detail(exactly_one),
        request("word and text", r#"{"word": "east", "text": "east"}"#).detail(exactly_one),
        request("vector and queries", r#"{"vector": [1, 0], "queries": [{"word": "east"}]}"#)
            .detail(exactly_one),
        request("a field twice", r#"{"word": "east", "word": "west"}"#).detail("`word`"),
        request("an option twice", r#"{"word": "east", "k": 3, "k": 3}"#).detail("`k`"),
        unknown(
            "a field that does not exist",
            "/nearest",
            r#"{"word": "east", "surprise": 1}"#,
            "surprise",
        )
        .detail("`surprise`")
        .detail("with_vectors"),
        unknown("another name of k", "/nearest", r#"{"word": "east", "top_k": 3}"#, "top_k")
            .detail("did you mean `k`?"),
        unknown("another name of a query", "/nearest", r#"{"query": "east"}"#, "query")
            .detail("did you mean `word` or `text`?"),
        unknown("another name of a weight", "/analogy", WEIGHED, "positive[0].Weight")
            .detail("did you mean `weight`?"),
        unknown("a field in capitals", "/nearest", r#"{"Word": "east"}"#, "Word"),
        unknown("a field without a name", "/nearest", r#"{"": 1}"#, ""),
        unknown("a field with a point in its name", "/nearest", r#"{"a.b": 1}"#, "a.b"),
        unknown(
            "a field with quotes in its name",
            "/nearest",
            r#"{"x`, expected `y": 1}"#,
            "x`, expected `y",
        ),
        unknown(
            "a field of the other route",
            "/nearest",
            r#"{"expression": "east"}"#,
            "expression",
        ),
        unknown(
            "a method of neighbours",
            "/nearest",
            r#"{"word": "east", "method": "3cosadd"}"#,
            "method",
        ),
        unknown("a word as an analogy", "/analogy", r#"{"word": "east"}"#, "word")
            .detail("positive"),
        unknown(
            "a field beside queries",
            "/nearest",
            r#"{"queries": [], "surprise": 1}"#,
            "surprise",
        ),
        invalid("queries that are none", r#"{"queries": []}"#, "queries"),
        invalid("queries that are null", r#"{"queries": null}"#, "queries"),
        invalid("queries that are an object", r#"{"queries": {"word": "east"}}"#, "queries"),
        invalid("queries that are a string", r#"{"queries": "east"}"#, "queries"),
        invalid("1025 queries", &many_queries, "queries").detail("1024"),
        invalid(
            "a wrong option for all queries",
            r#"{"queries": [{"word": "east"}], "k": 0}"#,
            "k",
        ),
        post("no field of an analogy", "/analogy", "{}", 422, "invalid_request")
            .detail("`expression`")
            .detail("`positive`")
            .detail("`queries`"),
        post(
            "expression and positive",
            "/analogy",
            r#"{"expression": "east", "positive": ["west"]}"#,
            422,
            "invalid_request",
        )
        .detail("exactly one"),
        post(
            "expression and negative",
            "/analogy",
            r#"{"expression": "east", "negative": ["west"]}"#,
            422,
            "invalid_request",
        )
        .detail("exactly one"),
        post(
            "positive and queries",
            "/analogy",
            r#"{"positive": ["east"], "queries": [{"expression": "east"}]}"#,
            422,
            "invalid_request",
        )
        .detail("exactly one"),
    ]
}

/// `POST /nearest` with one field that has an impossible value.
pub(crate) fn invalid(name: &'static str, body: &str, field: &str) -> Case {
    post(name, "/nearest", body, 422, "invalid_value").extra("field", field)
}

pub(crate) fn wrong_values() -> Vec<Case> {
    let option = |name, field: &str, value: &str| {
        invalid(name, &format!(r#"{{"word": "east", "{field}": {value}}}"#), field)
    };
    let excluded = serde_json::to_string(&vec!["west"; 1001]).unwrap();
    let thirty_zeros = format!("1{}", "0".repeat(30));
    let too_many = |name, body: Value| {
        post(name, "/nearest", body.to_string(), 422, "too_many_results").detail("65536")
    };
    vec![
        option("k is 0", "k", "0").detail("1 to 1000"),
        option("k is negative", "k", "-1"),
        option("k is minus zero", "k", "-0"),
        option("k is 1001", "k", "1001")
            .extra("expected", "a whole number from 1 to 1000")
            .detail("not 1001"),
        option("k is no whole number", "k", "1.5"),
        option("k is written as a float", "k", "10.0"),
        option("k has an exponent", "k", "1e3"),
        option("k is 10 to the 30th", "k", &thirty_zeros),
        option("k is 1e400", "k", "1e400"),
        option("k is a string", "k", "\"10\"").detail("not the string \"10\""),
        option("k is true", "k", "true"),
        option("k is null", "k", "null").detail("leave it out"),
        option("k is a list", "k", "[10]"),
        option("k is an object", "k", "{}"),
        option("vocab_limit is 0", "vocab_limit", "0"),
        option("vocab_limit is negative", "vocab_limit", "-1"),
        option("vocab_limit is no whole number", "vocab_limit", "0.5"),
        option("vocab_limit is a string", "vocab_limit", "\"all\""),
        option("vocab_limit is null", "vocab_limit", "null"),
        option("min_score is a string", "min_score", "\"x\""),
        option("min_score is NaN as a string", "min_score", "\"NaN\""),
        option("min_score is 1e400", "min_score", "1e400"),
        option("min_score is null", "min_score", "null"),
        option("include_query is a number", "include_query", "1"),
        option("include_query is a string", "include_query", "\"true\""),
        option("include_query is null", "include_query", "null"),
        option("with_vectors is a number", "with_vectors", "0"),
        option("with_vectors is null", "with_vectors", "null"),
        option("offset is a string", "offset", "\"3\""),
        option("offset is negative", "offset", "-1").detail("0 to 999"),
        option("offset is too large", "offset", "1000").detail("0 to 999, not 1000"),
        option("offset and k are too large", "offset", "991").detail("0 to 990, because `k` is 10"),
        option("offset is null", "offset", "null"),
        option("distinct is a list", "distinct", "[\"brand\"]"),
        option("distinct has an unknown attribute", "distinct", "\"brand\"").detail("has none"),
        option("distinct is null", "distinct", "null"),
        option("filter is a list", "filter", "[\"price < 80\"]"),
        option("filter is null", "filter", "null"),
        option("with_attributes is a number", "with_attributes", "1"),
        option("with_attributes is a name", "with_attributes", "\"price\"").detail("a list of"),
        option("with_attributes is null", "with_attributes", "null"),
        option("with_attributes has an unknown one", "with_attributes", "[\"price\"]"),
        option("fold_case is a string", "fold_case", "\"true\"").detail("true or false"),
        option("fold_case is null", "fold_case", "null"),
        option("explain is a number", "explain", "1"),
        option("unknown is a word", "unknown", "\"ignore\"")
            .detail("`skip` or `subwords`, not the string \"ignore\""),
        option("unknown is in capitals", "unknown", "\"SKIP\""),
        option("unknown is true", "unknown", "true"),
        option("unknown is null", "unknown", "null"),
        invalid("text is null", r#"{"text": null}"#, "text").detail("leave it out"),
        invalid("a null beside a word", r#"{"word": "east", "text": null}"#, "text")
            .detail("leave it out"),
        invalid("text is a list", r#"{"text": ["east"]}"#, "text"),
        invalid("text is empty", r#"{"text": ""}"#, "text").detail("1 to 256 words"),
        invalid("text is white space", r#"{"text": " \n\u3000"}"#, "text"),
        invalid("text has 257 words", &json!({"text": "east ".repeat(257)}).to_string(), "text"),
        invalid(
            "text is one long piece",
            &json!({"text": "a-".repeat(200_000)}).to_string(),
            "text",
        ),
        option("exclude is a word", "exclude", "\"west\""),
        option("exclude is null", "exclude", "null"),
        option("exclude has 1001 words", "exclude", &excluded).detail("1000"),
        invalid(
            "exclude has a number",
            r#"{"word": "east", "exclude": ["west", 7]}"#,
            "exclude[1]",
        ),
        invalid("exclude has a null", r#"{"word": "east", "exclude": [null]}"#, "exclude[0]"),
        invalid("word is null", r#"{"word": null}"#, "word"),
        invalid("word is a number", r#"{"word": 5}"#, "word"),
        invalid("word is a list", r#"{"word": ["east"]}"#, "word"),
        invalid("word is an object", r#"{"word": {"word": "east"}}"#, "word"),
        invalid("vector is null", r#"{"vector": null}"#, "vector"),
        invalid("vector is a string", r#"{"vector": "1 0"}"#, "vector"),
        invalid("vector is a number", r#"{"vector": 1}"#, "vector"),
        invalid("vector is an object", r#"{"vector": {"0": 1, "1": 0}}"#, "vector"),
        invalid("vector has a string", r#"{"vector": [1, "0"]}"#, "vector[1]")
            .detail("not the string \"0\""),
        invalid("word is a long list", &json!({"word": vec!["east"; 100]}).to_string(), "word")
            .detail("not a list"),
        invalid("vector has a null", r#"{"vector": [null, 0]}"#, "vector[0]"),
        invalid("vector has a list", r#"{"vector": [[1, 0]]}"#, "vector[0]"),
        invalid("vector has true", r#"{"vector": [true, 0]}"#, "vector[0]"),
        invalid("a component beyond float64", r#"{"vector": [1e400, 0]}"#, "vector[0]"),
        too_many(
            "66 queries of 1000",
            json!({"queries": vec![json!({"word": "east", "k": 1000}); 66]}),
        ),
        too_many(
            "66 queries of 1000 in common",
            json!({"k": 1000, "queries": vec![json!({"word": "east"}); 66]}),
        ),
        too_many(
            "1024 queries of 65",
            json!({"k": 65, "queries": vec![json!({"vector": [1, 0]}); 1024]}),
        ),
        post("a vector too short", "/nearest", r#"{"vector": [1]}"#, 422, "dimension_mismatch")
            .extra("found", 1)
            .extra("expected", 2),
        post(
            "a vector too long",
            "/nearest",
            r#"{"vector": [1, 0, 0]}"#,
            422,
            "dimension_mismatch",
        )
        .extra("found", 3),
        post("a vector of nothing", "/nearest", r#"{"vector": []}"#, 422, "dimension_mismatch")
            .extra("found", 0),
    ]
}

/// Queries without a direction or beyond what can be counted.
pub(crate) fn impossible_queries() -> Vec<Case> {
    let nearest = |name, body: &str, code| post(name, "/nearest", body, 422, code);
    let analogy = |name, body: &str, code| post(name, "/analogy", body, 422, code);
    vec![
        nearest("a component beyond float32", r#"{"vector": [0, 1e39]}"#, "not_finite")
            .detail("component 1"),
        nearest("a component far below zero", r#"{"vector": [-1e300, 1]}"#, "not_finite")
            .detail("component 0"),
        nearest("a zero vector", r#"{"vector": [0, 0]}"#, "zero_query"),
        nearest("a vector of minus zeros", r#"{"vector": [-0.0, -0]}"#, "zero_query"),
        nearest("a vector too small for float32", r#"{"vector": [1e-50, 0]}"#, "zero_query"),
        nearest("a word whose row is zero", r#"{"word": "zero"}"#, "zero_query"),
        get("a word whose row is zero, by GET", "/nearest?word=zero", 422, "zero_query"),
        analogy("no words", r#"{"positive": [], "negative": []}"#, "zero_query"),
        analogy(
            "words that cancel",
            r#"{"positive": ["east"], "negative": ["east"]}"#,
            "zero_query",
        )
        .detail("cancel"),
        analogy("an expression that cancels", r#"{"expression": "east - east"}"#, "zero_query"),
        analogy("a weight of zero", r#"{"expression": "0*east"}"#, "zero_query"),
        analogy("vectors that cancel", r#"{"expression": "east + west"}"#, "zero_query"),
        analogy("a zero row in a sum", r#"{"expression": "east + zero"}"#, "zero_query")
            .detail("`zero`"),
        analogy(
            "weights too large",
            r#"{"positive": [{"word": "east", "weight": 1e300}]}"#,
            "not_finite",
        ),
        analogy(
            "weights with an infinite sum",
            r#"{"expression": "1e308*east + 1e308*east"}"#,
            "not_finite",
        ),
        get("words that cancel, by GET", "/analogy?positive=east&negative=east", 422, "zero_query"),
        get("weights too large, by GET", "/analogy?expression=1e300*east", 422, "not_finite"),
    ]
}

pub(crate) fn wrong_analogy_fields() -> Vec<Case> {
    let invalid = |name, body: &str, field: &str| {
        post(name, "/analogy", body, 422, "invalid_value").extra("field", field)
    };
    let many = json!({"positive": vec!["east"; 200], "negative": vec!["north"; 57]}).to_string();
    vec![
        invalid("expression is null", r#"{"expression": null}"#, "expression"),
        invalid("expression is a number", r#"{"expression": 5}"#, "expression"),
        invalid("expression is a list", r#"{"expression": ["east"]}"#, "expression"),
        invalid("positive is a word", r#"{"positive": "east"}"#, "positive"),
        invalid("positive is null", r#"{"positive": null}"#, "positive"),
        invalid("negative is an object", r#"{"negative": {"word": "east"}}"#, "negative"),
        invalid("positive has a number", r#"{"positive": ["east", 3]}"#, "positive[1]"),
        invalid("positive has a null", r#"{"positive": [null]}"#, "positive[0]"),
        invalid("negative has a list", r#"{"negative": [["east", 2]]}"#, "negative[0]"),
        invalid("a weight without a word", r#"{"positive": [{"weight": 2}]}"#, "positive[0]"),
        invalid("a word that is a number", r#"{"positive": [{"word": 5}]}"#, "positive[0].word"),
        invalid(
            "a weight that is a string",
            r#"{"positive": [{"word": "east", "weight": "2"}]}"#,
            "positive[0].weight",
        ),
        invalid(
            "a weight that is null",
            r#"{"negative": [{"word": "east", "weight": null}]}"#,
            "negative[0].weight",
        ),
        invalid(
            "a weight of 1e400",
            r#"{"positive": [{"word": "east", "weight": 1e400}]}"#,
            "positive[0].weight",
        ),
        invalid("a method that does not exist", r#"{"positive": ["east"], "method": "mul"}"#, "method"),
        invalid("method is in capitals", r#"{"positive": ["east"], "method": "3CosMul"}"#, "method"),
        invalid("method is null", r#"{"positive": ["east"], "method": null}"#, "method"),
        post(
            "too many words to multiply",
            "/analogy",
            json!({"positive": vec!["east"; 101], "negative": ["west"], "method": "3cosmul"}).to_string(),
            422,
            "method_mismatch",
        )
        .detail("32"),
        post(
            "too many words by a method",
            "/analogy",
            json!({"queries": vec![json!({"positive": vec!["east"; 32]}); 129], "method": "3cosmul"})
                .to_string(),
            422,
            "too_many_results",
        )
        .detail("4128")
        .detail("4096"),
        post(
            "too much to explain",
            "/analogy",
            json!({"queries": vec![json!({"expression": "east - north"}); 60], "k": 1000, "explain": true})
                .to_string(),
            422,
            "too_many_results",
        )
        .detail("120000")
        .detail("100000"),
        invalid("k of an analogy", r#"{"positive": ["east"], "k": 0}"#, "k"),
        post("a null text to classify", "/classify", r#"{"text": null}"#, 422, "invalid_value")
            .extra("field", "text")
            .detail("leave it out"),
        post(
            "null vectors beside a text",
            "/expand",
            r#"{"text": "east", "vectors": null}"#,
            422,
            "invalid_value",
        )
        .extra("field", "vectors")
        .detail("leave it out"),
        post(
            "a field of a word that does not exist",
            "/analogy",
            r#"{"positive": [{"word": "east", "wait": 1}]}"#,
            422,
            "unknown_field",
        )
        .extra("field", "positive[0].wait")
        .extra("known", json!(["word", "weight"])),
        post(
            "a field of a word twice",
            "/analogy",
            r#"{"positive": [{"word": "east", "word": "west"}]}"#,
            422,
            "invalid_request",
        )
        .detail("word"),
        post("257 words", "/analogy", many, 422, "invalid_request").detail("257").detail("256"),
    ]
}
