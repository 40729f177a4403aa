//! Attributes as people prepare, look at, verify and export them, and what a service tells of them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::long_work::said;
use crate::support::{Service, TINY, kindred, prepared};

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = kindred(arguments).current_dir(folder).output().unwrap();
    (output.status.success(), said(&output))
}

/// A succeeding command's output.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, said) = run(folder, arguments);
    assert!(succeeded, "{said}");
    said
}

/// A failing command's output.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, said) = run(folder, arguments);
    assert!(!succeeded, "{said}");
    said
}

const PREPARE: [&str; 6] = ["prepare", "in.txt", "--out", "m", "--attributes", "in.csv"];

/// A folder with vectors and their attributes: the second row is bad, the fourth repeated.
fn products() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| fs::write(scratch.path().join(name), content).unwrap();
    write("in.txt", "a 1 0\nbad 5\nb 0 1\na 2 2\nc 1 1\n");
    write(
        "in.csv",
        "price,brand,in_stock,added\n\
         9.5,acme,true,2026-05-01T12:00:00Z\n\
         1,none,false,\n\
         120,\"big, foot\",false,2026-05-02T12:00:00Z\n\
         2,none,false,\n\
         ,acme,true,\n",
    );
    scratch
}

#[test]
fn attributes_go_in_are_shown_and_come_out_again() {
    let scratch = products();
    let folder = scratch.path();
    let output = done(folder, &[&PREPARE[..], &["--skip-bad-rows"]].concat());
    for line in [
        "attribute price: number, 2 different values, 1 missing\n",
        "attribute brand: text, 2 different values, 0 missing\n",
        "attribute in_stock: boolean, 2 different values, 0 missing\n",
        "attribute added: date-time, 2 different values, 1 missing\n",
        "glove text, attributes of in.csv",
    ] {
        assert!(output.contains(line), "{output}");
    }
    let output = done(folder, &["attributes", "m"]);
    assert!(output.contains(": 3 rows, 4 attributes\n"), "{output}");
    for line in [
        "name      type       distinct  missing  values\n",
        "price     number            2        1  9.5 to 120.0\n",
        "brand     text              2        0  acme (2), big, foot (1)\n",
        "in_stock  boolean           2        0  true (2), false (1)\n",
        "added     date-time         2        1  2026-05-01T12:00:00Z to 2026-05-02T12:00:00Z\n",
    ] {
        assert!(output.contains(line), "{output}");
    }
    let output = done(folder, &["verify", "m"]);
    assert!(output.contains("checking attributes\n"), "{output}");
    assert!(output.contains("metric cosine, 4 attributes, prepared from in.txt"), "{output}");

    let export = ["export", "m", "--format", "glove", "--out"];
    let output = done(folder, &[&export[..], &["without.txt"]].concat());
    assert!(output.contains("not written; --attributes-out FILE writes them"), "{output}");
    for name in ["out.csv", "out.jsonl"] {
        let flags = ["out.txt", "--attributes-out", name, "--replace"];
        let output = done(folder, &[&export[..], &flags].concat());
        assert!(!output.contains("not written"), "{output}");
        let prepare = ["prepare", "out.txt", "--attributes", name, "--out", "again", "--replace"];
        done(folder, &prepare);
        let version = |model: &str| {
            let output = done(folder, &["verify", model]);
            let (_, rest) = output.split_once(": version ").unwrap();
            rest.split(',').next().unwrap().to_owned()
        };
        assert_eq!(version("again"), version("m"), "{name}");
    }
    let lines = fs::read_to_string(folder.join("out.jsonl")).unwrap();
    assert_eq!(
        lines.lines().next(),
        Some(r#"{"price":9.5,"brand":"acme","in_stock":true,"added":"2026-05-01T12:00:00Z"}"#)
    );
    let csv = fs::read_to_string(folder.join("out.csv")).unwrap();
    assert!(
        csv.ends_with("120.0,\"big, foot\",false,2026-05-02T12:00:00Z\n,acme,true,\n"),
        "{csv}"
    );
}

#[test]
fn attributes_in_json_are_for_programs() {
    let scratch = products();
    done(scratch.path(), &[&PREPARE[..], &["--skip-bad-rows", "--type", "price=text"]].concat());
    let output = kindred(&["attributes", "--json", "--values", "1", "m"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["model"], &found["rows"]), (&json!("m"), &json!(3)));
    assert_eq!(
        found["attributes"][0],
        json!({
            "name": "price", "type": "text", "distinct": 2, "missing": 1,
            "frequent": [{"value": "120", "rows": 1}],
        })
    );
    assert_eq!(found["attributes"][3]["largest"], json!("2026-05-02T12:00:00Z"));
    let (_place, tiny) = prepared(TINY);
    let output = done(scratch.path(), &["attributes", tiny.to_str().unwrap()]);
    assert!(output.contains("6 rows, no attributes; `kindred prepare --attributes`"), "{output}");
}

#[test]
fn attributes_may_be_joined_by_the_words_of_their_rows() {
    let scratch = products();
    let folder = scratch.path();
    fs::write(folder.join("in.csv"), "id,n\nc,3\na,1\n").unwrap();
    let joined = [&PREPARE[..], &["--skip-bad-rows", "--key", "id"]].concat();
    let output = done(folder, &joined);
    assert!(output.contains("attribute n: integer, 2 different values, 1 missing\n"), "{output}");
    fs::write(folder.join("in.txt"), "a 1 0\nb 0 1\nc 1 1\n").unwrap();
    fs::write(folder.join("in.csv"), "id,n\nzebra,3\na,1\n").unwrap();
    let output = refused(folder, &[&joined[..], &["--replace"]].concat());
    assert!(output.contains("in.csv: line 2: no row of in.txt has the word `zebra`"), "{output}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_cure() {
    let scratch = products();
    let folder = scratch.path();
    fs::write(folder.join("in.csv"), "price\n1\n2\n").unwrap();
    let skipping = [&PREPARE[..], &["--skip-bad-rows"]].concat();
    let output = refused(folder, &skipping);
    assert!(output.contains("it has 2 lines of attributes, but in.txt has 5 rows"), "{output}");
    assert!(!folder.join("m").exists());
    for (flags, part) in
        [(&["--type", "price=float"][..], "integer, number"), (&["--type", "price"], "NAME=TYPE")]
    {
        let output = refused(folder, &[&skipping[..], flags].concat());
        assert!(output.contains(part), "{output}");
    }
    for flags in [&["--key", "id"][..], &["--type", "a=text"]] {
        let output = refused(folder, &[&["prepare", "in.txt", "--out", "m"][..], flags].concat());
        assert!(output.contains("--attributes"), "{output}");
    }
    let (_place, tiny) = prepared(TINY);
    let export = ["export", tiny.to_str().unwrap(), "--format", "glove", "--out", "out"];
    let output = refused(folder, &[&export[..], &["--attributes-out", "a.csv"]].concat());
    assert!(output.contains("it has no attributes; omit --attributes-out"), "{output}");
}

#[test]
fn the_service_tells_the_attributes() {
    let scratch = products();
    done(scratch.path(), &[&PREPARE[..], &["--skip-bad-rows"]].concat());
    let model = scratch.path().join("m");
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    let price = json!({"name": "price", "type": "number", "distinct": 2, "missing": 1});
    assert_eq!(service.get("/model").json()["attributes"][0], price);
    assert_eq!(service.get("/models").json()["models"][0]["attributes"][0], price);
    let brand = json!({
        "name": "brand", "type": "text", "distinct": 2, "missing": 0,
        "frequent": [{"value": "acme", "rows": 2}, {"value": "big, foot", "rows": 1}],
    });
    assert_eq!(service.get("/model").json()["attributes"][1], brand);
    let (_place, tiny) = prepared(TINY);
    let service = Service::start(&["--model", tiny.to_str().unwrap()]);
    assert!(service.get("/model").json().get("attributes").is_none());
}

#[test]
fn synthetic_rows_have_attributes_on_request() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let synth = ["synth", "--rows", "2000", "--dim", "4", "--attributes"];
    let output = refused(folder, &[&synth[..], &["--text", "t"]].concat());
    assert!(output.contains("needs `--out DIR`"), "{output}");
    done(folder, &[&synth[..], &["--out", "m"]].concat());
    let output = done(folder, &["verify", "m"]);
    assert!(output.contains("2 attributes, prepared from synth --rows 2000"), "{output}");
    let output = done(folder, &["attributes", "m", "--json"]);
    let found: Value = serde_json::from_str(&output).unwrap();
    let [a, keyword] = [0, 1].map(|index| &found["attributes"][index]);
    assert_eq!((&a["name"], &a["smallest"], &a["largest"]), (&json!("a"), &json!(0), &json!(999)));
    let frequent: Vec<&Value> =
        keyword["frequent"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
    assert_eq!(frequent[..3], [&json!("k1"), &json!("k2"), &json!("k3")]);
}
