//! The edge of the real program: clients that are slow, many, large, strange, or have no key.

mod answers;
mod early;
mod framing;
mod http2;
mod keys;
mod limits;
mod slow;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{self, Service};

/// The built-in model with these arguments.
fn serve(arguments: &[&str]) -> Service {
    let cache = support::cache();
    Service::start(&[&["--cache-dir", cache.to_str().expect("a UTF-8 path")], arguments].concat())
}

/// Waits until the other side closes the connection; gives what it said and how long it took. Both
/// ends of a closed connection count: a reset says that bytes were left unread.
fn until_closed(connection: &mut TcpStream) -> (String, Duration) {
    let begun = Instant::now();
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => said.extend(&buffer[..length]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(e) => panic!("it is not closed: {e}"),
        }
    }
    (String::from_utf8_lossy(&said).into_owned(), begun.elapsed())
}

/// Asks on a connection that stays open, and reads the answer.
fn ask(connection: &mut TcpStream, path: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.write_all(request.as_bytes()).expect("the request can be sent");
    support::read_reply(connection).status
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
