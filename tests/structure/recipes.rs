//! The recipes of CONTRIBUTING.md: the files that a change touches have the recipe's example.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{files, named_paths};

/// Recipes whose files are all that have the example, besides [`USES`], tests and examples.
const COMPLETE: [&str; 3] = ["An option of queries", "A setting", "An instruction set of the CPU"];

/// Documents, and code that uses what there is, as anybody's does.
const USES: [&str; 8] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benches",
    "crates/server/explorer",
    "docs",
    "fuzz",
    "scripts",
];

/// A recipe: what changes, an example of it, and the files and folders that such a change touches.
struct Recipe {
    title: String,
    example: String,
    touches: Vec<PathBuf>,
}

/// The recipes of a document. A heading is a paragraph such as "**A route**, for example `rank`";
/// the files are the paths before the first colon of each numbered item.
fn recipes(document: &str) -> Vec<Recipe> {
    let (_, section) = document.split_once("\n## What a change touches\n").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let recipe = |text: &str| {
        let (title, rest) = text.split_once("**, for example `").expect("an example");
        let (example, rest) = rest.split_once('`').expect("the example's end");
        let mut touches = Vec::new();
        for item in items(rest) {
            let named = item.split(": ").next().unwrap_or_default();
            touches.extend(named_paths::paths(named).map(PathBuf::from));
        }
        Recipe { title: title.to_owned(), example: example.to_owned(), touches }
    };
    section.split("\n**").skip(1).map(recipe).collect()
}

/// The items of a numbered list, each in one line.
fn items(text: &str) -> Vec<String> {
    let mut items = Vec::<String>::new();
    let is_numbered = |line: &str| {
        let (number, _) = line.split_once(". ").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    for line in text.lines() {
        if is_numbered(line) {
            items.push(line.to_owned());
        } else if let Some(item) = items.last_mut()
            && line.starts_with("   ")
        {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    items
}

/// Whether a file of this name is written by people, or generated and kept.
fn is_text(name: &str) -> bool {
    const KINDS: [&str; 10] = ["rs", "toml", "yaml", "json", "ts", "js", "py", "md", "cu", "cuh"];
    name.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind))
}

/// Whether a file, or a file of a folder, has the example, in small or capital letters.
fn has(top: &Path, path: &Path, example: &str) -> bool {
    if top.join(path).is_dir() {
        return files::below(top, path, is_text).iter().any(|file| has(top, file, example));
    }
    files::read(top, path).to_lowercase().contains(&example.to_lowercase())
}

/// What is wrong with the recipes of CONTRIBUTING.md.
fn faults(top: &Path) -> Vec<String> {
    let mut faults = Vec::new();
    for Recipe { title, example, touches } in
        recipes(&files::read(top, Path::new("CONTRIBUTING.md")))
    {
        let lacking = touches.iter().filter(|path| !has(top, path, &example));
        faults.extend(lacking.map(|path| format!("{title}: {} lacks {example}", path.display())));
        if !COMPLETE.contains(&&title[..]) {
            continue;
        }
        let is_use = |path: &Path| {
            let of_tests =
                |part: &OsStr| ["tests", "tests.rs", "test", "examples"].iter().any(|p| part == *p);
            path.iter().any(of_tests) || USES.iter().any(|of_uses| path.starts_with(of_uses))
        };
        let listed: BTreeSet<&PathBuf> = touches.iter().collect();
        for file in files::below(top, Path::new(""), is_text) {
            if !listed.contains(&file) && !is_use(&file) && has(top, &file, &example) {
                let file = file.display();
                faults.push(format!("{title}: {file} is not listed, but has {example}"));
            }
        }
    }
    faults
}

#[test]
fn the_recipes_list_the_files_that_their_examples_touched() {
    let faults = faults(&files::top());
    assert!(faults.is_empty(), "CONTRIBUTING.md:\n{}", faults.join("\n"));
}

#[test]
fn a_file_without_the_example_and_one_that_is_not_listed_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path();
    for (file, text) in [
        ("a/one.rs", "Fold_Case"),
        ("a/two.rs", ""),
        ("a/three.rs", "fold_case"),
        ("a/tests/four.rs", "fold_case"),
        ("docs/five.md", "fold_case"),
    ] {
        std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        std::fs::write(top.join(file), text).unwrap();
    }
    let document = "\n## What a change touches\n\n\
                    **An option of queries**, for example `fold_case`\n\n\
                    1. `a/{one,two}.rs`,\n   `a/tests`: not `a/none.rs`.\n\n\
                    **A route**, for example `x`\n\n\
                    1. `a`\n\n## Rules\n\n1. `b`\n";
    std::fs::write(top.join("CONTRIBUTING.md"), document).unwrap();
    let expected = [
        "An option of queries: a/two.rs lacks fold_case",
        "An option of queries: a/three.rs is not listed, but has fold_case",
        "A route: a lacks x",
    ];
    assert_eq!(faults(top), expected);
}
