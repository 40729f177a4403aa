//! Heads that the HTTP library lets pass, and HTTP does not.

use super::serve;
use crate::support::Reply;

fn code(reply: &Reply) -> String {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    reply.json()["code"].as_str().unwrap().to_owned()
}

#[test]
fn http_1_1_takes_one_host() {
    let service = serve(&[]);
    let ask = |head: &str| service.raw(format!("GET /health/live {head}\r\n\r\n").as_bytes());
    for head in [
        "HTTP/1.1",
        "HTTP/1.1\r\nHost: a\r\nHost: a",
        "HTTP/1.1\r\nHost: a\r\nHost: b",
        "HTTP/1.1\r\nHost: a b",
        "HTTP/1.1\r\nHost: a/b",
    ] {
        let reply = ask(head);
        assert_eq!((reply.status, code(&reply)), (400, "bad_host".to_owned()), "{head}");
    }
    for head in [
        "HTTP/1.0",
        "HTTP/1.0\r\nHost: a",
        "HTTP/1.1\r\nHost: a",
        "HTTP/1.1\r\nHost: [::1]:80",
        "HTTP/1.1\r\nHost:",
    ] {
        assert_eq!(ask(head).status, 200, "{head}");
    }
    let absolute = "GET http://b/health/live HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(service.raw(absolute.as_bytes()).status, 200);
}

#[test]
fn chunked_is_the_only_transfer_coding() {
    let service = serve(&[]);
    let body = br#"{"word": "frog"}"#;
    let chunked = [&b"10\r\n"[..], body, b"\r\n0\r\n\r\n"].concat();
    let ask = |headers: &[(&str, &str)]| {
        let mut request = "POST /nearest HTTP/1.1\r\nHost: a\r\n".to_owned();
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        service.raw(&[request.as_bytes(), b"\r\n", &chunked].concat())
    };
    const CODING: &str = "Transfer-Encoding";
    assert_eq!(ask(&[(CODING, "chunked")]).status, 200);
    assert_eq!(ask(&[(CODING, "Chunked")]).status, 200);
    for headers in [
        &[(CODING, "gzip, chunked")][..],
        &[(CODING, "gzip"), (CODING, "chunked")],
        &[(CODING, "identity, chunked")],
        &[(CODING, "chunked, chunked")],
    ] {
        let reply = ask(headers);
        let expected = (501, "unknown_transfer_coding".to_owned());
        assert_eq!((reply.status, code(&reply)), expected, "{headers:?}");
    }
    // Where the body ends can't be known: the HTTP library refuses it.
    assert_eq!(ask(&[(CODING, "gzip")]).status, 400);
}

#[test]
fn any_length_over_the_limit_is_refused() {
    let service = serve(&[]);
    let ask = |length: &str| {
        let request =
            format!("POST /nearest HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        service.raw(request.as_bytes())
    };
    for length in ["9000000", "9223372036854775808", "18446744073709551613"] {
        let reply = ask(length);
        assert_eq!((reply.status, code(&reply)), (413, "body_too_large".to_owned()), "{length}");
    }
    // The HTTP library uses the last two numbers of 64 bits for itself, and answers them itself.
    for (length, status) in [
        ("18446744073709551614", 431),
        ("18446744073709551615", 431),
        ("18446744073709551616", 400),
    ] {
        let reply = ask(length);
        assert_eq!((reply.status, reply.body.len()), (status, 0), "{length}");
    }
}
