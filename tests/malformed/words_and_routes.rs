//! What does not exist: words, routes, methods, forms of answers.

use serde_json::{Value, json};

use super::case::*;

pub(crate) fn unknown_words() -> Vec<Case> {
    let unknown = |name, target: &str, expected: Value| {
        get(name, target, 404, "unknown_word").extra("unknown", expected)
    };
    let posted = |name, target: &str, body: Value, expected: Value| {
        post(name, target, body.to_string(), 404, "unknown_word").extra("unknown", expected)
    };
    let without = |word: &str| json!([{"word": word, "suggestions": []}]);
    let long = "a".repeat(10_000);
    // One letter more than `northeast`, but too long to be looked for.
    let padded = format!("northeast{}", "t".repeat(24));
    let both = json!([
        {"word": "est", "suggestions": ["east", "west"]},
        {"word": "xyz", "suggestions": []},
    ]);
    vec![
        unknown(
            "a word that is misspelt",
            "/nearest?word=est",
            json!([{"word": "est", "suggestions": ["east", "west"]}]),
        )
        .detail("`est`")
        .detail("east"),
        unknown(
            "a word in other capitals",
            "/nearest?word=NORTH",
            json!([{"word": "NORTH", "suggestions": ["north"]}]),
        ),
        unknown("an empty word", "/nearest?word=", without("")).detail("the word is empty"),
        unknown("an empty word to describe", "/words?word=", without("")),
        unknown("a word in a path", "/words/xyz", without("xyz")),
        unknown("a slash in a path", "/words/xyz%2Fxyz", without("xyz/xyz")),
        unknown("a plus in a path", "/words/x+y", without("x+y")),
        unknown("a plus in a parameter", "/words?word=xyz+z", without("xyz z")),
        unknown(
            "a text of unknown words",
            "/nearest?text=xyz+est,xyz!",
            json!([
                {"word": "xyz", "suggestions": []},
                {"word": "est", "suggestions": ["east", "west"]},
            ]),
        ),
        unknown(
            "a text that may have none",
            "/nearest?text=east+xyz&unknown=error",
            without("xyz"),
        ),
        unknown("all skipped", "/analogy?expression=xyz+-+xyz&unknown=skip", without("xyz")),
        unknown("a word alone is not skipped", "/nearest?word=xyz&unknown=skip", without("xyz")),
        posted(
            "an odd word that is unknown",
            "/odd-one-out",
            json!({"words": ["east", "west", "xyz"]}),
            without("xyz"),
        ),
        posted(
            "too few words that are known",
            "/odd-one-out",
            json!({"words": ["east", "west", "xyz"], "unknown": "skip"}),
            without("xyz"),
        ),
        unknown("a word without a value", "/nearest?word", without("")),
        unknown("a space before a word", "/nearest?word=+xyz", without(" xyz")),
        unknown("a percent sign alone", "/nearest?word=%", without("%")),
        unknown("an escape that is none", "/nearest?word=%zz", without("%zz")),
        unknown("a NUL in a word, by GET", "/nearest?word=%00", without("\0")),
        unknown(
            "a semicolon between parameters",
            "/nearest?word=xyzxyz;k=3",
            without("xyzxyz;k=3"),
        ),
        unknown("a word of 10,000 characters", &format!("/nearest?word={long}"), without(&long)),
        unknown("both words of an analogy", "/analogy?positive=est&negative=xyz", both.clone()),
        unknown("before a zero row", "/analogy?expression=xyz+-+zero", without("xyz")),
        posted("an empty word in JSON", "/nearest", json!({"word": ""}), without("")),
        posted(
            "a NUL in a word",
            "/nearest",
            json!({"word": "ea\0st"}),
            json!([{"word": "ea\0st", "suggestions": ["east", "East"]}]),
        ),
        posted(
            "a word of 10,000 characters in JSON",
            "/nearest",
            json!({"word": long}),
            without(&long),
        ),
        posted("a word of 33 characters", "/nearest", json!({"word": padded}), without(&padded)),
        posted(
            "a word like a path",
            "/nearest",
            json!({"word": "../../etc/passwd"}),
            without("../../etc/passwd"),
        ),
        posted(
            "every unknown word once",
            "/analogy",
            json!({"expression": "est + east - xyz + est"}),
            both,
        ),
        posted(
            "words that would cancel",
            "/analogy",
            json!({"expression": "xyz - xyz"}),
            without("xyz"),
        ),
        posted(
            "a word of weight zero",
            "/analogy",
            json!({"positive": [{"word": "xyz", "weight": 0}, "east"]}),
            without("xyz"),
        ),
        posted("an empty word of an analogy", "/analogy", json!({"positive": [""]}), without("")),
        unknown(
            "an expression without spaces",
            "/analogy?expression=east-north%2Bwest",
            json!([{
                "word": "east-north+west",
                "suggestions": [],
                "expression": "east - north + west",
            }]),
        )
        .detail("did you mean the expression east - north + west?"),
        unknown(
            "a minus sign that is no hyphen",
            "/analogy?expression=east+%2B+%E2%88%92north",
            json!([{"word": "\u{2212}north", "suggestions": ["north"], "expression": "-north"}]),
        ),
    ]
}

pub(crate) fn routes_and_methods() -> Vec<Case> {
    let nowhere =
        |name, target: &'static str| get(name, target, 404, "no_such_route").detail(target);
    let method = |name, method, target: &str| {
        request(name, method, target, 405, "method_not_allowed").detail(method)
    };
    let both: &[_] = &["GET", "HEAD", "POST"];
    let reading: &[_] = &["GET", "HEAD"];
    let with_delete: &[_] = &["DELETE", "GET", "HEAD"];
    vec![
        nowhere("a path that does not exist", "/neighbours").detail("did you mean /nearest?"),
        nowhere("a path of others", "/v1/search").detail("did you mean /nearest?"),
        nowhere("another format", "/openapi.json").detail("did you mean /openapi.yaml?"),
        nowhere("another health check", "/healthz").detail("did you mean /health/live?"),
        nowhere("a slash at the end", "/nearest/").detail("did you mean /nearest?"),
        nowhere("two slashes", "//nearest").detail("did you mean /nearest?"),
        nowhere("capitals", "/NEAREST").detail("did you mean /nearest?"),
        nowhere("below a route", "/nearest/east").detail("did you mean /nearest?"),
        nowhere("half of a route", "/health").detail("/health/live or /health/ready?"),
        nowhere("an empty word in a path", "/words/").detail("did you mean /words?"),
        nowhere("behind a model", "/tiny/nearest").detail("/nearest or /models/tiny/nearest?"),
        nowhere("nothing like a route", "/x").detail("/x; GET /openapi.yaml"),
        nowhere("two words in a path", "/words/east/west"),
        get("no UTF-8 in a word of a path", "/words/%FF", 400, "not_utf8").detail("the path"),
        nowhere("a path out of the tree", "/../../etc/passwd"),
        nowhere("an escaped slash", "/health%2Flive"),
        nowhere("a NUL in a path", "/%00"),
        nowhere("no UTF-8 in a path", "/%FF"),
        nowhere("a path that does not begin with a slash", "nearest"),
        post("a POST to nowhere", "/neighbours", "{}", 404, "no_such_route"),
        request("a DELETE of nothing", "DELETE", "/neighbours", 404, "no_such_route"),
        method("PUT", "PUT", "/nearest").allow(both),
        method("DELETE", "DELETE", "/nearest").allow(both),
        method("PATCH", "PATCH", "/analogy").allow(both),
        method("OPTIONS", "OPTIONS", "/analogy").allow(both),
        method("TRACE", "TRACE", "/nearest").allow(both),
        method("a method that does not exist", "BREW", "/nearest").allow(both),
        method("a method in small letters", "get", "/nearest?word=east").allow(both),
        method("GET of ranks", "GET", "/rank").allow(&["POST"]),
        method("GET of a comparison", "GET", "/similarity").allow(&["POST"]).detail("send POST"),
        method("GET of the odd one", "GET", "/odd-one-out").allow(&["POST"]),
        method("POST to the words", "POST", "/words").allow(reading),
        method("DELETE of a word", "DELETE", "/words/east").allow(reading),
        method("POST to the model", "POST", "/model").allow(with_delete),
        method("PUT of the model", "PUT", "/model").allow(with_delete),
        method("DELETE of the model", "DELETE", "/model").allow(reading),
        method("POST to liveness", "POST", "/health/live").allow(reading),
        method("POST to readiness", "POST", "/health/ready").allow(reading),
        method("POST to the contract", "POST", "/openapi.yaml").allow(reading),
        method("PUT to the start page", "PUT", "/").allow(&["GET", "HEAD", "POST"]),
    ]
}

pub(crate) fn negotiation() -> Vec<Case> {
    let right = "/nearest?word=east";
    let accept = |name, target: &str, accept| {
        get(name, target, 406, "not_acceptable").header("Accept", accept)
    };
    let json = |name, value| accept(name, right, value).detail("application/json");
    vec![
        json("HTML", "text/html"),
        json("JSON refused", "application/json;q=0"),
        json("JSON refused in small steps", "application/json; q=0.000"),
        json("everything but JSON", "*/*, application/json;q=0"),
        json("nothing at all", "*/*;q=0"),
        json("other applications", "application/xml, application/yaml;q=0.5"),
        json("images and text", "image/*, text/*"),
        accept("the analogy as HTML", "/analogy?expression=east", "text/html"),
        accept("words as HTML", "/words?prefix=e", "text/html"),
        accept("a word as HTML", "/words/east", "text/html"),
        json("an array by GET", "application/x-npy").detail("POST /nearest"),
        accept("the model as HTML", "/model", "text/html"),
        accept("liveness as text", "/health/live", "text/plain"),
        accept("readiness as text", "/health/ready", "text/plain"),
        accept("the contract as JSON", "/openapi.yaml", "application/json")
            .detail("application/yaml"),
        accept("the start page as JSON", "/", "application/json").detail("text/plain"),
        post(
            "a batch as HTML",
            "/nearest",
            r#"{"queries": [{"word": "east"}]}"#,
            406,
            "not_acceptable",
        )
        .header("Accept", "text/html"),
        get("an unknown word comes first", "/nearest?word=xyz", 404, "unknown_word")
            .header("Accept", "text/html"),
        get("a wrong value comes first", "/nearest?word=east&k=0", 422, "invalid_value")
            .header("Accept", "text/html"),
        request("a wrong method comes first", "PUT", right, 405, "method_not_allowed")
            .header("Accept", "text/html"),
    ]
}
