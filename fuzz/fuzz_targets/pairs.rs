//! Files of pairs that expanders learn from, in columns or JSON lines.
#![no_main]

use kindred_fuzz::checks::refused_or_pairs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_pairs(bytes);
});
