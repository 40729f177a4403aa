//! Bodies that are declared as arrays of vectors, through the whole service: whatever they are, the answer is JSON or an array,
//! with a documented status, and none that blames the service.
#![no_main]

use kindred_fuzz::service::{ask_with, check, check_array};
use libfuzzer_sys::fuzz_target;

/// Targets, and how many components each neighbour's vector has in an array.
const TARGETS: [(&str, usize); 7] = [
    ("/nearest", 0),
    ("/nearest?k=3&with_vectors=true", 2),
    ("/nearest?k=1000&exclude=a&exclude=b&vocab_limit=7", 0),
    ("/nearest?fold_case=true&min_score=0.5&max_score=0.99", 0),
    ("/expand", 0),
    ("/expand?top=2&explain=true&min_weight=0.1", 0),
    ("/analogy", 0),
];

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (target, accept, body) = input;
    let (target, components) = TARGETS[usize::from(target) % TARGETS.len()];
    let accept = ["application/json", "application/x-npy", "*/*"][usize::from(accept) % 3];
    let headers = [("content-type", "application/x-npy"), ("accept", accept)];
    let (status, media, answer) = ask_with("POST", target, &headers, body);
    if media == "application/x-npy" {
        assert_eq!(accept, media);
        check_array(status, &answer, components);
    } else {
        check(status, &answer, &[200, 400, 406, 413, 415, 422, 429, 504]);
    }
});
