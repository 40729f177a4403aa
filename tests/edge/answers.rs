//! What the edge adds to answers: CORS, compression, headers.

use std::io::{Read, Write};

use serde_json::json;

use super::{ms, serve};
use crate::support::{self, Reply, Service};

const PAGE: (&str, &str) = ("Origin", "https://a.org");

fn cors_of(reply: &Reply) -> Vec<&str> {
    let headers = reply.headers.iter().map(|(name, _)| &name[..]);
    headers.filter(|name| name.to_lowercase().starts_with("access-control")).collect()
}

fn preflight(service: &Service, origin: &str) -> Reply {
    let asked = "authorization,content-type,request-timeout-ms,x-request-id";
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", asked),
    ];
    service.send("OPTIONS", b"/nearest", &headers, b"")
}

#[test]
fn without_origins_no_answer_speaks_of_cors() {
    let service = serve(&[]);
    let reply = service.send("GET", b"/nearest?word=frog", &[PAGE], b"");
    assert!(reply.status == 200 && cors_of(&reply).is_empty() && reply.header("vary").is_none());
    let reply = preflight(&service, "https://a.org");
    assert!(reply.status == 405 && cors_of(&reply).is_empty());
}

#[test]
fn pages_of_the_origins_may_ask_and_no_others() {
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), format!("{} a", "0".repeat(64))).unwrap();
    let keys = keys.path().to_str().unwrap();
    let service =
        serve(&["--cors-origins", "https://a.org,https://b.org", "--api-keys-file", keys]);
    for origin in ["https://a.org", "https://b.org"] {
        // Browsers send no key with it.
        let reply = preflight(&service, origin);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        let methods = reply.header("access-control-allow-methods").unwrap();
        assert!(methods.contains("GET") && methods.contains("POST"), "{methods}");
        let headers = reply.header("access-control-allow-headers").unwrap().to_lowercase();
        let known = ["authorization", "content-type", "if-none-match", "request-timeout-ms"];
        for header in known.into_iter().chain(["x-request-id"]) {
            assert!(headers.contains(header), "{headers}");
        }
        // A page must be able to read why it is refused.
        let reply = service.send("GET", b"/nearest?word=frog", &[("Origin", origin)], b"");
        assert_eq!(reply.status, 401);
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        let exposed = reply.header("access-control-expose-headers").unwrap().to_lowercase();
        for header in ["server-timing", "etag", "x-request-id", "retry-after"] {
            assert!(exposed.contains(header), "{exposed}");
        }
    }
    for origin in ["https://evil.org", "http://a.org", "https://a.org.evil.org", "null"] {
        assert_eq!(
            preflight(&service, origin).header("access-control-allow-origin"),
            None,
            "{origin}"
        );
        let reply = service.send("GET", b"/health/live", &[("Origin", origin)], b"");
        assert!(reply.status == 200 && reply.header("access-control-allow-origin").is_none());
        // A cache must not give a page what another one got.
        assert!(reply.header("vary").unwrap().to_lowercase().contains("origin"));
    }
    // Whoever is no page is told what the route takes.
    assert_eq!(service.send("OPTIONS", b"/health/live", &[], b"").status, 405);
}

#[test]
fn all_origins_can_be_allowed() {
    let service = serve(&["--cors-origins", "*"]);
    let reply = service.send("GET", b"/nearest?word=frog", &[PAGE], b"");
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("*")));
}

#[test]
fn settings_that_make_no_sense_stop_the_start() {
    for (arguments, said) in [
        (&["--cors-origins", "a.org"][..], "cors_origins"),
        (&["--public-routes", "health"], "public_routes"),
        (&["--public-routes", "/,/health/read"], "`/health/read`: the service has no such route"),
        (&["--log-level", "inf"], "did you mean info?"),
        (&["--tls-certificate", "x"], "tls_private_key"),
        (&["--api-keys-file", "/no/such/file"], "/no/such/file"),
        (&["--idle-timeout-ms", "0"], "idle_timeout_ms"),
    ] {
        let output = support::kindred(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat())
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(said), "{arguments:?}: {error}");
    }
}

/// What came, as it came, until the connection closes.
fn bytes_of(service: &Service, path: &str, accept: &str, body: &str) -> (Reply, Vec<u8>) {
    let mut connection = service.connect();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{accept}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).unwrap();
    connection.set_read_timeout(Some(ms(20_000))).unwrap();
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    (Reply { status, headers, body: Vec::new() }, bytes[end + 4..].to_vec())
}

#[test]
fn large_answers_are_compressed_for_who_takes_it_and_small_ones_never() {
    let service = serve(&[]);
    let large = json!({"word": "frog", "k": 1000}).to_string();
    let (plain_reply, plain) = bytes_of(&service, "/nearest", "", &large);
    assert!(plain.len() > 50_000 && plain_reply.header("content-encoding").is_none());
    assert_eq!(plain_reply.header("vary"), Some("accept-encoding"));
    for accept in ["gzip", "br, gzip", "deflate, gzip;q=0.1"] {
        let accept = format!("Accept-Encoding: {accept}\r\n");
        let (reply, packed) = bytes_of(&service, "/nearest", &accept, &large);
        assert_eq!(reply.header("content-encoding"), Some("gzip"), "{accept}");
        assert_eq!(reply.header("vary"), Some("accept-encoding"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert!(reply.header("server-timing").is_some());
        let length = packed.len().to_string();
        assert_eq!(reply.header("content-length"), Some(&length[..]));
        assert!(packed.len() < plain.len() / 2, "{} of {}", packed.len(), plain.len());
        let mut found = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut found).unwrap();
        assert_eq!(found, plain);
    }
    let accept = "Accept-Encoding: gzip, br\r\n";
    for small in [json!({"word": "frog", "k": 100}), json!({"word": "kinx"}), json!({})] {
        let (reply, _) = bytes_of(&service, "/nearest", accept, &small.to_string());
        assert!(
            reply.header("content-encoding").is_none() && reply.header("content-length").is_some()
        );
    }
    let never = serve(&["--compress-from-bytes", "0"]);
    let (reply, body) = bytes_of(&never, "/nearest", accept, &large);
    assert!(body.len() == plain.len() && reply.header("content-encoding").is_none());
    assert!(reply.header("vary").is_none());
}

#[test]
fn no_answer_can_be_taken_for_a_page() {
    let service = serve(&[]);
    for path in [
        "/nearest?word=frog",
        "/nearest?word=%3Cscript%3E",
        "/model",
        "/",
        "/nowhere",
        "/openapi.yaml",
    ] {
        let reply = service.get(path);
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(!reply.header("content-type").unwrap().contains("html"), "{path}");
    }
}
