//! Runs the seeds of the fuzz targets for encoders, and their findings, through the same checks.

use std::fs;
use std::path::Path;

#[allow(unreachable_pub, reason = "the fuzz targets are programs of their own")]
#[path = "../../../fuzz/src/encoders.rs"]
mod checks;

#[test]
fn every_seed_is_refused_or_encodes() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/fasttext");
    let seeds = fs::read_dir(seeds).unwrap().map(|seed| fs::read(seed.unwrap().path()).unwrap());
    let accepted = seeds.filter(|seed| checks::refused_or_a_fasttext_model(seed)).count();
    assert!(accepted >= 6, "only {accepted} seeds are accepted");
}
