//! `kindred bulk`: killed and interrupted it goes on where it was, and what can't be is said with
//! the cure.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

#[cfg(unix)]
use crate::support::long_work::interrupted_it_goes_on;
use crate::support::long_work::{said, start, wait_for_journal};
use crate::support::{kindred, objects, piped};
use serde_json::Value;

/// Rows that take a second or two where nothing is optimised.
const ROWS: usize = 12_000;

/// `kindred bulk nearest` of these words.
fn nearest(input: &Path, out: &Path, flags: &[&str]) -> Command {
    let mut command = kindred(&["bulk", "nearest", "--device", "cpu", "-k", "60", "--in"]);
    command.arg(input).arg("--out").arg(out).args(flags);
    command
}

/// Frequent words of the built-in model, and some that it does not have.
fn words(folder: &Path, rows: usize) -> std::path::PathBuf {
    let known = ["frog", "king", "paris", "ocean", "music", "bread", "winter", "green", "doctor"];
    let line = |n: usize| match n % 10 {
        9 => format!("zzqqx{n}\n"),
        n => format!("{}\n", known[n]),
    };
    let path = folder.join("words.txt");
    fs::write(&path, (0..rows).map(line).collect::<String>()).unwrap();
    path
}

#[test]
fn killed_at_any_moment_it_ends_with_the_same_bytes() {
    killed("jsonl.gz");
}

#[cfg(feature = "parquet")]
#[test]
fn killed_at_any_moment_it_ends_with_the_same_bytes_of_parquet() {
    killed("parquet");
}

fn killed(form: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let input = words(scratch.path(), ROWS);
    let [undisturbed, out] = ["u", "o"].map(|name| scratch.path().join(format!("{name}.{form}")));
    let output = nearest(&input, &undisturbed, &[]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));

    let work = scratch.path().join(format!("o.{form}.partial"));
    let start = || start(nearest(&input, &out, &["--json"]));
    let mut kills = 0;
    for lines in [0, 1, 2] {
        let mut child = start();
        if wait_for_journal(&mut child, &work.join("journal"), lines).is_none() {
            break;
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(now.subsec_micros() % 200)));
        kills += usize::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
        if out.exists() {
            break;
        }
    }
    assert!(kills > 0, "it was over before it could be killed");
    if !out.exists() {
        let output = start().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&report["rows"], &report["failed"]), (&ROWS.into(), &(ROWS / 10).into()));
    }
    assert!(fs::read(&out).unwrap() == fs::read(&undisturbed).unwrap(), "after {kills} kills");
    assert!(!work.exists());
}

#[cfg(unix)]
#[test]
fn interrupted_it_ends_cleanly_and_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    // Enough that a signal after the first rows comes before the last.
    let (input, out) = (words(scratch.path(), 30_000), scratch.path().join("o.csv"));
    let told = interrupted_it_goes_on(
        |flags| nearest(&input, &out, flags),
        &out,
        " rows done",
        (&["--strict", "--fold-case"], "no fold_case instead of fold_case true"),
    );
    assert!(
        told.contains("resuming after ") && told.contains("3,000 rows have an error"),
        "{told}"
    );
}

#[test]
fn work_without_a_single_answer_fails_and_its_file_has_the_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let (input, out) = (scratch.path().join("in.txt"), scratch.path().join("o.csv"));
    let run = |text: &str, flags: &[&str]| {
        fs::write(&input, text).unwrap();
        let output = nearest(&input, &out, flags).output().unwrap();
        (output.status.code(), said(&output))
    };
    let (code, told) = run("zzqqx\nqqzzx\n", &[]);
    assert_eq!(code, Some(1), "{told}");
    for part in [
        "none of the 2 rows could be answered (unknown_word: 2)",
        "o.csv has the error",
        "--column",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let written = fs::read_to_string(&out).unwrap();
    assert!(written.lines().count() == 3 && written.contains(",zzqqx\n"), "{written}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2, "it is complete");
    // A single answer is enough, and no row needs none.
    for text in ["zzqqx\nfrog\n", ""] {
        let (code, told) = run(text, &["--replace"]);
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn pipes_are_answered_and_what_can_not_be_is_refused() {
    let classify = |flags: &[&str], input: &str| {
        let mut command = kindred(&["bulk", "classify", "--in", "-", "--out", "-"]);
        command.args(flags);
        piped(command, input)
    };
    let output = classify(&["--json"], "a moving and funny film\n?!\n");
    let lines = objects(&output);
    assert_eq!(lines[0]["labels"][0]["label"], "positive");
    assert_eq!(lines[1]["error"]["code"], "unknown_word");
    let report: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!((&report["answered"], &report["failed"]), (&1.into(), &1.into()));

    let output = classify(&["--to", "csv", "--top", "1", "--strict"], "good film\n?!\nbad\n");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().count() == 2 && text.contains("\n1,1,positive,"), "{text}");
    assert!(said(&output).contains("standard input, line 2: unknown_word"), "{}", said(&output));

    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(path("a.csv"), "text\ngood\n").unwrap();
    for (input, out, flags, part) in [
        ("a.json", "o.jsonl", &[][..], "--from FORMAT"),
        ("a.csv", "o.txt", &[], "must end in .jsonl, .csv"),
        ("a.csv", "a.csv", &["--replace"], "is the input"),
        ("a.csv", "o.jsonl", &["--column", "body"], "no column `body`"),
        ("no.csv", "o.jsonl", &[], "no.csv"),
        ("a.csv", "o.jsonl", &["--head", "none"], "there is no such folder"),
    ] {
        let mut command = kindred(&["bulk", "classify", "--in", &path(input), "--out", &path(out)]);
        let output = command.args(flags).output().unwrap();
        assert!(!output.status.success() && said(&output).contains(part), "{}", said(&output));
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left behind");
    for (flags, part) in
        [(["--min-weight", "-1"], "--min-weight"), (["--max-ratio", "2"], "--max-ratio")]
    {
        let mut command = kindred(&["bulk", "expand", "--in", &path("a.csv"), "--out", "-"]);
        let output = command.args([flags[0].to_owned() + "=" + flags[1]]).output().unwrap();
        assert!(!output.status.success() && said(&output).contains(part), "{}", said(&output));
    }
}
