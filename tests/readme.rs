//! What the README shows is what the program says.

mod support;

use serde_json::Value;
use support::Service;

const README: &str = include_str!("../README.md");

/// A command line's quoted and unquoted words.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("never empty").push(c),
        }
    }
    words
}

#[test]
fn every_curl_line_gives_the_output_that_is_shown() {
    let service = Service::with_default_model();
    let mut lines = README.lines();
    let mut checked = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ curl ") else { continue };
        let shown: Value = serde_json::from_str(lines.next().expect("output")).expect("JSON");
        let words = words(command);
        let address = words.iter().find_map(|word| word.strip_prefix("127.0.0.1:8080"));
        let path = address.expect("an address");
        let reply = match words.iter().position(|word| word == "--json") {
            Some(at) => service.post(path, &serde_json::from_str(&words[at + 1]).expect("JSON")),
            None => service.get(path),
        };
        assert_eq!(reply.json(), shown, "{command}");
        checked += 1;
    }
    assert_eq!(checked, README.matches("$ curl ").count());
    assert!(checked >= 4);
}
