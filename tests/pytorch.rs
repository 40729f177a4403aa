//! Classifiers of PyTorch: `kindred import-head` makes heads of them that answer the same.
//!
//! `tests/pytorch/recorded` has what the scripts beside it wrote. Where Python has PyTorch
//! (TEST_PYTORCH, or python3), they run again; otherwise those tests are reported as ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{kindred, prepared, python, top};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;

/// The models that `tests/pytorch/textcnn.py` writes.
const MODELS: [&str; 3] = ["conv1d", "kim", "bfloat16"];

/// Class scores may differ by this much.
const SCORE_TOLERANCE: f64 = 1e-4;

/// Two runs of PyTorch may.
const RUN_TOLERANCE: f64 = 1e-6;

pub(crate) fn trials() -> Vec<Trial> {
    let python = python::that_imports("TEST_PYTORCH", "torch");
    let missing = python.is_none();
    let (here, classifiers, expanders) = (python.clone(), python.clone(), python);
    let trials = vec![
        Trial::test("pytorch::recorded_models_answer_the_same_here", || compare_all(&recorded())),
        Trial::test("pytorch::models_that_pytorch_makes_now_answer_the_same_here", move || {
            let scratch = tempfile::tempdir()?;
            run(here.as_deref(), "textcnn.py", Some(scratch.path()))?;
            compare_all(scratch.path())
        })
        .with_ignored_flag(missing),
        Trial::test("pytorch::the_recorded_gradients_are_those_of_pytorch", move || {
            gradients(classifiers.as_deref(), "gradients")
        })
        .with_ignored_flag(missing),
        Trial::test("pytorch::the_recorded_expanders_are_those_of_pytorch", move || {
            gradients(expanders.as_deref(), "expander")
        })
        .with_ignored_flag(missing),
    ];
    if missing {
        println!("3 skipped: no Python with torch; TEST_PYTORCH=PYTHON names one");
    }
    trials
}

fn recorded() -> PathBuf {
    top().join("tests/pytorch/recorded")
}

/// What a script prints.
fn run(python: Option<&Path>, script: &str, to: Option<&Path>) -> Result<Vec<u8>, Failed> {
    let mut command = Command::new(python.ok_or("no Python with torch")?);
    let output = command.arg(top().join("tests/pytorch").join(script)).args(to).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn read(path: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn compare_all(folder: &Path) -> Result<(), Failed> {
    let (_prepared, model) = prepared(&fs::read_to_string(folder.join("vectors.txt"))?);
    for name in MODELS {
        compare(folder, name, &model)?;
    }
    Ok(())
}

/// Imports a model, and compares its class scores with those of PyTorch.
fn compare(folder: &Path, name: &str, model: &Path) -> Result<(), Failed> {
    let expected = read(&folder.join(format!("{name}.json")))?;
    let strings = |list: &Value| -> Vec<String> {
        list.as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| Some(one.as_str()?.to_owned()))
            .collect()
    };
    let scratch = tempfile::tempdir()?;
    let head = scratch.path().join("head");
    let mut import = kindred(&["import-head", "--tokeniser", "words", "--model"]);
    import.arg(model).arg("--weights").arg(format!("{name}.safetensors")).arg("--out").arg(&head);
    let arguments = strings(&expected["arguments"]);
    let output = import.args(&arguments).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }

    let cases = expected["cases"].as_array().ok_or("cases")?;
    let texts: Vec<&str> = cases.iter().filter_map(|case| case["text"].as_str()).collect();
    let mut classify = kindred(&["classify", "--json", "--scores", "--model"]);
    let output = classify.arg(model).arg("--head").arg(&head).args(&texts).output()?;
    let answers = String::from_utf8(output.stdout)?;
    let position = arguments.iter().position(|argument| argument == "--labels").ok_or("labels")?;
    let labels: Vec<&str> = arguments[position + 1].split(',').collect();
    let mut compared = 0;
    for (case, answer) in cases.iter().zip(answers.lines()) {
        let answer: Value = serde_json::from_str(answer)?;
        for found in answer["labels"].as_array().ok_or_else(|| answer.to_string())? {
            let class =
                labels.iter().position(|label| found["label"] == *label).ok_or("a label")?;
            let expected = case["scores"][class].as_f64().ok_or("a score")?;
            let score = found["score"].as_f64().ok_or("a score")?;
            if (score - expected).abs() > SCORE_TOLERANCE {
                return Err(format!("{name}: {expected} by PyTorch, but {answer}").into());
            }
            compared += 1;
        }
    }
    match compared == cases.len() * labels.len() && !cases.is_empty() {
        true => Ok(()),
        false => Err(format!("{name}: only {compared} scores were compared").into()),
    }
}

/// `crates/cpu-core` compares its gradients with these.
fn gradients(python: Option<&Path>, name: &str) -> Result<(), Failed> {
    let now: Value = serde_json::from_slice(&run(python, &format!("{name}.py"), None)?)?;
    let recorded = read(&recorded().join(format!("{name}.json")))?;
    let (now, recorded) = (numbers(&now["cases"]), numbers(&recorded["cases"]));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < RUN_TOLERANCE;
    match now.len() == recorded.len() && now.len() > 1000 && now.iter().zip(&recorded).all(near) {
        true => Ok(()),
        false => Err("PyTorch gives other gradients than the recorded ones".into()),
    }
}

/// All numbers of a value, in their order.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        Value::Object(all) => all.values().flat_map(numbers).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}
