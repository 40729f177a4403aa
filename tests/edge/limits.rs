//! Requests that are too large, and connections that are too many.

use std::io::Write;

use super::{ask, ms, serve, until_closed};
use crate::support;

#[test]
fn a_head_over_the_limits_gets_a_problem_document_and_the_connection_goes_on() {
    let service = serve(&["--max-uri-bytes", "1000", "--max-header-bytes", "2000"]);
    let mut connection = service.connect();
    let mut status_of = |target: &str, value: &str| {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-Filler: {value}\r\n\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let reply = support::read_reply(&mut connection);
        if reply.status >= 400 {
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
            let problem = reply.json();
            (reply.status, problem["code"].as_str().unwrap().to_owned(), problem["limit"].as_u64())
        } else {
            (reply.status, String::new(), None)
        }
    };
    let target =
        |bytes: usize| format!("/words?prefix={}", "a".repeat(bytes - "/words?prefix=".len()));
    // Host has 4 + 9 + 4 bytes, the other one 8 and 4 more than its value.
    let filler = |bytes: usize| "x".repeat(bytes - 29);
    assert_eq!(status_of(&target(1000), &filler(2000)).0, 200);
    assert_eq!(status_of(&target(1001), "x"), (414, "uri_too_long".to_owned(), Some(1000)));
    assert_eq!(
        status_of("/model", &filler(2001)),
        (431, "headers_too_large".to_owned(), Some(2000))
    );
    assert_eq!(status_of("/model", "x").0, 200);
}

#[test]
fn a_head_far_over_the_limits_is_not_even_read() {
    let service = serve(&["--max-uri-bytes", "1000", "--max-header-bytes", "4000"]);
    let many: String = (0..101).map(|i| format!("X-{i}: x\r\n")).collect();
    for (request, status) in [
        (
            format!("GET /model HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)),
            "431",
        ),
        (format!("GET /model HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "431"),
    ] {
        let mut connection = service.connect();
        let _ = connection.write_all(request.as_bytes());
        let (said, _) = until_closed(&mut connection);
        // It may be closed while it is still being sent, and then the answer is lost.
        assert!(said.is_empty() || said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    }
    assert_eq!(service.get("/health/live").status, 200);
}

#[test]
fn connections_over_the_cap_wait_and_none_is_refused() {
    let service = serve(&["--max-connections", "3", "--idle-timeout-ms", "700"]);
    let mut open: Vec<_> = (0..3).map(|_| service.connect()).collect();
    for connection in &mut open {
        assert_eq!(ask(connection, "/health/live"), 200);
    }
    let mut next = service.connect();
    next.write_all(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    next.set_read_timeout(Some(ms(200))).unwrap();
    assert!(next.peek(&mut [0]).is_err(), "there is no room yet");
    for connection in &mut open {
        assert_eq!(ask(connection, "/health/live"), 200, "those inside go on");
    }
    // Those inside do not even leave: they are idle, so they are closed and make room.
    next.set_read_timeout(Some(ms(10_000))).unwrap();
    assert_eq!(support::read_reply(&mut next).status, 200);
    drop(open);
}

#[test]
fn the_limit_of_open_files_is_raised_and_a_warning_says_if_that_is_not_enough() {
    let started = |max_connections: &str| {
        // As a shell would start it, with a low soft limit and the hard limit not much higher.
        let script = "ulimit -Sn 100; ulimit -Hn 600; exec \"$0\" \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).arg(support::program());
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log-level",
            "warn",
            "--max-connections",
        ]);
        command.arg(max_connections).arg("--cache-dir").arg(support::cache());
        command.stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut welcome = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        while !welcome.contains("Ctrl-C") {
            assert!(
                std::io::BufRead::read_line(&mut output, &mut welcome).unwrap() > 0,
                "{welcome}"
            );
        }
        let limits =
            std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap_or_default();
        child.kill().unwrap();
        let log = child.wait_with_output().unwrap().stderr;
        (limits, String::from_utf8(log).unwrap())
    };
    let (limits, log) = started("300");
    let files = limits.lines().find(|line| line.starts_with("Max open files"));
    if let Some(files) = files {
        let soft = files.split_whitespace().nth(3);
        assert_eq!(soft, Some("600"), "{files}");
    }
    assert!(!log.contains("max_connections"), "{log}");
    let (_, log) = started("1000");
    assert!(
        log.contains("max_connections is 1000") && log.contains("600") && log.contains("1256"),
        "{log}"
    );
}
