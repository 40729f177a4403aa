//! Tells the program which commit it is built from, and the tests whether it is optimised: some
//! compare its time with an estimate.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(optimised)");
    if env::var("OPT_LEVEL").is_ok_and(|level| level != "0") {
        println!("cargo::rustc-cfg=optimised");
    }
    println!("cargo::rustc-env=BUILD_COMMIT={}", commit().as_deref().unwrap_or("unknown"));
}

/// The commit of the sources: that of the environment's `BUILD_COMMIT`, for those who build without
/// a repository, or that of the repository. In a build for development it is unknown, so that a
/// commit makes nothing be built again.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=BUILD_COMMIT");
    let given = env::var("BUILD_COMMIT").unwrap_or_default();
    let given = given.trim();
    if !given.is_empty() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        assert!(given.chars().all(is_name), "BUILD_COMMIT is {given:?}; it must name a commit");
        return Some(given.to_owned());
    }
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release { of_repository() } else { None }
}

/// The commit that is checked out, if these sources are a repository of their own.
fn of_repository() -> Option<String> {
    let top = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../..").canonicalize().ok()?;
    // Sources in a folder of another repository are not of its commits.
    let repository = PathBuf::from(git(&top, &["rev-parse", "--show-toplevel"])?);
    if repository.canonicalize().ok()? != top {
        return None;
    }
    let branch = git(&top, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let file = top.join(git(&top, &["rev-parse", "--git-path", name])?);
        // One that does not exist would have this run each time.
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(&top, &["rev-parse", "HEAD"])
}

/// The output of a command of git; `None` without git, and if the command fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(folder).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let said = said.trim();
    (output.status.success() && !said.is_empty()).then(|| said.to_owned())
}
