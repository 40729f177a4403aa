//! `scripts/unless-passed` leaves a command out only if nothing that it depends on has changed since
//! it passed.
//!
//! Without git the script runs every command, and its test is reported as ignored.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::top;
use libtest_mimic::{Failed, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    let has_git =
        Command::new("git").arg("--version").output().is_ok_and(|git| git.status.success());
    if !has_git {
        println!("some skipped: no git");
    }
    let name = "unless_passed::a_command_is_left_out_only_if_nothing_changed_since_it_passed";
    vec![Trial::test(name, left_out_only_if_nothing_changed).with_ignored_flag(!has_git)]
}

/// Has the script run the shell's command, which depends on `program`. Each run adds a line to
/// `runs` beside the repository.
fn run(repository: &Path, command: &str, ci: bool) -> Result<i32, Failed> {
    let counted = format!("echo run >>../runs; {command}");
    let mut script = Command::new(repository.join("scripts/unless-passed"));
    script.args(["--but", "*.rs", "--", "sh", "-c", &counted, "program"]).current_dir(repository);
    script.env_remove("CI").env("TEST_DATA_DIR", repository.join("../data"));
    if ci {
        script.env("CI", "true");
    }
    Ok(script.output()?.status.code().unwrap_or(-1))
}

fn left_out_only_if_nothing_changed() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let repository = &folder.path().join("repository");
    fs::create_dir_all(repository.join("scripts"))?;
    fs::create_dir(folder.path().join("data"))?;
    fs::copy(top().join("scripts/unless-passed"), repository.join("scripts/unless-passed"))?;
    for (file, content) in [
        (".gitignore", "target\nprogram\n"),
        ("program", "1"),
        ("read.json", "1"),
        ("source.rs", "1"),
    ] {
        fs::write(repository.join(file), content)?;
    }
    for words in [["init", "--quiet"], ["add", "."]] {
        let git = Command::new("git").args(words).current_dir(repository).status()?;
        assert!(git.success(), "git {words:?}");
    }
    let runs = || -> Result<usize, Failed> {
        Ok(fs::read_to_string(folder.path().join("runs"))?.lines().count())
    };

    // One that fails or skips something is run again.
    for code in [1, 3] {
        assert_eq!(run(repository, &format!("exit {code}"), false)?, code);
        assert_eq!(run(repository, &format!("exit {code}"), false)?, code);
    }
    let mut expected = 4;
    let mut again = |what: &str, command: &str, ci: bool, is_run: bool| -> Result<(), Failed> {
        assert_eq!(run(repository, command, ci)?, 0, "{what}");
        expected += usize::from(is_run);
        assert_eq!(runs()?, expected, "{what}");
        Ok(())
    };
    again("the first time", "true", false, true)?;
    again("nothing has changed", "true", false, false)?;
    again("CI repeats all", "true", true, true)?;
    again("another command", "true true", false, true)?;
    for (what, file, is_run) in [
        ("a file of the repository", "repository/read.json", true),
        ("a new file", "repository/new.json", true),
        ("the program, which git ignores", "repository/program", true),
        ("the data", "data/new", true),
        ("a file that was left out", "repository/source.rs", false),
    ] {
        fs::write(folder.path().join(file), "changed")?;
        again(what, "true", false, is_run)?;
        again(what, "true", false, false)?;
    }
    fs::remove_file(repository.join("read.json"))?;
    again("a file that was removed", "true", false, true)?;
    again("nothing has changed", "true", false, false)?;
    // Changed while it runs: nobody knows with which content it passed.
    let changes = "echo more >>new.json";
    again("a change meanwhile", changes, false, true)?;
    fs::write(repository.join("new.json"), "changed")?;
    again("the content that it began with", changes, false, true)?;
    Ok(())
}
