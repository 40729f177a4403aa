//! `bulk`, `classify` and `expand` with `--url`: a service gives the answers of an engine here.

use std::fs;
use std::process::Output;

use crate::support::{Service, errors, kindred, objects, piped};
use serde_json::{Value, json};

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

const TEXTS: [&str; 5] = [
    "a moving and funny film",
    "not bad, \"really\"",
    "cheap flights to the coast",
    "the worst of all",
    "frog, toad and newt",
];

#[test]
fn bulk_work_has_the_bytes_of_an_engine_here() {
    let service = Service::with_default_model();
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let texts: String = (0..700).map(|n| format!("{} {}\n", TEXTS[n % 5], TEXTS[n % 3])).collect();
    fs::write(path("texts.txt"), texts).unwrap();
    let words = ["frog", "king", "paris", "ocean"];
    let lines: String = (0..300).map(|n| format!("{}\n", words[n % 4])).collect();
    fs::write(path("words.txt"), lines).unwrap();
    fs::write(path("asked.csv"), "expression,key\nking - man + woman,a\n(,b\nfrog,c\n").unwrap();
    for (work, input, flags) in [
        ("classify", "texts.txt", &["--top", "1"][..]),
        ("expand", "texts.txt", &[]),
        ("nearest", "words.txt", &["-k", "300", "--min-score", "0.2"]),
        ("nearest", "texts.txt", &["--texts", "-k", "3"]),
        ("analogy", "asked.csv", &["--id", "key", "--method", "3cosmul", "--explain"]),
    ] {
        for form in ["jsonl", "csv"] {
            let run = |name: &str, more: &[&str]| {
                let out = path(&format!("{name}.{form}"));
                let mut command = kindred(&["bulk", work, "--in", &path(input), "--out", &out]);
                let output = command.args(["--replace", "--json"]).args(flags).args(more).output();
                let output = output.unwrap();
                assert!(output.status.success(), "{work}: {}", errors(&output));
                let report: Value = serde_json::from_slice(&output.stdout).unwrap();
                (fs::read_to_string(out).unwrap(), report)
            };
            let (here, here_report) = run("here", &["--device", "cpu"]);
            let (there, there_report) = run("there", &["--url", &service.url("")]);
            assert!(here == there, "{work}, {form}: {here:.999}\n{there:.999}");
            for field in ["model", "version", "rows", "answered", "errors", "head"] {
                assert_eq!(here_report[field], there_report[field], "{work}: {field}");
            }
        }
    }
    let forms = [path("here.jsonl"), path("there.jsonl")].map(|out| {
        let flags = ["--format", "sparse_vector", "--replace", "--in", &path("texts.txt"), "--out"];
        let mut command = kindred(&["bulk", "expand"]);
        command.args(flags).arg(&out);
        if out.ends_with("there.jsonl") {
            command.args(["--url", &service.url("")]);
        }
        assert!(command.output().unwrap().status.success());
        fs::read(out).unwrap()
    });
    assert!(forms[0] == forms[1] && forms[0].starts_with(br#"{"id":1,"asked":"a moving"#));
}

#[test]
fn texts_are_classified_and_expanded_by_a_service() {
    let service = Service::with_default_model();
    let url = service.url("");
    let input = TEXTS.join("\n") + "\nxyzzyq\n";
    for (command, asked, field) in [
        (&["classify"][..], json!({}), "labels"),
        (&["classify", "--scores"], json!({"scores": true}), "labels"),
        (&["expand", "--top", "3"], json!({"top": 3}), "terms"),
        (
            &["expand", "--top", "3", "--format", "rank_features"],
            json!({"top": 3, "format": "rank_features"}),
            "rank_features",
        ),
    ] {
        let mut asks = kindred(command);
        asks.args(["--url", &url]);
        if field != "rank_features" {
            asks.arg("--json");
        }
        let output = piped(asks, &input);
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        let answers = objects(&output);
        assert_eq!(answers.len(), 6);
        for (text, answer) in TEXTS.iter().zip(&answers) {
            let mut body = asked.clone();
            body["text"] = json!(text);
            let over_http = service.post(&format!("/{}", command[0]), &body).json();
            for name in [field, "model", "version", "head"] {
                assert_eq!(answer[name], over_http[name], "{text}: {name}");
            }
            assert_eq!(answer["text"], *text);
        }
        assert_eq!(answers[5]["error"]["code"], "unknown_word", "{}", answers[5]);
    }

    let output = piped(kindred(&["classify", "--url", &url]), &input);
    let lines: Vec<Vec<&str>> =
        text(&output).lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((lines.len(), &lines[0][..2]), (10, &[TEXTS[0], "positive"][..]));
    let said = errors(&output);
    assert!(said.starts_with("sentiment over demo (7fbc8351f31644a7)\n"), "{said}");
    assert!(said.contains("xyzzyq: the model does not have `xyzzyq`"), "{said}");

    // A service explains few texts together.
    let many = "a moving and funny film\n".repeat(40);
    let output = piped(kindred(&["classify", "--url", &url, "--explain", "--json"]), &many);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let answers = objects(&output);
    assert!(answers.len() == 40 && answers[39]["explanation"]["ngrams"].is_array());
}

#[test]
fn who_is_not_there_is_said_with_the_cure() {
    let service = Service::with_default_model();
    let url = service.url("");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for (arguments, code, part) in [
        (&["classify", "x", "--head", "nope", "--url", &url][..], 1, "no head `nope`"),
        (
            &["classify", "x", "--head", "nearby", "--url", &url],
            1,
            "of the kind expander, but a classifier is needed; choose from: sentiment",
        ),
        (&["expand", "x", "--url", &nobody], 1, "is the service running there"),
        (
            &["expand", "x", "--url", &url, "--explain", "--format", "vespa"],
            1,
            "--explain needs --format terms, not vespa",
        ),
        (&["classify", "x", "--url", &url, "--model", "m"], 2, "--model"),
        (&["expand", "--vectors", "v.npy", "--url", &url], 2, "--vectors"),
        (&["expand", "x", "--api-key", "k"], 2, "--url"),
    ] {
        let output = kindred(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(part), "{arguments:?}: {}", errors(&output));
    }
    let scratch = tempfile::tempdir().unwrap();
    let (input, out) = (scratch.path().join("in.txt"), scratch.path().join("out.jsonl"));
    fs::write(&input, "frog\n").unwrap();
    let bulk = |flags: &[&str]| {
        let mut command = kindred(&["bulk", "nearest", "--in"]);
        command.arg(&input).arg("--out").arg(&out).args(flags).output().unwrap()
    };
    for (flags, code, part) in [
        (&["--url", &nobody][..], 1, "is the service running there"),
        (&["--url", &url, "--device", "cpu"], 2, "--device"),
        (&["--url", &url, "--threads", "2"], 2, "--threads"),
        (&["--url", &url, "--max-score", "nan"], 2, "`--max-score` must be a finite number"),
    ] {
        let output = bulk(flags);
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {}", errors(&output));
        assert!(errors(&output).contains(part), "{flags:?}: {}", errors(&output));
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left behind");
}
