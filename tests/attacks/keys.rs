//! One API key over several connections is one caller.

use std::io::Write;
use std::net::TcpStream;

use super::client::Request;
use super::engine::{analogies, queries_in_queue};
use super::flood::{Counts, Flood};
use super::{Attacked, becomes, large_answers, misspelt, post, serve, words};
use crate::support::{Reply, Service, api_key};

/// A service that asks with its own key, and somebody else's key.
fn with_two_keys(arguments: &[&str]) -> (Attacked, String) {
    let ((own, own_line), (other, other_line)) = (api_key(&["own"]), api_key(&["other"]));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{own_line}\n{other_line}\n")).unwrap();
    let keys = ["--api-keys-file", file.path().to_str().unwrap()];
    let mut service = serve(&[arguments, &keys].concat());
    service.service.key = Some(own);
    (service, other)
}

/// Asks for 24 MB and reads no more than the head.
fn does_not_read(service: &Service, key: &str) -> (TcpStream, u16) {
    let mut connection = service.connect();
    let authorization = format!("Authorization: Bearer {key}\r\n");
    connection.write_all(&post("/nearest", &authorization, &large_answers(20))).unwrap();
    let mut begin = [0; 13];
    while connection.peek(&mut begin).unwrap() < begin.len() {}
    let status = std::str::from_utf8(&begin[9..12]).unwrap().parse().unwrap();
    (connection, status)
}

/// The status of what somebody gets with this key, on a connection of its own.
fn get_as(service: &Service, key: &str, path: &str) -> u16 {
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n");
    service.raw(head.as_bytes()).status
}

#[test]
fn answers_over_several_connections_count_together() {
    let (service, other) = with_two_keys(&["--answer-memory-mb", "128"]);
    let own = service.key.clone().unwrap();
    let held: Vec<_> = (0..6).map(|_| does_not_read(&service, &own)).collect();
    let statuses: Vec<u16> = held.iter().map(|(_, status)| *status).collect();
    let taken = statuses.iter().filter(|&&status| status == 200).count();
    assert!((2..=3).contains(&taken), "half of the memory: {statuses:?}");
    assert!(statuses[taken..].iter().all(|&status| status == 429), "{statuses:?}");
    let refused: Reply = service.post("/nearest", &large_answers(20));
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("over_limit")));
    assert!(refused.header("retry-after").is_some());
    // Somebody else has room, and so has this one once it is done.
    assert_eq!(does_not_read(&service, &other).1, 200);
    drop(held);
    becomes("there is room", 2000, || service.post("/nearest", &large_answers(20)).status == 200);
}

#[test]
fn look_ups_over_several_connections_count_together() {
    let (service, other) = with_two_keys(&[]);
    let authorization = format!("Bearer {}", service.key.as_deref().unwrap());
    let requests: Vec<Request> = misspelt(&service)
        .iter()
        .flat_map(|word| {
            [format!("/words/{word}"), format!("/words?prefix={}&limit=1000", &word[..1])]
        })
        .map(|path| Request::get(&path).with("authorization", &authorization))
        .collect();
    // 90 at once are waited for; 360 of one caller are not, for no more than 256 may wait.
    let refused = |counts: &Counts| counts.by_status.get(&429).copied().unwrap_or_default();
    let alone = Flood::begin(&service, requests.clone(), 90).once_answered().runs(200).end();
    assert_eq!(refused(&alone), 0, "{alone:?}");
    let floods: Vec<_> = (0..4).map(|_| Flood::begin(&service, requests.clone(), 90)).collect();
    let floods: Vec<_> = floods.into_iter().map(Flood::once_answered).collect();
    for _ in 0..10 {
        assert_eq!(get_as(&service, &other, "/words/frog"), 200, "somebody else waits for nobody");
    }
    let counts: Vec<_> = floods.into_iter().map(|flood| flood.runs(50).end()).collect();
    assert!(counts.iter().map(refused).sum::<usize>() > 0, "{counts:?}");
    assert!(counts.iter().all(|counts| counts.without_retry_after == 0), "{counts:?}");
}

#[test]
fn queries_over_several_connections_count_together() {
    let (service, other) = with_two_keys(&["--queue-capacity-queries", "128"]);
    let own = service.key.clone().unwrap();
    let analogies =
        analogies(&words(&service, 1000)).with("authorization", &format!("Bearer {own}"));
    let flood = Flood::begin(&service, vec![analogies], 2);
    becomes("it is in work", 2000, || queries_in_queue(&service) > 0.0);
    let statuses = |key: &str| [0; 10].map(|_| get_as(&service, key, "/nearest?word=frog"));
    let (same, others) = (statuses(&own), statuses(&other));
    // Half of the queue is taken by one request; between two of them there is room.
    assert!(same.iter().filter(|&&status| status == 429).count() >= 5, "{same:?}");
    assert_eq!(others, [200; 10]);
    flood.end();
}
