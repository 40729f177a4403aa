//! Runs the seeds of the fuzz targets for heads, biases, attributes and filters, and their findings,
//! through the same checks without a fuzzer.

use std::fs;
use std::path::Path;

use crate::checks;

/// Whether the bytes of a seed are accepted.
type Check = fn(&[u8]) -> bool;

#[test]
fn every_seed_is_refused_or_answers() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let targets: [(&str, Check); 7] = [
        ("head", checks::refused_or_a_head),
        ("biases", checks::refused_or_biases),
        ("attributes", checks::refused_or_attributes),
        ("labelled_texts", checks::refused_or_labelled_texts),
        ("import_head", checks::refused_or_imported),
        ("words", checks::words_are_in_order_and_complete),
        ("filter", checks::refused_or_a_filter),
    ];
    for (target, check) in targets {
        let seeds = fs::read_dir(seeds.join(target)).unwrap().map(|seed| seed.unwrap().path());
        let accepted = seeds.filter(|seed| check(&fs::read(seed).unwrap())).count();
        assert!(accepted >= 3, "{target}: only {accepted} seeds are accepted");
    }
}
