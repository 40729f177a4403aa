//! Builds the program `kindred`, which the wheel carries beside the module. The module does not
//! link it.
//!
//! Only release builds do; `KINDRED_EXECUTABLE` names one that is there already, and `none` leaves
//! it out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=KINDRED_EXECUTABLE");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("kindred");
    let given = env::var("KINDRED_EXECUTABLE").unwrap_or_default();
    match given.as_str() {
        "none" => {}
        "" if env::var("PROFILE").is_ok_and(|profile| profile != "release") => {}
        "" => copy(&build(), &out),
        path => {
            println!("cargo::rerun-if-changed={path}");
            copy(Path::new(path), &out);
        }
    }
}

fn copy(program: &Path, out: &Path) {
    if let Err(error) = fs::copy(program, out) {
        panic!("can't copy the program {} into the wheel: {error}", program.display());
    }
}

/// Builds the program with the same features for the same machine. It has a folder of its own,
/// because cargo holds the lock of this one.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for source in
        ["Cargo.lock", "Cargo.toml", "crates", "config", "kernels", "models", "openapi.yaml"]
    {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/program");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo.current_dir(&root).args(["build", "--locked", "--profile", "dist"]);
    cargo.args(["--package", "cli", "--bin", "kindred", "--target-dir"]).arg(&folder);
    cargo.envs([("CARGO_PROFILE_DIST_STRIP", "symbols"), ("CARGO_PROFILE_DIST_DEBUG", "none")]);
    let features = [("CARGO_FEATURE_CUDA", "cli/cuda"), ("CARGO_FEATURE_PARQUET", "cli/parquet")];
    for (_, feature) in features.iter().filter(|(name, _)| env::var_os(name).is_some()) {
        cargo.args(["--features", feature]);
    }
    let [host, target] =
        ["HOST", "TARGET"].map(|name| env::var(name).expect("cargo tells build scripts"));
    let mut built = folder;
    // With --target, cargo has a folder for it, and flags for it are not for build scripts.
    if target != host {
        cargo.args(["--target", &target]);
        built.push(&target);
    }
    // What this build is told by cargo is not for that one.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_FEATURE_")
            || name.starts_with("CARGO_CFG_")
            || name == "CARGO_ENCODED_RUSTFLAGS"
        {
            cargo.env_remove(&*name);
        }
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(
        status.success(),
        "the program kindred could not be built; KINDRED_EXECUTABLE=none leaves it out of the wheel"
    );
    // Without its extension in the wheel: `kindred/__main__.py` starts it by its whole name.
    let extension = if target.contains("-windows-") { "exe" } else { "" };
    built.join("dist/kindred").with_extension(extension)
}
