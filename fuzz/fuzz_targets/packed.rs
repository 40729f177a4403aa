//! gzip, bzip2, zstd, xz and zip: the seeds are files of each, and bytes of no format are no use
//! here.
#![no_main]

use kindred_fuzz::{options, refused_or_a_model};
use libfuzzer_sys::{Corpus, fuzz_target};

const MAGICS: [&[u8]; 6] =
    [b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"PK\x03\x04", b"PK\x05\x06"];

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if !MAGICS.iter().any(|magic| bytes.starts_with(magic)) {
        return Corpus::Reject;
    }
    refused_or_a_model(bytes, &options(None, false));
    Corpus::Keep
});
