//! Query strings of GET requests through the whole service.
#![no_main]

use kindred_fuzz::service::{ask, check};
use libfuzzer_sys::{Corpus, fuzz_target};

const ROUTES: [&str; 8] = [
    "/nearest?",
    "/analogy?",
    "/words?",
    "/words/",
    "/models/",
    "/models/tiny/nearest?",
    "/classify?",
    "/expand?",
];

fuzz_target!(|input: (u8, &str)| -> Corpus {
    let (route, rest) = input;
    let target = format!("{}{rest}", ROUTES[usize::from(route) % ROUTES.len()]);
    if target.parse::<axum::http::Uri>().is_err() {
        // hyper would not have let it in.
        return Corpus::Reject;
    }
    let (status, answer) = ask("GET", &target, b"");
    check(status, &answer, &[200, 400, 404, 422, 429, 504]);
    Corpus::Keep
});
