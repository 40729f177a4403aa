//! `kindred console` and single questions: through pipes, here and against a running service.

mod answers;
mod faults;
mod services;
mod singles;

use std::process::{Command, Output};

use crate::support::{cache, kindred, objects, piped};
use serde_json::Value;

/// A command over the built-in model, in the cache that the tests share.
fn here(arguments: &[&str]) -> Command {
    let mut command = kindred(arguments);
    command.args(["--device", "cpu", "--cache-dir"]).arg(cache());
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Words, rows and score bits.
fn neighbors(answer: &Value) -> Vec<(String, u64, u64)> {
    let neighbors = answer["neighbors"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let one = |n: &Value| {
        let word = n["word"].as_str().unwrap().to_owned();
        (word, n["row"].as_u64().unwrap(), n["score"].as_f64().unwrap().to_bits())
    };
    neighbors.iter().map(one).collect()
}

const QUESTIONS: [&str; 5] =
    ["frog", "king - man + woman", "0.5*(paris + \"rome\") - france", "\"frog\"", "-bad + good"];
