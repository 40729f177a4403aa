//! Requests that are wrong in some way, through the real program on a real port: each gets the
//! answer that is documented for it, and the process lives on.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Reply, Service, TINY, prepared, read_reply, words};

/// Longer than any answer takes, shorter than a developer's patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a body may have for a model of two dimensions: 4 MiB, and 27 bytes for each component of
/// 1,024 vectors.
const BODY_LIMIT: usize = (4 << 20) + 2 * 1024 * 27;

/// How the bytes of a request go out.
#[derive(Clone, Copy)]
enum Transfer {
    /// With their length declared, if there are any.
    Whole,
    /// As one chunk that no end follows: the answer must not wait for it.
    ChunkWithoutEnd,
    /// Only declared, as a client does that waits for leave to send them.
    Withheld,
}

/// One request and what must come back.
struct Case {
    name: &'static str,
    method: &'static str,
    target: Vec<u8>,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    transfer: Transfer,
    expected: Problem,
    allow: Option<&'static [&'static str]>,
}

/// What a problem document must say.
struct Problem {
    status: u16,
    code: &'static str,
    detail: Vec<&'static str>,
    extras: Vec<(&'static str, Value)>,
}

impl Problem {
    fn new(status: u16, code: &'static str) -> Self {
        Self { status, code, detail: Vec::new(), extras: Vec::new() }
    }

    /// Compares with what came; what differs is the error.
    fn check(&self, found: &Value) -> Result<(), String> {
        let expect = |what: &str, is_right: bool| {
            if is_right { Ok(()) } else { Err(format!("{what} in {}", shortened(found))) }
        };
        expect(&format!("expected code {}", self.code), found["code"] == self.code)?;
        expect(&format!("expected status {}", self.status), found["status"] == self.status)?;
        let kind = format!("urn:kindred:problem:{}", self.code);
        expect(&format!("expected type {kind}"), found["type"] == *kind)?;
        for text in ["title", "detail"] {
            let is_text = found[text].as_str().is_some_and(|text| !text.is_empty());
            expect(&format!("expected a {text}"), is_text)?;
        }
        let detail = found["detail"].as_str().unwrap_or_default();
        for part in &self.detail {
            expect(&format!("expected {part:?} in the detail"), detail.contains(part))?;
        }
        for (name, value) in &self.extras {
            let what = format!("expected {name} = {}", shortened(value));
            expect(&what, found.get(*name) == Some(value))?;
        }
        Ok(())
    }
}

/// Enough of a value for a message.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 600 {
        return text;
    }
    text.chars().take(600).chain("…".chars()).collect()
}

/// `POST` of a body that is declared as JSON.
fn post(
    name: &'static str,
    target: &str,
    body: impl AsRef<[u8]>,
    status: u16,
    code: &'static str,
) -> Case {
    Case {
        body: body.as_ref().to_vec(),
        ..request(name, "POST", target, status, code).header("Content-Type", "application/json")
    }
}

fn get(name: &'static str, target: impl AsRef<[u8]>, status: u16, code: &'static str) -> Case {
    request(name, "GET", target, status, code)
}

fn request(
    name: &'static str,
    method: &'static str,
    target: impl AsRef<[u8]>,
    status: u16,
    code: &'static str,
) -> Case {
    Case {
        name,
        method,
        target: target.as_ref().to_vec(),
        headers: Vec::new(),
        body: Vec::new(),
        transfer: Transfer::Whole,
        expected: Problem::new(status, code),
        allow: None,
    }
}

impl Case {
    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Declares the body as something else, or as nothing.
    fn declared_as(mut self, media_type: &'static str) -> Self {
        self.headers.retain(|(name, _)| *name != "Content-Type");
        self.header("Content-Type", media_type)
    }

    fn transferred(mut self, transfer: Transfer) -> Self {
        self.transfer = transfer;
        self
    }

    fn detail(mut self, part: &'static str) -> Self {
        self.expected.detail.push(part);
        self
    }

    fn extra(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.expected.extras.push((name, value.into()));
        self
    }

    fn allow(mut self, methods: &'static [&'static str]) -> Self {
        self.allow = Some(methods);
        self
    }

    fn send(&self, service: &Service) -> Reply {
        match self.transfer {
            // What is large may be answered before all of it is sent, which `send` does not bear.
            Transfer::Whole if self.body.len() < 1 << 20 => {
                service.send(self.method, &self.target, &self.headers, &self.body)
            }
            Transfer::Whole => {
                let length = format!("Content-Length: {}\r\n\r\n", self.body.len());
                self.send_bytes(service, &[length.as_bytes(), &self.body].concat())
            }
            Transfer::ChunkWithoutEnd => {
                let size = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", self.body.len());
                self.send_bytes(service, &[size.as_bytes(), &self.body].concat())
            }
            Transfer::Withheld => {
                let length = self.body.len();
                let end = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n");
                self.send_bytes(service, end.as_bytes())
            }
        }
    }

    /// `end` holds the last headers, the empty line, and the body.
    fn send_bytes(&self, service: &Service, end: &[u8]) -> Reply {
        let mut bytes = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\n"].concat();
        bytes.extend(b"Host: localhost\r\nConnection: close\r\n");
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(end);
        let mut connection = impatient(service);
        // Whoever is refused early can't send all; the answer says why.
        let _ = connection.write_all(&bytes);
        read_reply(&mut connection)
    }

    fn check(&self, service: &Service) -> Result<(), String> {
        let reply = catch_unwind(AssertUnwindSafe(|| self.send(service)))
            .map_err(|_| "no answer".to_owned())?;
        let body = String::from_utf8_lossy(&reply.body);
        if reply.status != self.expected.status {
            return Err(format!(
                "expected status {}, got {} with {}",
                self.expected.status,
                reply.status,
                shortened(&json!(body))
            ));
        }
        if reply.header("content-type") != Some("application/problem+json") {
            return Err(format!("it is declared as {:?}", reply.header("content-type")));
        }
        let problem: Value =
            serde_json::from_str(&body).map_err(|e| format!("no JSON ({e}): {body}"))?;
        self.expected.check(&problem)?;
        let path = self.target.split(|byte| *byte == b'?').next().unwrap_or_default();
        if [&b"/nearest"[..], b"/analogy"].contains(&path) {
            has_server_timing(&reply)?;
        }
        if let Some(methods) = self.allow {
            let allow = reply.header("allow").unwrap_or_default();
            let mut found: Vec<_> = allow.split(',').map(str::trim).collect();
            found.sort_unstable();
            if found != methods {
                return Err(format!("Allow is {allow:?}"));
            }
        }
        Ok(())
    }
}

fn has_server_timing(reply: &Reply) -> Result<(), String> {
    let timing = reply.header("server-timing").ok_or("it has no Server-Timing")?;
    let is_whole =
        ["queue;dur=", "engine;dur=", "total;dur="].iter().all(|part| timing.contains(part));
    if is_whole { Ok(()) } else { Err(format!("Server-Timing is {timing}")) }
}

fn impatient(service: &Service) -> TcpStream {
    let connection = service.connect();
    connection.set_read_timeout(Some(PATIENCE)).expect("a time-out is set");
    connection
}

/// Bodies that are not JSON. Which fields they would have does not matter.
fn json_syntax() -> Vec<Case> {
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
        not_json("a byte order mark", "\u{feff}{\"word\": \"east\"}"),
        not_json("a form", "word=east&k=3"),
        not_json("XML", "<word>east</word>"),
        not_json("a broken envelope", r#"{"queries": [{"word": "east"}, {"word": ]}"#),
        post("a truncated analogy", "/analogy", r#"{"expression": "east"#, 400, "not_json"),
    ]
}

fn not_utf8() -> Vec<Case> {
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
        body("a compressed body", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\x56\x2a\xcf\x2f\x4a")
            .header("Content-Encoding", "gzip"),
        body("declared as text too", b"\xff").declared_as("text/plain"),
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

fn bad_expressions() -> Vec<Case> {
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
        posted("spaces around a star", "2 * east", 3, OPERATOR),
        posted("a weight behind a word", "east 2*west", 6, OPERATOR),
        posted("a word before a parenthesis", "east(west)", 5, OPERATOR),
        posted("a parenthesis that is not closed", "(east", 6, "`+`, `-` or `)`"),
        posted("a parenthesis that was not opened", "east)", 5, OPERATOR),
        posted("nothing in parentheses", "()", 2, TERM),
        posted("a weight of nothing", "2*", 3, "a word or `(` right behind the weight"),
        posted("an infinite weight", "1e999*east", 1, "a weight that is a finite number"),
        posted(
            "weights with an infinite product",
            "1e200*(1e200*east)",
            8,
            "a weight that is a finite number",
        ),
        posted("a quote that is not closed", "\"east", 6, "a closing quote"),
        posted("a quote inside a word", "ea\"st", 3, "no quote inside a word"),
        posted("nothing in quotes", "\"\"", 1, "a word between the quotes"),
        posted("an escape that does not exist", r#""ea\st""#, 5, "`\"` or `\\` behind a backslash"),
        posted(
            "text behind a quoted word",
            "\"east\"west",
            7,
            "white space, a parenthesis or the end behind the closing quote",
        ),
        posted("65 parentheses", &nested, 65, "a word: 64 open parentheses are the most"),
        posted("a million parentheses", &abyss, 65, "a word: 64 open parentheses are the most"),
        posted("257 terms", &long, 256 * 7 + 1, "the end: 256 terms are the most"),
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

fn too_large() -> Vec<Case> {
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

fn media_types() -> Vec<Case> {
    let right = r#"{"word": "east"}"#;
    let declared = |name, media_type| {
        post(name, "/nearest", right, 415, "unsupported_media_type")
            .declared_as(media_type)
            .detail("application/json")
    };
    vec![
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

/// Bodies that are JSON, but not a request.
fn wrong_shapes() -> Vec<Case> {
    let request = |name, body: &str| post(name, "/nearest", body, 422, "invalid_request");
    let not_an_object = |name, body: &str| request(name, body).detail("JSON object");
    let unknown = |name, target: &str, body: &str, field: &str| {
        post(name, target, body, 422, "unknown_field").extra("field", field)
    };
    let many_queries = json!({"queries": vec![json!({"word": "east", "k": 1}); 1025]}).to_string();
    let exactly_one = "exactly one of `word`, `vector` or `queries`";
    vec![
        not_an_object("null", "null"),
        not_an_object("true", "true"),
        not_an_object("a number", "42"),
        not_an_object("a string", "\"east\""),
        not_an_object("an empty list", "[]"),
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
fn invalid(name: &'static str, body: &str, field: &str) -> Case {
    post(name, "/nearest", body, 422, "invalid_value").extra("field", field)
}

fn wrong_values() -> Vec<Case> {
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
        option("k is 1001", "k", "1001").extra("expected", "a whole number from 1 to 1000"),
        option("k is no whole number", "k", "1.5"),
        option("k is written as a float", "k", "10.0"),
        option("k has an exponent", "k", "1e3"),
        option("k is 10 to the 30th", "k", &thirty_zeros),
        option("k is 1e400", "k", "1e400"),
        option("k is a string", "k", "\"10\""),
        option("k is true", "k", "true"),
        option("k is null", "k", "null"),
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
        invalid("vector has a string", r#"{"vector": [1, "0"]}"#, "vector[1]"),
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
fn impossible_queries() -> Vec<Case> {
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

fn wrong_analogy_fields() -> Vec<Case> {
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
        invalid("k of an analogy", r#"{"positive": ["east"], "k": 0}"#, "k"),
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

fn query_strings() -> Vec<Case> {
    let invalid = |name, parameters: &str, field: &str| {
        let target = format!("/nearest?word=east&{parameters}");
        get(name, target, 422, "invalid_value").extra("field", field)
    };
    let request = |name, target: &str| get(name, target, 422, "invalid_request");
    let unknown = |name, target: &str, field: &str| {
        get(name, target, 422, "unknown_field").extra("field", field)
    };
    let excluded = "exclude=x&".repeat(1001);
    vec![
        request("no parameter", "/nearest").detail("`word`"),
        request("no parameter behind the question mark", "/nearest?"),
        request("options alone", "/nearest?k=3").detail("`word`"),
        request("a word twice", "/nearest?word=east&word=west").detail("`word`"),
        request("k twice", "/nearest?word=east&k=1&k=1").detail("`k`"),
        request("a flag twice", "/nearest?word=east&include_query=true&include_query=true")
            .detail("`include_query`"),
        request("a vector", "/nearest?vector=1,0").detail("`vector`").detail("POST"),
        request("a vector beside a word", "/nearest?word=east&vector=[1,0]").detail("`vector`"),
        request("queries", "/nearest?queries=[]").detail("`queries`").detail("POST"),
        request("no parameter of an analogy", "/analogy").detail("`expression`"),
        request("an expression twice", "/analogy?expression=east&expression=west")
            .detail("`expression`"),
        request("an expression and a word", "/analogy?expression=east&positive=west")
            .detail("exactly one"),
        request("queries of analogies", "/analogy?queries=[]").detail("POST"),
        unknown("a parameter that does not exist", "/nearest?word=east&surprise=1", "surprise")
            .detail("`surprise`"),
        unknown("a parameter that is misspelt", "/nearest?wrod=east", "wrod"),
        unknown("a parameter in capitals", "/nearest?word=east&K=3", "K"),
        unknown("a parameter without a name", "/nearest?word=east&=3", ""),
        unknown("a parameter of the other route", "/nearest?expression=east", "expression"),
        unknown("a parameter in brackets", "/nearest?word=east&exclude[]=west", "exclude[]"),
        unknown("a word of an analogy", "/analogy?word=east", "word").detail("positive"),
        unknown(
            "an unknown parameter before an unknown word",
            "/nearest?word=est&surprise=1",
            "surprise",
        ),
        invalid("k is a word", "k=ten", "k").detail("1 to 1000"),
        invalid("k is empty", "k=", "k"),
        invalid("k has no value", "k", "k"),
        invalid("k is 0, by GET", "k=0", "k"),
        invalid("k is 1001, by GET", "k=1001", "k"),
        invalid("k is negative, by GET", "k=-1", "k"),
        invalid("k has a space", "k=+5", "k"),
        invalid("k has a fraction", "k=1.5", "k"),
        invalid("k is 30 digits long", "k=100000000000000000000000000000", "k"),
        invalid("k is in Arabic digits", "k=%D9%A5", "k"),
        invalid("vocab_limit is 0, by GET", "vocab_limit=0", "vocab_limit"),
        invalid("vocab_limit is a word", "vocab_limit=all", "vocab_limit"),
        invalid("include_query is yes", "include_query=yes", "include_query")
            .detail("true or false"),
        invalid("include_query is 1", "include_query=1", "include_query"),
        invalid("include_query is in capitals", "include_query=TRUE", "include_query"),
        invalid("with_vectors is empty", "with_vectors=", "with_vectors"),
        invalid("min_score is nan", "min_score=nan", "min_score"),
        invalid("min_score is inf", "min_score=inf", "min_score"),
        invalid("min_score is minus infinity", "min_score=-infinity", "min_score"),
        invalid("min_score is 1e999", "min_score=1e999", "min_score"),
        invalid("min_score is empty", "min_score=", "min_score"),
        invalid("min_score has a comma", "min_score=0,5", "min_score"),
        invalid("1001 excluded words", &excluded, "exclude").detail("1000"),
        request("a parameter of the model", "/model?verbose=1").detail("`verbose`"),
        request("a parameter of the start page", "/?word=east").detail("`word`"),
        request("a parameter of the contract", "/openapi.yaml?format=json").detail("`format`"),
        request("a parameter of liveness", "/health/live?now").detail("`now`"),
        request("a parameter of readiness", "/health/ready?timeout=1").detail("`timeout`"),
        post(
            "a parameter beside a body",
            "/nearest?k=3",
            r#"{"word": "east"}"#,
            422,
            "invalid_request",
        )
        .detail("`k`"),
        post(
            "a word beside a body",
            "/analogy?word=east",
            r#"{"expression": "east"}"#,
            422,
            "invalid_request",
        )
        .detail("`word`"),
    ]
}

fn unknown_words() -> Vec<Case> {
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
        unknown("an empty word", "/nearest?word=", without("")),
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
    ]
}

fn routes_and_methods() -> Vec<Case> {
    let nowhere =
        |name, target: &'static str| get(name, target, 404, "no_such_route").detail(target);
    let method = |name, method, target: &str| {
        request(name, method, target, 405, "method_not_allowed").detail(method)
    };
    let both: &[_] = &["GET", "HEAD", "POST"];
    let reading: &[_] = &["GET", "HEAD"];
    vec![
        nowhere("a path that does not exist", "/neighbours"),
        nowhere("a slash at the end", "/nearest/"),
        nowhere("two slashes", "//nearest"),
        nowhere("capitals", "/NEAREST"),
        nowhere("below a route", "/nearest/east"),
        nowhere("half of a route", "/health"),
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
        method("POST to the model", "POST", "/model").allow(reading),
        method("PUT of the model", "PUT", "/model").allow(reading),
        method("DELETE of the model", "DELETE", "/model").allow(reading),
        method("POST to liveness", "POST", "/health/live").allow(reading),
        method("POST to readiness", "POST", "/health/ready").allow(reading),
        method("POST to the contract", "POST", "/openapi.yaml").allow(reading),
        method("POST to the start page", "POST", "/").allow(reading),
    ]
}

fn negotiation() -> Vec<Case> {
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

/// One wrong item of `queries`, which is answered in its place.
struct Item {
    name: &'static str,
    path: &'static str,
    item: &'static str,
    expected: Problem,
}

fn items() -> Vec<Item> {
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
    fn check(&self, service: &Service) -> Result<(), String> {
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

/// Bytes that are not quite HTTP. The HTTP library answers them itself, or not at all.
fn not_quite_http() -> Vec<(&'static str, Vec<u8>)> {
    const HEAD: &str = "Host: localhost\r\nConnection: close\r\n";
    let get = |headers: &str| format!("GET /model HTTP/1.1\r\n{HEAD}{headers}\r\n").into_bytes();
    let post = |headers: &str, body: &str| {
        format!("POST /nearest HTTP/1.1\r\n{HEAD}{headers}\r\n{body}").into_bytes()
    };
    let line = |line: &str| format!("{line}\r\n{HEAD}\r\n").into_bytes();
    let many_headers: String = (0..500).map(|i| format!("X-{i}: x\r\n")).collect();
    let word = r#"{"word": "east"}"#;
    vec![
        ("nonsense", b"what is near to east?\r\n\r\n".to_vec()),
        ("a method alone", b"GET\r\n\r\n".to_vec()),
        ("no version", line("GET /model")),
        ("a version that does not exist", line("GET /model HTTP/7.3")),
        ("a space in the target", line("GET /nearest?word=new york HTTP/1.1")),
        ("quotes in the target", line("GET /nearest?word=\"east\" HTTP/1.1")),
        ("a NUL in the target", line("GET /mo\0del HTTP/1.1")),
        ("a broken address", line("GET http://[::1/model HTTP/1.1")),
        (
            "a very long target",
            line(&format!("GET /nearest?word={} HTTP/1.1", "a".repeat(100_000))),
        ),
        ("a header without a colon", get("Accept\r\n")),
        ("a header with a space in its name", get("My Header: x\r\n")),
        ("a header without a name", get(": x\r\n")),
        ("a NUL in a header", get("X: a\0b\r\n")),
        ("a header that goes on", get("X: a\r\n b\r\n")),
        ("500 headers", get(&many_headers)),
        ("a very long header", get(&format!("X: {}\r\n", "x".repeat(1_000_000)))),
        ("a negative length", post("Content-Length: -1\r\n", word)),
        ("a length that is no number", post("Content-Length: ten\r\n", word)),
        ("a length beyond 64 bits", post("Content-Length: 99999999999999999999\r\n", word)),
        ("two lengths", post("Content-Length: 16\r\nContent-Length: 3\r\n", word)),
        ("a transfer encoding that does not exist", post("Transfer-Encoding: tar\r\n", word)),
        (
            "a chunk size that is no number",
            post("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
        ),
        ("a negative chunk size", post("Transfer-Encoding: chunked\r\n", "-2\r\n{}\r\n0\r\n\r\n")),
        (
            "a chunk longer than its size",
            post("Transfer-Encoding: chunked\r\n", "1\r\n{}\r\n0\r\n\r\n"),
        ),
        (
            "the start of TLS",
            [b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(), vec![0; 64]].concat(),
        ),
        ("bytes without end", vec![0xff; 1_000_000]),
    ]
}

/// A status from 400 to 499, or a connection that is closed without a word.
fn check_refused(service: &Service, request: &[u8]) -> Result<(), String> {
    let mut connection = impatient(service);
    let _ = connection.write_all(request);
    let mut answer = Vec::new();
    if let Err(e) = connection.read_to_end(&mut answer)
        && matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
    {
        return Err(format!("it hangs after {:?}", String::from_utf8_lossy(&answer)));
    }
    let is_refused = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
    if is_refused { Ok(()) } else { Err(String::from_utf8_lossy(&answer).into_owned()) }
}

#[test]
fn what_is_malformed_gets_its_documented_answer_and_the_process_lives() {
    let (_folder, model) = prepared(TINY);
    let mut service = Service::start(&["--model", model.to_str().unwrap(), "--device", "cpu"]);
    let groups: [(&str, Vec<Case>); 13] = [
        ("JSON syntax", json_syntax()),
        ("not UTF-8", not_utf8()),
        ("bad expressions", bad_expressions()),
        ("too large", too_large()),
        ("media types", media_types()),
        ("wrong shapes", wrong_shapes()),
        ("wrong values", wrong_values()),
        ("impossible queries", impossible_queries()),
        ("wrong fields of analogies", wrong_analogy_fields()),
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

    // A request without Host is not nice, but clear.
    assert_eq!(service.raw(b"GET /model HTTP/1.1\r\nConnection: close\r\n\r\n").status, 200);
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
