//! Heads from data to answers: `kindred train`, `import-head`, `classify`, `eval` and `verify`, and
//! `/classify`.

mod fasttext;
mod import;
mod service;
mod training;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{errors, kindred, page, prepared, top};

/// A model of the words of `examples/requests.tsv`, and heads for it.
struct Scratch {
    folder: tempfile::TempDir,
    _prepared: tempfile::TempDir,
    model: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let data = fs::read_to_string(data()).unwrap().to_lowercase();
        let words: BTreeSet<String> = data
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().all(|c| c.is_ascii_alphabetic()) && !word.is_empty())
            .map(str::to_owned)
            .collect();
        let words = words.into_iter().chain(["ca", "n't", ".", ","].map(str::to_owned));
        let (prepared, model) = prepared(&vectors(words));
        Self { folder: tempfile::tempdir().unwrap(), _prepared: prepared, model }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, name: &str, more: &[&str]) -> Output {
        self.train_from(&data(), name, more)
    }

    fn train_from(&self, data: &Path, name: &str, more: &[&str]) -> Output {
        let mut command = kindred(&["train", "classifier", "--model"]);
        command.arg(&self.model).arg("--data").arg(data).arg("--out").arg(self.path(name));
        command
            .args([
                "--epochs",
                "20",
                "--patience",
                "20",
                "--channels",
                "20",
                "--learning-rate",
                "0.01",
            ])
            .args(more);
        command.output().unwrap()
    }

    fn trained(&self, name: &str, more: &[&str]) -> PathBuf {
        let output = self.train(name, more);
        assert!(output.status.success(), "{}", errors(&output));
        self.path(name)
    }

    fn classify(&self, head: &Path) -> Command {
        let mut command = kindred(&["classify", "--json", "--model"]);
        command.arg(&self.model).arg("--head").arg(head);
        command
    }
}

/// Words with vectors that look random, `[words, 16]`, as a vectors file.
fn vectors(words: impl Iterator<Item = String>) -> String {
    let line = |(row, word): (usize, String)| {
        let component = |i: usize| ((row * 16 + i) as f64 * 12.9898).sin() * 43758.5453;
        let numbers = (0..16).map(|i| format!("{:.3}", component(i).fract()));
        format!("{word} {}\n", numbers.collect::<Vec<_>>().join(" "))
    };
    words.enumerate().map(line).collect()
}

fn data() -> PathBuf {
    top().join("examples/requests.tsv")
}

#[test]
fn the_commands_of_the_page_run() {
    let commands = page::commands("docs/classify.md", "## Bring a head from PyTorch");
    assert!((9..=20).contains(&commands.len()), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("examples")).unwrap();
    for file in ["examples/requests.tsv", "examples/requests-test.tsv"] {
        fs::copy(top().join(file), folder.path().join(file)).unwrap();
    }
    let replies = page::run(&commands, folder.path());
    let [reply] = &replies[..] else { panic!("one curl command: {commands:?}") };
    assert_eq!((reply.status, &reply.json()["labels"][0]["label"]), (200, &json!("delivery")));

    // The figures are those of the commands, and measured on texts that nothing was learnt from.
    let page = fs::read_to_string(top().join("docs/classify.md")).unwrap();
    let texts = |file: &str| fs::read_to_string(top().join(file)).unwrap().to_lowercase();
    let learnt = texts("examples/requests.tsv");
    assert!(texts("examples/requests-test.tsv").lines().all(|text| !learnt.contains(text)));
    for file in ["examples/requests-test.tsv", "examples/requests.tsv"] {
        let mut command = kindred(&["eval", "--json", "--head", "heads/requests"]);
        command.args(["--classification", file]).current_dir(folder.path());
        let measured: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        let accuracy = measured["classification"][0]["accuracy"].as_f64().unwrap();
        let accuracy = format!("{:.2} %", 100.0 * accuracy);
        assert!(page.contains(&accuracy), "docs/classify.md does not say {accuracy} of {file}");
    }
}

#[test]
fn the_head_of_an_evaluation_is_that_of_the_settings_or_else_the_models_own() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set.tsv");
    fs::write(&set, "positive\ta moving and funny film\nnegative\ta dull film\n").unwrap();
    let eval = || {
        let mut eval = kindred(&["eval", "--json", "--classification"]);
        eval.arg(&set);
        eval
    };
    let output = eval().output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(measured["head"], "sentiment", "{measured}");

    let output = eval().env("KINDRED_HEAD", folder.path().join("absent")).output().unwrap();
    assert!(!output.status.success() && errors(&output).contains("absent is not a head"));
}
