//! Tests that need a Python with some packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

/// The Python that this environment variable names, or python3, if it can import these modules.
pub fn that_imports(variable: &str, modules: &str) -> Option<PathBuf> {
    let python = std::env::var_os(variable).map_or_else(|| "python3".into(), PathBuf::from);
    let found = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

/// A test with such a Python. Where there is none, it is reported as ignored, and `what` says which
/// packages it needs.
pub fn trial(
    name: &str,
    (variable, modules, what): (&str, &str, &'static str),
    test: fn(&Path) -> Result<(), Failed>,
) -> Vec<Trial> {
    let python = that_imports(variable, modules);
    let missing = python.is_none();
    if missing {
        println!("1 skipped: no Python with {what}; {variable}=PYTHON names one");
    }
    let run = move || test(python.as_deref().ok_or(format!("no Python with {what}"))?);
    vec![Trial::test(name, run).with_ignored_flag(missing)]
}
