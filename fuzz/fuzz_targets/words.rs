//! Texts as people type them, split into the words of a vocabulary.
#![no_main]

use kindred_fuzz::checks::words_are_in_order_and_complete;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    words_are_in_order_and_complete(bytes);
});
