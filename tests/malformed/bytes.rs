//! What is wrong before any field is looked at: syntax, encoding, size, media type.

use serde_json::json;

use super::case::*;

/// Bodies that are not JSON. Which fields they would have does not matter.
pub(crate) fn json_syntax() -> Vec<Case> {
    let not_json =
        |name, body: &str| post(name, "/nearest", body, 400, "not_json").detail("not JSON");
    let deep = "[".repeat(100_000);
    vec![
        not_json("no body", "").detail("empty"),
        not_json("a body of white space", " \r\n\t ").detail("empty"),
        not_json("an object that is not closed", r#"{"word": "east""#).detail("line 1 column"),
        not_json("a string that is not closed", r#"{"word": "ea"#),
        not_json("a list that is not closed", r#"{"vector": [1, 0"#),
        not_json("100,000 lists that are not closed", &deep),
        not_json("a value that is missing", r#"{"word":}"#),
        not_json("a colon that is missing", r#"{"word" "east"}"#),
        not_json("a comma that is missing", r#"{"word": "east" "k": 3}"#),
        not_json("a comma too many in an object", r#"{"word": "east",}"#),
        not_json("a comma too many in a list", r#"{"vector": [1, 0,]}"#),
        not_json("a brace too many", r#"{"word": "east"}}"#).detail("trailing"),
        not_json("text behind the object", r#"{"word": "east"} please"#).detail("trailing"),
        not_json("two objects", r#"{"word": "east"}{"word": "west"}"#).detail("trailing"),
        not_json("two objects on two lines", "{\"word\": \"east\"}\n{\"word\": \"west\"}")
            .detail("line 2"),
        not_json("a lone brace", "{"),
        not_json("a word without quotes", "east"),
        not_json("single quotes", "{'word': 'east'}"),
        not_json("a name without quotes", "{word: \"east\"}"),
        not_json("a name that is a number", r#"{1: "east"}"#),
        not_json("a comment", "{\"word\": \"east\" /* the sunrise */}"),
        not_json("NaN", r#"{"vector": [NaN, 0]}"#),
        not_json("Infinity", r#"{"vector": [Infinity, 0]}"#),
        not_json("minus Infinity", r#"{"vector": [-Infinity, 0]}"#),
        not_json("a number that begins with a zero", r#"{"word": "east", "k": 010}"#),
        not_json("a number that begins with a plus", r#"{"word": "east", "k": +10}"#),
        not_json("a number that begins with a point", r#"{"vector": [.5, 0]}"#),
        not_json("a number that ends with a point", r#"{"vector": [1., 0]}"#),
        not_json("an exponent without digits", r#"{"vector": [1e, 0]}"#),
        not_json("a hexadecimal number", r#"{"word": "east", "k": 0x10}"#),
        not_json("True as Python writes it", r#"{"word": "east", "include_query": True}"#),
        not_json("undefined", r#"{"word": undefined}"#),
        not_json("a line break inside a string", "{\"word\": \"ea\nst\"}"),
        not_json("a NUL inside a string", "{\"word\": \"ea\0st\"}"),
        not_json("a NUL behind the object", "{\"word\": \"east\"}\0"),
        not_json("an escape that does not exist", r#"{"word": "\east"}"#),
        not_json("an escape with too few digits", r#"{"word": "\u00e"}"#),
        // They have the grammar of JSON, but there is no text that they could mean.
        not_json("the first half of a surrogate pair", r#"{"word": "\ud83d"}"#),
        not_json("the second half of a surrogate pair", r#"{"word": "\udc38"}"#),
        not_json("a surrogate before another character", r#"{"word": "\ud83d\u0041"}"#),
        post(
            "half a pair in an expression",
            "/analogy",
            r#"{"expression": "\ud83d"}"#,
            400,
            "not_json",
        ),
        not_json("a byte order mark alone", "\u{feff}").detail("empty"),
        not_json("two byte order marks", "\u{feff}\u{feff}{\"word\": \"east\"}"),
        not_json("a byte order mark behind a space", " \u{feff}{\"word\": \"east\"}"),
        not_json("a form", "word=east&k=3"),
        not_json("XML", "<word>east</word>"),
        not_json("a form", "word=east&k=3")
            .declared_as("application/x-www-form-urlencoded")
            .detail("the Content-Type is application/x-www-form-urlencoded: send JSON with"),
        not_json("a broken envelope", r#"{"queries": [{"word": "east"}, {"word": ]}"#),
        post("a truncated analogy", "/analogy", r#"{"expression": "east"#, 400, "not_json"),
    ]
}

/// The beginning of a file of gzip.
const COMPRESSED: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\x56\x2a\xcf\x2f\x4a";

pub(crate) fn not_utf8() -> Vec<Case> {
    let body = |name, body: &[u8]| {
        post(name, "/nearest", body, 400, "not_utf8").detail("the body is not valid UTF-8")
    };
    let target = |name, target: &str| get(name, target, 400, "not_utf8");
    vec![
        body("a byte that no UTF-8 has", b"{\"word\": \"\xff\"}"),
        body("Latin-1", b"{\"word\": \"na\xefve\"}"),
        body("an overlong slash", b"{\"word\": \"\xc0\xaf\"}"),
        body("a surrogate as bytes", b"{\"word\": \"\xed\xa0\x80\"}"),
        body("a character beyond the last", b"{\"word\": \"\xf4\x90\x80\x80\"}"),
        body("a character cut in two", b"{\"word\": \"na\xc3"),
        body("UTF-16", b"\xff\xfe{\0\"\0w\0o\0r\0d\0\"\0"),
        body("a compressed body that is not declared", COMPRESSED),
        body("declared as text too", b"\xff").declared_as("text/plain"),
        post("an array that is not declared", "/nearest", b"\x93NUMPY\x01\0", 400, "not_utf8")
            .detail("without the header Content-Type: application/x-npy"),
        target("a byte in a word", "/nearest?word=%FF").detail("`word`"),
        target("Latin-1 in a word", "/nearest?word=na%EFve").detail("`word`"),
        target("an overlong slash in a word", "/nearest?word=%C0%AF").detail("`word`"),
        target("a surrogate in a word", "/nearest?word=%ED%A0%80").detail("`word`"),
        target("a byte in the name of a parameter", "/nearest?w%FFrd=east").detail("name"),
        target("a byte in an excluded word", "/nearest?word=east&exclude=%80").detail("`exclude`"),
        target("a byte in an expression", "/analogy?expression=%FE").detail("`expression`"),
        target("before a parameter that does not exist", "/nearest?surprise=1&word=%FF"),
        target("where there are no parameters", "/model?%FF"),
        post("in the target of a POST", "/nearest?x=%FF", r#"{"word": "east"}"#, 400, "not_utf8"),
        // What is 400 is found before what is 415 or 422, wherever it stands.
        post("in the target, before the media type", "/nearest?x=%FF", "{}", 400, "not_utf8")
            .declared_as("text/plain"),
        post("in the target, before the form", "/nearest?x=%FF", r#"{"k": 0}"#, 400, "not_utf8"),
    ]
}

pub(crate) fn too_large() -> Vec<Case> {
    let spaces = |name, length| {
        post(name, "/nearest", vec![b' '; length], 413, "body_too_large")
            .extra("limit", BODY_LIMIT)
            .detail("4249600 bytes")
    };
    let mut analogy = json!({"expression": "east", "exclude": ["x".repeat(BODY_LIMIT)]});
    analogy["k"] = json!(3);
    vec![
        spaces("one byte too many", BODY_LIMIT + 1),
        spaces("in a chunk", BODY_LIMIT + 1).transferred(Transfer::ChunkWithoutEnd),
        // What is declared is enough to know: nobody should send it first.
        spaces("declared and not sent", BODY_LIMIT + 1).transferred(Transfer::Withheld),
        spaces("more than any memory", 1 << 26).transferred(Transfer::Withheld),
        spaces("before the media type", BODY_LIMIT + 1).declared_as("text/plain"),
        post("a large analogy", "/analogy", analogy.to_string(), 413, "body_too_large"),
        post("exactly the limit is read", "/nearest", vec![b' '; BODY_LIMIT], 400, "not_json"),
    ]
}

pub(crate) fn media_types() -> Vec<Case> {
    let right = r#"{"word": "east"}"#;
    let declared = |name, media_type| {
        post(name, "/nearest", right, 415, "unsupported_media_type")
            .declared_as(media_type)
            .detail("application/json")
    };
    let coded = |name, target: &str, body: &[u8], coding| {
        post(name, target, body, 415, "unsupported_media_type")
            .header("Content-Encoding", coding)
            .detail("leave the header Content-Encoding out")
    };
    vec![
        coded("a compressed body", "/nearest", COMPRESSED, "gzip").detail("gzip"),
        coded("a compressed analogy", "/analogy", COMPRESSED, "br").detail("br"),
        coded("compressed texts", "/classify", COMPRESSED, "zstd"),
        coded("compressed pairs", "/similarity", COMPRESSED, "deflate"),
        coded("a body that is only said to be compressed", "/nearest", right.as_bytes(), "gzip"),
        coded("two codings", "/rank", COMPRESSED, "identity, gzip").detail("identity, gzip"),
        coded("a character set as a coding", "/nearest", right.as_bytes(), "utf-8")
            .detail("Content-Type"),
        coded("a compressed array", "/expand", COMPRESSED, "gzip").declared_as("application/x-npy"),
        declared("text", "text/plain").detail("text/plain"),
        declared("text with a character set", "text/plain; charset=utf-8"),
        declared("a form", "application/x-www-form-urlencoded").detail("x-www-form-urlencoded"),
        declared("a form of several parts", "multipart/form-data; boundary=x"),
        declared("JSON with padding", "application/jsonp"),
        declared("JSON as text", "text/json"),
        declared("lines of JSON", "application/x-ndjson"),
        declared("bytes", "application/octet-stream"),
        declared("XML", "application/xml"),
        declared("a type without a subtype", "application"),
        declared("half a type", "application/"),
        declared("any type", "*/*"),
        declared("two types", "application/json, text/plain"),
        declared("garbage", ";;;=/"),
        declared("what is not ASCII", "applicätion/json"),
        declared("nothing", ""),
        post(
            "an analogy as text",
            "/analogy",
            r#"{"expression": "east"}"#,
            415,
            "unsupported_media_type",
        )
        .declared_as("text/plain"),
        post("bad JSON as text", "/nearest", "{", 400, "not_json").declared_as("text/plain"),
        post("no body as text", "/nearest", "", 400, "not_json").declared_as("text/plain"),
        post("a wrong field as text", "/nearest", r#"{"word": 1}"#, 415, "unsupported_media_type")
            .declared_as("text/plain"),
        post(
            "an unknown word as text",
            "/nearest",
            r#"{"word": "est"}"#,
            415,
            "unsupported_media_type",
        )
        .declared_as("text/plain"),
    ]
}
