//! Answers that are asked for and not read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::time::Instant;

use super::client::{Client, Event, Request};
use super::memory::peak_since;
use super::{large_answers, ms, others_are_served, post, serve};

#[test]
fn answers_that_nobody_reads_are_bounded_and_end_with_their_connection() {
    let service = serve(&["--write-timeout-ms", "1000", "--answer-memory-mb", "64"]);
    let peak = peak_since(&service);
    let begun = Instant::now();
    let mut client = Client::begin(service.connect(), false);
    let large = Request::post("/nearest", &large_answers(40).to_string());
    let asked: BTreeSet<u32> = (0..20).map(|_| client.ask(&large)).collect();
    let (mut live, mut statuses) = (BTreeSet::new(), BTreeMap::<u16, usize>::new());
    let (mut problems, mut is_answered, mut looks) = (String::new(), 0, 0);
    while let Ok(events) = client.events() {
        assert!(begun.elapsed() < ms(4000), "the connection is still open");
        if begun.elapsed() > ms(100) * looks {
            looks += 1;
            live.insert(client.ask(&Request::get("/health/live")));
            others_are_served(&service, 1, 1000, 1000);
        }
        for (stream, event) in events {
            match event {
                Event::Head(head) if live.contains(&stream) => {
                    is_answered += usize::from(head.status == 200);
                    client.open_window(stream, 1000);
                }
                Event::Head(head) if asked.contains(&stream) => {
                    *statuses.entry(head.status).or_default() += 1;
                    if head.status != 200 {
                        assert!(head.retry_after.is_some());
                        client.open_window(stream, 10_000);
                    }
                }
                Event::Data(bytes) => problems.push_str(&String::from_utf8_lossy(&bytes)),
                _ => {}
            }
        }
    }
    assert!(begun.elapsed() > ms(1000), "{:?}", begun.elapsed());
    assert!(is_answered > 5, "requests go on meanwhile: {is_answered}");
    let refused = statuses.get(&429).copied().unwrap_or_default();
    assert!(statuses.contains_key(&200) && refused > 10, "{statuses:?}");
    assert_eq!(problems.matches("\"over_limit\"").count(), refused, "{statuses:?}");
    assert!(peak() < (64 * 3 / 2 + 40) * 1_000_000, "{} bytes", peak());
}

#[test]
fn one_answer_that_is_not_read_ends_its_connection_whatever_is_read_beside_it() {
    let service = serve(&["--write-timeout-ms", "1000"]);
    let begun = Instant::now();
    let mut client = Client::begin(service.connect(), false);
    let stuck = client.ask(&Request::post("/nearest", &large_answers(4).to_string()));
    let (mut read, mut ended) = (0, 0);
    let mut next = true;
    while let Ok(events) = client.events() {
        assert!(begun.elapsed() < ms(4000), "the connection is still open");
        if std::mem::take(&mut next) {
            let stream = client.ask(&Request::get("/nearest?word=frog&k=300"));
            client.open_window(stream, 1 << 20);
        }
        for (stream, event) in events {
            assert!(stream != stuck || matches!(event, Event::Head(_)), "{event:?}");
            match event {
                Event::Data(bytes) => read += bytes.len(),
                Event::End => (ended, next) = (ended + 1, true),
                _ => {}
            }
        }
    }
    assert!(begun.elapsed() > ms(1000), "{:?}", begun.elapsed());
    assert!(ended > 10 && read > 10_000 * ended, "{ended} answers of {read} bytes were read");
    others_are_served(&service, 10, 50, 1000);
}

#[test]
fn who_takes_a_few_bytes_now_and_then_is_closed() {
    let service = serve(&["--write-timeout-ms", "600", "--idle-timeout-ms", "60000"]);
    let mut connection = service.connect();
    connection.write_all(&post("/nearest", "", &large_answers(20))).unwrap();
    let (begun, mut received, mut few) = (Instant::now(), 0, [0; 200]);
    while begun.elapsed() < ms(2500) {
        received += connection.read(&mut few).unwrap_or(0);
        std::thread::sleep(ms(20));
    }
    let mut rest = Vec::new();
    connection.set_read_timeout(Some(ms(1000))).unwrap();
    let _ = connection.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"]}") && received > 1000, "{received} and {} bytes", rest.len());
}

#[test]
fn an_answer_takes_no_more_memory_than_was_counted_before_it_was_written() {
    let service = serve(&["--answer-memory-mb", "128"]);
    let large = post("/nearest", "", &large_answers(40));
    // Some 50 MB each. Were they 64 MB and more, there would be no room for both.
    let mut connections = [service.connect(), service.connect()];
    for connection in &mut connections {
        connection.write_all(&large).unwrap();
        let mut begin = [0; 12];
        connection.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
    }
}
