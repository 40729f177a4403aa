//! Stop words: expanders leave them out of texts and of terms, unless they are told to keep them.

use std::fs;
use std::path::Path;

use ::kindred::heads;
use serde_json::{Value, json};

use crate::expand::terms;
use crate::support::{Service, errors, kindred};

/// Stop words of texts, for the built-in expander and one that is made without data.
#[test]
fn stop_words_are_neither_expanded_nor_terms() {
    let service = Service::with_default_model();
    let ask = |text: &str| service.post("/expand", &json!({"text": text, "top": 1000})).json();
    let without = ask("cheap flights coast");
    assert_eq!(terms(&ask("the cheap flights to The coast")), terms(&without));
    let words = json!(["cheap", "flights", "to", "the", "coast"]);
    let words = service.post("/expand", &json!({"text": words, "top": 1000})).json();
    assert_eq!(terms(&words), terms(&without));
    // A text of nothing else implies nothing, alone and beside others.
    let texts = json!({"texts": ["to be or not to be", "frog", ["The"]], "top": 2});
    let answer = service.post("/expand", &texts).json();
    let counts = answer["results"].as_array().unwrap().iter().map(|one| terms(one).len());
    assert_eq!(counts.collect::<Vec<_>>(), [0, 2, 0], "{answer}");
    assert_eq!(service.post("/expand", &json!({"text": "the"})).json()["terms"], json!([]));
    // Nor is one a term, not even of words that are near it.
    for text in ["never inside cannot", "he and she were within it", "cheap flights to the coast"] {
        let answer = ask(text);
        let found = terms(&answer);
        assert!(!found.is_empty(), "{text}: {answer}");
        let stop: Vec<_> =
            found.iter().filter(|(term, _)| heads::STOP_WORDS.contains(term)).collect();
        assert!(stop.is_empty(), "{text}: {stop:?}");
    }
    // It does not hide that the others are unknown.
    let answer = ask("the xyzzyq");
    assert_eq!(answer["code"], "unknown_word", "{answer}");
    // Opposites are near each other, as the documents warn.
    assert!(terms(&ask("good")).iter().any(|(term, _)| *term == "bad"));
}

#[test]
fn an_expander_may_keep_stop_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("v.txt"), "the 3 1\nsea 3 2\nThe 2 2\nocean 3 3\nland -4 1\n").unwrap();
    let run = |arguments: &[&str]| {
        let output = kindred(arguments).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let model = path("model");
    run(&["prepare", &path("v.txt"), "--out", &model]);
    let make = ["train", "expander", "--model", &model, "--terms", "3", "--out"];
    let (usual, kept) = (path("usual"), path("kept"));
    let said = run(&[&make[..], &[usual.as_str()]].concat());
    assert!(said.contains("2 stop words left out"), "{said}");
    let said = run(&[&make[..], &[kept.as_str(), "--keep-stop-words"]].concat());
    assert!(said.contains("0 stop words left out"), "{said}");
    let expanded = |head: &str, text: &str| -> Vec<String> {
        let said = run(&["expand", "--model", &model, "--head", head, "--json", text]);
        let answer: Value = serde_json::from_str(&said).unwrap();
        let mut words: Vec<String> =
            terms(&answer).iter().map(|(term, _)| (*term).to_owned()).collect();
        words.sort();
        words
    };
    assert_eq!(expanded(&usual, "the sea"), expanded(&usual, "sea"));
    assert_eq!(expanded(&usual, "sea ocean"), ["ocean", "sea"]);
    assert_eq!(expanded(&usual, "The the"), [""; 0]);
    // On standard error, so that other programs see no more than before.
    let output = kindred(&["expand", "--model", &model, "--head", &usual, "The the"]).output();
    let output = output.unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{}", errors(&output));
    assert!(errors(&output).contains("The the: no terms: none has"), "{}", errors(&output));
    assert!(expanded(&kept, "sea").contains(&"the".to_owned()));
    // What was made says so itself: it stays the same with other programs.
    let json = fs::read_to_string(Path::new(&usual).join("head.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stop_words"].as_array().unwrap().len(), heads::STOP_WORDS.len());
    let json = fs::read_to_string(Path::new(&kept).join("head.json")).unwrap();
    assert!(!json.contains("stop_words"), "{json}");
}
