//! `kindred import-head`.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Service, errors, kindred, objects};

/// A state dict for the built-in model's 100 components: one filter for each of two words.
fn state_dict(dim: usize) -> Vec<u8> {
    let floats = |count: usize, one: f32| vec![one; count];
    let filters = [floats(dim, 0.5), floats(dim, -0.5)].concat();
    safetensors(vec![
        ("convs.0.weight".to_owned(), json!([2, dim, 1]), filters),
        ("convs.0.bias".to_owned(), json!([2]), floats(2, 10.0)),
        ("fc.weight".to_owned(), json!([2, 2]), vec![1.0, -1.0, -1.0, 1.0]),
    ])
}

/// One filter of one word, whose feature is the sum of the word's components times `weight`; then
/// dense layers of one number, with weights of `factor`.
fn deep(weight: f32, layers: usize, factor: f32) -> Vec<u8> {
    let mut tensors = vec![
        ("convs.0.weight".to_owned(), json!([1, 100, 1]), vec![weight; 100]),
        ("convs.0.bias".to_owned(), json!([1]), vec![0.0]),
    ];
    for layer in 1..=layers {
        tensors.push((format!("fc{layer}.weight"), json!([1, 1]), vec![factor]));
    }
    let last = format!("fc{}.weight", layers + 1);
    tensors.push((last, json!([2, 1]), vec![factor, -factor]));
    safetensors(tensors)
}

fn safetensors(tensors: Vec<(String, Value, Vec<f32>)>) -> Vec<u8> {
    let (mut header, mut data) = (json!({}), Vec::new());
    for (name, shape, values) in tensors {
        let start = data.len();
        data.extend(values.iter().flat_map(|value: &f32| value.to_le_bytes()));
        header[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn scores_that_are_not_finite_are_the_error_of_their_text_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let import = |name: &str, state: Vec<u8>| {
        let file = path(&format!("{name}.safetensors"));
        fs::write(&file, state).unwrap();
        let mut command = kindred(&["import-head", "--labels", "up,down", "--weights", &file]);
        let output = command.args(["--out", &path(name)]).output().unwrap();
        (output.status.success(), errors(&output))
    };
    for (name, state) in [
        ("plain", deep(0.5, 2, 1.0)),
        // Too large for float32, and not for float64.
        ("large", deep(1e38, 2, 1e38)),
        ("huge", deep(1e38, 9, 1e38)),
    ] {
        let (is_right, said) = import(name, state);
        assert!(is_right, "{said}");
    }
    for weight in [f32::INFINITY, f32::NAN] {
        let (is_right, said) = import("never", deep(weight, 2, 1.0));
        assert!(!is_right && said.contains("convs.0.weight") && said.contains("finite"), "{said}");
        let (is_right, said) = import("never", deep(0.5, 2, weight));
        assert!(!is_right && said.contains("fc1.weight") && said.contains("finite"), "{said}");
    }
    let texts = ["frog", "music", "river", "king", "bread", "paris", "cold", "seven"];
    let classify = |head: &str| {
        let mut command = kindred(&["classify", "--json", "--scores", "--head", &path(head)]);
        let output = command.args(texts).output().unwrap();
        (objects(&output), output.status.success())
    };
    let (plain, _) = classify("plain");
    let overflows: Vec<bool> = plain
        .iter()
        .map(|one| one["labels"].as_array().unwrap().iter().any(|one| one["score"] != 0.0))
        .collect();
    let count = overflows.iter().filter(|overflows| **overflows).count();
    assert!((1..texts.len()).contains(&count), "{overflows:?}");
    let (large, is_right) = classify("large");
    assert!(is_right);
    for (large, plain) in large.iter().zip(&plain) {
        assert_eq!(large["labels"][0]["label"], plain["labels"][0]["label"]);
        assert!(large["labels"][0]["score"].is_f64());
    }
    let (huge, is_right) = classify("huge");
    assert!(!is_right);
    for (one, &overflows) in huge.iter().zip(&overflows) {
        let error = one["error"]["detail"].as_str().unwrap_or_default();
        assert_eq!(error.contains("the head's weights are too large"), overflows, "{one}");
        assert_eq!(one["labels"].is_array(), !overflows);
    }

    fs::write(path("in.txt"), texts.join("\n")).unwrap();
    let (input, output) = (path("in.txt"), path("out.jsonl"));
    let mut bulk = kindred(&["bulk", "classify", "--head", &path("huge"), "--in", &input]);
    let done = bulk.args(["--out", &output]).output().unwrap();
    assert!(done.status.success(), "{}", errors(&done));
    let service = Service::start(&["--head", &path("huge")]);
    let answer = service.post("/classify", &json!({"texts": texts, "head": "huge"})).json();
    let written = fs::read_to_string(&output).unwrap();
    for (index, line) in written.lines().enumerate() {
        let bulk: Value = serde_json::from_str(line).unwrap();
        let body = json!({"text": texts[index], "head": "huge", "explain": true});
        let alone = service.post("/classify", &body);
        for one in [&bulk, &answer["results"][index]] {
            let code = overflows[index].then_some("not_finite");
            assert_eq!(one["error"]["code"].as_str(), code, "{one}");
            assert_eq!(one["labels"].is_array(), !overflows[index], "{one}");
        }
        let expected = if overflows[index] { (422, "not_finite") } else { (200, "") };
        let code = alone.json()["code"].as_str().unwrap_or_default().to_owned();
        assert_eq!((alone.status, code.as_str()), expected);
    }
    fs::write(path("set.tsv"), "up\tfrog king bread\ndown\tmusic river cold\n").unwrap();
    let mut eval = kindred(&["eval", "--head", &path("huge"), "--classification"]);
    let said = eval.arg(path("set.tsv")).output().unwrap();
    assert!(!said.status.success() && errors(&said).contains("not finite"), "{}", errors(&said));
}

#[test]
fn a_state_dict_becomes_a_head_of_the_built_in_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
    };
    file("state.safetensors", &state_dict(100));
    file("other.safetensors", &state_dict(50));
    file("labels.txt", b"up\ndown\n");
    let import = |arguments: &[&str]| {
        let mut command = kindred(&["import-head"]);
        command.args(arguments).current_dir(folder.path()).output().unwrap()
    };
    let state = ["--weights", "state.safetensors", "--out", "head", "--labels-file", "labels.txt"];
    let made = import(&state);
    assert!(made.status.success(), "{}", errors(&made));
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(
        said.contains("head: convs.0 (width 1, 2 channels, padding 0), fc (2 outputs)"),
        "{said}"
    );
    let classify = ["classify", "--json", "--scores", "--head", "head", "a moving film"];
    let mut classify = kindred(&classify);
    let answer = &objects(&classify.current_dir(folder.path()).output().unwrap())[0];
    let labels = answer["labels"].as_array().unwrap();
    let of = |label: &str| {
        let found = labels.iter().find(|found| found["label"] == label).unwrap();
        found["score"].as_f64().unwrap()
    };
    assert!((of("up") + of("down")).abs() < 1e-9 && of("up") != 0.0, "{answer}");

    let description = fs::read_to_string(folder.path().join("head/head.json")).unwrap();
    assert!(description.contains("\"imported_from\": \"state.safetensors\""), "{description}");
    let taken = errors(&import(&state));
    assert!(taken.contains("exists") && taken.contains("--replace"), "{taken}");
    let again = import(&[&state[..], &["--replace", "--sigmoid"]].concat());
    assert!(again.status.success(), "{}", errors(&again));

    for (arguments, expected) in [
        (&["--weights", "other.safetensors", "--labels", "a,b"][..], "50 components"),
        (&["--weights", "none.safetensors", "--labels", "a,b"], "can't read none.safetensors"),
        (
            &["--weights", "labels.txt", "--labels", "a,b"],
            "labels.txt: it is not a safetensors file",
        ),
        (&["--weights", "state.safetensors", "--labels", "a,b,c"], "3 labels"),
        (&["--weights", "state.safetensors"], "give --labels NAME,NAME"),
        (
            &["--weights", "state.safetensors", "--labels", "a,b", "--map", "convs"],
            "two names, such as",
        ),
        (
            &["--weights", "state.safetensors", "--labels", "a,b", "--padding", "x"],
            "must be none, same",
        ),
    ] {
        let refused = import(&[arguments, &["--out", "new"]].concat());
        let said = errors(&refused);
        assert!(!refused.status.success() && said.contains(expected), "{said}");
        assert!(!folder.path().join("new").exists());
    }
}
