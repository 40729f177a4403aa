//! State dicts that become heads, and their vocabularies.
#![no_main]

use kindred_fuzz::checks::refused_or_imported;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_imported(bytes);
});
