//! Names of the code in documents: routes, threads, files, functions, fields.

use std::collections::BTreeMap;
use std::path::Path;

use super::none;
use super::text::{Document, documents, read, words_with};
use crate::structure::files;

#[test]
fn routes_are_called_what_the_table_calls_them() {
    let table = read("crates/server/src/http/routes/table.rs");
    let (architecture, openapi) = (read("ARCHITECTURE.md"), read("openapi.yaml"));
    let (unboxed, _) = architecture.split_once(" are within that of `front`").unwrap();
    let (_, unboxed) = unboxed.rsplit_once("The futures of ").unwrap();
    let of_a_model =
        openapi.split_once("One of the models: ").unwrap().1.split_once(".\n").unwrap().0;
    let (_, by_default) = openapi.split_once("(`/models`). The routes ").unwrap();
    let by_default = by_default.split_once(" use ").unwrap().0;
    let (mut faults, mut number) = (Vec::new(), 0);
    for route in table.split("Route::new(\"").skip(1) {
        let (path, rest) = route.split_once('"').unwrap_or_default();
        let rest = rest.split(",\n").next().unwrap_or_default();
        let name = format!("`GET {path}`");
        let is_boxed = !rest.contains(".get(Way::Nearest)") && !rest.contains(".get(Way::Analogy)");
        number += usize::from(!is_boxed);
        if unboxed.contains(&name) == is_boxed {
            faults.push(format!("ARCHITECTURE.md: the future of {name} is boxed: {is_boxed}"));
        }
        let top = path.split("/{").next().unwrap_or_default();
        for (what, list) in [("servers", of_a_model), ("Models", by_default)] {
            let is_listed = list.contains(&format!("`{top}`"));
            let is_of_a_model = ["Kind::Model", "Kind::Search"].iter().any(|of| rest.contains(of));
            if path.len() > 1 && is_listed != is_of_a_model {
                faults.push(format!("openapi.yaml, {what}: `{top}` is listed: {is_listed}"));
            }
        }
    }
    none(&faults);
    assert!(number > 0);
}

#[test]
fn threads_and_unsafe_code_are_where_the_architecture_says() {
    let architecture = read("ARCHITECTURE.md");
    let section = |title: &str| {
        let rest = architecture.split_once(&format!("\n## {title}\n")).expect(title).1;
        rest.split("\n## ").next().unwrap_or_default().to_owned()
    };
    let (threads, without_checks) = (section("Who owns which thread"), section("Unsafe code"));
    let mut faults = Vec::new();
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    let is_code = |name: &str| name.ends_with(".rs");
    for file in files::below(&files::top(), Path::new("crates"), is_code) {
        let path = file.to_str().unwrap().to_owned();
        if !path.contains("/src/") || path.contains("/tests") {
            continue;
        }
        let code = read(&path);
        // As in `.name("kindred-work".into())`, `.thread_name(|i| format!("kindred-scan-{i}"))` and
        // `run::run("kindred-bulk", …)`.
        let spawns = ["thread::Builder", ".thread_name(", "run::run("];
        let spawns = spawns.iter().any(|spawn| code.contains(spawn));
        for name in code.split("\"kindred-").skip(1).filter(|_| spawns) {
            let name = name.split('"').next().unwrap_or_default();
            let name = name.split('{').next().unwrap_or_default().trim_end_matches('-');
            named.insert(format!("kindred-{name}"), path.clone());
        }
        let short = path.trim_start_matches("crates/");
        let parts: Vec<&str> = short.split('/').collect();
        // By the end of its path behind `src`, or with all that is in a folder.
        let is_named = (2..parts.len()).any(|at| {
            let end = parts[at..].join("/");
            end != "mod.rs" && without_checks.contains(&format!("`{end}`"))
        }) || (2..=parts.len())
            .any(|end| without_checks.contains(&format!("`crates/{}`", parts[..end].join("/"))));
        if code.contains("allow(unsafe_code)") && !is_named {
            faults.push(format!("{path} has unsafe code that \"Unsafe code\" does not name"));
        }
    }
    for (name, path) in &named {
        let is_listed =
            [format!("`{name}`"), format!("`{name}-N`")].iter().any(|n| threads.contains(n));
        if !is_listed {
            faults.push(format!("{path}: the thread {name} is not in the table of threads"));
        }
    }
    for listed in threads.split("`kindred-").skip(1) {
        let name = format!("kindred-{}", listed.split('`').next().unwrap_or_default());
        if !named.contains_key(name.trim_end_matches("-N")) {
            faults.push(format!("no code makes a thread {name}"));
        }
    }
    none(&faults);
    assert!(named.len() >= 12, "{named:?}");
}

/// What is in backticks and has an underscore stands somewhere in the code: functions, fields,
/// settings, tests. Metrics are made of parts; `tests/metrics.rs` compares them.
#[test]
fn names_of_code_in_documents_exist() {
    // Of formulas, and of other programs.
    const OTHERS: [&str; 6] = ["q_i", "x_i", "x_j", "weight_j", "load_state_dict", "trec_eval"];
    let is_code = |name: &str| ![".md", ".svg", ".gz"].iter().any(|end| name.ends_with(end));
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let (mut wanted, mut checked) = (BTreeMap::new(), 0);
    for Document { path, quoted, .. } in documents() {
        let is_name = |code: &String| code.contains('_') && code.chars().all(is_part);
        for name in quoted.into_iter().filter(is_name) {
            checked += 1;
            if !OTHERS.contains(&&name[..]) && !name.starts_with("kindred_") {
                wanted.insert(name, path.clone());
            }
        }
    }
    for file in files::below(&files::top(), Path::new(""), is_code) {
        let text = files::read(&files::top(), &file);
        words_with(&text, "_", is_part, |name| {
            wanted.remove(name);
        });
    }
    let fault = |(name, path)| format!("{path}: nothing is called `{name}`");
    let faults: Vec<String> = wanted.into_iter().map(fault).collect();
    none(&faults);
    assert!(checked >= 300, "{checked}");
}
