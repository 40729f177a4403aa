//! Expanding texts over HTTP and on the command line: terms, forms, options and faults.

use std::fs;
use std::path::Path;

use ::kindred::heads;
use serde_json::{Value, json};

use crate::support::{Service, cache, errors, kindred, page, top};

/// Terms of a model under dot, `word x y`, with biases.
const VECTORS: &str = "wing 2 0\nflow 0 2\nu.s. 3 3\nnoise -1 -1\nzero 0 0\n";
const BIASES: &str = "0\n-1\n-8\n0\n0.5\n";

fn items() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("vectors.txt"), VECTORS).unwrap();
    fs::write(path("biases.txt"), BIASES).unwrap();
    let mut command = kindred(&["prepare", "--metric", "dot", "--bias"]);
    command.arg(path("biases.txt")).arg(path("vectors.txt")).arg("--out").arg(path("items"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    folder
}

/// Terms with their weights.
fn terms(answer: &Value) -> Vec<(&str, f64)> {
    let term = |term: &'_ Value| -> (String, f64) {
        (term["term"].as_str().unwrap().to_owned(), term["weight"].as_f64().unwrap())
    };
    let list = answer["terms"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|one| (one["term"].as_str().unwrap(), term(one).1)).collect()
}

#[test]
fn a_model_under_dot_expands_texts_to_its_own_words() {
    let folder = items();
    let model = folder.path().join("items");
    let service = Service::start(&["--model", model.to_str().unwrap(), "--device", "cpu"]);
    let ask = |body: &Value| service.post("/expand", body).json();
    // wing: 4, 0, 6 - 8, -2, 0.5. flow: 0, 4 - 1, 6 - 8, -2, 0.5.
    let answer = ask(&json!({"text": "wing flow", "explain": true}));
    let ln = |value: f64| value.ln_1p();
    let near = |found: &[(&str, f64)], expected: &[(&str, f64)]| {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((term, weight), (expected, value)) in found.iter().zip(expected) {
            assert!(term == expected && (weight - ln(*value)).abs() < 1e-15, "{found:?}");
        }
    };
    near(&terms(&answer), &[("wing", 4.0), ("flow", 3.0), ("zero", 0.5)]);
    assert_eq!(answer["head"], "terms");
    let tokens: Vec<&Value> =
        answer["terms"].as_array().unwrap().iter().map(|t| &t["token"]).collect();
    assert_eq!(*tokens[1], json!({"position": 1, "text": "flow", "start": 5, "end": 9}));
    assert_eq!(
        *tokens[2],
        json!({"position": 0, "text": "wing", "start": 0, "end": 4}),
        "the first"
    );

    // Vectors from any encoder: (2, 2) gives 4, 3, 12 - 8, below zero, 0.5.
    let answer = ask(&json!({"vectors": [[2, 2], [-3, 0]], "explain": true, "top": 3}));
    near(&terms(&answer), &[("wing", 4.0), ("u.s.", 4.0), ("flow", 3.0)]);
    assert_eq!(answer["terms"][0]["token"], json!({"position": 0}));
    let answers =
        ask(&json!({"texts": [{"vectors": [[-3, 0]]}, ["noise"], "what?", {"vectors": [[1]]}]}));
    near(&terms(&answers["results"][0]), &[("noise", 3.0), ("zero", 0.5)]);
    near(&terms(&answers["results"][1]), &[("noise", 2.0), ("zero", 0.5)]);
    assert_eq!(answers["results"][2]["error"]["code"], "unknown_word");
    assert_eq!(answers["results"][3]["error"]["code"], "dimension_mismatch");

    // Limits are inclusive.
    let limited = |limit: &str, value: f64| {
        let answer = ask(&json!({"text": "wing flow", limit: value}));
        terms(&answer).len()
    };
    assert_eq!((limited("min_weight", ln(3.0)), limited("min_weight", ln(3.0) + 1e-9)), (2, 1));
    assert_eq!((limited("max_ratio", ln(3.0) / ln(4.0)), limited("max_ratio", 1.0)), (2, 1));

    let form = |form: &str| ask(&json!({"vectors": [[2, 2]], "format": form}))[form].clone();
    assert_eq!(form("impacts"), json!({"wing": 161, "u.s.": 161, "flow": 139, "zero": 41}));
    let weights = |form: &Value, name: &str| (form[name].as_f64().unwrap() * 1e4).round();
    for features in [form("rank_features"), form("sparse_vector"), form("vespa")["cells"].clone()] {
        assert_eq!(weights(&features, "wing"), 16094.0, "{features}");
        let dotted = if features.get("u.s.").is_some() { "u.s." } else { "u_s_" };
        assert_eq!(weights(&features, dotted), 16094.0, "{features}");
    }
    assert!(form("rank_features").as_object().unwrap().keys().all(|name| !name.contains('.')));
    assert_eq!(form("qdrant")["indices"], json!([0, 1, 2, 4]));

    let heads = service.get("/heads").json();
    assert_eq!(heads["heads"][0]["kind"], "expander");
    assert_eq!(heads["heads"][0]["terms"], 5);
    let reply = service.get("/metrics");
    let metrics = reply.text();
    assert!(metrics.contains("kindred_expanded_texts_total{model=\"items\"}"), "{metrics}");
}

#[test]
fn faults_name_the_field_and_the_cure() {
    let service = Service::with_default_model();
    for (body, expected) in [
        (json!({}), "give exactly one of `text`, `vectors` and `texts`"),
        (json!({"text": "a", "texts": ["a"]}), "give exactly one of"),
        (json!({"text": "a", "top": 0}), "`top` must be a whole number from 1 to 1000"),
        (json!({"text": "a", "top": 1001}), "`top` must be a whole number from 1 to 1000"),
        (
            json!({"texts": vec!["a"; 100], "top": 1000}),
            "`top` × texts is 100000; the maximum is 65536",
        ),
        (json!({"text": "a", "min_weight": -1}), "`min_weight` must be a number, at least 0"),
        (json!({"text": "a", "max_ratio": 1.5}), "`max_ratio` must be a number from 0 to 1"),
        (json!({"text": "a", "format": "xml"}), "`format` must be `terms`, `impacts`"),
        (
            json!({"text": "a", "format": "vespa", "explain": true}),
            "`explain` needs the format `terms`",
        ),
        (json!({"text": 7}), "`text` must be"),
        (json!({"text": ""}), "a text with at least one word"),
        (json!({"texts": []}), "`texts` must be a list of 1 to 1024 texts"),
        (json!({"vectors": []}), "`vectors` must be a list of 1 to 4096 lists of numbers"),
        (json!({"vectors": [[1], [1, 2]]}), "lists of the same length"),
        (json!({"vectors": [["a"]]}), "`vectors` must be a list of 1 to 4096 lists of numbers"),
        (json!({"vectors": [vec![1e39; 100]]}), "not a finite float32"),
        (json!({"vectors": [[1, 2]]}), "the vector has 2 components, but the model has 100"),
        (
            json!({"text": "a", "head": "sentiment"}),
            "the head `sentiment` is a classifier; choose from: nearby",
        ),
        (json!({"text": "a", "head": "x"}), "there is no head `x`; heads: nearby"),
    ] {
        let answer = service.post("/expand", &body);
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status >= 400 && detail.contains(expected), "{body}: {detail}");
    }
    let answer = service.post("/classify", &json!({"text": "a", "head": "nearby"})).json();
    let detail = answer["detail"].as_str().unwrap();
    assert!(
        detail.contains("the head `nearby` is an expander; choose from: sentiment"),
        "{detail}"
    );
}

#[test]
fn a_text_has_the_same_terms_alone_and_among_others() {
    let service = Service::with_default_model();
    let texts: Vec<String> = ["frog toad", "the king of spain", "cheap flights", "frog", "lake"]
        .iter()
        .cycle()
        .take(60)
        .enumerate()
        .map(
            |(index, text)| {
                if index % 7 == 0 { format!("{text} {text}") } else { (*text).to_owned() }
            },
        )
        .collect();
    let all = service.post("/expand", &json!({"texts": texts, "top": 30})).json();
    for (text, among) in texts.iter().zip(all["results"].as_array().unwrap()).take(8) {
        let alone = service.post("/expand", &json!({"text": text, "top": 30})).json();
        assert_eq!(alone["terms"], among["terms"], "{text}");
        let fewer = service.post("/expand", &json!({"text": text, "top": 5})).json();
        assert_eq!(fewer["terms"].as_array().unwrap()[..], among["terms"].as_array().unwrap()[..5]);
    }
}

#[test]
fn an_expander_is_made_verified_served_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..300)
        .map(|row| format!("w{row} {} {} {}\n", row % 7, row % 11, f64::from(row % 13) / 4.0))
        .collect();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("vectors.txt"), rows).unwrap();
    let run = |arguments: &[&str]| {
        let output = kindred(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (model, head) = (path("model"), path("head"));
    assert!(run(&["prepare", &path("vectors.txt"), "--out", &model]).0);
    let made = ["train", "expander", "--model", &model, "--out", &head, "--terms", "10"];
    let (is_right, said, error) = run(&made);
    assert!(is_right && said.contains("300 terms"), "{said}{error}");
    let (is_right, _, error) = run(&made);
    assert!(!is_right && error.contains("--replace"), "{error}");
    let (is_right, said, error) = run(&["verify", &model, "--head", &head]);
    assert!(is_right && said.contains("an expander with 300 terms"), "{said}{error}");

    let ask = ["expand", "--model", &model, "--head", &head];
    let (is_right, said, error) = run(&[&ask[..], &["--json", "w5 w17"]].concat());
    assert!(is_right, "{error}");
    let printed: Value = serde_json::from_str(&said).unwrap();
    let service = Service::start(&["--model", &model, "--head", &head, "--device", "cpu"]);
    let served = service.post("/expand", &json!({"text": "w5 w17"})).json();
    assert_eq!(printed["terms"], served["terms"]);
    assert!(terms(&served).len() > 3 && terms(&served).iter().any(|(term, _)| *term == "w5"));
    let (is_right, said, error) =
        run(&[&ask[..], &["--explain", "--top", "2", "w5", "zz"]].concat());
    assert!(!is_right && said.matches("\tw5\n").count() == 2, "{said}{error}");
    assert!(error.contains("zz: the model does not have `zz`"), "{error}");
    let (_, said, _) = run(&[&ask[..], &["--format", "qdrant", "w5"]].concat());
    assert!(said.contains("\"indices\":["), "{said}");
    let (is_right, _, error) = run(&["expand", "--model", &model, "w5"]);
    assert!(!is_right && error.contains("kindred train expander"), "{error}");
    // A classifier's command refuses it.
    let (is_right, _, error) = run(&["classify", "--model", &model, "--head", &head, "w5"]);
    let expected = format!("{head} is an expander; choose a classifier, or make one with `kindred");
    assert!(!is_right && error.contains(&expected), "{error}");
}

/// A NumPy file of float32.
fn npy(shape: &str, is_fortran: bool, numbers: &[f32]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let head = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let length = (head.len() as u16).to_le_bytes();
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    [b"\x93NUMPY\x01\x00".to_vec(), length.to_vec(), head.into_bytes(), numbers].concat()
}

#[test]
fn a_file_of_token_vectors_has_the_terms_that_the_route_gives() {
    let folder = items();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let expand = |file: &str, options: &[&str]| {
        let start = ["expand", "--model", &path("items"), "--vectors", &path(file)];
        let output = kindred(&[&start[..], options].concat()).output().unwrap();
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code(), said, errors(&output))
    };
    let lines = |said: &str| -> Vec<Value> {
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let service = Service::start(&["--model", &path("items"), "--device", "cpu"]);

    fs::write(path("one.npy"), npy("(2, 2)", false, &[2.0, 2.0, -3.0, 0.0])).unwrap();
    let body = json!({"vectors": [[2, 2], [-3, 0]], "explain": true});
    let served = service.post("/expand", &body).json();
    // (2, 2) gives wing 4, flow 3, u.s. 4, zero 0.5; (-3, 0) gives noise 3.
    assert_eq!(terms(&served).len(), 5);
    let (code, said, error) = expand("one.npy", &["--json", "--explain"]);
    assert_eq!(code, Some(0), "{error}");
    let [answer] = &lines(&said)[..] else { panic!("{said}") };
    assert_eq!((&answer["terms"], &answer["vectors"]), (&served["terms"], &json!(path("one.npy"))));
    assert!((terms(answer)[0].1 - 4f64.ln_1p()).abs() < 1e-15, "{said}");
    let (_, said, _) = expand("one.npy", &["--explain", "--top", "4"]);
    let row = |term: &str| {
        let mut rows = said.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        rows.find(|row| row[1] == term).unwrap_or_else(|| panic!("{said}"))
    };
    assert!(row("wing")[2].starts_with("1.6094") && row("wing")[3] == "token 0", "{said}");
    assert_eq!((row("noise")[0], row("noise")[3]), (&path("one.npy")[..], "token 1"), "{said}");
    let (_, said, _) = expand("one.npy", &["--format", "impacts"]);
    let impacts = json!({"wing": 161, "u.s.": 161, "flow": 139, "noise": 139, "zero": 41});
    assert_eq!(lines(&said)[0]["impacts"], impacts);

    // More texts than are expanded together, each as it is alone.
    let numbers: Vec<f32> = (0..600 * 4).map(|i| (i * 37 % 101) as f32 / 8.0 - 6.0).collect();
    fs::write(path("many.npy"), npy("(600, 2, 2)", false, &numbers)).unwrap();
    let (code, said, error) = expand("many.npy", &["--json"]);
    let answers = lines(&said);
    assert_eq!((code, answers.len()), (Some(0), 600), "{error}");
    for (index, answer) in answers.iter().enumerate() {
        assert_eq!(answer["index"], index);
    }
    for index in [0, 1, 255, 256, 599] {
        let own = &numbers[index * 4..][..4];
        let served = service.post("/expand", &json!({"vectors": [own[..2], own[2..]]})).json();
        assert_eq!(answers[index]["terms"], served["terms"], "{index}");
    }
    let (_, said, _) = expand("many.npy", &[]);
    assert!(said.starts_with(&format!("{}[0]\t", path("many.npy"))), "{said}");

    let good = [1.0; 4];
    for (bytes, parts) in [
        (npy("(2,)", false, &good[..2]), ["the shape [2]", "array[None]"]),
        (
            npy("(2, 3)", false, &[0.0; 6]),
            ["[2, 3], but this expander takes [tokens, 2]", "encoder"],
        ),
        (npy("(1, 2, 3)", false, &[0.0; 6]), ["the shape [1, 2, 3]", "encoder that the terms"]),
        (npy("(0, 2)", false, &[]), ["the shape [0, 2]", "at least one vector"]),
        (npy("(3, 0, 2)", false, &[]), ["the shape [3, 0, 2]", "at least one vector"]),
        (npy("(1, 1, 2, 2)", false, &good), ["the shape [1, 1, 2, 2]", "[texts, tokens, 2]"]),
        (npy("()", false, &good[..1]), ["the shape []", "save the tokens' vectors"]),
        (npy("(2, 2)", true, &good), ["Fortran order", "numpy.ascontiguousarray"]),
        (npy("(2, 2)", false, &good[..3]), ["2 × 2 numbers of 4 bytes, but 12 bytes", "cut off"]),
        (npy("(4611686018427387904, 2)", false, &good), ["bytes follow", "its header is wrong"]),
        (
            npy("(2, 2)", false, &[1.0, 1.0, 1.0, f32::NAN]),
            ["bad.npy, token 1, component 1: NaN", "encoder"],
        ),
        (
            npy("(2, 1, 2)", false, &[1.0, 1.0, f32::INFINITY, 1.0]),
            ["bad.npy, text 1, token 0, component 0: inf", "mend"],
        ),
        (b"wing 2 0\n".to_vec(), ["not a NumPy file", "numpy.save(path, array)"]),
        (Vec::new(), ["not a NumPy file", ".npy"]),
    ] {
        fs::write(path("bad.npy"), bytes).unwrap();
        let (code, said, error) = expand("bad.npy", &[]);
        assert_eq!((code, said.as_str()), (Some(1), ""), "{error}");
        assert!(
            error.contains("bad.npy") && parts.iter().all(|part| error.contains(part)),
            "{error}"
        );
    }
    let (code, _, error) = expand("one.npy", &["wing"]);
    assert!(code == Some(2) && error.contains("can't be used with"), "{error}");
}

/// As text: also the order of fields, and the digits of numbers.
#[test]
fn the_json_of_commands_is_that_of_http() {
    let cache = cache();
    let here = ["--cache-dir", cache.to_str().unwrap()];
    let service = Service::start(&[&["--device", "cpu"][..], &here].concat());
    let text = "not a bad film, xyzzyq";
    let printed = |arguments: &[&str]| {
        String::from_utf8(kindred(arguments).output().unwrap().stdout).unwrap()
    };
    let url = service.url("");
    let there = ["--url", &url[..]];
    let compare = |arguments: &[&str], route: &str, body: Value| {
        let served = service.post(route, &body);
        let served = served.text().trim_end();
        for who in [&here, &there] {
            let printed = printed(&[arguments, &who[..]].concat());
            let answer = printed.find("\"model\"").map(|start| &printed[start..]);
            let answer = answer.unwrap_or_else(|| panic!("{arguments:?}: {printed}"));
            assert_eq!(answer.trim_end(), &served[1..], "{arguments:?} {who:?}");
        }
    };
    compare(&["nearest", "frog", "--json"], "/nearest", json!({"word": "frog"}));
    let expression = "king - man + woman";
    let body = json!({"expression": expression, "explain": true});
    compare(&["analogy", expression, "--json", "--explain"], "/analogy", body);
    compare(&["classify", "--json", text], "/classify", json!({"text": text}));
    let body = json!({"text": text, "explain": true, "scores": true, "top": 1});
    let flags = ["classify", "--json", "--explain", "--scores", "--top", "1", text];
    compare(&flags, "/classify", body);
    compare(&["expand", "--json", text], "/expand", json!({"text": text}));
    let body = json!({"text": text, "explain": true, "top": 7});
    compare(&["expand", "--json", "--explain", "--top", "7", text], "/expand", body);
    for form in ["impacts", "rank_features", "sparse_vector", "qdrant", "vespa"] {
        let body = json!({"text": text, "format": form});
        compare(&["expand", "--format", form, text], "/expand", body);
    }
    let pair = json!({"pairs": [["frog", "toad"]]});
    compare(&["similarity", "frog", "toad", "--json"], "/similarity", pair);
    let words = ["breakfast", "lunch", "piano"];
    let odd = [&["odd-one-out", "--json"], &words[..]].concat();
    compare(&odd, "/odd-one-out", json!({"words": words}));
    let body = json!({"words": ["toad", "car"], "word": "frog"});
    compare(&["rank", "toad", "car", "--word", "frog", "--json"], "/rank", body);
    let body = json!({"text": text, "k": 3});
    compare(&["nearest", "--text", text, "-k", "3", "--json"], "/nearest", body);
    for command in ["classify", "expand"] {
        let served = service.post(&format!("/{command}"), &json!({"texts": ["xyzzyq"]})).json();
        for who in [&here, &there] {
            let printed = printed(&[&[command, "--json", "xyzzyq"][..], who].concat());
            let printed: Value = serde_json::from_str(&printed).unwrap();
            assert_eq!(printed["error"], served["results"][0]["error"], "{command} {who:?}");
        }
    }
    let refused = kindred(&["expand", "--explain", "--format", "vespa", text]).output().unwrap();
    assert!(errors(&refused).contains("--explain needs --format terms, not vespa"));
}

/// Also where a text has no known word.
#[test]
fn texts_on_the_command_line_do_not_steer_a_terminal() {
    for command in ["classify", "expand"] {
        for (text, is_known) in [("a \u{1b}[31mgreat film\u{202e}", true), ("\u{1b}qqqzx", false)] {
            let output = kindred(&[command, text]).output().unwrap();
            assert_eq!(output.status.success(), is_known, "{}", errors(&output));
            let said = errors(&output);
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.contains("\\u{1b}"), is_known, "{printed:?}");
            assert!((printed.clone() + &said).contains("\\u{1b}"), "{said:?}");
            assert!(!(printed + &said).contains(['\u{1b}', '\u{202e}']), "{said:?}");
        }
    }
}

/// A file of safetensors with these float32 tensors.
fn safetensors(tensors: &[(&str, &[usize], &[f32])]) -> Vec<u8> {
    let (mut header, mut data) = (json!({}), Vec::new());
    for (name, shape, values) in tensors {
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        header[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn a_state_dict_becomes_an_expander_that_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let output = kindred(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
        (output.status.success(), said)
    };
    fs::write(path("vectors.txt"), "cat 1 0\ndog 0 1\nsun 2 1\nsea -1 1\n").unwrap();
    let model = path("model");
    assert!(run(&["prepare", &path("vectors.txt"), "--out", &model]).0);
    // Two terms, whose tokens' vectors are turned by a quarter.
    let state = safetensors(&[
        ("head.weight", &[2, 2], &[1.0, 0.5, 0.25, -2.0]),
        ("head.bias", &[2], &[-0.25, 0.5]),
        ("turn.weight", &[2, 2], &[0.0, -1.0, 1.0, 0.0]),
    ]);
    fs::write(path("state.safetensors"), state).unwrap();
    fs::write(path("words.txt"), "sun\ncat\n").unwrap();
    let import = |out: &str, more: &[&str]| {
        let (state, out) = (path("state.safetensors"), path(out));
        let start = ["import-head", "--expander", "--model", &model, "--weights", &state];
        run(&[&start[..], &["--out", &out], more].concat())
    };
    let (is_right, said) = import("head", &["--linear", "--vocabulary", &path("words.txt")]);
    assert!(
        is_right && said.contains("an expander of 2 terms, with vectors of their own"),
        "{said}"
    );
    let service = Service::start(&["--model", &model, "--head", &path("head"), "--device", "cpu"]);
    let answer = service.post("/expand", &json!({"text": "cat dog"})).json();
    // cat (1, 0) turns to (0, 1): sun 0.5 − 0.25, cat −2 + 0.5. dog (0, 1) turns to (−1, 0): sun
    // −1.25, cat −0.25 + 0.5.
    assert_eq!(terms(&answer), [("cat", 0.25), ("sun", 0.25)], "{answer}");
    let (_, said) =
        run(&["expand", "--model", &model, "--head", &path("head"), "--json", "cat dog"]);
    assert_eq!(terms(&serde_json::from_str(&said).unwrap()), terms(&answer));

    let (is_right, said) = import("first", &[]);
    assert!(is_right, "{said}");
    for (out, more, expected) in [
        ("second", &["--labels", "a"][..], "can't be used with"),
        ("second", &["--map", "head=other"], "has no tensor other"),
        ("first", &["--ignore", "turn"], "exists"),
    ] {
        let (is_right, said) = import(out, more);
        assert!(!is_right && said.contains(expected), "{more:?}: {said}");
    }
    let plain = ["import-head", "--weights", &path("state.safetensors"), "--out", &path("x")];
    let (is_right, said) = run(&plain);
    assert!(!is_right && said.contains("--labels"), "{said}");
}

#[test]
fn the_commands_of_the_page_run() {
    let commands = page::commands("docs/expand.md", "## Gradients");
    assert!((5..=20).contains(&commands.len()), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let requests = fs::read_to_string(top().join("examples/requests.tsv")).unwrap();
    let requests = requests.lines().filter_map(|line| line.split_once('\t'));
    let documents = requests.zip(1..).map(|((_, text), id)| json!({"id": id, "text": text}));
    let documents: String = documents.map(|line| format!("{line}\n")).collect();
    fs::write(folder.path().join("documents.jsonl"), documents).unwrap();
    let replies = page::run(&commands, folder.path());
    let [reply] = &replies[..] else { panic!("one curl command: {commands:?}") };
    let answer = reply.json();
    assert_eq!((reply.status, &answer["head"]), (200, &json!("near")));
    assert_eq!(terms(&answer).len(), 5);
    assert_eq!(terms(&answer)[0].0, "cheap");
}

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
    assert!(expanded(&kept, "sea").contains(&"the".to_owned()));
    // What was made says so itself: it stays the same with other programs.
    let json = fs::read_to_string(Path::new(&usual).join("head.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stop_words"].as_array().unwrap().len(), heads::STOP_WORDS.len());
    let json = fs::read_to_string(Path::new(&kept).join("head.json")).unwrap();
    assert!(!json.contains("stop_words"), "{json}");
}
