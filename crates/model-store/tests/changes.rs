//! The seeds of the fuzz target `changes`, its findings, and mutations of both at random.

use std::fs;
use std::path::Path;

#[allow(unreachable_pub, reason = "the fuzz targets are programs of their own")]
#[path = "../../../fuzz/src/changes.rs"]
mod fuzzed;

use fuzzed::refused_or_applied;

#[test]
fn every_log_of_the_seeds_is_refused_or_applied_whole() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/changes");
    let (mut opened, mut refused, mut number) = (0, 0, 0_usize);
    for seed in fs::read_dir(seeds).unwrap() {
        let seed = fs::read(seed.unwrap().path()).unwrap();
        for round in 0..200 {
            let mut bytes = seed.clone();
            // Steps without a common factor, so that all bytes have all values in time.
            for _ in 0..round % 4 {
                number += 7919;
                let place = 1 + number % (bytes.len() - 1);
                bytes[place] = (number / 13) as u8;
            }
            match refused_or_applied(&bytes) {
                true => opened += 1,
                false => refused += 1,
            }
        }
    }
    assert!(opened >= 100 && refused >= 100, "{opened} opened, {refused} refused");
}
