//! `kindred graph`: killed and interrupted it goes on where it was, and what can't be is said with
//! the cure.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(unix)]
use crate::support::long_work::interrupted_it_goes_on;
use crate::support::long_work::{said, start, wait_for_journal};
use crate::support::{TINY, kindred, prepared, program};
use serde_json::Value;

/// Rows of the model. Its graph takes a second or two.
const ROWS: &str = "50000";

fn synthetic(folder: &Path) -> PathBuf {
    let model = folder.join("model");
    let mut synth = kindred(&["synth", "--rows", ROWS, "--dim", "64", "--out"]);
    assert!(synth.arg(&model).output().unwrap().status.success());
    model
}

/// `kindred graph` of this model into this file.
fn graph(model: &Path, out: &Path, flags: &[&str]) -> Command {
    let mut command = kindred(&["graph", "--device", "cpu", "--model"]);
    command.arg(model).arg("--out").arg(out).args(flags);
    command
}

#[test]
fn killed_again_and_again_it_ends_with_the_same_bytes() {
    let scratch = tempfile::tempdir().unwrap();
    let model = synthetic(scratch.path());
    let [undisturbed, out] = ["undisturbed.npz", "g.npz"].map(|name| scratch.path().join(name));
    let output = graph(&model, &undisturbed, &["-k", "7"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));

    let work = scratch.path().join("g.npz.partial");
    let journal = work.join("journal");
    let (mut lines, mut kills) = (1, 0);
    let start = || start(graph(&model, &out, &["-k", "7", "--json"]));
    let mut child = start();
    // Whoever is killed near the end may be done before, where this thread waits for a core.
    let half = ROWS.parse::<usize>().unwrap() / 1024 / 2;
    while kills < 3 && lines < half {
        let Some(now) = wait_for_journal(&mut child, &journal, lines) else { break };
        child.kill().unwrap();
        child.wait().unwrap();
        (lines, kills) = (now, kills + 1);
        assert!(!out.exists() && work.join("graph").exists());
        if kills == 2 {
            // As if the power had failed while a line was written.
            let mut text = fs::read(&journal).unwrap();
            text.truncate(text.len() - 3);
            fs::write(&journal, text).unwrap();
            lines -= 1;
        }
        child = start();
    }
    assert!(kills > 0, "it was over before it could be killed");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let resumed = report["resumed_rows"].as_u64().unwrap();
    assert!(resumed > 0 && resumed <= 50_000, "{report}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("resuming at row ") && told.contains(" % done"), "{told}");
    assert!(fs::read(&out).unwrap() == fs::read(&undisturbed).unwrap(), "after {kills} kills");
    assert!(!work.exists());
}

#[cfg(unix)]
#[test]
fn interrupted_it_ends_cleanly_and_says_how_to_go_on() {
    let scratch = tempfile::tempdir().unwrap();
    let (model, out) = (synthetic(scratch.path()), scratch.path().join("g.npz"));
    interrupted_it_goes_on(
        |flags| graph(&model, &out, flags),
        &out,
        " % of 50000 rows done",
        (&["-k", "3"], "k 10 instead of k 3"),
    );
}

#[test]
fn what_it_made_is_told_and_what_can_not_be_is_refused() {
    let (scratch, model) = prepared(TINY);
    let out = scratch.path().join("g.npz");
    let output = graph(&model, &out, &["--json"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Six rows, of which one is zero: five have four neighbours each.
    assert_eq!(
        (&report["rows"], &report["k"], &report["edges"]),
        (&6.into(), &10.into(), &20.into())
    );
    assert_eq!((&report["resumed_rows"], &report["engine"]), (&0.into(), &"cpu".into()));
    let refused = |out: &Path, flags: &[&str], part: &str| {
        let output = graph(&model, out, flags).output().unwrap();
        assert!(!output.status.success() && said(&output).contains(part), "{}", said(&output));
    };
    refused(&out, &[], "exists; choose another --out, or add --replace");
    refused(&scratch.path().join("g.csv"), &[], ".npz or .parquet");
    refused(&out, &["--replace", "-k", "0"], "from 1 to 1000, not `0`");
    refused(&out, &["--replace", "--first-rows", "0"], "--first-rows");
    refused(&out, &["--replace", "--min-score", "NaN"], "`--min-score` must be");
    let output =
        graph(&model, &out, &["--replace", "-k", "2", "--first-rows", "3"]).output().unwrap();
    assert!(said(&output).contains("6 neighbours of 3 rows of "), "{}", said(&output));
    assert!(said(&output).contains(" rows/s, by the engine cpu"), "{}", said(&output));
}

/// The shell limits the size of files; who ignores the signal gets an error, as from a full disk.
#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_is_named() {
    let (scratch, model) = prepared(TINY);
    let out = scratch.path().join("g.npz");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(program()).args(["graph", "--model"]).arg(&model);
    let output = command.arg("--out").arg(&out).output().unwrap();
    for part in ["can't prepare", "g.npz.partial", "the same command goes on from there"] {
        assert!(!output.status.success() && said(&output).contains(part), "{}", said(&output));
    }
    let output = graph(&model, &out, &[]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}
