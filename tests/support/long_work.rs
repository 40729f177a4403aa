//! Long work that keeps a journal, such as `graph` and `bulk`: watched, killed and interrupted.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// All that a command said.
pub fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}")
}

/// Starts a command whose output is kept.
pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the work has more lines in its journal than this. Returns the number; `None` if it
/// is over before.
pub fn wait_for_journal(child: &mut Child, journal: &Path, more_than: usize) -> Option<usize> {
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        let lines = fs::read_to_string(journal).map_or(0, |text| text.lines().count());
        if lines > more_than {
            return Some(lines);
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nothing is written to the journal");
}

/// Ctrl-C in the middle: the work on `out` says how far it is and how to go on. Other work is
/// refused, with these `differences` named; the same goes on. Returns what that says.
#[cfg(unix)]
pub fn interrupted_it_goes_on(
    command: impl Fn(&[&str]) -> Command,
    out: &Path,
    rows_done: &str,
    (other, difference): (&[&str], &str),
) -> String {
    let mut child = start(command(&[]));
    let name = out.file_name().unwrap().to_str().unwrap();
    let folder = format!("{name}.partial");
    let journal = out.with_file_name(&folder).join("journal");
    assert!(wait_for_journal(&mut child, &journal, 1).is_some(), "it was over too early");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    for part in [rows_done, &folder, "the same command goes on from there"] {
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    let output = command(other).output().unwrap();
    for part in [difference, "remove that folder"] {
        assert!(!output.status.success() && said(&output).contains(part), "{}", said(&output));
    }
    let output = command(&[]).output().unwrap();
    let told = said(&output);
    assert!(output.status.success() && told.contains("of them earlier"), "{told}");
    told
}
