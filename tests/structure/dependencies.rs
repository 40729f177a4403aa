//! That every dependency has a licence on the list of deny.toml, comes from the registry, and names
//! a version: three of cargo-deny's checks. No package has a current cargo-deny,
//! and it takes minutes to compile.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::files;

/// Whether an SPDX expression is met by licences from a list: `(MIT OR Apache-2.0) AND Unicode-3.0`.
///
/// AND binds more tightly than OR, and `A/B` is the old way to write `A OR B`.
/// Source: SPDX specification 3.0, annex B.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any_of(&tokens, allowed);
    assert!(rest.is_empty(), "`{expression}` is no SPDX expression");
    met
}

fn any_of<'a>(tokens: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = all_of(tokens, allowed);
    while let ["OR", after @ ..] = rest {
        let (other, left) = all_of(after, allowed);
        (met, rest) = (met | other, left);
    }
    (met, rest)
}

fn all_of<'a>(tokens: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = one(tokens, allowed);
    while let ["AND", after @ ..] = rest {
        let (other, left) = one(after, allowed);
        (met, rest) = (met & other, left);
    }
    (met, rest)
}

fn one<'a>(tokens: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    match tokens {
        ["(", inner @ ..] => match any_of(inner, allowed) {
            (met, [")", rest @ ..]) => (met, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", exception, rest @ ..] => {
            (allowed.contains(&format!("{licence} WITH {exception}")), rest)
        }
        [licence, rest @ ..] => (allowed.contains(*licence), rest),
        [] => (false, tokens),
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The faults of a `cargo metadata`'s packages.
fn faults(metadata: &Value, allowed: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for package in texts(&metadata["packages"]) {
        let name = format!("{} {}", package["name"], package["version"]);
        match package["license"].as_str() {
            Some(licence) if is_met(licence, allowed) => {}
            licence => faults.push(format!("{name}: licence {licence:?} is not in deny.toml")),
        }
        let Some(source) = package["source"].as_str() else {
            for dependency in texts(&package["dependencies"]) {
                if dependency["req"] == "*" && dependency["path"].is_null() {
                    faults.push(format!("{name}: no version of {}", dependency["name"]));
                }
            }
            continue;
        };
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            faults.push(format!("{name}: from {source}"));
        }
    }
    faults
}

fn allowed() -> BTreeSet<String> {
    let text = files::read(&files::top(), Path::new("deny.toml"));
    let deny: Value = toml::from_str(&text).expect("deny.toml is TOML");
    texts(&deny["licenses"]["allow"]).filter_map(|text| Some(text.as_str()?.to_owned())).collect()
}

#[test]
fn dependencies_have_licences_and_sources_that_are_allowed() {
    for manifest in ["Cargo.toml", "deploy/simulate/Cargo.toml"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version=1", "--all-features", "--locked"]);
        cargo.arg("--manifest-path").arg(files::top().join(manifest));
        let output = cargo.output().expect("cargo runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{manifest}: {errors}");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(texts(&metadata["packages"]).next().is_some(), "{manifest}");
        let faults = faults(&metadata, &allowed());
        assert!(faults.is_empty(), "{manifest}:\n{}", faults.join("\n"));
    }
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed =
        ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 OR MIT AND Unicode-3.0", true),
        ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
        ("(GPL-3.0 OR MIT) AND ISC", false),
        ("MIT AND GPL-3.0 OR ISC", false),
        ("Apache-2.0", false),
        ("Apache-2.0 WITH LLVM-exception OR ISC", true),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}

#[test]
fn what_is_not_allowed_is_named() {
    let metadata = serde_json::json!({"packages": [
        {"name": "ours", "version": "0.1.0", "license": "MIT", "source": null,
         "dependencies": [{"name": "any", "req": "*"}, {"name": "near", "req": "*", "path": "/a"}]},
        {"name": "bad", "version": "1.0.0", "license": "GPL-3.0", "source": "git+https://a.b/c"},
        {"name": "none", "version": "1.0.0", "license": null,
         "source": "registry+https://github.com/rust-lang/crates.io-index"},
    ]});
    let faults = faults(&metadata, &["MIT".to_owned()].into());
    assert_eq!(faults.len(), 4, "{faults:?}");
    for (fault, part) in faults.iter().zip(["any", "GPL-3.0", "git+https", "none"]) {
        assert!(fault.contains(part), "{fault}");
    }
}
