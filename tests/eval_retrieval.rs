//! `kindred eval --retrieval`: a collection in, figures out, and what it says when it can't.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use crate::support::{ROYAL, errors, kindred, page, prepared};
use serde_json::{Value, json};

/// A collection in a folder, beside a model of ten words.
struct Scratch {
    folder: tempfile::TempDir,
    _prepared: tempfile::TempDir,
    model: PathBuf,
}

/// For each query the document that is relevant has another word, the neighbour of the query's.
const PAIRS: [(&str, &str); 6] = [
    ("man", "king"),
    ("woman", "queen"),
    ("king", "prince"),
    ("queen", "princess"),
    ("boy", "prince"),
    ("girl", "princess"),
];

fn beir(kind: &str) -> String {
    let lines = PAIRS.iter().enumerate().map(|(number, (query, answer))| match kind {
        "documents" => json!({"_id": format!("d{number}"), "title": "", "text": format!("{answer} of {number}")}).to_string(),
        "queries" => json!({"_id": format!("q{number}"), "text": query}).to_string(),
        _ => format!("q{number}\td{number}\t1"),
    });
    let header = (kind == "qrels").then(|| "query-id\tcorpus-id\tscore".to_owned());
    header.into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn trec(kind: &str) -> String {
    let one = |(number, (query, answer)): (usize, &(&str, &str))| match kind {
        "documents" => {
            format!("<DOC>\n<DOCNO>d{number}</DOCNO>\n<TEXT>{answer} of {number}</TEXT>\n</DOC>\n")
        }
        "queries" => format!("<top>\n<num> Number: {}\n<title> {query}\n</top>\n", 500 + number),
        _ => format!("{} 0 d{number} 1\n", number + 1),
    };
    PAIRS.iter().enumerate().map(one).collect()
}

impl Scratch {
    fn new(form: fn(&str) -> String) -> Self {
        let (prepared, model) = prepared(ROYAL);
        let scratch = Self { folder: tempfile::tempdir().unwrap(), _prepared: prepared, model };
        for kind in ["documents", "queries", "qrels"] {
            scratch.write(kind, form(kind).as_bytes());
        }
        scratch
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = kindred(&["eval", "--retrieval", "--device", "cpu"]);
        for kind in ["documents", "queries", "qrels"] {
            command.arg(format!("--{kind}")).arg(self.folder.path().join(kind));
        }
        command.arg(&self.model).args(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(errors(&output), "", "nothing but JSON, and no bar where there is no terminal");
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["retrieval"].take()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        errors(&output)
    }
}

#[test]
fn all_runs_are_measured_and_compared_with_bm25() {
    let scratch = Scratch::new(beir);
    let report = scratch.json(&["--folds", "2", "--permutations", "2000"]);
    let counts = json!({
        "documents": 6, "empty_documents": 0, "queries": 6, "judged_queries": 6, "without_relevant": 0,
        "unknown_queries": 0, "relevant": 6, "unknown_documents": 0,
    });
    assert_eq!(report["collection"], counts);
    assert_eq!((&report["stemming"], &report["model"]), (&true.into(), &"tiny".into()));
    assert_eq!((&report["folds"], &report["permutations"]), (&2.into(), &2000.into()));
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["BM25", "RM3", "neighbours", "centroid"]);
    // No document has a word of its query.
    let [bm25, _, neighbours, _] = &runs[..] else { panic!("four") };
    assert_eq!((&bm25["map"], &bm25["against_bm25"]), (&0.0.into(), &Value::Null));
    assert!(neighbours["map"].as_f64().unwrap() > 0.3, "{neighbours}");
    let against = &neighbours["against_bm25"];
    assert_eq!(against["map"]["mean"], neighbours["map"]);
    // All six differences are positive or 0: two of the 64 signs are as far from 0.
    let p = against["map"]["p"].as_f64().unwrap();
    assert!((0.01..0.3).contains(&p), "{against}");
    let chosen = neighbours["chosen"].as_array().unwrap();
    let times: u64 = chosen.iter().map(|one| one["times"].as_u64().unwrap()).sum();
    assert_eq!(times, 20, "2 folds × 10 repetitions");
    assert!(chosen[0]["parameters"]["neighbours"].is_u64(), "{chosen:?}");
    assert_eq!(report, scratch.json(&["--folds", "2", "--permutations", "2000", "--threads", "1"]));
}

#[test]
fn trecs_forms_give_the_same_figures() {
    let options = ["--folds", "2", "--permutations", "2000"];
    let expected = Scratch::new(beir).json(&options);
    let scratch = Scratch::new(trec);
    let position = ["--query-ids", "position"];
    assert_eq!(scratch.json(&[&options[..], &position].concat()), expected);
    let error = scratch.refused(&options);
    for part in ["qrels: only 0 of 6 judged", "--query-ids position"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_model_is_asked_only_if_a_run_needs_it() {
    let scratch = Scratch::new(beir);
    fs::remove_dir_all(&scratch.model).unwrap();
    let report = scratch.json(&["--folds", "2", "--runs", "rm3", "--k1", "0.9", "--b", "0.4"]);
    assert_eq!(report["model"], Value::Null);
    assert_eq!(report["runs"].as_array().unwrap().len(), 2);
    let chosen = json!([{"times": 20, "parameters": {"k1": 0.9, "b": 0.4}}]);
    assert_eq!(report["runs"][0]["chosen"], chosen);
    let alone = scratch.json(&["--folds", "2", "--runs", "bm25", "--repetitions", "1"]);
    assert_eq!(alone["runs"].as_array().unwrap().len(), 1);
    let error = scratch.refused(&["--folds", "2"]);
    assert!(error.contains("kindred prepare INPUT --out DIR"), "{error}");
}

#[test]
fn stems_and_stop_words_are_as_asked() {
    let scratch = Scratch::new(|kind| beir(kind).replace("\"man\"", "\"princes of\""));
    let found = |arguments: &[&str]| {
        let fixed = ["--folds", "2", "--runs", "bm25"];
        let report = scratch.json(&[&fixed, arguments].concat());
        (
            report["stop_words"].as_u64().unwrap(),
            report["runs"][0]["recall_at_100"].as_f64().unwrap(),
        )
    };
    // `princes` finds `prince` and `king` is elsewhere; `of` is in every document.
    assert_eq!(found(&[]), (153, 0.0));
    assert_eq!(found(&["--stop-words", "none"]), (0, 1.0 / 6.0));
    let words = scratch.write("words", b"of\nOr\n");
    assert_eq!(found(&["--stop-words", &words]), (2, 0.0));
    let plain = scratch.json(&["--folds", "2", "--runs", "rm3", "--no-stemming"]);
    assert_eq!(plain["stemming"], false);
    let error = scratch.refused(&["--stop-words", "/no/such"]);
    assert!(
        error.contains("can't read /no/such") && error.contains("`english`, `none`"),
        "{error}"
    );
}

#[test]
fn the_table_and_its_conclusion_are_for_people() {
    let output = Scratch::new(beir).run(&["--folds", "2"]);
    assert!(output.status.success(), "{}", errors(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "6 documents (0 empty); 6 queries, 6 judged, 0 without a relevant document; 6 relevant documents",
        "Porter stems, 153 stop words; 10 × 2-fold cross-validation; p by 100,000 permutations",
        "recall@100",
        "BM25: the query's own terms; b ",
        "neighbours: neighbours of each word in tiny; neighbours ",
        "may be chance.",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let bm25 = text.lines().find(|line| line.starts_with("BM25 ")).unwrap();
    assert_eq!(bm25.split_whitespace().collect::<Vec<_>>(), ["BM25", "0.0000", "0.0000", "0.0000"]);
}

#[test]
fn what_can_not_be_measured_is_said_with_the_cure() {
    let scratch = Scratch::new(beir);
    for (file, content, part) in [
        (
            "documents",
            &b"{\"_id\": \"d0\", \"text\": \"caf\xe9\"}"[..],
            "documents, line 1: it is not UTF-8",
        ),
        ("documents", b"{\"_id\": \"d0\", \"text\": \"\"}\noops", "documents, line 2: "),
        ("queries", b"q1\tking", "queries, line 1: it begins neither TREC's markup"),
        ("qrels", b"q0 0 d0 1\nq1 0 d1", "qrels, line 2: it has 3 fields"),
        ("qrels", b"q0 0 d0 0", "qrels: no relevant document is among the documents"),
        (
            "qrels",
            b"q0 0 d0 1",
            "the judgements: there are fewer queries with relevant documents (1) than folds (5)",
        ),
    ] {
        let before = fs::read(scratch.folder.path().join(file)).unwrap();
        scratch.write(file, content);
        let error = scratch.refused(&[]);
        assert!(error.contains(part), "{error}");
        scratch.write(file, &before);
    }
    for (arguments, parts) in [
        (&["--b", "1.5"][..], &["--b", "from 0 to 1"][..]),
        (&["--k1=-1"], &["--k1", "0 or more"]),
        (&["--folds", "1"], &["--folds", "2.."]),
        (&["--runs", "bm25,splade"], &["splade", "neighbours"]),
        (&["--similarities", "x"], &["--retrieval", "--similarities"]),
    ] {
        let error = scratch.refused(arguments);
        assert!(parts.iter().all(|part| error.contains(part)), "{arguments:?}: {error}");
    }
    for (arguments, parts) in [
        (&["eval", "--retrieval"][..], &["--documents", "--queries", "--qrels"][..]),
        (&["eval", "--documents", "x", "--analogies", "y"], &["--retrieval"]),
        (&["eval", "--folds", "3", "--analogies", "y"], &["--retrieval"]),
    ] {
        let output = kindred(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(parts.iter().all(|part| errors(&output).contains(part)), "{}", errors(&output));
    }
}

#[test]
fn neighbours_need_cosines() {
    let scratch = Scratch::new(beir);
    let (vectors, model) =
        (scratch.write("v.txt", ROYAL.as_bytes()), scratch.folder.path().join("dot"));
    let mut prepare = kindred(&["prepare", &vectors, "--metric", "dot", "--out"]);
    assert!(prepare.arg(&model).output().unwrap().status.success());
    let scratch = Scratch { model, ..scratch };
    let error = scratch.refused(&["--folds", "2"]);
    assert!(error.contains("dot is dot") && error.contains("--runs rm3"), "{error}");
    assert_eq!(scratch.json(&["--folds", "2", "--runs", "rm3"])["runs"][1]["name"], "RM3");
}

#[test]
fn the_commands_of_the_page_run() {
    let commands = page::commands("docs/retrieval.md", "## The runs");
    assert!((3..=10).contains(&commands.len()), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for parent in ["qrels", "models"] {
        fs::create_dir(path(parent)).unwrap();
    }
    fs::write(path("vectors.txt"), ROYAL).unwrap();
    let mut prepare = kindred(&["prepare"]);
    prepare.arg(path("vectors.txt")).arg("--out").arg(path("models/glove.6B.50d"));
    let output = prepare.output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    for (kind, of_beir, of_trec) in [
        ("documents", "corpus.jsonl", "docs.trec"),
        ("queries", "queries.jsonl", "topics.txt"),
        ("qrels", "qrels/test.tsv", "qrels.txt"),
    ] {
        fs::write(path(of_beir), beir(kind)).unwrap();
        fs::write(path(of_trec), trec(kind)).unwrap();
    }
    let judged = |number: usize| format!("{} 0 d{number} 1\n", 500 + number);
    fs::write(path("qrels.txt"), (0..PAIRS.len()).map(judged).collect::<String>()).unwrap();
    assert!(page::run(&commands, folder.path()).is_empty(), "there is no curl command");
}
