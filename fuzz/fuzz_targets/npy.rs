//! NumPy files.

#![no_main]

use kindred_fuzz::{options, refused_or_a_model};
use libfuzzer_sys::fuzz_target;
use model_store::prepare::VectorsFormat;

fuzz_target!(|bytes: &[u8]| refused_or_a_model(bytes, &options(Some(VectorsFormat::Npy), true)));
