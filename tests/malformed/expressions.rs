//! Expressions that do not follow the grammar.

use serde_json::json;

use super::case::*;

pub(crate) fn bad_expressions() -> Vec<Case> {
    const TERM: &str = "a word, a weight like `0.5*` or `(`";
    const OPERATOR: &str = "`+`, `-` or the end";
    let posted = |name, text: &str, column: usize, expected: &str| {
        let body = json!({"expression": text}).to_string();
        post(name, "/analogy", body, 400, "bad_expression")
            .extra("column", column)
            .extra("expected", expected)
    };
    let got = |name, target: &str, column: usize| {
        get(name, target, 400, "bad_expression").extra("column", column)
    };
    let nested = "(".repeat(65) + "east" + &")".repeat(65);
    let abyss = "(".repeat(1_000_000);
    let long = vec!["east"; 257].join(" + ");
    vec![
        posted("nothing", "", 1, TERM).detail("column 1"),
        posted("white space", "  \t", 4, TERM),
        posted("a plus at the end", "east +", 7, TERM),
        posted("two operators", "east + - west", 8, TERM),
        posted("an operator alone", "-", 2, TERM),
        posted("two words", "east west", 6, OPERATOR).detail("%2B"),
        posted("a column counts characters", "日本 語", 4, OPERATOR),
        posted("spaces around a star", "2 * east", 3, OPERATOR).detail("as in 2*king"),
        posted("a weight behind a word", "east 2*west", 6, OPERATOR),
        posted("a word before a parenthesis", "east(west)", 5, OPERATOR)
            .detail("needs double quotes"),
        posted("a dash that is no hyphen", "east \u{2212} west", 6, OPERATOR)
            .detail("write - or +"),
        posted("a parenthesis that is not closed", "(east", 6, "`+`, `-` or `)`"),
        posted("a parenthesis that was not opened", "east)", 5, OPERATOR),
        posted("nothing in parentheses", "()", 2, TERM),
        posted("a weight of nothing", "2*", 3, "a word or `(` directly after the weight"),
        posted("an infinite weight", "1e999*east", 1, "a finite number as the weight"),
        posted(
            "weights with an infinite product",
            "1e200*(1e200*east)",
            8,
            "a finite number as the weight",
        ),
        posted("a quote that is not closed", "\"east", 6, "a closing quote"),
        posted("a quote inside a word", "ea\"st", 3, "no quote inside a word"),
        posted("nothing in quotes", "\"\"", 1, "a word between the quotes"),
        posted("an escape that does not exist", r#""ea\st""#, 5, "`\"` or `\\` after a backslash"),
        posted(
            "text behind a quoted word",
            "\"east\"west",
            7,
            "white space, a parenthesis or the end after the closing quote",
        ),
        posted(
            "65 parentheses",
            &nested,
            65,
            "a word, because 64 open parentheses are the maximum",
        ),
        posted(
            "a million parentheses",
            &abyss,
            65,
            "a word, because 64 open parentheses are the maximum",
        ),
        posted("257 terms", &long, 256 * 7 + 1, "the end, because 256 terms are the maximum"),
        got("a plus that is a space in a URL", "/analogy?expression=east+west", 6).detail("%2B"),
        got("an expression without a value", "/analogy?expression", 1),
        got("an empty expression in a URL", "/analogy?expression=", 1),
        got("an expression that ends too early", "/analogy?expression=east%20-", 7),
        got("before other wrong parameters", "/analogy?k=0&surprise=1&expression=(", 2),
        got("the second of two", "/analogy?expression=east&expression=east+west", 6),
        post(
            "before a wrong field",
            "/analogy",
            r#"{"expression": "east -", "k": 0}"#,
            400,
            "bad_expression",
        ),
        post(
            "before a field that does not exist",
            "/analogy",
            r#"{"surprise": 1, "expression": "east -"}"#,
            400,
            "bad_expression",
        ),
        post(
            "before what excludes it",
            "/analogy",
            r#"{"expression": "east -", "positive": ["east"]}"#,
            400,
            "bad_expression",
        ),
        post(
            "before the media type",
            "/analogy",
            r#"{"expression": "east -"}"#,
            400,
            "bad_expression",
        )
        .declared_as("text/plain"),
        post(
            "before unknown words",
            "/analogy",
            r#"{"expression": "est + wst -"}"#,
            400,
            "bad_expression",
        ),
    ]
}
