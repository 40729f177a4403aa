//! The seeds of the fuzz targets `changes` and `row_json`, their findings, and mutations of both at
//! random.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use changes::{Schema, create};
use contract::Metric;
use model_store::ModelStore;
use model_store::export::{ExportOptions, export};
use model_store::prepare::{Input, PrepareOptions, VectorsFormat, prepare_in_memory};

#[allow(unreachable_pub, reason = "the fuzz targets are programs of their own")]
#[path = "../../../fuzz/src/changes.rs"]
mod fuzzed;
#[allow(unreachable_pub, reason = "the fuzz targets are programs of their own")]
#[path = "../../../fuzz/src/rows.rs"]
mod fuzzed_rows;

use fuzzed::refused_or_applied;
use fuzzed_rows::refused_or_a_row;

/// What comes of the seeds of a target, and of mutations of them: those that were taken, and those
/// that were refused.
fn mutated(target: &str, takes: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let (mut taken, mut refused, mut number) = (0, 0, 0_usize);
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
            match takes(&bytes) {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    (taken, refused)
}

#[test]
fn every_log_of_the_seeds_is_refused_or_applied_whole() {
    let (opened, refused) = mutated("changes", refused_or_applied);
    assert!(opened >= 100 && refused >= 100, "{opened} opened, {refused} refused");
}

#[test]
fn every_row_of_the_seeds_is_refused_or_reads_as_itself() {
    let (taken, refused) = mutated("row_json", refused_or_a_row);
    assert!(taken >= 100 && refused >= 100, "{taken} taken, {refused} refused");
}

#[test]
fn an_empty_table_is_exported_as_one_of_no_rows() {
    let scratch = tempfile::tempdir().unwrap();
    let [folder, out] = ["m", "out.txt"].map(|name| scratch.path().join(name));
    let schema = Schema { dim: 3, metric: Metric::Cosine, columns: Vec::new() };
    create(&folder, &schema).unwrap();
    let options = ExportOptions {
        format: VectorsFormat::Word2vec,
        out: Some(out.clone()),
        words: None,
        biases: None,
        attributes: None,
        replace: false,
    };
    let model = ModelStore::open(&folder).unwrap();
    export(&model, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), "0 3\n");
    // There are no rows to prepare.
    let input = Input::Bytes { name: "out.txt", bytes: b"0 3\n" };
    assert!(prepare_in_memory(input, &PrepareOptions::default()).is_err());
}
