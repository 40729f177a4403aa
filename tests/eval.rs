//! `kindred eval`: sets in, numbers out, and what it says when it can't.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{ROYAL, errors, kindred, prepared};
use serde_json::Value;

struct Scratch {
    folder: tempfile::TempDir,
    _prepared: tempfile::TempDir,
    model: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let (prepared, model) = prepared(ROYAL);
        Self { folder: tempfile::tempdir().unwrap(), _prepared: prepared, model }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = kindred(&["eval"]);
        command.arg(&self.model).args(["--device", "cpu"]).args(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(errors(&output), "", "nothing but JSON, and no bar where there is no terminal");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        errors(&output)
    }
}

fn right(result: &Value) -> [u64; 3] {
    ["3CosAdd", "3CosMul", "PairDirection"]
        .map(|method| result["methods"][method]["right"].as_u64().unwrap())
}

const GOOGLE: &str = "\
: sex
Man Woman King Queen
man woman boy girl
man king woman stone
: unknown
man woman emperor empress
man man king king
nothing woman king queen
";

#[test]
fn analogies_are_counted_by_section_and_method() {
    let scratch = Scratch::new();
    let set = scratch.file("royal.txt", GOOGLE);
    let report = scratch.json(&["--analogies", &set]);
    assert_eq!(report["model"]["rows"], 10);
    assert_eq!(report["engine"]["name"], "cpu");
    let result = &report["analogies"][0];
    assert_eq!(result["set"], "royal");
    let [sex, unknown] = [&result["sections"][0], &result["sections"][1]];
    assert_eq!(
        (&sex["name"], &sex["questions"], &sex["in_vocabulary"]),
        (&"sex".into(), &3.into(), &3.into())
    );
    // 3CosMul divides by the similarity to `man`, so his opposite always wins.
    assert_eq!(right(sex), [2, 1, 2]);
    assert_eq!(sex["methods"]["3CosAdd"]["accuracy"], 2.0 / 3.0);
    // Unknown words; an answer that is a word of the question; a zero vector.
    assert_eq!((&unknown["questions"], &unknown["in_vocabulary"]), (&3.into(), &2.into()));
    assert_eq!(right(unknown), [0, 0, 0]);
    assert_eq!(right(&result["total"]), [2, 1, 2]);
    assert_eq!(result["total"]["methods"]["PairDirection"]["accuracy"], 2.0 / 6.0);

    let exact = scratch.json(&["--analogies", &set, "--case", "exact", "--methods", "3cosadd"]);
    let sex = &exact["analogies"][0]["sections"][0];
    assert_eq!(
        (&sex["in_vocabulary"], &sex["methods"]["3CosAdd"]["right"]),
        (&2.into(), &1.into())
    );
    assert_eq!(sex["methods"].as_object().unwrap().len(), 1, "only what was asked for");
}

#[test]
fn a_folder_of_pairs_is_one_set_and_each_file_a_section() {
    let scratch = Scratch::new();
    scratch.file("bats/1_sex/E01.txt", "man\twoman\nking\tduchess/queen\nboy\tgirl/lass\n");
    scratch.file("bats/2_rank/R01.txt", "man\tking\nwoman\tqueen\n");
    scratch.file("bats/metadata.json", "{}");
    let folder = scratch.folder.path().join("bats");
    let report = scratch.json(&["--analogies", folder.to_str().unwrap()]);
    let result = &report["analogies"][0];
    assert_eq!(result["set"], "bats");
    let names: Vec<_> = result["sections"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["E01", "R01"]);
    // Every pair against every other; `duchess` is unknown, so `queen` stands for it.
    assert_eq!(result["sections"][0]["questions"], 6);
    assert_eq!(result["sections"][0]["in_vocabulary"], 6);
    assert_eq!(right(&result["total"])[0], 8);
}

#[test]
fn similarities_are_compared_by_rank() {
    let scratch = Scratch::new();
    let same =
        scratch.file("same.csv", "word1,word2,score\nman,woman,9\nman,princess,5\nman,stone,0\n");
    let other = scratch
        .file("other.txt", "Man Stone 9\nman woman 5\nman nobody 3\nman nothing 3\nman king 5\n");
    let report = scratch.json(&["--similarities", &same, &other]);
    let [first, second] = [&report["similarities"][0], &report["similarities"][1]];
    assert_eq!(
        (&first["set"], &first["pairs"], &first["found"]),
        (&"same".into(), &3.into(), &3.into())
    );
    assert_eq!(first["spearman"], 1.0);
    assert_eq!((&second["pairs"], &second["found"]), (&5.into(), &3.into()));
    assert_eq!(second["spearman"], -1.0, "woman and king tie on both sides");

    let flat = scratch.file("flat.txt", "man woman 1\nman king 2\n");
    assert!(scratch.json(&["--similarities", &flat])["similarities"][0]["spearman"].is_null());
}

#[test]
fn tables_are_for_people() {
    let scratch = Scratch::new();
    let analogies = scratch.file("royal.txt", GOOGLE);
    let pairs =
        scratch.file("same.csv", "man,woman,9\nman,princess,5\nman,stone,0\nman,nobody,1\n");
    let output = scratch.run(&["--similarities", &pairs, "--analogies", &analogies]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(
        text.starts_with("tiny (")
            && text.contains("): 10 rows × 4 dimensions; words looked up as")
    );
    for line in [
        vec!["royal", "questions", "in", "vocabulary", "3CosAdd", "3CosMul", "PairDirection"],
        vec!["sex", "3", "3", "2", "66.67", "%", "1", "33.33", "%", "2", "66.67", "%"],
        vec!["total", "6", "5", "2", "33.33", "%", "1", "16.67", "%", "2", "33.33", "%"],
        vec!["same", "4", "3", "1.000"],
    ] {
        assert!(lines.contains(&line), "{line:?} in\n{text}");
    }
}

#[test]
fn what_can_not_be_evaluated_is_said_with_the_cure() {
    let scratch = Scratch::new();
    let good = scratch.file("good.txt", GOOGLE);
    let bad = scratch.file("bad.txt", ": sex\nman woman king\n");
    let pairs = scratch.file("pairs.txt", "man woman 3 4\nman king 5 6\n");
    let none = scratch.file("none/readme.md", "");
    let none = Path::new(&none).parent().unwrap().to_str().unwrap();
    let model = scratch.model.to_str().unwrap();
    for (arguments, parts) in [
        (&[][..], &["--analogies", "--similarities"][..]),
        (&["--analogies", &good, &bad], &["bad.txt, line 2", "3 words instead of four"]),
        (&["--analogies", "/no/such.txt"], &["can't read /no/such.txt"]),
        (&["--similarities", &pairs, model], &["is a model, not a test set", "--model /"]),
        (&["--analogies", none], &["none", "no .txt, .csv or .tsv file"]),
        (&["--similarities", &pairs], &["pairs.txt, line 2", "2 number columns", "`score`"]),
        (&["--analogies", &good, "--methods", "3cosdiv"], &["3cosdiv", "3cosmul"]),
        (&["--analogies", &good, "--case", "upper"], &["upper", "lower", "exact"]),
    ] {
        let error = scratch.refused(arguments);
        assert!(parts.iter().all(|part| error.contains(part)), "{arguments:?}: {error}");
    }
    let no_model =
        kindred(&["eval"]).arg(scratch.folder.path()).args(["--analogies", &good]).output();
    let error = errors(&no_model.unwrap());
    assert!(error.contains("kindred prepare INPUT --out DIR"), "{error}");
}

#[test]
fn help_has_examples_and_names_the_forms() {
    let output = kindred(&["eval", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["Examples:", "kindred eval --model models/", "--json", "SimLex-999", "BATS", "lower case"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_can_not_be_written_are_a_fault() {
    let scratch = Scratch::new();
    let set = scratch.file("set.txt", "# a comment\nman king woman queen\n");
    for flags in [&[][..], &["--json"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = kindred(&["eval", "--device", "cpu"]);
        command.args(flags).arg(&scratch.model).arg("--analogies").arg(&set).stdout(full);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("can't write to standard output"),
            "{said}"
        );
    }
}
