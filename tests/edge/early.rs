//! Answers that are known before the request's body has come: clients see them.

use std::io::Write;
use std::process::Command;

use super::{ask, serve};
use crate::support::{Service, read_reply};

/// A service that takes a key which nobody has.
fn locked() -> Service {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{} a", "0".repeat(64))).unwrap();
    serve(&["--api-keys-file", file.path().to_str().unwrap()])
}

#[test]
fn who_sends_all_before_reading_gets_the_answer_and_may_ask_again() {
    const BYTES: usize = 20 << 20;
    for (service, status) in [(locked(), 401), (serve(&[]), 413)] {
        let mut connection = service.connect();
        let head = format!("POST /nearest HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(&vec![b' '; BYTES]).expect("it is read");
        assert_eq!(read_reply(&mut connection).status, status);
        assert_eq!(ask(&mut connection, "/health/live"), 200, "on the same connection");
    }
}

#[test]
fn a_chunked_body_over_the_limit_is_read_to_its_end() {
    let service = serve(&[]);
    let mut connection = service.connect();
    let head = "POST /nearest HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.write_all(head.as_bytes()).unwrap();
    let chunk = [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat();
    for _ in 0..20 {
        connection.write_all(&chunk).expect("it is read");
    }
    connection.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(read_reply(&mut connection).status, 413);
    assert_eq!(ask(&mut connection, "/health/live"), 200, "on the same connection");
}

#[test]
fn who_waits_to_be_told_is_not_told_to_send_what_is_not_wanted() {
    let service = locked();
    let mut connection = service.connect();
    let head =
        "POST /nearest HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    connection.write_all(head.as_bytes()).unwrap();
    let (said, _) = super::until_closed(&mut connection);
    assert!(said.starts_with("HTTP/1.1 401 ") && !said.contains("100 Continue"), "{said}");
}

#[test]
fn curl_shows_the_status() {
    let version = Command::new("curl").arg("--version").output();
    let Ok(version) = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    else {
        eprintln!("skipped: there is no curl");
        return;
    };
    let bodies = [1 << 20, 20 << 20].map(|bytes| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b' '; bytes]).unwrap();
        file
    });
    let (locked, open) = (locked(), serve(&[]));
    let mut protocols = vec!["--http1.1"];
    if version.contains("HTTP2") {
        protocols.push("--http2-prior-knowledge");
    }
    for protocol in protocols {
        for (service, body, status) in
            [(&locked, &bodies[0], "401"), (&locked, &bodies[1], "401"), (&open, &bodies[1], "413")]
        {
            for expect in ["Expect:", "Expect: 100-continue"] {
                let output = Command::new("curl")
                    .args(["-sS", protocol, "-m", "20", "-o", "/dev/null", "-w", "%{http_code}"])
                    .args(["--noproxy", "*", "-H", expect, "--data-binary"])
                    .arg(format!("@{}", body.path().display()))
                    .arg(service.url("/nearest"))
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                let what = format!("{protocol} {status} {expect}: {output:?}");
                assert!(output.status.success() && said == status, "{what}");
            }
        }
    }
}
