//! The products of docs/filters.md, prepared as readers do it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{errors, kindred, top};

fn block(language: &str) -> String {
    let document = fs::read_to_string(top().join("docs/filters.md")).expect("the document");
    let (_, rest) = document.split_once(&format!("\n```{language}\n")).expect("a block");
    rest.split("```").next().expect("its end").to_owned()
}

/// What the products are, in the order of their rows: a `name` and attributes each.
pub fn items() -> Vec<Value> {
    let lines = block("json");
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// A model of them, in a folder.
pub fn prepared() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("a folder");
    let (vectors, attributes) = ("products.txt", "products.jsonl");
    for (name, language) in [(vectors, "text"), (attributes, "json")] {
        fs::write(scratch.path().join(name), block(language)).expect("it is written");
    }
    let arguments =
        ["prepare", vectors, "--attributes", attributes, "--key", "name", "--out", "products"];
    let output = kindred(&arguments).current_dir(scratch.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", errors(&output));
    let out = scratch.path().join("products");
    (scratch, out)
}
