//! A head's folder, of a classifier or an expander.
#![no_main]

use kindred_fuzz::checks::refused_or_a_head;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_a_head(bytes);
});
