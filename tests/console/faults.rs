//! Lines and command lines that are wrong.

use std::io::Write;
use std::process::Stdio;

use super::{err, here, objects, out, piped};
use crate::support::{Service, kindred};
use serde_json::json;

#[test]
fn bad_lines_are_said_with_their_numbers_and_the_others_answered() {
    let input = "frog\n\nkin gg\nfrogz\n:nonsense\nking - \nfroggz - kingz\n\u{1b}[2Jx\ntoad\n";
    let output = piped(here(&["console", "-k", "2"]), input);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    for part in [
        "line 3: ",
        "two words need an operator between them; a word with a space in it needs double quotes",
        "line 4: the model does not have `frogz`; did you mean frog",
        "line 5: unknown command `:nonsense`; commands: :classify, :expand, :head, :k, :compare",
        "line 6: the expression can't be read at column",
        "line 7: the model does not have `froggz`, `kingz`",
        "instead of `kingz`, did you mean king",
        "line 8: ",
        "6 of 8 lines could not be answered",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains('\u{1b}'), "nothing steers the terminal: {said}");
    let text = out(&output);
    let asked: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(asked, ["frog", "frog", "toad", "toad"], "{text}");
    assert_eq!(said.matches("engine ").count(), 2, "times after each answer: {said}");
    assert!(said.contains("line 9: look-up "), "{said}");
}

#[test]
fn a_line_of_any_length_is_answered_or_said_to_be_wrong() {
    let long = format!("frog + {}", "x".repeat(100_000));
    let sum = vec!["frog"; 256].join(" + ");
    let output = piped(here(&["console", "-k", "1", "--json"]), format!("{long}\n{sum}\n"));
    assert_eq!(objects(&output).len(), 1, "{}", err(&output));
    let said = err(&output);
    assert!(said.contains("line 1: the model does not have `xxx") && said.len() < 1000, "{said}");
    let longer = format!("\u{feff}frog\n{}\nfrog\n", "x".repeat(3 << 20));
    let output = piped(here(&["console", "-k", "1", "--json"]), &longer);
    let answers = objects(&output);
    assert_eq!((&answers[0]["asked"], &answers[1]["line"]), (&json!("frog"), &json!(3)));
    assert_eq!(err(&output).lines().count(), 2, "{}", err(&output));
    assert!(err(&output).contains("line 2: the line is longer than 1048576 bytes"));
}

#[test]
fn a_command_line_that_can_not_be_read_is_exit_code_2() {
    for arguments in [
        &["nearest", "frog", "-k", "0"][..],
        &["nearest", "frog", "-k", "1001"],
        &["nearest"],
        &["analogy", "a", "--method", "best"],
        &["console", "--url", "http://127.0.0.1:1", "--device", "cpu"],
        &["console", "--compat", "--compare"],
        &["console", "--api-key", "x"],
        &["completions", "tcsh"],
    ] {
        let output = kindred(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn what_can_not_be_asked_is_said_with_the_cure() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let other = Service::with_default_model();
    for (url, part) in [
        (nobody.as_str(), "is the service running there"),
        ("127.0.0.1:8080", "http://HOST:PORT"),
        ("ftp://127.0.0.1", "http://HOST:PORT"),
        ("http://127.0.0.1:8080/?k=5", "no query"),
        ("http://127.0.0.1:8080/#x", "no fragment"),
        ("http://me:topsecret@127.0.0.1:8080", "no user and password"),
        (&other.url("").replace("http:", "https:"), "try --url http://127.0.0.1:"),
        (&other.url("/models/none"), "there is no model `none`; models: demo"),
        (&other.url("/nowhere"), "no route /nowhere/nearest"),
        (&other.url("/nearest"), "give it as http://HOST:PORT or http://HOST:PORT/models/NAME"),
    ] {
        let output = kindred(&["nearest", "frog", "--url", url]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{url}");
        assert!(err(&output).contains(part), "{url}: {}", err(&output));
        assert!(!err(&output).contains("topsecret"), "{}", err(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut no_model = kindred(&["console", "--model"]);
    let output = no_model.arg(folder.path()).stdin(Stdio::null()).output().unwrap();
    assert!(err(&output).contains("kindred prepare INPUT --out DIR"), "{}", err(&output));
}

#[test]
fn that_nobody_reads_the_answers_is_no_fault() {
    let input = "frog\n".repeat(500);
    for arguments in [&["console"][..], &["console", "--json"], &["nearest", "frog"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = here(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let said = err(&output);
        assert!(said.is_empty() || said == "demo (7fbc8351f31644a7)\n", "{arguments:?}: {said}");
    }
}

#[test]
fn a_line_that_is_not_utf8_is_wrong_and_the_next_one_is_answered() {
    let mut command = here(&["console", "-k", "1"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"fr\xffog\nfrog").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(err(&output).contains("line 1: the line is not UTF-8"), "{}", err(&output));
    assert!(out(&output).starts_with("frog\t"), "{}", out(&output));
}

#[test]
fn errors_do_not_steer_the_terminal() {
    let output = here(&["nearest", "\u{1b}[31mEVIL\u{7}"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!err(&output).contains(['\u{1b}', '\u{7}']), "{:?}", err(&output));
    assert!(err(&output).contains(r"\u{1b}[31mEVIL\u{7}"), "{}", err(&output));
}
