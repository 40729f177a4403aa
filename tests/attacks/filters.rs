//! Attacks by filters: each request has another, so each makes a set of rows.

use serde_json::json;

use super::client::Request;
use super::flood::Flood;
use super::{others_are_served, serve, words};
use crate::support::kindred;

/// Searches for what is near a word, with filters.
fn searches(word: &str, filters: impl Iterator<Item = String>) -> Vec<Request> {
    let search = |filter| json!({"word": word, "filter": filter}).to_string();
    filters.map(|filter| Request::post("/nearest", &search(filter))).collect()
}

#[test]
fn a_new_filter_in_each_request_does_not_delay_others() {
    let service = serve(&[]);
    let words = words(&service, 1000);
    let quoted = |n: usize| words[n % 1000].replace('\\', "\\\\").replace('\'', "\\'");
    let filter = |n: usize| format!("key NOT IN ['{}', '{}', x{n}]", quoted(n), quoted(n * 7));
    // More than are kept.
    let flood = Flood::begin(&service, searches("frog", (0..1500).map(filter)), 1).once_answered();
    others_are_served(&service, 80, 30, 1000);
    let counts = flood.end();
    assert!(counts.by_status.keys().all(|status| *status == 200), "{counts:?}");
}

#[test]
fn filters_of_many_tests_or_values_wait_for_themselves_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("model");
    let model = model.to_str().expect("a UTF-8 path");
    let synth = ["synth", "--rows", "100000", "--dim", "8", "--attributes", "--out", model];
    assert!(kindred(&synth).output().is_ok_and(|output| output.status.success()));
    let service = serve(&["--model", model, "--http-threads", "1"]);
    let word = words(&service, 1).remove(0);
    let tests = |n: usize| {
        let test = |at: usize| match at % 2 {
            0 => format!("keyword = k{}", n + at),
            _ => format!("a = {}", (n + 3 * at) % 1000),
        };
        (0..256).map(test).collect::<Vec<_>>().join(" OR ")
    };
    let values = |n: usize| {
        let values: Vec<String> = (0..9000).map(|at| format!("k{}", n + at)).collect();
        format!("keyword IN [{}]", values.join(","))
    };
    let filters = (0..100).flat_map(|n| [tests(n), values(n)]);
    let flood = Flood::begin(&service, searches(&word, filters), 4).once_answered();
    let (replies, took) = super::others(&service, &format!("/nearest?word={word}"), 60);
    assert!(replies.iter().all(|reply| reply.status == 200));
    assert!(took[30] < super::ms(50) && took[59] < super::ms(1000), "{took:?}");
    let counts = flood.end();
    assert!(!counts.is_closed && !counts.by_status.is_empty(), "{counts:?}");
}
