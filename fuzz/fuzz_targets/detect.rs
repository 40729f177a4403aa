//! Nothing is said of the file: its bytes tell what it is.
#![no_main]

use kindred_fuzz::{options, refused_or_a_model};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_a_model(bytes, &options(None, false));
    refused_or_a_model(bytes, &options(None, true));
});
