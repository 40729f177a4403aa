//! `kindred import-head`.

use std::fs;

use serde_json::json;

use super::lines;
use crate::support::{errors, kindred};

/// A state dict for the built-in model's 100 components: one filter for each of two words.
fn state_dict(dim: usize) -> Vec<u8> {
    let floats = |count: usize, one: f32| vec![one; count];
    let tensors = [
        ("convs.0.weight", json!([2, dim, 1]), [floats(dim, 0.5), floats(dim, -0.5)].concat()),
        ("convs.0.bias", json!([2]), floats(2, 10.0)),
        ("fc.weight", json!([2, 2]), vec![1.0, -1.0, -1.0, 1.0]),
    ];
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
    let mut classify = kindred(&["classify", "--json", "--head", "head", "a moving film"]);
    let answer = &lines(&classify.current_dir(folder.path()).output().unwrap())[0];
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
        (&["--weights", "state.safetensors"], "--labels <NAME>"),
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
