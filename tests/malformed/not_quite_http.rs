//! Bytes that are not quite HTTP.

use std::io::{Read, Write};

use super::case::*;
use crate::support::Service;

/// Bytes that are not quite HTTP. The HTTP library answers them itself, or not at all.
pub(crate) fn not_quite_http() -> Vec<(&'static str, Vec<u8>)> {
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
pub(crate) fn check_refused(service: &Service, request: &[u8]) -> Result<(), String> {
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
