//! Bodies of POST requests through the whole service: whatever they are, the answer is JSON with a documented
//! status, and none that blames the service.
#![no_main]

use kindred_fuzz::service::{ask, check};
use libfuzzer_sys::fuzz_target;

const ROUTES: [&str; 7] =
    ["/nearest", "/analogy", "/rank", "/similarity", "/odd-one-out", "/classify", "/expand"];

fuzz_target!(|input: (u8, &[u8])| {
    let (route, body) = input;
    let route = ROUTES[usize::from(route) % ROUTES.len()];
    let (status, answer) = ask("POST", route, body);
    check(status, &answer, &[200, 400, 404, 422, 413, 429, 504]);
});
