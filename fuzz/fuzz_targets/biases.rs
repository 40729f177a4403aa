//! Files of biases, NumPy's and text.
#![no_main]

use kindred_fuzz::checks::refused_or_biases;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_biases(bytes);
});
