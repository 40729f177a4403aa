//! Folders that earlier programs wrote are opened, and answered from as before:
//! tests/kept/README.md.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Service, kindred, top};

/// Copies a folder with everything in it: a service writes into its tables.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy(&path, &copied),
            false => drop(fs::copy(path, copied).unwrap()),
        }
    }
}

fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir(top().join("tests/kept")).unwrap();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn is_near(kept: &serde_json::Number, found: f64) -> bool {
    kept.as_f64().is_some_and(|kept| (kept - found).abs() <= 1e-6 * kept.abs())
}

/// Where the answer lacks something that was kept, or has something else in its place. Later
/// programs may tell more.
fn difference(kept: &Value, found: &Value, at: &str) -> Option<String> {
    match (kept, found) {
        (Value::Object(kept), Value::Object(found)) => kept.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            match found.get(name) {
                Some(found) => difference(value, found, &at),
                None => Some(format!("{at} is missing")),
            }
        }),
        (Value::Array(kept), Value::Array(found)) if kept.len() == found.len() => {
            let mut each = kept.iter().zip(found).enumerate();
            each.find_map(|(index, (kept, found))| {
                difference(kept, found, &format!("{at}[{index}]"))
            })
        }
        // Heads add in another order on other machines.
        (Value::Number(kept), Value::Number(found))
            if kept.is_f64() && found.as_f64().is_some_and(|found| is_near(kept, found)) =>
        {
            None
        }
        (kept, found) => (kept != found).then(|| format!("{at}: {kept} became {found}")),
    }
}

#[test]
fn folders_of_earlier_programs_answer_as_they_did() {
    let folders = versions();
    assert!(!folders.is_empty(), "none is kept");
    for folder in folders {
        let scratch = tempfile::tempdir().unwrap();
        copy(&folder, scratch.path());
        let answers = fs::read_to_string(folder.join("answers.jsonl")).unwrap();
        let answers: Vec<Value> =
            answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for settings in ["kindred.toml", "tables.toml"] {
            let mut command = kindred(&["serve", "--config", settings, "--listen", "127.0.0.1:0"]);
            command.current_dir(scratch.path());
            let service = Service::spawn(command);
            let asked: Vec<&Value> =
                answers.iter().filter(|one| one["settings"] == settings).collect();
            assert!(asked.len() >= 4, "{} has too few answers", folder.display());
            for one in asked {
                let text = |name: &str| one[name].as_str().unwrap();
                let mut headers = vec![("Content-Type", "application/json")];
                let key = one["headers"]["Authorization"].as_str();
                headers.extend(key.map(|key| ("Authorization", key)));
                let body =
                    if one["body"].is_null() { String::new() } else { one["body"].to_string() };
                let headers = if body.is_empty() { &headers[1..] } else { &headers[..] };
                let reply =
                    service.send(text("method"), text("path").as_bytes(), headers, body.as_bytes());
                assert_eq!(
                    reply.status,
                    200,
                    "{} {}: {}",
                    folder.display(),
                    text("path"),
                    reply.text()
                );
                let different = difference(&one["answer"], &reply.json(), "answer");
                assert_eq!(different, None, "{} {}", folder.display(), text("path"));
            }
        }
        for (command, folder) in [("verify", "model"), ("changes", "tables/changed")] {
            let arguments: &[&str] =
                if command == "changes" { &["changes", "verify"] } else { &["verify"] };
            let done = kindred(arguments).arg(scratch.path().join(folder)).output().unwrap();
            assert!(done.status.success(), "{folder}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
}

#[test]
fn what_differs_is_named() {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let kept = json(r#"{"a": [1, {"b": 2}]}"#);
    for (found, expected) in [
        (r#"{"a": [1, {"b": 2, "new": 3}], "more": 1}"#, None),
        (r#"{"a": [1, {"b": 3}]}"#, Some("answer.a[1].b: 2 became 3")),
        (r#"{"a": [1, {}]}"#, Some("answer.a[1].b is missing")),
        (r#"{"a": [1, {"b": 2.0000001}]}"#, Some("answer.a[1].b: 2 became 2.0000001")),
        (r#"{"a": [1]}"#, Some(r#"answer.a: [1,{"b":2}] became [1]"#)),
    ] {
        assert_eq!(difference(&kept, &json(found), "answer").as_deref(), expected);
    }
}
