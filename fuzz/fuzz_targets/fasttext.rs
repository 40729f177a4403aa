//! fastText's word models.
#![no_main]

use kindred_fuzz::encoders::refused_or_a_fasttext_model;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_a_fasttext_model(bytes);
});
