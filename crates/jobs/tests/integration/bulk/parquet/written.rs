//! What is written has the values and the types of JSON lines, and is one file after any kill.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use jobs::JobError;
use jobs::bulk::{BulkOptions, BulkWork, WantedLabels};
use kindred::heads::{Form, WantedTerms};
use kindred::prepare::{Input, PrepareOptions, prepare_folder};
use kindred::{Kindred, Method, Model, Options, Settings, Unknown};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use super::rows;
use crate::bulk::fasttext::{File, words as words_of_file};
use crate::bulk::resume::{ROWS, nearest, stopped, whole, words};
use crate::bulk::{Scratch, demo, run, texts};

/// Compares the rows of both forms.
fn same(kindred: &Kindred, work: &BulkWork, input: &Path, options: &BulkOptions) -> Vec<Value> {
    let scratch = Scratch::new();
    let (mut expected, done) = scratch.answers(kindred, work, input, options);
    // What may be null in an explanation is left out of both.
    let inputs = expected.iter_mut().filter_map(|row| row.get_mut("inputs")?.as_array_mut());
    for input in inputs.flatten() {
        input.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    let out = scratch.path("out.parquet");
    let made = run(kindred, work, (input, &out), options).unwrap();
    assert_eq!((made.rows, made.failed, &made.errors), (done.rows, done.failed, &done.errors));
    let found = rows(&out);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    found
}

#[test]
fn each_form_of_answers_has_the_values_of_json_lines() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let default = BulkOptions::default();
    let mut asked = texts(kindred.model(), 300);
    asked[7] = "zzqqx good film".to_owned();
    asked[9] = "zzqqx".to_owned();
    asked[20] = String::new();
    asked[33] = "good ".repeat(3000);
    let input = scratch.file("texts.txt", asked.join("\n"));
    let head = kindred.built_in_head().unwrap();
    let wanted = WantedLabels::default();
    let found = same(&kindred, &BulkWork::Classify(head.clone(), wanted), &input, &default);
    assert_eq!(found[9]["error"]["line"], 10);
    assert!(found[7]["unknown"][0] == "zzqqx" && found[33]["cut"] == true, "{}", found[33]);
    let wanted = WantedLabels { threshold: Some(0.9), ..wanted };
    let found = same(&kindred, &BulkWork::Classify(head, wanted), &input, &default);
    assert!(found.iter().any(|row| row["labels"].as_array().is_some_and(Vec::is_empty)));

    let expander = kindred.built_in_expander().unwrap();
    for form in Form::ALL {
        let wanted = WantedTerms { top: 9, ..WantedTerms::default() };
        same(&kindred, &BulkWork::Expand(expander.clone(), wanted, form), &input, &default);
    }

    let options = Options::new().k(3);
    same(&kindred, &BulkWork::NearestOfTexts(options.clone()), &input, &default);
    let asked = "king - man + woman\nparis\n(\nzzqqx + frog\n0.5*frog + toad\n";
    let input = scratch.file("asked.txt", asked);
    let all = options.explain(true).with_vectors(true).unknown(Unknown::Skip);
    let found = same(&kindred, &BulkWork::Analogy(all.clone()), &input, &default);
    assert_eq!(found[3]["skipped"], Value::from_iter(["zzqqx"]));
    let all = Options { exclude: Some(vec!["king".into()]), ..all };
    let found =
        same(&kindred, &BulkWork::Analogy(all.method(Method::ThreeCosMul)), &input, &default);
    assert!(found[0]["neighbors"][0]["terms"][0]["factor"].is_f64(), "{}", found[0]);
}

#[test]
fn words_that_are_no_rows_are_told_in_both_forms() {
    let scratch = Scratch::new();
    let known = ["the", "frog", "toad", "pond"];
    let entries = words_of_file(&known.map(str::as_bytes));
    let component = |at: usize| ((at * 7919 % 97) as f32 - 48.0) / 9.0;
    let file = File { dim: 8, bucket: 60, minn: 2, maxn: 4, entries, component, ..File::default() };
    let (source, folder) = (scratch.file("m.bin", file.bytes()), scratch.path("m"));
    let go_on = &mut |_| ControlFlow::Continue(());
    prepare_folder(Input::File(&source), &folder, &PrepareOptions::default(), go_on).unwrap();
    let kindred = Kindred::start(Model::open(&folder).unwrap(), Settings::default()).unwrap();
    let input = scratch.file("in.txt", "the frog\nfrogs and toads\n\n");
    for explain in [false, true] {
        let options = Options::new().k(2).explain(explain);
        let work = BulkWork::NearestOfTexts(options);
        let found = same(&kindred, &work, &input, &BulkOptions::default());
        assert!(found[0].get("subwords").is_none_or(Value::is_null), "{}", found[0]);
        let told = found[1]["subwords"].as_array().unwrap();
        assert_eq!((told.len(), told[0].get("ngrams").is_some()), (3, explain), "{}", found[1]);
    }
}

#[test]
fn ids_are_lines_or_strings() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let rows = "key,word\n7,frog\n\"a,b\",king\n";
    let input = scratch.file("in.csv", rows);
    let options = BulkOptions { id: Some("key".into()), ..BulkOptions::default() };
    let found = same(&kindred, &BulkWork::Nearest(Options::new().k(1)), &input, &options);
    assert_eq!([&found[0]["id"], &found[1]["id"]], ["7", "a,b"]);

    // Of JSON, as in CSV.
    let lines = "{\"key\": 1.50, \"word\": \"frog\"}\n{\"key\": \"a\", \"word\": \"x\"}\n[]\n";
    let input = scratch.file("in.jsonl", lines);
    let out = scratch.path("out.parquet");
    run(&kindred, &BulkWork::Nearest(Options::new().k(1)), (&input, &out), &options).unwrap();
    let ids: Vec<Value> = super::rows(&out).iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["1.50".into(), "a".into(), Value::Null]);
}

#[test]
fn a_file_without_rows_and_one_of_several_groups() {
    let (kindred, scratch) = (whole(), Scratch::new());
    let out = scratch.path("o.parquet");
    let options = BulkOptions { replace: true, ..BulkOptions::default() };
    run(&kindred, &nearest(), (&scratch.file("in.txt", ""), &out), &options).unwrap();
    assert!(rows(&out).is_empty());

    let input = scratch.file("in.txt", "word7\n".repeat(123_000));
    let work = BulkWork::Nearest(Options::new().k(1));
    run(&kindred, &work, (&input, &out), &options).unwrap();
    let reader = SerializedFileReader::new(fs::File::open(&out).unwrap()).unwrap();
    let groups: Vec<i64> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [122_880, 123_000 - 122_880]);
    let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let version = about.iter().find(|pair| pair.key == "kindred.version").unwrap();
    assert_eq!(version.value.as_deref(), Some(kindred.model().version()));
}

#[test]
fn work_that_ends_while_parquet_is_made_asks_for_nothing_again() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.file("in.txt", words("no")), scratch.path("o.parquet"));
    let (kindred, options) = (whole(), BulkOptions::default());
    let expected = scratch.path("expected.parquet");
    run(&kindred, &nearest(), (&input, &expected), &options).unwrap();

    stopped(&input, &out);
    // A folder is where the rows should be made into Parquet.
    let in_the_way = scratch.path("o.parquet.partial/rows.parquet");
    fs::create_dir(&in_the_way).unwrap();
    let error = run(&kindred, &nearest(), (&input, &out), &options).unwrap_err();
    assert!(matches!(error, JobError::Io { .. }), "{error}");
    assert!(error.to_string().contains("the same command goes on from there"), "{error}");
    assert!(!out.exists());
    fs::remove_dir(&in_the_way).unwrap();
    // What a kill leaves of it is written again.
    fs::write(&in_the_way, "PAR1, half of it").unwrap();
    let done = run(&kindred, &nearest(), (&input, &out), &options).unwrap();
    assert_eq!((done.rows, done.resumed_rows), (ROWS as u64, ROWS as u64));
    assert!(fs::read(&out).unwrap() == fs::read(&expected).unwrap());
    assert!(!scratch.path("o.parquet.partial").exists());
}
