//! Logs of changes: a good one in which bytes were changed, cut off or added, and the payload of a record that is otherwise good.
#![no_main]

use kindred_fuzz::changes::refused_or_applied;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    refused_or_applied(bytes);
});
