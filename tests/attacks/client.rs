//! A client of HTTP/2 that misbehaves as it is told.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::hpack::Head;
use crate::support::http2::{
    ACKNOWLEDGED, DATA, END_HEADERS, END_STREAM, END_STREAM_AND_HEADERS, HEADERS, PING, PREFACE,
    RESET, SETTINGS, WINDOW_UPDATE, frame,
};

const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// The largest payload that a peer takes unless it says otherwise.
const MOST_IN_A_FRAME: usize = 16_384;

/// A request, written once and sent as often as wanted.
#[derive(Clone)]
pub(crate) struct Request {
    head: Vec<u8>,
    body: Arc<[u8]>,
    /// Whether the stream ends with the body.
    ends: bool,
}

impl Request {
    fn new(method: &str, path: &str, body: Vec<u8>) -> Self {
        let request = Self { head: Vec::new(), body: body.into(), ends: true };
        let pairs = [(":method", method), (":scheme", "http"), (":authority", "localhost")];
        let request =
            pairs.iter().fold(request, |request, (name, value)| request.with(name, value));
        request.with(":path", path)
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path, Vec::new())
    }

    pub(crate) fn post(path: &str, body: &str) -> Self {
        Self::declared(path, body, body.len(), true)
    }

    /// One that declares more than it sends.
    pub(crate) fn unfinished(path: &str, body: &str, declared: usize) -> Self {
        Self::declared(path, body, declared, false)
    }

    fn declared(path: &str, body: &str, length: usize, ends: bool) -> Self {
        let request = Self::new("POST", path, body.as_bytes().to_vec());
        let request = request.with("content-type", "application/json");
        Self { ends, ..request.with("content-length", &length.to_string()) }
    }

    /// With another field of the head: a literal without indexing and without Huffman's code.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.head.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "longer ones need more bytes for the length");
            self.head.push(text.len() as u8);
            self.head.extend(text.as_bytes());
        }
        self
    }
}

/// What came on a stream.
#[derive(Debug)]
pub(crate) enum Event {
    Head(Head),
    Data(Vec<u8>),
    End,
    Reset,
}

/// A connection. Everything happens in [`events`](Self::events); it reads answers or lets none
/// through.
pub(crate) struct Client {
    socket: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    next_stream: u32,
    /// What the service takes: on the connection, and on a new stream.
    window: i64,
    stream_window: i64,
    /// What is left of bodies, with the windows of their streams.
    unsent: BTreeMap<u32, (Request, usize, i64)>,
    reads: bool,
    received: u32,
}

impl Client {
    /// Begins. One that does not `read` keeps the windows of all its streams shut.
    pub(crate) fn begin(socket: TcpStream, reads: bool) -> Self {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        socket.set_write_timeout(Some(Duration::from_millis(5))).unwrap();
        let window = if reads { LARGEST_WINDOW } else { 0 };
        // SETTINGS_HEADER_TABLE_SIZE 0, so that each head can be read alone;
        // SETTINGS_INITIAL_WINDOW_SIZE.
        let settings = [&[0, 1, 0, 0, 0, 0, 0, 4][..], &window.to_be_bytes()].concat();
        let mut client = Self {
            socket,
            outgoing: [PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat(),
            incoming: Vec::new(),
            next_stream: 1,
            window: 65_535,
            stream_window: 65_535,
            unsent: BTreeMap::new(),
            reads,
            received: 0,
        };
        client.open_window(0, LARGEST_WINDOW - 65_535);
        client
    }

    /// Lets n more bytes through on a stream.
    pub(crate) fn open_window(&mut self, stream: u32, by: u32) {
        self.outgoing.extend(frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes()));
    }

    /// Sends a request, its body as far as the windows let it. Its stream.
    pub(crate) fn ask(&mut self, request: &Request) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        let flags = if request.body.is_empty() { END_STREAM_AND_HEADERS } else { END_HEADERS };
        self.outgoing.extend(frame(HEADERS, flags, stream, &request.head));
        if !request.body.is_empty() {
            self.unsent.insert(stream, (request.clone(), 0, self.stream_window));
            self.send_bodies();
        }
        stream
    }

    fn send_bodies(&mut self) {
        self.unsent.retain(|&stream, (request, from, window)| {
            loop {
                let left = &request.body[*from..];
                let room = (*window).min(self.window).max(0) as usize;
                let size = left.len().min(room).min(MOST_IN_A_FRAME);
                if size == 0 {
                    return !left.is_empty();
                }
                let flags = if size == left.len() && request.ends { END_STREAM } else { 0 };
                self.outgoing.extend(frame(DATA, flags, stream, &left[..size]));
                (*from, *window) = (*from + size, *window - size as i64);
                self.window -= size as i64;
            }
        });
    }

    /// Sends and receives for a moment: what happened, by streams.
    ///
    /// # Errors
    /// When the service has closed the connection.
    pub(crate) fn events(&mut self) -> io::Result<Vec<(u32, Event)>> {
        let waits = |e: &io::Error| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        if !self.outgoing.is_empty() {
            match self.socket.write(&self.outgoing) {
                Ok(sent) => drop(self.outgoing.drain(..sent)),
                Err(e) if waits(&e) => {}
                Err(e) => return Err(e),
            }
        }
        let mut buffer = vec![0; 1 << 18];
        match self.socket.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::ConnectionReset.into()),
            Ok(received) => self.incoming.extend(&buffer[..received]),
            Err(e) if waits(&e) => {}
            Err(e) => return Err(e),
        }
        let (mut happened, mut index) = (Vec::new(), 0);
        let incoming = std::mem::take(&mut self.incoming);
        while let Some(head) = incoming.get(index..index + 9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = incoming.get(index + 9..index + 9 + length) else { break };
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            self.take(head[3], head[4], stream, payload, &mut happened);
            index += 9 + length;
        }
        self.incoming = incoming[index..].to_vec();
        Ok(happened)
    }

    fn take(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
        happened: &mut Vec<(u32, Event)>,
    ) {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        match kind {
            DATA => {
                happened.push((stream, Event::Data(payload.to_vec())));
                self.received += payload.len() as u32;
                if self.reads && self.received > 1 << 24 {
                    self.open_window(0, self.received);
                    self.received = 0;
                }
            }
            HEADERS => happened.push((stream, Event::Head(Head::of(payload)))),
            RESET => {
                self.unsent.remove(&stream);
                happened.push((stream, Event::Reset));
            }
            SETTINGS if flags & ACKNOWLEDGED == 0 => {
                for setting in payload.chunks(6).filter(|setting| setting[..2] == [0, 4]) {
                    let window = i64::from(number(&setting[2..]));
                    for (_, _, of_stream) in self.unsent.values_mut() {
                        *of_stream += window - self.stream_window;
                    }
                    self.stream_window = window;
                }
                self.outgoing.extend(frame(SETTINGS, ACKNOWLEDGED, 0, &[]));
                self.send_bodies();
            }
            PING if flags & ACKNOWLEDGED == 0 => {
                self.outgoing.extend(frame(PING, ACKNOWLEDGED, 0, payload));
            }
            WINDOW_UPDATE => {
                let by = i64::from(number(payload));
                match self.unsent.get_mut(&stream) {
                    _ if stream == 0 => self.window += by,
                    Some((_, _, window)) => *window += by,
                    None => {}
                }
                self.send_bodies();
            }
            _ => {}
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            happened.push((stream, Event::End));
        }
    }
}
