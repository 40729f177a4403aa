//! Filters.
#![no_main]

use kindred_fuzz::checks::refused_or_a_filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_a_filter(bytes);
});
