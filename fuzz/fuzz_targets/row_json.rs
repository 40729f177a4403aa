//! Rows as objects of JSON.
#![no_main]

use kindred_fuzz::rows::refused_or_a_row;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_a_row(bytes);
});
