//! A service that is killed and started again, under callers that try again: nothing wrong is ever
//! answered.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Service, prepared, random_vectors};
use serde_json::Value;

/// How often it is killed.
const KILLS: usize = 6;

/// One request on a connection of its own: the whole answer, or nothing if there was none.
fn ask(address: &str, word: &str) -> Option<(u16, Vec<u8>)> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let request =
        format!("GET /nearest?word={word}&k=50 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length: usize =
        head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    // What was cut off says so itself.
    (answer.len() == end + length).then_some(())?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer[end..].to_vec()))
}

#[test]
fn killed_and_started_again_it_answers_right_or_not_at_all() {
    let names: Vec<String> = (0..3000).map(|i| format!("word{i}")).collect();
    let (_place, folder) = prepared(&random_vectors(names.iter().cloned()));
    let arguments = ["--model", folder.to_str().unwrap()];
    let mut service = Service::start(&arguments);
    let address = service.address.clone();
    let right: HashMap<&str, Value> = names
        .iter()
        .step_by(61)
        .map(|word| (word.as_str(), service.get(&format!("/nearest?word={word}&k=50")).json()))
        .collect();

    let (stop, answered, tried_again) =
        (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let until_here = crate::support::Stops(&stop);
        for caller in 0..3 {
            let (right, address) = (&right, &address);
            let (stop, answered, tried_again) = (&stop, &answered, &tried_again);
            scope.spawn(move || {
                let words: Vec<&str> = right.keys().copied().collect();
                for word in words.iter().cycle().skip(caller * 7) {
                    while !stop.load(Ordering::Relaxed) {
                        match ask(address, word) {
                            Some((200, body)) => {
                                let answer: Value = serde_json::from_slice(&body).unwrap();
                                assert_eq!(answer, right[word], "{word}");
                                answered.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Some((503, _)) | None => {
                                tried_again.fetch_add(1, Ordering::Relaxed);
                                std::thread::sleep(Duration::from_millis(1));
                            }
                            Some((status, body)) => {
                                panic!("{status}: {}", String::from_utf8_lossy(&body))
                            }
                        }
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        for kill in 0..KILLS {
            let before = answered.load(Ordering::Relaxed);
            let deadline = Instant::now() + Duration::from_secs(60);
            while answered.load(Ordering::Relaxed) < before + 30 {
                assert!(Instant::now() < deadline, "no answers after {kill} kills");
                std::thread::sleep(Duration::from_millis(1));
            }
            service.signal("KILL");
            assert_eq!(service.exit_code(), None, "a signal ended it");
            service = Service::start_at(&address, &arguments);
        }
        drop(until_here);
    });
    assert!(tried_again.load(Ordering::Relaxed) > 0, "somebody was cut off");
}
