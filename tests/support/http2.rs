//! Frames of HTTP/2, for what no client library would send.

use std::io::{Read, Write};
use std::net::TcpStream;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RESET: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GO_AWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const ACKNOWLEDGED: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const END_STREAM_AND_HEADERS: u8 = 5;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// GET /health/live, by HPACK's static table and one literal.
pub fn get() -> Vec<u8> {
    [&[0x82, 0x86, 0x04, 12][..], b"/health/live", &[0x01, 9], b"localhost"].concat()
}

pub fn begin(connection: &mut TcpStream) {
    connection.write_all(PREFACE).unwrap();
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
}

/// The next frame's kind, stream and payload; none at the end.
pub fn next(connection: &mut TcpStream) -> Option<(u8, u32, Vec<u8>)> {
    next_with_flags(connection).map(|(kind, stream, payload, _)| (kind, stream, payload))
}

/// As [`next`], with the frame's flags.
pub fn next_with_flags(connection: &mut TcpStream) -> Option<(u8, u32, Vec<u8>, u8)> {
    let mut head = [0; 9];
    connection.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    connection.read_exact(&mut payload).ok()?;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], stream, payload, head[4]))
}
