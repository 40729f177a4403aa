//! A program that is built with the default features says of all others how to get them.
//!
//! With another feature, cargo builds another program. Then these tests are ignored, and `.ci/run`
//! runs them with TEST_KINDRED, a program without features.

use std::fs;
use std::process::Command;

use crate::support::long_work::said;
use crate::support::{TINY, kindred, prepared};

/// That a command fails and says this.
fn refuses(command: &mut Command, part: &str) {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?}");
    assert!(said(&output).contains(part), "{command:?}: {part}: {}", said(&output));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "the program has the feature cuda")]
fn a_gpu_needs_the_feature_cuda() {
    let (_place, model) = prepared(TINY);
    for check in [&[][..], &["--check"]] {
        let mut serve = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cuda"]);
        serve.args(check).arg("--model").arg(&model);
        refuses(&mut serve, "built without its CUDA engine");
        assert_eq!(serve.status().unwrap().code(), Some(2), "it is a mistake in the settings");
    }
}

#[test]
#[cfg_attr(feature = "traces", ignore = "the program has the feature traces")]
fn a_collector_needs_the_feature_traces() {
    let serve = || kindred(&["serve", "--listen", "127.0.0.1:0"]);
    for part in ["`traces_endpoint`", "--features traces"] {
        refuses(serve().env("KINDRED_TRACES_ENDPOINT", "http://127.0.0.1:1"), part);
    }
}

#[test]
#[cfg_attr(feature = "parquet", ignore = "the program has the feature parquet")]
fn parquet_needs_its_feature() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(path("a.csv"), "text\ngood\n").unwrap();
    for (input, out, flags) in [
        ("a.csv", "o.parquet", &[][..]),
        ("a.parquet", "o.jsonl", &[]),
        ("a.csv", "o.jsonl", &["--from", "parquet"]),
    ] {
        let mut bulk = kindred(&["bulk", "classify", "--in", &path(input), "--out", &path(out)]);
        refuses(bulk.args(flags), "--features parquet");
    }
    refuses(&mut kindred(&["graph", "--out", &path("g.parquet")]), "--features parquet");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left behind");
}
