//! Encoders against the outputs of the programs that made the models.
//!
//! The data is not part of this repository. It is looked for in the folder that TEST_DATA_DIR
//! names, or in `../shared/data` beside the checkout; without it these tests are reported as
//! ignored.

use std::fs;
use std::path::{Path, PathBuf};

use encoders::FastText;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

fn main() {
    let mut trials = Vec::new();
    for model in ["skipgram", "cbow-tiny", "nosub-tiny"] {
        let [file, expected] = [".bin", ".ref.json"].map(|end| data(&format!("ft/{model}{end}")));
        let missing = !file.is_file() || !expected.is_file();
        let test = move || fasttext(&file, &expected);
        let name = format!("every_word_of_{model}_has_the_bits_of_fasttext");
        trials.push(Trial::test(name, test).with_ignored_flag(missing));
    }
    let skipped = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    if skipped > 0 {
        println!("{skipped} skipped: no data in {} (set TEST_DATA_DIR)", data("").display());
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn data(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("TEST_DATA_DIR").map_or_else(beside, PathBuf::from);
    data.join("encoders").join(file)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it can be read")).expect("it is JSON")
}

fn floats(list: &Value) -> Vec<f32> {
    let number = |number: &Value| number.as_f64().expect("a number") as f32;
    list.as_array().expect("a list").iter().map(number).collect()
}

/// Each word's row, parts with their rows, and vector, bit for bit.
fn fasttext(file: &Path, expected: &Path) -> Result<(), Failed> {
    let (model, expected) = (FastText::open(file)?, json(expected));
    assert_eq!(u64::from(model.words()), expected["words"], "words");
    assert_eq!(model.dim() as u64, expected["dim"], "components");
    let results = expected["results"].as_array().expect("a list");
    assert!(results.len() >= 300, "only {} words", results.len());
    let mut vector = vec![0.0; model.dim()];
    for result in results {
        let word = result["word"].as_str().expect("a word");
        let row = model.find(word.as_bytes()).map_or(-1, i64::from);
        assert_eq!(row, result["id"], "{word:?}: its row");
        let parts = model.subwords(word.as_bytes());
        assert_eq!(parts.len() as u64, result["n_subwords"], "{word:?}: its parts");
        // The first 200 of them are in the file.
        let kept = &parts[..parts.len().min(200)];
        let rows: Vec<Value> = kept.iter().map(|part| part.row.into()).collect();
        assert_eq!(Value::Array(rows), result["subword_ids"], "{word:?}: its rows");
        let texts = kept.iter().map(|part| String::from_utf8_lossy(&part.text).into());
        assert_eq!(Value::Array(texts.collect()), result["subwords"], "{word:?}: its parts");
        assert_eq!(model.vector(word.as_bytes(), &mut vector), parts.len());
        let bits = |vector: &[f32]| vector.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let wanted = floats(&result["vector"]);
        assert_eq!(bits(&vector), bits(&wanted), "{word:?}: {vector:?} and not {wanted:?}");
    }
    Ok(())
}
