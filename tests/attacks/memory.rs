//! Attacks on memory: bodies from which much more is made than they are, and bodies that never
//! come.

use std::io::Write;
use std::time::Instant;

use serde_json::json;

use super::client::{Client, Event, Request};
use super::{becomes, large_answers, ms, others_are_served, post, serve, serve_within};
use crate::support::{Service, read_reply};

/// From now on, the most memory that the service has taken, in bytes; none where the system does
/// not say.
pub(crate) fn peak_since(service: &Service) -> impl Fn() -> u64 {
    let index = format!("/proc/{}", service.child.id());
    // The peak begins anew.
    let _ = std::fs::write(format!("{index}/clear_refs"), "5");
    let peak = move || {
        let status = std::fs::read_to_string(format!("{index}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
    };
    let before = peak();
    move || peak().saturating_sub(before)
}

/// 1,024 queries, each without the same word of n letters.
fn without_a_long_word(letters: usize) -> serde_json::Value {
    let queries = vec![json!({"word": "frog"}); 1024];
    json!({"k": 1, "exclude": ["x".repeat(letters)], "queries": queries})
}

#[test]
fn what_all_queries_share_is_kept_once() {
    let service = serve(&[]);
    let peak = peak_since(&service);
    let reply = service.post("/nearest", &without_a_long_word(1_000_000));
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(peak() < 100_000_000, "{} bytes", peak());
}

#[cfg(target_os = "linux")]
#[test]
fn no_body_makes_the_service_run_out_of_memory() {
    let service = serve_within(Some(4_000_000), &[]);
    let request = post("/nearest", "", &without_a_long_word(6_800_000));
    let mut connections: Vec<_> = (0..4).map(|_| service.connect()).collect();
    for connection in &mut connections {
        connection.write_all(&request).unwrap();
    }
    for connection in &mut connections {
        assert_eq!(read_reply(connection).status, 200);
    }
    others_are_served(&service, 10, 50, 1000);
}

#[test]
fn bodies_that_are_declared_and_do_not_come_keep_no_memory_from_others() {
    let service = serve(&[]);
    let mut client = Client::begin(service.connect(), true);
    let body = format!("{{\"k\":1,\"word\":\"frog\"}}{}", " ".repeat(70));
    let unfinished = Request::unfinished("/nearest", &body, 6_900_000);
    for _ in 0..190 {
        client.ask(&unfinished);
    }
    for _ in 0..20 {
        for (_, event) in client.events().expect("it stays open") {
            assert!(!matches!(event, Event::Head(_) | Event::Reset), "{event:?}");
        }
    }
    let vector = vec![-0.123_456_78; 100];
    let body = json!({"k": 1, "queries": vec![json!({"vector": vector}); 40]});
    for _ in 0..5 {
        let mut connection = service.connect();
        connection.set_read_timeout(Some(ms(2000))).unwrap();
        let begun = Instant::now();
        connection.write_all(&post("/nearest", "", &body)).unwrap();
        let reply = read_reply(&mut connection);
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(begun.elapsed() < ms(500), "{:?}", begun.elapsed());
    }
    assert!(client.events().is_ok(), "they are still open");
}

#[test]
fn what_attackers_took_is_given_back() {
    let service = serve(&["--answer-memory-mb", "64", "--body-memory-mb", "64"]);
    let large = large_answers(40);
    for _ in 0..2 {
        // Answers that nobody reads, bodies that end early, long ones, and clients that are gone at
        // once.
        let mut deaf = Client::begin(service.connect(), false);
        let mut half = Client::begin(service.connect(), true);
        let unfinished = Request::unfinished("/nearest", &" ".repeat(6_000), 6_900_000);
        for _ in 0..10 {
            deaf.ask(&Request::post("/nearest", &large.to_string()));
            half.ask(&unfinished);
        }
        let mut is_refused = false;
        becomes("the memory for answers is taken", 4000, || {
            half.events().unwrap();
            let events = deaf.events().unwrap();
            is_refused |=
                events.iter().any(|(_, e)| matches!(e, Event::Head(h) if h.status == 429));
            is_refused
        });
        for path in ["/nearest", "/nowhere"] {
            let mut gone = service.connect();
            let request = post(path, "", &without_a_long_word(3_000_000));
            // The connection may be closed while it is sent.
            let _ = gone.write_all(&request).and_then(|()| gone.write_all(&post(path, "", &large)));
        }
    }
    // All of them are closed by now, and are let go.
    becomes("there is room for requests", 2000, || {
        service.post("/nearest", &without_a_long_word(5_000_000)).status == 200
    });
    becomes("there is room for answers", 2000, || service.post("/nearest", &large).status == 200);
    for _ in 0..2 {
        assert_eq!(service.post("/nearest", &large).status, 200, "nothing is lost on the way");
    }
}
