//! Real vectors and real questions against answers that were computed elsewhere.
//!
//! The data is not part of this repository. It is looked for in the folder that TEST_DATA_DIR
//! names, or in `../shared/data` beside the checkout; without it these tests are reported as
//! ignored. TEST_DEVICE says which engine answers: `cpu`, if not set.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::support::{Service, kindred, words};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

const VECTORS: &str = "vectors/glove.6B.50d.txt.gz";
const EXPECTED: &str = "expected/glove.6B.50d.jsonl";
const ANALOGIES: &str = "analogy/questions-words.txt";

/// What the contract gives on the whole Google analogy set, as computed elsewhere.
const ANALOGIES_RIGHT: usize = 9_033;
const ANALOGIES_ASKED: usize = 19_544;

/// Sets of similarities and Spearman's ρ on them, to three decimals, as computed elsewhere.
const SIMILARITIES: [(&str, &str, &str); 4] = [
    ("EN-MEN-TR-3k", "similarity/EN-MEN-TR-3k.txt", "0.652"),
    ("EN-RG-65", "similarity/EN-RG-65.txt", "0.602"),
    ("EN-SIMLEX-999", "similarity/EN-SIMLEX-999.txt", "0.265"),
    ("EN-WS-353-ALL", "similarity/EN-WS-353-ALL.txt", "0.503"),
];

/// Sections of the Google analogy set: questions, and how many are right with 3CosAdd, 3CosMul and
/// PairDirection, as computed elsewhere.
const SECTIONS: [(&str, u64, [u64; 3]); 3] = [
    ("capital-common-countries", 506, [401, 359, 249]),
    ("currency", 866, [72, 27, 41]),
    ("family", 506, [349, 320, 208]),
];

/// Queries in one request.
const BATCH: usize = 1024;

const EVALUATED: [&str; 6] = [
    VECTORS,
    ANALOGIES,
    SIMILARITIES[0].1,
    SIMILARITIES[1].1,
    SIMILARITIES[2].1,
    SIMILARITIES[3].1,
];

/// Sentences of films' reviews: to learn from, to decide when to stop, and to test. Each line
/// begins with its label.
const SST: [&str; 4] = [
    VECTORS,
    "sentiment/stsa.binary.train",
    "sentiment/stsa.binary.dev",
    "sentiment/stsa.binary.test",
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, files: &[&str], test: fn() -> Result<(), Failed>| {
        let missing = files.iter().any(|file| !data(file).is_file());
        Trial::test(format!("real_data::{name}"), test).with_ignored_flag(missing)
    };
    let trials = vec![
        trial("glove_6b_opens_in_milliseconds", &[VECTORS], opens_in_milliseconds),
        trial("every_expected_line_of_glove_6b", &[VECTORS, EXPECTED], every_expected_line),
        trial(
            "a_graph_of_frequent_words_agrees_with_the_expected_lines",
            &[VECTORS, EXPECTED],
            graph,
        ),
        trial("the_whole_google_analogy_set", &[VECTORS, ANALOGIES], the_whole_google_analogy_set),
        trial("evaluation_of_sections_and_similarity_sets", &EVALUATED, evaluation),
        trial("a_head_for_sst_2_is_right_as_often_as_pytorchs_and_by_the_formula", &SST, sentiment),
    ];
    let skipped = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    if skipped > 0 {
        println!("{skipped} skipped: no data in {} (set TEST_DATA_DIR)", data("").display());
    }
    trials
}

/// Ends the service that the tests share: what is static is not dropped.
pub(crate) fn end() {
    if let Some(service) = SERVICE.get() {
        service.signal("KILL");
    }
}

fn data(file: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    std::env::var_os("TEST_DATA_DIR").map_or_else(beside, PathBuf::from).join(file)
}

/// GloVe 6B, prepared once a run by the program itself.
fn glove() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let index = std::env::var("TEST_TMP_DIR");
        let index = index.as_deref().unwrap_or(env!("CARGO_TARGET_TMPDIR"));
        let out = Path::new(index).join("glove.6B.50d");
        let _ = fs::remove_dir_all(&out);
        let mut prepare = kindred(&["prepare"]);
        let output = prepare.arg(data(VECTORS)).arg("--out").arg(&out).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("400,000 rows × 50 dimensions"), "{said}");
        out
    })
}

static SERVICE: OnceLock<Service> = OnceLock::new();

fn service() -> &'static Service {
    SERVICE.get_or_init(|| {
        Service::start(&["--device", &device(), "--model", glove().to_str().expect("UTF-8")])
    })
}

fn device() -> String {
    std::env::var("TEST_DEVICE").unwrap_or_else(|_| "cpu".into())
}

fn opens_in_milliseconds() -> Result<(), Failed> {
    let times: Vec<Duration> = (0..5)
        .map(|_| {
            let started = Instant::now();
            model_store::ModelStore::open(glove()).expect("it was just prepared");
            started.elapsed()
        })
        .collect();
    println!("opened in {times:?}");
    let best = times.iter().min().expect("five");
    if *best < Duration::from_millis(100) { Ok(()) } else { Err(format!("{times:?}").into()) }
}

fn every_expected_line() -> Result<(), Failed> {
    let lines: Vec<Value> = fs::read_to_string(data(EXPECTED))?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    for line in &lines {
        let mut body = line.clone();
        let fields = body.as_object_mut().ok_or("a line is an object")?;
        fields.remove("neighbors");
        let is_analogy = fields.contains_key("positive") || fields.contains_key("negative");
        let route = if is_analogy { "/analogy" } else { "/nearest" };
        let reply = service().post(route, &body);
        let expected = line["neighbors"].as_array().ok_or("neighbors are a list")?;
        check_neighbours(&reply.json(), expected).map_err(|e| format!("{route} {body}: {e}"))?;
    }
    println!("{} lines: the same words in the same order, scores within 1e-6", lines.len());
    assert_eq!(lines.len(), 360);
    Ok(())
}

fn check_neighbours(answer: &Value, expected: &[Value]) -> Result<(), String> {
    let expected_words: Vec<_> = expected.iter().filter_map(|pair| pair[0].as_str()).collect();
    if words(answer) != expected_words {
        return Err(format!("{:?} instead of {expected_words:?}", words(answer)));
    }
    for (index, pair) in expected.iter().enumerate() {
        let found = answer["neighbors"][index]["score"].as_f64().ok_or("a score is a number")?;
        let expected = pair[1].as_f64().ok_or("a score is a number")?;
        if (found - expected).abs() > 1e-6 {
            return Err(format!("score {found} instead of {expected} for {}", pair[0]));
        }
    }
    Ok(())
}

/// The graph of the first rows, against those of the expected neighbours that are among them, and
/// against the service.
fn graph() -> Result<(), Failed> {
    const ROWS: usize = 4000;
    const K: usize = 20;
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("g.npz");
    let (rows, k) = (ROWS.to_string(), K.to_string());
    let flags = ["graph", "--device", &device(), "--first-rows", &rows, "-k", &k, "--model"];
    let output = kindred(&flags).arg(glove()).arg("--out").arg(&file).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut archive = zip::ZipArchive::new(fs::File::open(file)?)?;
    let mut table = |name: &str| -> Result<Vec<[u8; 8]>, Failed> {
        let mut bytes = Vec::new();
        archive.by_name(name)?.read_to_end(&mut bytes)?;
        let header = bytes.len() - ROWS * K * 8;
        Ok(bytes[header..].as_chunks().0.to_vec())
    };
    let (indices, scores) = (table("indices.npy")?, table("scores.npy")?);
    let all_words = fs::read_to_string(glove().join("words.txt"))?;
    let rows: HashMap<&str, usize> =
        all_words.lines().take(ROWS).enumerate().map(|(row, word)| (word, row)).collect();
    let of_row = |row: usize| {
        let of_row = row * K..(row + 1) * K;
        let indices = indices[of_row.clone()].iter().map(|bytes| i64::from_le_bytes(*bytes));
        indices.zip(scores[of_row].iter().map(|bytes| f64::from_le_bytes(*bytes)))
    };
    let (mut compared, mut asked) = (0, 0);
    for line in fs::read_to_string(data(EXPECTED))?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let Some((word, &row)) = line["word"].as_str().and_then(|word| rows.get_key_value(word))
        else {
            continue;
        };
        let expected = line["neighbors"].as_array().ok_or("neighbors are a list")?;
        let among =
            expected.iter().filter_map(|pair| Some((*rows.get(pair[0].as_str()?)?, &pair[1])));
        for ((found, score), (row, expected)) in of_row(row).zip(among) {
            assert_eq!(found, row as i64, "{word}");
            assert!((score - expected.as_f64().ok_or("a score")?).abs() < 1e-6, "{word}");
            compared += 1;
        }
        let body = json!({"word": word, "k": K, "vocab_limit": ROWS});
        let answer = service().post("/nearest", &body).json();
        for ((found, score), neighbor) in
            of_row(row).zip(answer["neighbors"].as_array().ok_or("a list")?)
        {
            assert_eq!(neighbor["row"], found, "{word}");
            assert_eq!(
                neighbor["score"].as_f64().map(f64::to_bits),
                Some(score.to_bits()),
                "{word}"
            );
            asked += 1;
        }
    }
    println!("{compared} expected neighbours and {asked} of the service's");
    assert!(compared > 100 && asked > 1000, "{compared}, {asked}");
    Ok(())
}

/// a is to b as c is to d: 3CosAdd with b − a + c must find d. A question with a word that the
/// model does not have counts as wrong.
fn the_whole_google_analogy_set() -> Result<(), Failed> {
    let text = fs::read_to_string(data(ANALOGIES))?.to_lowercase();
    let questions: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with(':'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let (mut right, mut errors) = (0, HashMap::<String, usize>::new());
    for batch in questions.chunks(BATCH) {
        let queries: Vec<Value> = batch
            .iter()
            .map(|q| json!({"positive": [q[1], q[2]], "negative": [q[0]], "k": 1}))
            .collect();
        let answer = service().post("/analogy", &json!({"queries": queries})).json();
        let results = answer["results"].as_array().ok_or("results are a list")?;
        assert_eq!(results.len(), batch.len());
        for (question, result) in batch.iter().zip(results) {
            match result["error"]["code"].as_str() {
                Some(code) => *errors.entry(code.to_owned()).or_default() += 1,
                None => right += usize::from(words(result) == [question[3]]),
            }
        }
    }
    println!("{right} of {} right; not answered: {errors:?}", questions.len());
    assert_eq!((right, questions.len()), (ANALOGIES_RIGHT, ANALOGIES_ASKED));
    assert!(errors.keys().all(|code| code == "unknown_word"), "{errors:?}");
    Ok(())
}

/// `kindred eval`, on those sections that do not take long with methods that score every row.
fn evaluation() -> Result<(), Failed> {
    let text = fs::read_to_string(data(ANALOGIES))?;
    let mut sections = tempfile::Builder::new().suffix(".txt").tempfile()?;
    for section in text.split(": ").skip(1) {
        if SECTIONS.iter().any(|(name, ..)| section.lines().next() == Some(name)) {
            write!(sections, ": {section}")?;
        }
    }
    let mut eval = kindred(&["eval", "--json", "--device", &device()]);
    eval.arg(glove()).arg("--analogies").arg(sections.path()).arg("--similarities");
    let output = eval.args(SIMILARITIES.map(|(_, file, _)| data(file))).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let found: Vec<_> =
        report["analogies"][0]["sections"].as_array().ok_or("a list")?.iter().collect();
    assert_eq!(found.len(), SECTIONS.len());
    for (section, (name, questions, right)) in found.into_iter().zip(SECTIONS) {
        println!("{section}");
        let methods = ["3CosAdd", "3CosMul", "PairDirection"];
        assert_eq!(section["name"], name);
        assert_eq!(
            (&section["questions"], &section["in_vocabulary"]),
            (&json!(questions), &json!(questions))
        );
        assert_eq!(
            methods.map(|method| &section["methods"][method]["right"]),
            right.map(|n| json!(n)).each_ref()
        );
    }
    for (result, (set, _, rho)) in
        report["similarities"].as_array().ok_or("a list")?.iter().zip(SIMILARITIES)
    {
        println!("{result}");
        assert_eq!(result["set"], set);
        assert_eq!(result["found"], result["pairs"]);
        assert_eq!(format!("{:.3}", result["spearman"].as_f64().ok_or("a number")?), rho);
    }
    Ok(())
}

/// One seed; docs/classify.md has the mean of five. Every text's class scores are compared with
/// those of the formula in float64, which an explanation has.
fn sentiment() -> Result<(), Failed> {
    const EPSILON: f64 = 1e-5;
    let folder = tempfile::tempdir()?;
    let [train, dev, test] = [1, 2, 3].map(|file| {
        let content = fs::read_to_string(data(SST[file])).expect("it can be read");
        let path = folder.path().join(format!("{file}.tsv"));
        fs::write(
            &path,
            content.replace("\n0 ", "\n0\t").replace("\n1 ", "\n1\t").replacen(' ', "\t", 1),
        )
        .expect("it is written");
        path
    });
    let head = folder.path().join("head");
    let mut command = kindred(&["train", "classifier", "--model"]);
    command.arg(glove()).arg("--data").arg(&train).arg("--dev").arg(&dev).arg("--out").arg(&head);
    // The fourth is the best of the default's twelve.
    command.args(["--epochs", "4"]);
    let output = command.output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut command = kindred(&["eval"]);
    command.arg(glove()).args(["--json", "--head"]).arg(&head);
    let output = command.arg("--classification").arg(&test).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout)?;
    let accuracy = result["classification"][0]["accuracy"].as_f64().ok_or(result.to_string())?;
    assert!(accuracy > 0.81, "{accuracy}");

    let texts = fs::read_to_string(&test)?;
    let texts: String = texts.lines().map(|line| format!("{}\n", &line[2..])).collect();
    let input = folder.path().join("texts");
    fs::write(&input, texts)?;
    let mut command = kindred(&["classify", "--json", "--scores", "--explain", "--model"]);
    command.arg(glove()).arg("--head").arg(&head).stdin(fs::File::open(&input)?);
    let output = command.output()?;
    let answers: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    assert_eq!(answers.len(), 1821);
    for answer in answers {
        let [first, second] =
            [0, 1].map(|n| answer["labels"][n]["score"].as_f64().expect("a score"));
        let explanation = &answer["explanation"];
        assert_eq!(explanation["label"], answer["labels"][0]["label"]);
        let formula = explanation["score"].as_f64().expect("the formula's score");
        assert!((first - formula).abs() < EPSILON && first >= second, "{answer}");
    }
    Ok(())
}
