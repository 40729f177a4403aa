//! Files of attributes, CSV and JSON lines.
#![no_main]

use kindred_fuzz::checks::refused_or_attributes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_attributes(bytes);
});
