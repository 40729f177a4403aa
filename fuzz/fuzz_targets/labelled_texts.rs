//! Files of texts with labels, in any format.
#![no_main]

use kindred_fuzz::checks::refused_or_labelled_texts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_labelled_texts(bytes);
});
