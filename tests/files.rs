//! `prepare` and `export` as people type them: pipes, full disks, and what is left when they are
//! killed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{TINY, kindred, prepared, program};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn standard_input_is_read_and_standard_output_written() {
    let (scratch, model) = prepared(TINY);
    let exported =
        kindred(&["export", "--format", "word2vec-bin", "--out", "-"]).arg(&model).output();
    let exported = exported.unwrap();
    assert!(
        exported.status.success() && exported.stdout.starts_with(b"6 2\neast "),
        "{}",
        said(&exported)
    );
    let again = scratch.path().join("again");
    let mut prepare = kindred(&["prepare", "-", "--out"])
        .arg(&again)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    prepare.stdin.take().unwrap().write_all(&exported.stdout).unwrap();
    let output = prepare.wait_with_output().unwrap();
    assert!(
        said(&output).contains("6 rows × 2 dimensions")
            && said(&output).contains("word2vec binary")
    );
    for file in ["words.txt", "words.fst"] {
        assert_eq!(fs::read(model.join(file)).unwrap(), fs::read(again.join(file)).unwrap());
    }
    assert_eq!(
        said(&kindred(&["verify"]).arg(&again).output().unwrap()).matches("checking").count(),
        6
    );
}

#[test]
fn an_export_that_nobody_reads_to_its_end_is_no_fault() {
    let (_scratch, model) = prepared(TINY);
    let mut export = kindred(&["export", "--format", "glove", "--out", "-"]);
    let export = export.arg(&model).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut export = export.unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

#[test]
fn rows_encoding_and_separator_are_those_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("v.tsv"), b"caf\xe9\t1\t0\nroute 66\t0\t1\nx\tbad\t1\n").unwrap();
    let prepare = |name: &str, more: &[&str]| {
        let mut command = kindred(&["prepare"]);
        command.arg(path("v.tsv")).arg("--out").arg(path(name)).args(more);
        command.output().unwrap()
    };
    let all = ["--separator", "tab", "--encoding", "latin1"];
    let output = prepare("model", &[&all[..], &["--limit", "2"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    for part in
        ["2 rows × 2 dimensions", "glove text separated by tabs, windows-1252, first 2 rows"]
    {
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    assert_eq!(fs::read_to_string(path("model").join("words.txt")).unwrap(), "café\nroute 66\n");
    for (more, status, expected) in [
        (&all[..], 1, "line 3: component 1 is not a number: `bad`"),
        (&["--encoding", "latin1"], 1, "add --separator tab"),
        (&["--separator", "tab"], 1, "line 1: the word is not valid UTF-8 (byte 4); name its"),
        (&["--separator", "tab", "--encoding", "latin-1"], 2, "do you mean `latin1`?"),
        (&["--separator", ";"], 2, "comma"),
        (&["--limit", "0"], 2, "--limit"),
    ] {
        let output = prepare("other", more);
        assert_eq!(output.status.code(), Some(status), "{more:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{more:?}: {}", said(&output));
        assert!(!path("other").exists(), "{more:?}");
    }
    // A word and a number after a space, where a header tells them from each other.
    fs::write(path("v.tsv"), "2 2\nroute 66 1 0\ncat 0 1\n").unwrap();
    assert!(said(&prepare("other", &[])).contains("add --dim 2 --allow-numeric-words"));
    let output = prepare("other", &["--allow-numeric-words"]);
    assert!(said(&output).contains("2 rows × 2 dimensions"), "{}", said(&output));
}

#[test]
fn words_files_are_asked_for_where_they_are_needed() {
    let (scratch, model) = prepared(TINY);
    let export = |arguments: &[&str]| {
        let out = scratch.path().join("out");
        kindred(&["export"]).arg(&model).arg("--out").arg(out).args(arguments).output().unwrap()
    };
    let lacking = export(&["--format", "npy"]);
    assert!(
        !lacking.status.success() && said(&lacking).contains("--words FILE"),
        "{}",
        said(&lacking)
    );
    let words = scratch.path().join("w.txt");
    let words = words.to_str().unwrap();
    let needless = export(&["--format", "glove", "--words", words]);
    assert!(!needless.status.success() && said(&needless).contains("omit --words"));
    assert!(export(&["--format", "npy", "--words", words]).status.success());
    assert_eq!(fs::read_to_string(words).unwrap(), "east\nnorth\nnortheast\nwest\nzero\nEast\n");
    let twice = export(&["--format", "npy", "--words", words]);
    assert!(!twice.status.success() && said(&twice).contains("--replace"));
    let unknown = export(&["--format", "parquet"]);
    assert!(
        !unknown.status.success() && said(&unknown).contains("safetensors"),
        "the formats are listed"
    );
}

#[test]
fn if_missing_prepares_once_and_keeps_what_is_there() {
    let scratch = tempfile::tempdir().unwrap();
    let (text, out) = (scratch.path().join("v.txt"), scratch.path().join("model"));
    let prepare = || {
        let mut command = kindred(&["prepare", "--if-missing"]);
        command.arg(&text).arg("--out").arg(&out).output().unwrap()
    };
    // A failure leaves nothing that the next run could keep.
    fs::write(&text, "a 1 0\nb 0 x\n").unwrap();
    assert!(!prepare().status.success() && !out.exists());
    fs::write(&text, "a 1 0\nb 0 1\n").unwrap();
    assert!(prepare().status.success());
    let made = fs::metadata(out.join("vectors.safetensors")).unwrap().modified().unwrap();
    // The input is not even opened.
    fs::remove_file(&text).unwrap();
    let again = prepare();
    assert!(again.status.success(), "{}", said(&again));
    assert!(String::from_utf8_lossy(&again.stdout).contains("kept: 2 rows × 2 dimensions"));
    let now = fs::metadata(out.join("vectors.safetensors")).unwrap().modified().unwrap();
    assert_eq!(made, now);
    // What can't be served is not kept.
    fs::write(out.join("vectors.safetensors"), "damaged").unwrap();
    let damaged = prepare();
    assert!(!damaged.status.success() && said(&damaged).contains("vectors.safetensors"));
    fs::remove_dir_all(&out).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(out.join("other"), "").unwrap();
    assert!(!prepare().status.success() && out.join("other").exists());
}

#[test]
fn text_of_a_synthetic_table_becomes_a_model() {
    let scratch = tempfile::tempdir().unwrap();
    let text = scratch.path().join("synth.txt");
    let made =
        kindred(&["synth", "--rows", "3000", "--dim", "20", "--text"]).arg(&text).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    let out = scratch.path().join("model");
    let output = kindred(&["prepare"]).arg(&text).arg("--out").arg(&out).output().unwrap();
    assert!(said(&output).contains("3,000 rows × 20 dimensions"), "{}", said(&output));
    let neither = kindred(&["synth", "--rows", "3", "--dim", "2"]).output().unwrap();
    assert!(!neither.status.success() && said(&neither).contains("--out"));
}

/// The shell limits the size of files; who ignores the signal gets an error, as from a full disk.
#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_is_named_and_nothing_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let text = scratch.path().join("in.txt");
    let lines: String = (0..40_000).map(|row| format!("w{row} 1 2 3 4 5 6 7 8\n")).collect();
    fs::write(&text, lines).unwrap();
    let (_elsewhere, model) = prepared(&fs::read_to_string(&text).unwrap());
    let limited = |arguments: &[&str]| {
        let script = "trap '' XFSZ; ulimit -f 512; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(program()).args(arguments);
        command.current_dir(scratch.path()).output().unwrap()
    };
    let output = limited(&["prepare", "in.txt", "--out", "model"]);
    assert!(!output.status.success());
    assert!(said(&output).contains("can't write the model to model: "), "{}", said(&output));
    for arguments in [&["--format", "glove"][..], &["--format", "npy", "--words", "w.txt"]] {
        let export = ["export", model.to_str().unwrap(), "--out", "out"];
        let output = limited(&[&export[..], arguments].concat());
        assert!(
            !output.status.success() && said(&output).contains("can't write out: "),
            "{}",
            said(&output)
        );
    }
    let output = limited(&["synth", "--rows", "40000", "--dim", "8", "--text", "synth.txt"]);
    assert!(
        !output.status.success() && said(&output).contains("can't write synth.txt"),
        "{}",
        said(&output)
    );
    assert_eq!(names(scratch.path()), ["in.txt"]);
}

#[cfg(unix)]
#[test]
fn killed_half_way_the_old_model_stays_and_the_next_one_clears_up() {
    let (scratch, model) = prepared(TINY);
    // It writes rows as they come; this is more than it keeps in memory before.
    let rows: String = (0..600_000).map(|row| format!("word{row} 1 2 3 4 5 6 7 8\n")).collect();
    for _ in 0..3 {
        let before = fs::read(model.join("vectors.safetensors")).unwrap();
        let mut prepare = kindred(&["prepare", "-", "--replace", "--out"])
            .arg(&model)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = prepare.stdin.take().unwrap();
        input.write_all(rows.as_bytes()).unwrap();
        let temporary =
            || names(scratch.path()).into_iter().find(|name| name.starts_with(".kindred-prepare-"));
        let deadline = Instant::now() + Duration::from_secs(30);
        while temporary().is_none() {
            assert!(Instant::now() < deadline, "it never started to write");
            std::thread::sleep(Duration::from_millis(5));
        }
        prepare.kill().unwrap();
        prepare.wait().unwrap();
        let after = fs::read(model.join("vectors.safetensors")).unwrap();
        assert!(after == before, "the old model stays as it was");
        assert!(kindred(&["verify"]).arg(&model).output().unwrap().status.success());
        let left = scratch.path().join(temporary().expect("a killed program clears nothing away"));
        // As if it had been killed a while ago; who still works holds a lock.
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
        let working = fs::File::open(&left).unwrap();
        working.lock().unwrap();
        let text = scratch.path().join("vectors.txt");
        let again = || {
            let arguments = ["prepare", text.to_str().unwrap(), "--replace", "--out"];
            assert!(kindred(&arguments).arg(&model).output().unwrap().status.success());
        };
        again();
        assert!(left.exists(), "somebody is at work there");
        drop(working);
        again();
        assert_eq!(names(scratch.path()), ["tiny", "vectors.txt"]);
    }
}
