//! HTTP/2 as no client library speaks it: frame by frame.

use std::io::Write;
use std::time::Instant;

use super::{ms, serve};
use crate::support::http2::{
    ACKNOWLEDGED, DATA, END_HEADERS, END_STREAM, END_STREAM_AND_HEADERS, GO_AWAY, HEADERS, PING,
    RESET, SETTINGS, begin, frame, get, next, next_with_flags,
};

#[test]
fn the_bounds_are_told_at_the_beginning() {
    let service = serve(&["--max-uri-bytes", "3000", "--max-header-bytes", "5000"]);
    let mut connection = service.connect();
    begin(&mut connection);
    let (kind, _, payload) = next(&mut connection).unwrap();
    assert_eq!(kind, SETTINGS);
    let settings: Vec<(u16, u32)> = payload
        .chunks(6)
        .map(|s| (u16::from_be_bytes([s[0], s[1]]), u32::from_be_bytes([s[2], s[3], s[4], s[5]])))
        .collect();
    // SETTINGS_MAX_CONCURRENT_STREAMS, SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113, section 6.5.2).
    assert!(settings.contains(&(3, 200)) && settings.contains(&(6, 16_000)), "{settings:?}");
}

#[test]
fn who_opens_and_resets_without_end_is_closed_and_others_are_answered() {
    let service = serve(&[]);
    let mut connection = service.connect();
    begin(&mut connection);
    let mut flood = Vec::new();
    for stream in (1..20_000).step_by(2) {
        flood.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, &get()));
        flood.extend(frame(RESET, 0, stream, &8u32.to_be_bytes()));
    }
    // It may be closed before all of it is sent.
    let _ = connection.write_all(&flood);
    let mut reason = None;
    while let Some((kind, _, payload)) = next(&mut connection) {
        if kind == GO_AWAY {
            reason = Some(payload[7]);
        }
    }
    // ENHANCE_YOUR_CALM, or nothing at all if the reset came first.
    assert!(matches!(reason, None | Some(11)), "{reason:?}");
    assert_eq!(service.get("/nearest?word=frog").status, 200);
}

#[test]
fn pings_do_not_make_a_connection_busy() {
    let service = serve(&["--idle-timeout-ms", "600"]);
    let mut connection = service.connect();
    begin(&mut connection);
    connection.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &get())).unwrap();
    let mut pinging = connection.try_clone().unwrap();
    let begun = Instant::now();
    let pings = std::thread::spawn(move || {
        while begun.elapsed() < ms(10_000) && pinging.write_all(&frame(PING, 0, 0, &[0; 8])).is_ok()
        {
            std::thread::sleep(ms(50));
        }
    });
    let (mut is_answered, mut is_told) = (false, false);
    while let Some((kind, stream, _)) = next(&mut connection) {
        is_answered |= kind == HEADERS && stream == 1;
        is_told |= kind == GO_AWAY;
    }
    let after = begun.elapsed();
    assert!(is_answered && is_told && (ms(500)..ms(5000)).contains(&after), "{after:?}");
    pings.join().unwrap();
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let service = serve(&["--header-read-timeout-ms", "400"]);
    let mut connection = service.connect();
    let begun = Instant::now();
    begin(&mut connection);
    while next(&mut connection).is_some() {}
    assert!((ms(300)..ms(5000)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[test]
fn an_answer_before_the_end_of_the_body_is_not_followed_by_a_reset() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{} a", "0".repeat(64))).unwrap();
    let service = serve(&["--api-keys-file", file.path().to_str().unwrap()]);
    let mut connection = service.connect();
    begin(&mut connection);
    // POST, http, /nearest and a host.
    let head = [&[0x83, 0x86, 0x04, 8][..], b"/nearest", &[0x01, 9], b"localhost"].concat();
    connection.write_all(&frame(HEADERS, END_HEADERS, 1, &head)).unwrap();
    // The windows that the service tells hold once that is acknowledged.
    assert_eq!(next(&mut connection).unwrap().0, SETTINGS);
    connection.write_all(&frame(SETTINGS, ACKNOWLEDGED, 0, &[])).unwrap();
    let chunk = frame(DATA, 0, 1, &[b' '; 16_000]);
    connection.write_all(&chunk).unwrap();
    let mut until = |stream: u32| loop {
        let (kind, of, payload, flags) = next_with_flags(&mut connection).expect("it stays open");
        assert!(kind != RESET && kind != GO_AWAY, "{kind} {payload:?}");
        if of == stream && flags & END_STREAM != 0 {
            break connection.try_clone().unwrap();
        }
    };
    let mut sending = until(1);
    // The answer is here; the client has not looked at it, and sends on.
    for _ in 0..40 {
        sending.write_all(&chunk).unwrap();
    }
    sending.write_all(&frame(DATA, END_STREAM, 1, b" ")).unwrap();
    sending.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 3, &get())).unwrap();
    until(3);
}
