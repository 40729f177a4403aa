//! Attacks on the engine's thread and on the queue before it.

use std::time::Instant;

use serde_json::json;

use super::client::Request;
use super::flood::Flood;
use super::{becomes, ms, others_are_served, serve, words};
use crate::support::Service;

/// Places of the queue that are taken.
pub(crate) fn queries_in_queue(service: &Service) -> f64 {
    let metrics = service.get("/metrics");
    let lines = metrics.text().lines().filter(|line| line.starts_with("kindred_queue_queries{"));
    lines
        .map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).unwrap())
        .sum()
}

/// 128 analogies of 32 words: as many as a request may have.
pub(crate) fn analogies(words: &[String]) -> Request {
    // With two negative words 3CosMul has no certificate, so it takes a full pass.
    let query = |words: &[String]| json!({"positive": words[2..], "negative": words[..2]});
    let queries: Vec<_> = (0..128).map(|n| query(&words[n * 5..][..32])).collect();
    let body = json!({"k": 1, "method": "3cosmul", "explain": true, "queries": queries});
    Request::post("/analogy", &body.to_string())
}

/// The ranks of 1,000 words.
fn ranks(service: &Service) -> Request {
    let body = json!({"word": "frog", "words": words(service, 1000)});
    Request::post("/rank", &body.to_string())
}

#[test]
fn many_ranks_at_once_neither_delay_searches_nor_make_the_service_unready() {
    let service = serve(&[]);
    let flood = Flood::begin(&service, vec![ranks(&service)], 75).once_answered();
    std::thread::scope(|scope| {
        let is_ready = || {
            std::thread::sleep(ms(50));
            service.get("/health/ready").status
        };
        let ready = scope.spawn(move || (0..10).map(|_| is_ready()).collect::<Vec<_>>());
        others_are_served(&service, 60, 50, 1000);
        assert_eq!(ready.join().unwrap(), [200; 10]);
    });
    let counts = flood.end();
    assert!(counts.by_status.contains_key(&200) && !counts.is_closed, "{counts:?}");
}

#[test]
fn work_ends_soon_after_its_caller_hung_up() {
    let service = serve(&[]);
    for (request, streams) in [(ranks(&service), 190), (analogies(&words(&service, 1000)), 8)] {
        let flood = Flood::begin(&service, vec![request], streams);
        becomes("it is in work", 2000, || queries_in_queue(&service) > 0.0);
        flood.runs(100).end();
        becomes("the engine is idle", 500, || queries_in_queue(&service) == 0.0);
    }
    others_are_served(&service, 10, 50, 1000);
}

#[test]
fn one_caller_with_the_longest_work_does_not_fill_the_queue_for_others() {
    let service = serve(&[]);
    let analogies = analogies(&words(&service, 1000));
    let flood = Flood::begin(&service, vec![analogies], 4);
    becomes("it is in work", 2000, || queries_in_queue(&service) > 0.0);
    others_are_served(&service, 80, 50, 1000);
    assert_eq!(service.get("/health/ready").status, 200);
    flood.end();
}

/// 1,024 queries, each without the same 1,000 words in any case, explained: 20 KB.
fn exclusions(service: &Service, timeout_ms: Option<u64>) -> serde_json::Value {
    let queries = vec![json!({"word": "frog"}); 1024];
    let exclude = words(service, 1000);
    let mut body =
        json!({"fold_case": true, "explain": true, "exclude": exclude, "queries": queries});
    if let Some(timeout) = timeout_ms {
        body["timeout_ms"] = timeout.into();
    }
    body
}

#[test]
fn a_short_body_that_takes_long_to_look_up_does_not_hold_up_its_http_thread() {
    let service = serve(&["--http-threads", "1"]);
    let request = Request::post("/nearest", &exclusions(&service, None).to_string());
    let flood = Flood::begin(&service, vec![request], 2).runs(100);
    others_are_served(&service, 50, 30, 60);
    let counts = flood.end();
    assert!(!counts.is_closed, "{counts:?}");
}

#[test]
fn a_body_that_takes_long_to_look_up_is_late_in_time() {
    let service = serve(&["--http-threads", "1"]);
    let body = exclusions(&service, Some(1));
    let mut took: Vec<_> = (0..5)
        .map(|_| {
            let begun = Instant::now();
            let reply = service.post("/nearest", &body);
            assert_eq!(reply.status, 504, "{}", reply.text());
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    assert!(took[2] < ms(50), "{took:?}");
}
