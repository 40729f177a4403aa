//! Encoders against the outputs of the programs that made the models.
//!
//! The data is not part of this repository. It is looked for in the folder that TEST_DATA_DIR
//! names, or in `../shared/data` beside the checkout; without it these tests are reported as
//! ignored. TEST_TOKENIZERS names a Python with Hugging Face's tokenizers and with sentencepiece and
//! protobuf, TEST_FASTTEXT one with fastText.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use encoders::{FastText, FastTextClassifier, StaticModel, Tokeniser};
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
    for model in ["sst.bin", "sst-ns.bin", "sst-ova.bin", "sst.ftz", "sst-sub.ftz"] {
        let [file, expected] = ["", ".ref.json"].map(|end| data(&format!("ft/{model}{end}")));
        let missing = !file.is_file() || !expected.is_file();
        let test = move || classifier(&file, &expected, "predictions");
        let name = format!("every_text_has_the_labels_of_{model}");
        trials.push(Trial::test(name, test).with_ignored_flag(missing));
    }
    let [file, expected] = ["ftz", "ref.json"].map(|end| data(&format!("lid.176.{end}")));
    let missing = !file.is_file() || !expected.is_file();
    let test = move || classifier(&file, &expected, "results");
    trials.push(Trial::test("languages_are_those_of_lid_176", test).with_ignored_flag(missing));
    let python = std::env::var("TEST_FASTTEXT").ok();
    let missing = python.is_none();
    let test = move || trained_classifiers(&python.expect("a Python"));
    let name = "labels_of_trained_models_are_those_of_fasttext";
    trials.push(Trial::test(name, test).with_ignored_flag(missing));
    for model in ["static-minilm", "static-minilm-64", "static-minilm-64-int8", "st-static-64"] {
        let (folder, expected) = (data(model), data(&format!("{model}.ref.json")));
        let texts = data("texts200.json");
        let missing = !folder.is_dir() || !expected.is_file() || !texts.is_file();
        let test = move || static_model(&folder, &texts, &expected);
        let name = format!("every_text_has_the_vector_of_{model}");
        trials.push(Trial::test(name, test).with_ignored_flag(missing));
    }
    let (python, file) =
        (std::env::var("TEST_TOKENIZERS").ok(), data("st-static-64/tokenizer.json"));
    let missing = python.is_none() || !file.is_file();
    let test = move || ids_of_random_texts(&python.expect("a Python"), &file);
    let name = "ids_of_random_texts_are_those_of_tokenizers";
    trials.push(Trial::test(name, test).with_ignored_flag(missing));
    let python = std::env::var("TEST_TOKENIZERS").ok();
    let missing = python.is_none();
    let test = move || trained_tokenisers(&python.expect("a Python"));
    let name = "ids_of_trained_tokenisers_are_those_of_tokenizers";
    trials.push(Trial::test(name, test).with_ignored_flag(missing));
    let skipped = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    if skipped > 0 {
        println!(
            "{skipped} skipped: no data in {} (set TEST_DATA_DIR), or no TEST_TOKENIZERS, \
             TEST_FASTTEXT",
            data("").display()
        );
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

/// The labels of each text in their order, with probabilities that differ by rounding alone, but
/// that they end at 1.
fn classifier(file: &Path, expected: &Path, results: &str) -> Result<(), Failed> {
    let expected = json(expected);
    let results = expected[results].as_array().expect("a list");
    assert!(results.len() >= 100, "only {} texts", results.len());
    let worst = same_labels(&FastTextClassifier::open(file)?, results);
    println!("{}: {worst:e} off at most", file.display());
    Ok(())
}

/// Compares texts with their labels and probabilities; returns the largest difference of these.
fn same_labels(model: &FastTextClassifier, results: &[Value]) -> f64 {
    let mut worst = 0f64;
    for result in results {
        let text = result[0].as_str().expect("a text");
        let (ranges, _) = FastTextClassifier::words_of(text);
        let words: Vec<&[u8]> = ranges.into_iter().map(|at| &text.as_bytes()[at]).collect();
        let read = model.read(&words, 0, || true);
        let (labels, wanted) = (result[1].as_array().expect("labels"), floats(&result[2]));
        if read.rows == 0 {
            assert!(labels.is_empty(), "{text:?}: no row, and {labels:?}");
            continue;
        }
        let mut scored: Vec<_> =
            model.labels().iter().zip(model.scored(&model.products(&read.vector))).collect();
        scored.sort_by(|a, b| b.1.probability.total_cmp(&a.1.probability));
        assert!(!labels.is_empty(), "{text:?}: no label");
        for ((label, wanted), (own, found)) in labels.iter().zip(wanted).zip(&scored) {
            let off = (found.probability - f64::from(wanted).min(1.0)).abs();
            assert!(off <= 2e-6, "{text:?}: {found:?} and not {wanted}");
            worst = worst.max(off);
            // Of labels that are as probable, any may come first.
            let same = scored.iter().find(|(name, _)| label == &format!("__label__{name}"));
            let same = same.expect("a label").1.probability;
            assert!((same - found.probability).abs() <= 2e-6, "{text:?}: {own}, not {label}");
        }
    }
    worst
}

/// Models with every loss, n-grams of each kind, pruned and quantised, trained now by a Python with
/// fastText.
fn trained_classifiers(python: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/classifiers.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (said, mut models) = (String::from_utf8(output.stdout)?, 0);
    for line in said.lines() {
        let line: Value = serde_json::from_str(line)?;
        let file = line["file"].as_str().expect("a file");
        let model = FastTextClassifier::open(&folder.path().join(file))?;
        let worst = same_labels(&model, line["predictions"].as_array().expect("a list"));
        println!("{file}: {worst:e} off at most");
        models += 1;
    }
    assert_eq!(models, 40, "models");
    Ok(())
}

/// A number that looks random, from the last one (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// What tokenisers treat apart.
const SPECIAL: [&str; 16] = [
    "[UNK]",
    "[PAD]",
    "##",
    "[unk]",
    "<unk>",
    "<mask>",
    " <mask>",
    "Ka",
    "\u{fb01}  ",
    "\u{2581}",
    "  ",
    "'ll",
    "\r\n",
    "\u{2026}",
    "\u{1f468}\u{200d}\u{1f467}",
    "e\u{301}",
];

/// A text of all planes of Unicode, with many of what tokenisers treat apart.
fn random_text(state: &mut u64, tokens: &[String]) -> String {
    let mut text = String::new();
    for _ in 0..next(state) % 40 {
        let of = |state: &mut u64, from: u32, to: u32| {
            char::from_u32(from + (next(state) % u64::from(to - from)) as u32).unwrap_or(' ')
        };
        match next(state) % 12 {
            0 | 1 => text.push(of(state, 0x20, 0x7f)),
            2 => text.push(of(state, 0, 0x20)),
            3 => text.push(of(state, 0x80, 0x250)),
            4 => text.push(of(state, 0x250, 0x3000)),
            5 => text.push(of(state, 0x3000, 0x1_0000)),
            6 => text.push(of(state, 0x1_0000, 0x11_0000)),
            7 => text.push(of(state, 0x300, 0x370)),
            8 => text.push(' '),
            9 => text.push_str(SPECIAL[next(state) as usize % SPECIAL.len()]),
            10 => text.extend((0..next(state) % 110).map(|_| 'a')),
            _ => text.push_str(&tokens[next(state) as usize % tokens.len()]),
        }
    }
    text
}

/// 10,000 random texts, and each character by itself, for categories that differ between versions
/// of Unicode.
fn random_texts(tokens: &[String]) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut texts: Vec<String> = (0..10_000).map(|_| random_text(&mut state, tokens)).collect();
    let signs: Vec<char> = (0..0x11_0000).filter_map(char::from_u32).collect();
    let around = |signs: &[char]| signs.iter().map(|sign| format!("a{sign}b ")).collect();
    texts.extend(signs.chunks(64).map(around));
    texts
}

/// Compares the ids of texts with those that a Python with `tokenizers` gives.
fn same_ids(python: &str, file: &Path, name: &str, texts: &[String]) -> Result<(), Failed> {
    let lines: Vec<String> = texts.iter().map(|text| Value::from(&text[..]).to_string()).collect();
    let input = tempfile::NamedTempFile::new()?;
    fs::write(input.path(), lines.join("\n"))?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tokenisers.py");
    let mut command = Command::new(python);
    command.arg(script).arg(file).stdin(fs::File::open(input.path())?);
    let output = command.output()?;
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let tokeniser = Tokeniser::open(file)?;
    let said = String::from_utf8(output.stdout)?;
    assert_eq!(said.lines().count(), texts.len(), "{name}: texts with ids");
    let (mut first, mut differ) = (None, 0);
    for (text, expected) in texts.iter().zip(said.lines()) {
        let mut ids = Vec::new();
        tokeniser.encode(text, &mut ids);
        let expected: Vec<u32> = serde_json::from_str(expected)?;
        if ids != expected {
            differ += 1;
            first.get_or_insert_with(|| format!("{text:?}: {ids:?} and not {expected:?}"));
        }
    }
    match first {
        None => Ok(()),
        Some(first) => Err(format!("{name}: {differ} of {} texts: {first}", texts.len()).into()),
    }
}

/// The ids of random texts, with each step of BERT's normaliser left out.
fn ids_of_random_texts(python: &str, file: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let whole = json(file);
    let texts = random_texts(Tokeniser::open(file)?.tokens());
    let steps = ["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"];
    for (at, left_out) in [None].into_iter().chain(steps.map(Some)).enumerate() {
        let (mut variant, path) = (whole.clone(), folder.path().join(format!("{at}.json")));
        if let Some(step) = left_out {
            variant["normalizer"][step] = false.into();
        }
        fs::write(&path, variant.to_string())?;
        same_ids(python, &path, &format!("{left_out:?} left out"), &texts)?;
    }
    Ok(())
}

/// The ids of random texts by tokenisers of every kind, trained now by a Python with `tokenizers`
/// and `sentencepiece`.
fn trained_tokenisers(python: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trained_tokenisers.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout)?;
    let (mut tokenisers, mut faults, mut compared) = (0, Vec::new(), 0);
    for name in names.lines() {
        let file = folder.path().join(name);
        let texts = random_texts(Tokeniser::open(&file)?.tokens());
        if let Err(fault) = same_ids(python, &file, name, &texts) {
            faults.push(fault.message().unwrap_or_default().to_owned());
        }
        (tokenisers, compared) = (tokenisers + 1, compared + texts.len());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    println!("{tokenisers} tokenisers, {compared} texts");
    assert!(tokenisers >= 48, "only {tokenisers} tokenisers");
    Ok(())
}

/// The ids and the vector of each text.
fn static_model(folder: &Path, texts: &Path, expected: &Path) -> Result<(), Failed> {
    let model = StaticModel::open(folder)?;
    let (texts, expected) = (json(texts), json(expected));
    let (texts, results) = (texts.as_array().expect("a list"), &expected["results"]);
    let results = results.as_array().expect("a list");
    assert_eq!((texts.len(), results.len()), (200, 200), "texts and results");
    let (mut vector, mut worst) = (vec![0.0; model.dim()], 0f32);
    for (text, result) in texts.iter().zip(results) {
        let text = text.as_str().expect("a text");
        let encoded = model.encode(text, &mut vector);
        if let Some(tokens) = result["n_ids"].as_u64() {
            assert_eq!(encoded.count as u64, tokens, "{text:?}: tokens");
        }
        // sentence-transformers has its vectors alone.
        let wanted = [&result["float64"], &result["vector"]];
        let wanted = floats(wanted.into_iter().find(|list| list.is_array()).expect("a vector"));
        assert_eq!(vector.len(), wanted.len(), "components");
        for (own, wanted) in vector.iter().zip(&wanted) {
            assert!((own - wanted).abs() <= 1e-6, "{text:?}: {own} and not {wanted}");
            worst = worst.max((own - wanted).abs());
        }
    }
    println!("{}: {worst:e} off at most", folder.display());
    Ok(())
}
