//! Single questions: `nearest --text`, `similarity`, `odd-one-out` and `rank`, and their forms.

use super::{err, here, neighbors, objects, out};
use crate::support::{Service, kindred};
use serde_json::{Value, json};

/// The answers of a command here and by URL, in JSON.
fn both(service: &Service, arguments: &[&str]) -> [Value; 2] {
    let arguments = [arguments, &["--json"]].concat();
    let by_url = kindred(&[&arguments[..], &["--url", &service.url("")]].concat());
    [here(&arguments), by_url].map(|mut command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
        objects(&output).pop().unwrap()
    })
}

#[test]
fn each_command_gives_what_http_answers_to_the_bit_here_and_by_url() {
    let service = Service::with_default_model();
    let fox = "The quick brown fox, xyzzyq!";
    let over_http = service.post("/nearest", &json!({"text": fox, "k": 5})).json();
    for answer in both(&service, &["nearest", "--text", fox, "-k", "5"]) {
        assert_eq!(neighbors(&answer), neighbors(&over_http));
        assert_eq!((&answer["used"], &answer["asked"]), (&over_http["used"], &json!(fox)));
        assert_eq!(answer["skipped"], json!(["xyzzyq"]));
    }
    let (left, right) = (["paris", "rome"], ["berlin", "madrid", "xyzzyq"]);
    let skip = ["--unknown", "skip"];
    let sets = [&["similarity", "--left"], &left[..], &["--right"], &right, &skip].concat();
    let king = "king - man + woman";
    let mul = ["--expression", king, "--method", "3cosmul", "--vocab-limit", "20000"];
    for (arguments, path, body, fields) in [
        (
            vec!["similarity", "frog", "toad"],
            "/similarity",
            json!({"pairs": [["frog", "toad"]]}),
            &["results"][..],
        ),
        (sets, "/similarity", json!({"pairs": [[left, right]], "unknown": "skip"}), &["results"]),
        (
            vec!["odd-one-out", "breakfast", "lunch", "dinner", "piano"],
            "/odd-one-out",
            json!({"words": ["breakfast", "lunch", "dinner", "piano"]}),
            &["odd_one_out", "ranked"],
        ),
        (
            vec!["rank", "toad", "car", "--word", "frog", "--exclude", "car"],
            "/rank",
            json!({"words": ["toad", "car"], "word": "frog", "exclude": ["car"]}),
            &["ranked"],
        ),
        (
            [&["rank", "queen", "king"], &mul[..]].concat(),
            "/rank",
            json!({"words": ["queen", "king"], "expression": king, "method": "3cosmul",
                "vocab_limit": 20_000}),
            &["ranked"],
        ),
        (
            vec!["rank", "hound", "--text", fox],
            "/rank",
            json!({"words": ["hound"], "text": fox}),
            &["ranked", "used", "skipped"],
        ),
    ] {
        let over_http = service.post(path, &body).json();
        for answer in both(&service, &arguments) {
            for field in fields.iter().chain(&["model", "version"]) {
                assert!(!over_http[field].is_null(), "{field}: {over_http}");
                assert_eq!(answer[field], over_http[field], "{arguments:?}: {field}");
            }
        }
    }
}

#[test]
fn programs_get_columns_and_times_go_to_standard_error() {
    let columns = |arguments: &[&str]| {
        let output = here(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", err(&output));
        assert!(err(&output).starts_with("demo (7fbc8351f31644a7)\n"), "{}", err(&output));
        let lines: Vec<Vec<String>> = out(&output)
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect();
        (lines, err(&output))
    };
    let (lines, said) = columns(&["nearest", "frog", "-k", "3", "--explain"]);
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [4; 3], "{lines:?}");
    assert_eq!(lines[0][0], "frogs");
    assert!(lines[0][1].parse::<f64>().unwrap() > 0.6 && lines[0][3].starts_with("frog +"));
    assert!(said.contains("engine") && said.contains("`frog` itself"), "{said}");

    let (lines, said) = columns(&["nearest", "--text", "xyzzyq frog", "-k", "1"]);
    assert!(lines.len() == 1 && said.contains("unknown: xyzzyq"), "{lines:?} {said}");
    let (lines, _) = columns(&["similarity", "frog", "toad"]);
    assert_eq!((lines.len(), &*lines[0][0], &*lines[0][1]), (1, "frog", "toad"));
    assert!(lines[0][2].parse::<f64>().unwrap() > 0.6, "{lines:?}");
    let (lines, _) = columns(&["odd-one-out", "breakfast", "lunch", "dinner", "piano"]);
    assert_eq!((lines.len(), lines[3].len(), &*lines[3][0]), (4, 3, "piano"));
    let (lines, said) = columns(&["rank", "toad", "car", "--word", "frog", "--exclude", "car"]);
    assert_eq!((&*lines[0][0], &*lines[0][1], &*lines[1][1]), ("toad", "2", ""));
    assert!(said.contains("engine"), "{said}");
}

#[test]
fn what_can_not_be_compared_is_said_with_the_cure() {
    let service = Service::with_default_model();
    for (arguments, code, part) in [
        (&["similarity", "frogz", "toad"][..], 1, "`frogz`; did you mean frog"),
        (&["similarity", "frogz", "toad", "--unknown", "skip"], 1, "`frogz`"),
        (&["odd-one-out", "frog", "toad"], 1, "needs at least 3 words with spaces between them"),
        (&["odd-one-out", "frog,toad,king"], 1, "not 1"),
        (&["odd-one-out", "frog", "toadz", "king"], 1, "`toadz`; did you mean toad"),
        (&["rank", "toadz", "--word", "frog"], 1, "`toadz`; did you mean toad"),
        (&["rank", "toad", "--expression", "king +"], 1, "column 7"),
        (
            &["rank", "queen", "--expression", "king", "-", "man", "+", "woman"],
            1,
            "put the whole expression into quotes, as in 'king - man + woman'",
        ),
        (&["nearest", "--text", "xyzzyq"], 1, "xyzzyq"),
        (&["similarity", "frog"], 2, "needs 2 values for `WORD`, not 1"),
        (&["similarity", "frog", "toad", "newt"], 2, "needs 2 values for `WORD`, not 3"),
        (&["similarity", "--left", "frog"], 2, "--right"),
        (&["rank", "toad"], 2, "--word"),
        (&["rank", "toad", "--word", "frog", "--text", "frog"], 2, "--text"),
        (&["rank", "toad", "--text", "frog", "--method", "3cosmul"], 2, "--method"),
        (&["rank", "toad", "--word", "frog", "-k", "5"], 2, "-k"),
        (&["nearest", "frog", "--text", "frog"], 2, "--text"),
    ] {
        let url = service.url("");
        for mut command in [here(arguments), kindred(&[arguments, &["--url", &url]].concat())] {
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", err(&output));
            assert!(out(&output).is_empty(), "{arguments:?}: {}", out(&output));
            assert!(err(&output).contains(part), "{arguments:?}: {}", err(&output));
        }
    }
}
