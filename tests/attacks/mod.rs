//! Callers that try to end the service, or to keep it from the others. Each has one connection or
//! one API key, and each of its requests is valid. One attack runs at a time: they measure what
//! others feel.

mod client;
mod engine;
mod filters;
mod flood;
mod hpack;
mod keys;
mod memory;
mod threads;
mod unread;

use std::io::Write;
use std::ops::Deref;
use std::process::Command;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::support::{self, Reply, Service, kindred, read_reply};
use serde_json::{Value, json};

/// A service, and the only one that is attacked.
struct Attacked {
    service: Service,
    _alone: MutexGuard<'static, ()>,
}

impl Deref for Attacked {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

/// The built-in model with these arguments.
fn serve(arguments: &[&str]) -> Attacked {
    serve_within(None, arguments)
}

/// As [`serve`], with n kilobytes of address space.
fn serve_within(kilobytes: Option<u64>, arguments: &[&str]) -> Attacked {
    let alone = crate::alone();
    let cache = support::cache();
    let cache = cache.to_str().expect("a UTF-8 path");
    let usual = ["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--cache-dir", cache];
    let program = kindred(&[&usual[..], arguments].concat());
    let command = match kilobytes {
        None => program,
        Some(kilobytes) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kilobytes.to_string()]);
            shell.arg(program.get_program()).args(program.get_args());
            for (variable, _) in program.get_envs() {
                shell.env_remove(variable);
            }
            shell
        }
    };
    Attacked { service: Service::spawn(command), _alone: alone }
}

/// Words that the model has.
fn words(service: &Service, number: usize) -> Vec<String> {
    let listed = service.get(&format!("/words?prefix=&limit={number}")).json();
    let listed = listed["words"].as_array().expect("a list");
    assert_eq!(listed.len(), number);
    listed.iter().map(|one| one["word"].as_str().expect("a word").to_owned()).collect()
}

/// Words that the model does not have, though similar ones.
fn misspelt(service: &Service) -> Vec<String> {
    let long = words(service, 1000).into_iter().filter(|word| word.len() >= 8 && word.is_ascii());
    long.map(|word| format!("{}zq{}", &word[..4], &word[5..])).collect()
}

/// A batch of n queries whose answers have all their neighbours' vectors: some 1.2 MB each.
fn large_answers(queries: usize) -> Value {
    json!({"k": 1000, "with_vectors": true, "queries": vec![json!({"word": "frog"}); queries]})
}

/// A POST request in HTTP/1.1.
fn post(path: &str, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// What somebody else gets who asks the same again and again: answers, and how long each took, the
/// quickest first.
fn others(service: &Service, path: &str, number: usize) -> (Vec<Reply>, Vec<Duration>) {
    let mut connection = service.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let at_first = Instant::now();
    let ask = |n| {
        let begun = Instant::now();
        assert!(begun - at_first < ms(6000), "only {n} of {number} are answered");
        connection.write_all(request.as_bytes()).expect("the request can be sent");
        let reply = read_reply(&mut connection);
        let took = begun.elapsed();
        std::thread::sleep(ms(5));
        (reply, took)
    };
    let (replies, mut latencies): (Vec<_>, Vec<_>) = (0..number).map(ask).unzip();
    latencies.sort_unstable();
    (replies, latencies)
}

/// That others are served, half of them within n milliseconds and all within n.
fn others_are_served(service: &Service, number: usize, median: u64, most: u64) {
    let (replies, took) = others(service, "/nearest?word=frog", number);
    for reply in replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert!(took[number / 2] < ms(median) && took[number - 1] < ms(most), "{took:?}");
}

/// Waits until it is so, at most n milliseconds.
fn becomes(what: &str, most: u64, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < ms(most), "{what}: not after {most} ms");
        std::thread::sleep(ms(10));
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
