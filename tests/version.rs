//! Which build a program is: by `--version`, and by `GET /version`.

use serde_json::json;

use crate::support::{Service, errors, kindred};

/// The features of this build, which the tests share with the program.
fn features() -> Vec<&'static str> {
    let all = [
        ("cuda", cfg!(feature = "cuda")),
        ("parquet", cfg!(feature = "parquet")),
        ("traces", cfg!(feature = "traces")),
    ];
    all.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect()
}

#[test]
fn the_program_and_the_service_tell_version_commit_and_features() {
    let said = |flag: &str| {
        let output = kindred(&[flag]).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("BUILD_COMMIT"));
    let named = if features().is_empty() { "none".to_owned() } else { features().join(", ") };
    let long = format!("kindred {version} (commit {commit}; features: {named})\n");
    assert_eq!(said("--version"), long);
    assert_eq!(said("-V"), format!("kindred {version}\n"));

    let service = Service::with_default_model();
    let reply = service.get("/version");
    let expected = json!({"version": version, "commit": commit, "features": features()});
    assert_eq!((reply.status, reply.json()), (200, expected));
    let tag = reply.header("etag").expect("a tag");
    let known = service.send("GET", b"/version", &[("If-None-Match", tag)], b"");
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(service.get("/models/demo/version").status, 404, "it is of no model");
}

#[test]
fn a_build_for_development_does_not_depend_on_the_commit() {
    let script = include_str!("../crates/cli/build.rs");
    let (before, of_repository) = script.split_once("fn of_repository()").expect("the function");
    // Only there the script names files of git to cargo; and it is called in release builds alone.
    assert!(of_repository.contains("rerun-if-changed={}"));
    assert_eq!(before.matches("rerun-if-changed").count(), 1, "build.rs itself");
    assert!(before.contains("if is_release { of_repository() } else { None }"));
    let commit = env!("BUILD_COMMIT");
    assert!(commit == "unknown" || commit.len() >= 7, "{commit}");
}
