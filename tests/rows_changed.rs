//! Every command about a folder whose rows were changed is about its rows as they are now, or is
//! refused with the cure: none is about the base alone.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::long_work::said;
use crate::support::{Service, kindred, piped};

/// `frogs` is deleted, `toad` replaced and `newt` inserted.
const BASE: &str = "frog 1 0\nfrogs 1 0.1\ntoad 0 1\ncar 0.1 1\ncars 0.2 1\n";
const NEW: &str = "\
    {\"key\": \"toad\", \"vector\": [1, 0.2], \"attributes\": {\"legs\": 4}}\n\
    {\"key\": \"newt\", \"vector\": [1, 0.05], \"attributes\": {\"legs\": 5}}\n";

/// The cure that every refusal names.
const CURE: &str = "--discard-changes";

/// How a command ends.
enum Ends<'a> {
    /// It succeeds, and says all of these.
    Says(&'a [&'a str]),
    /// It fails, and says all of these.
    Fails(&'a [&'a str]),
}
use Ends::{Fails, Says};

/// Runs a command with these words, the model behind them, and this input. Returns what it says.
fn run(folder: &Path, words: &[&str], model: &[&str], input: &str) -> (bool, String) {
    let mut command = kindred(&[words, model].concat());
    command.current_dir(folder);
    let output = piped(command, input);
    (output.status.success(), said(&output))
}

fn done(folder: &Path, words: &[&str], input: &str) -> String {
    let (succeeded, said) = run(folder, words, &[], input);
    assert!(succeeded, "{words:?}: {said}");
    said
}

/// A folder with the changed models `m` and, under the metric `dot`, `dot`; heads of their bases;
/// and files of questions.
fn changed() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let write = |name: &str, content: &str| fs::write(folder.join(name), content).unwrap();
    write("in.txt", BASE);
    write("in.csv", "legs,kind\n4,x\n4,x\n2,x\n,x\n,x\n");
    write("new.jsonl", NEW);
    write("words.txt", "frog\nnewt\nfrogs\n");
    write("questions.txt", "frog + newt\n");
    write("analogies.txt", ": all\nfrog newt frog toad\n");
    write("pairs.txt", "frog newt 9\nfrog car 1\nnewt cars 2\nfrogs car 3\n");
    let texts = "frog toad frogs,animal\ncar cars,thing\n".repeat(12);
    write("texts.csv", &format!("text,label\n{texts}"));
    for (model, metric) in [("m", "cosine"), ("dot", "dot")] {
        let prepare = ["prepare", "in.txt", "--attributes", "in.csv", "--metric", metric];
        done(folder, &[&prepare[..], &["--out", model]].concat(), "");
    }
    let train = ["train", "classifier", "--model", "m", "--data", "texts.csv", "--out", "head"];
    done(folder, &train, "");
    for model in ["m", "dot"] {
        done(folder, &["rows", "put", model, "new.jsonl"], "");
        done(folder, &["rows", "delete", model, "frogs"], "");
    }
    scratch
}

#[test]
fn every_command_is_about_the_rows_as_they_are_now_or_is_refused() {
    let scratch = changed();
    let folder = scratch.path();
    let unknown = &["does not have `Frogs`", "did you mean frog"][..];
    let console = "frog\n:model\n:filter legs > 4\nfrog\n:quit\n";
    let cases: [(&[&str], &str, Ends<'_>); 37] = [
        // Questions.
        (&["nearest", "frog"], "", Says(&["newt", "toad", "car"])),
        (&["nearest", "frog", "--json"], "", Says(&["\"newt\"", "\"position\":2"])),
        (&["nearest", "frog", "--filter", "legs > 4"], "", Says(&["newt"])),
        (&["nearest", "frog", "--explain"], "", Says(&["newt"])),
        (&["nearest", "Frogs"], "", Fails(unknown)),
        (&["nearest", "frogs+car"], "", Fails(&["does not have `frogs+car`"])),
        (&["nearest", "newt+car"], "", Fails(&["did you mean the expression newt + car"])),
        (&["nearest", "frogs"], "", Fails(&["does not have `frogs`"])),
        (&["analogy", "frog + newt"], "", Says(&["toad"])),
        (&["analogy", "frog + newt", "--method", "3cosmul"], "", Says(&["toad"])),
        (&["analogy", "Frogs - car"], "", Fails(unknown)),
        (&["rank", "newt", "car", "--word", "frog"], "", Says(&["newt"])),
        (&["rank", "newt", "--word", "frog", "--json"], "", Says(&["\"position\":2"])),
        (&["rank", "Frogs", "--word", "frog"], "", Fails(unknown)),
        (&["similarity", "frog", "newt"], "", Says(&["frog\tnewt\t0.9987"])),
        (&["similarity", "frog", "Frogs"], "", Fails(unknown)),
        (&["odd-one-out", "frog", "newt", "car"], "", Says(&["car"])),
        (&["odd-one-out", "frog", "newt", "Frogs"], "", Fails(unknown)),
        (&["console"], console, Says(&["newt", "rows\t5\n"])),
        (&["console"], "Frogs\n:quit\n", Fails(unknown)),
        // The reference is an engine of a base.
        (&["nearest", "frog", "--compare"], "", Fails(&[CURE])),
        // Long work.
        (
            &["eval", "--similarities", "pairs.txt", "--analogies", "analogies.txt"],
            "",
            Says(&["5 rows"]),
        ),
        (
            &["eval", "--similarities", "pairs.txt", "--json"],
            "",
            Says(&["\"position\": 2", "\"rows\": 5", "\"found\": 3"]),
        ),
        (&["eval", "--similarities", "dot"], "", Fails(&["dot is a model"])),
        (
            &["bulk", "nearest", "--in", "words.txt", "--out", "-", "-k", "9"],
            "",
            Says(&["newt", "toad", "does not have `frogs`"]),
        ),
        (
            &["bulk", "analogy", "--in", "questions.txt", "--out", "-", "--to", "csv"],
            "",
            Says(&["toad"]),
        ),
        (&["graph", "--out", "graph.npz"], "", Says(&["of 5 rows"])),
        // Heads are of the base: a classifier has its words, an expander's terms are its rows.
        (&["classify", "--head", "head", "frogs"], "", Says(&["animal"])),
        (
            &["eval", "--head", "head", "--classification", "texts.csv"],
            "",
            Says(&["0 without a known word"]),
        ),
        (&["expand", "frog"], "", Fails(&[CURE])),
        (&["bulk", "expand", "--in", "words.txt", "--out", "-"], "", Fails(&["no expander"])),
        (&["train", "classifier", "--data", "texts.csv", "--out", "new"], "", Fails(&[CURE])),
        (&["train", "expander", "--out", "new"], "", Fails(&[CURE])),
        // About the folder.
        (&["attributes"], "", Fails(&[CURE])),
        (&["verify"], "", Fails(&[CURE, "kindred changes verify"])),
        (&["export", "--format", "glove", "--out", "out.txt"], "", Fails(&[CURE])),
        (&["serve", "--check"], "", Says(&["The settings are valid", "position=2"])),
    ];
    for (words, input, ends) in cases {
        let (succeeded, said) = run(folder, words, &["--model", "m"], input);
        let (expected, parts) = match ends {
            Says(parts) => (true, parts),
            Fails(parts) => (false, parts),
        };
        assert_eq!(succeeded, expected, "{words:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{words:?}, {part}: {said}");
        }
        let names_it = words.iter().any(|word| ["frogs", "frogs+car", "words.txt"].contains(word));
        assert!(!said.contains("frogs + car"), "{words:?}: {said}");
        assert!(names_it || !said.contains("frogs"), "{words:?} names a deleted row: {said}");
    }
    for written in ["new", "out.txt"] {
        assert!(!folder.join(written).exists(), "{written}");
    }
    // Another model may not take its place by chance.
    let synth = ["synth", "--rows", "3", "--dim", "2", "--out", "m", "--replace"];
    let (succeeded, said) = run(folder, &synth, &[], "");
    assert!(!succeeded && said.contains("whose rows were changed"), "{said}");
}

#[test]
fn an_expander_whose_terms_are_rows_is_refused_where_they_were_changed() {
    let scratch = changed();
    let (folder, model) = (scratch.path(), ["--model", "dot"]);
    let (_, said) = run(folder, &["console"], &model, "frog\n:expand frog\n:quit\n");
    assert!(said.contains("newt") && said.contains("a folder of terms"), "{said}");
    let bulk = ["bulk", "expand", "--in", "words.txt", "--out", "-"];
    let (_, said) = run(folder, &bulk, &model, "");
    assert!(said.contains("a folder of terms") && !said.contains("car"), "{said}");
}

#[test]
fn a_reload_serves_the_rows_that_were_changed_since() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    fs::write(folder.join("in.txt"), BASE).unwrap();
    done(folder, &["prepare", "in.txt", "--out", "m"], "");
    let model = folder.join("m");
    let service = Service::start_with_keys(&["--model", model.to_str().unwrap()]);
    let nearest = || service.get("/nearest?word=frog&k=1").words();
    assert_eq!(nearest(), ["frogs"]);
    done(folder, &["rows", "delete", "m", "frogs"], "");
    assert_eq!(nearest(), ["frogs"], "those that it opened");
    let reload = || {
        let reloaded = service.send("POST", b"/admin/reload", &[], b"");
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
        reloaded.json()["models"][0]["outcome"].clone()
    };
    assert_eq!(reload(), "loaded");
    let answer = service.get("/nearest?word=frog&k=9").json();
    assert_eq!(answer["position"], 1);
    assert!(!answer.to_string().contains("frogs"), "{answer}");
    assert_eq!(reload(), "unchanged");
    let row = r#"{"key": "newt", "vector": [1, 2.1]}"#;
    done(folder, &["rows", "put", "m", "-"], row);
    assert_eq!((reload(), nearest()), (json!("loaded"), vec!["newt".to_owned()]));
    assert_eq!(service.get("/model").json()["position"], 2);
}
