//! Models under the metric dot, as people make them: `prepare`, `export` and `synth` with biases,
//! and what tells of them.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::json;

use crate::support::{Service, TINY, kindred, prepared};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = kindred(arguments).current_dir(folder).output().unwrap();
    (output.status.success(), said(&output))
}

/// A succeeding command's output.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, said) = run(folder, arguments);
    assert!(succeeded, "{said}");
    said
}

/// A failing command's output.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, said) = run(folder, arguments);
    assert!(!succeeded, "{said}");
    said
}

#[test]
fn a_model_with_biases_goes_out_and_comes_back() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    fs::write(folder.join("in.txt"), "a 1 2\nb 3 4\na 5 6\nc 7\nd 8 9\n").unwrap();
    fs::write(folder.join("bias.txt"), "0.5\n-1\n10\n20\n0.25\n").unwrap();
    let prepare = ["prepare", "in.txt", "--out", "m", "--skip-bad-rows"];
    let dot = ["--metric", "dot", "--bias", "bias.txt"];
    let output = done(folder, &[&prepare[..], &dot].concat());
    assert!(output.contains("3 rows × 2 dimensions under the metric dot from"), "{output}");
    assert!(output.contains("with biases in bias.txt"), "{output}");
    let output = done(folder, &["verify", "m"]);
    assert!(output.contains("checking biases"), "{output}");
    assert!(output.contains("3 rows × 2 dimensions, metric dot with biases, prepared"), "{output}");

    let output = done(folder, &["export", "m", "--format", "glove", "--out", "out.txt"]);
    assert!(output.contains("biases, which were not written; --bias FILE writes them"), "{output}");
    let export = ["export", "m", "--format", "npy", "--out", "out.npy"];
    let output = done(folder, &[&export[..], &["--words", "words", "--bias", "bias.npy"]].concat());
    assert!(!output.contains("biases"), "{output}");
    let prepare = ["prepare", "out.npy", "--words", "words", "--metric", "dot"];
    done(folder, &[&prepare[..], &["--bias", "bias.npy", "--out", "again"]].concat());
    // Everything behind the header, which names the source and the time.
    let data = |model: &str| {
        fs::read(folder.join(model).join("vectors.safetensors")).unwrap()[16 * 1024..].to_vec()
    };
    assert_eq!(data("m"), data("again"));
    assert_eq!(
        data("m")[data("m").len() - 12..],
        [0.5f32, -1.0, 0.25].map(f32::to_le_bytes).concat()
    );
}

#[test]
fn biases_that_do_not_fit_are_refused_with_the_cure() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    fs::write(folder.join("in.txt"), "a 1 2\nb 3 4\n").unwrap();
    fs::write(folder.join("bias.txt"), "0.5\nx\n").unwrap();
    let prepare = ["prepare", "in.txt", "--out", "m", "--bias", "bias.txt"];
    let output = refused(folder, &prepare);
    assert!(output.contains("bias.txt: ") && output.contains("add --metric dot"), "{output}");
    let dot = [&prepare[..], &["--metric", "dot"]].concat();
    assert!(refused(folder, &dot).contains("bias.txt: line 2: the bias is not a number: `x`"));
    fs::write(folder.join("bias.txt"), "0.5\n").unwrap();
    let output = refused(folder, &dot);
    assert!(output.contains("in.txt goes on: line 2 has none"), "{output}");
    let l2 = refused(folder, &["prepare", "in.txt", "--out", "m", "--metric", "l2"]);
    assert!(l2.contains("cosine or dot"), "{l2}");
    assert!(!folder.join("m").exists());
    let (_scratch, tiny) = prepared(TINY);
    let export = ["export", tiny.to_str().unwrap(), "--format", "glove", "--out", "out"];
    let output = refused(folder, &[&export[..], &["--bias", "b.npy"]].concat());
    assert!(output.contains("it has no biases; omit --bias"), "{output}");
}

#[test]
fn a_synthetic_model_may_be_under_dot() {
    let scratch = tempfile::tempdir().unwrap();
    let synth = ["synth", "--rows", "300", "--dim", "20", "--metric", "dot"];
    let output = refused(scratch.path(), &[&synth[..], &["--text", "t"]].concat());
    assert!(output.contains("kindred export --bias"), "{output}");
    let output = done(scratch.path(), &[&synth[..], &["--out", "m"]].concat());
    assert!(output.contains("20 dimensions under the metric dot, seed 1"), "{output}");
    let output = done(scratch.path(), &["verify", "m"]);
    assert!(output.contains("metric dot with biases, prepared from synth --rows 300"), "{output}");
}

#[test]
fn the_service_tells_the_metric() {
    let (_scratch, tiny) = prepared(TINY);
    let service = Service::start(&["--model", tiny.to_str().unwrap()]);
    assert_eq!(service.get("/model").json()["metric"], json!("cosine"));
    assert_eq!(service.get("/models").json()["models"][0]["metric"], json!("cosine"));
}
