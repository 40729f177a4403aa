//! Clients that do not get on, and what others feel of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Instant;

use serde_json::json;

use super::{ask, ms, serve, until_closed};

#[test]
fn who_begins_a_request_and_does_not_end_it_is_closed() {
    let service = serve(&["--header-read-timeout-ms", "400", "--idle-timeout-ms", "60000"]);
    let part = b"GET /model HTTP/1.1\r\nHost: loc";
    for begin in [&b""[..], b"G", b"PRI * HTTP/2.0\r\n", part] {
        let mut connection = service.connect();
        connection.write_all(begin).unwrap();
        let (said, after) = until_closed(&mut connection);
        assert_eq!(said, "", "{begin:?}");
        assert!((ms(300)..ms(5000)).contains(&after), "{begin:?}: {after:?}");
    }
    // The same after a request, when the connection might be idle for long.
    let mut connection = service.connect();
    assert_eq!(ask(&mut connection, "/health/live"), 200);
    sleep(ms(800));
    assert_eq!(ask(&mut connection, "/health/live"), 200, "to be idle is not to be slow");
    connection.write_all(part).unwrap();
    let (said, after) = until_closed(&mut connection);
    assert!(said.is_empty() && (ms(300)..ms(5000)).contains(&after), "{said} {after:?}");
}

#[test]
fn a_head_byte_by_byte_is_closed_and_others_are_answered_meanwhile() {
    let service = serve(&["--header-read-timeout-ms", "500", "--http-threads", "1"]);
    let mut slow: Vec<TcpStream> = (0..100).map(|_| service.connect()).collect();
    let begun = Instant::now();
    let mut open = slow.len();
    while open > 0 {
        assert!(begun.elapsed() < ms(10_000), "{open} are still open");
        slow.retain_mut(|connection| {
            let _ = connection.write_all(b"X");
            connection.set_read_timeout(Some(ms(1))).unwrap();
            match connection.read(&mut [0]) {
                Ok(0) => false,
                Err(e) => matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ),
                Ok(_) => panic!("an answer to half a request"),
            }
        });
        open = slow.len();
        assert_eq!(service.get("/nearest?word=frog").status, 200);
    }
    assert!(begun.elapsed() >= ms(450), "{:?}", begun.elapsed());
}

#[test]
fn who_asks_nothing_more_is_closed() {
    let service = serve(&["--idle-timeout-ms", "500"]);
    let mut connection = service.connect();
    for _ in 0..4 {
        assert_eq!(ask(&mut connection, "/health/live"), 200);
        sleep(ms(200));
    }
    let (said, after) = until_closed(&mut connection);
    assert!(said.is_empty() && (ms(200)..ms(5000)).contains(&after), "{said} {after:?}");
}

#[test]
fn a_body_that_does_not_arrive_is_408() {
    let service = serve(&["--body-read-timeout-ms", "400", "--header-read-timeout-ms", "60000"]);
    let head = "POST /nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    for body in [
        "Content-Length: 20\r\n\r\n{\"word\"",
        "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"word\"\r\n",
    ] {
        let mut connection = service.connect();
        connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let begun = Instant::now();
        // Bytes that trickle do not prolong it.
        let mut trickle = connection.try_clone().unwrap();
        let is_chunked = body.starts_with('T');
        let trickling = std::thread::spawn(move || {
            for _ in 0..12 {
                let _ = trickle.write_all(if is_chunked { b"1\r\n \r\n" } else { b" " });
                sleep(ms(50));
            }
        });
        let (said, after) = until_closed(&mut connection);
        assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("body_timeout"), "{said}");
        assert!((ms(350)..ms(5000)).contains(&after), "{after:?}");
        assert!(begun.elapsed() < ms(10_000));
        trickling.join().unwrap();
    }
    // One that arrives in parts, but in time.
    let mut connection = service.connect();
    connection.write_all(format!("{head}Content-Length: 16\r\n\r\n").as_bytes()).unwrap();
    for part in ["{\"word\"", ": \"frog\"}"] {
        sleep(ms(100));
        connection.write_all(part.as_bytes()).unwrap();
    }
    assert_eq!(crate::support::read_reply(&mut connection).status, 200);
}

/// An answer of several megabytes, more than the system keeps for a client that does not read.
fn large_request() -> String {
    let queries = vec![json!({"word": "frog", "k": 30, "with_vectors": true}); 1000];
    let body = json!({"queries": queries}).to_string();
    format!(
        "POST /nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn who_does_not_read_is_closed_and_who_reads_slowly_is_not() {
    let service = serve(&["--write-timeout-ms", "600", "--idle-timeout-ms", "60000"]);
    let request = large_request();
    let mut deaf = service.connect();
    deaf.write_all(request.as_bytes()).unwrap();
    let mut slow = service.connect();
    slow.write_all(request.as_bytes()).unwrap();
    // Reads now and then, for longer than the time-out, and gets everything.
    let (mut received, mut buffer) = (0, vec![0; 1 << 20]);
    let begun = Instant::now();
    while begun.elapsed() < ms(2500) {
        received += slow.read(&mut buffer).unwrap();
        sleep(ms(100));
    }
    let mut rest = Vec::new();
    slow.set_read_timeout(Some(ms(2000))).unwrap();
    let _ = slow.read_to_end(&mut rest);
    let whole = received + rest.len();
    assert!(rest.ends_with(b"]}") && whole > 10_000_000, "{whole} bytes");
    // Meanwhile the other was given up: what the system still had for it comes, and then the end.
    let mut rest = Vec::new();
    let _ = deaf.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"]}") && rest.len() < whole, "{} of {whole} bytes", rest.len());
}

#[test]
fn a_service_that_stops_does_not_wait_for_who_does_not_get_on() {
    let mut service = serve(&["--drain-timeout-ms", "20000", "--header-read-timeout-ms", "300"]);
    let mut half = service.connect();
    half.write_all(b"GET /model HT").unwrap();
    let _silent = service.connect();
    assert_eq!(service.get("/health/live").status, 200);
    let begun = Instant::now();
    service.signal("TERM");
    assert_eq!(service.exit_code(), Some(0));
    assert!(begun.elapsed() < ms(5000), "{:?}", begun.elapsed());
}
