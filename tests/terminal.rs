//! The console on a terminal: `tests/support/terminal.py` types, on a pseudo-terminal of the
//! system's.
//!
//! Without Python 3 these tests are reported as ignored.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Service, cache, program, top};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

pub(crate) fn trials() -> Vec<Trial> {
    let python = Command::new("python3").args(["-c", "import pty"]).output();
    let missing = !python.is_ok_and(|output| output.status.success());
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(format!("terminal::{name}"), test).with_ignored_flag(missing || cfg!(not(unix)))
    };
    let trials = vec![
        trial("words_are_completed_lines_come_back_and_compare_is_heard", talk_here),
        trial("a_service_by_url_completes_words_too", talk_by_url),
        trial("ctrl_c_clears_the_line_and_the_console_goes_on", clear),
        trial("colours_are_for_terminals_that_want_them", colours),
        trial("what_was_typed_is_repeated_without_what_steers_the_terminal", steers),
        trial("progress_is_no_wider_than_the_terminal", progress),
        trial("each_text_is_answered_before_the_next_is_typed", texts),
        trial("the_recorded_session_of_the_docs_is_still_what_is_said", recorded),
    ];
    if missing {
        println!("{} skipped: no python3 with its module pty", trials.len());
    }
    trials
}

const TAB: &str = "\t";
const UP: &str = "\x1b[A";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const PROMPT: &str = "kindred> ";
const END: &str = "total ";

fn wait(text: &str) -> Value {
    json!({"wait": text})
}

fn keys(keys: &str) -> Value {
    json!({"type": keys})
}

/// A terminal with a history of its own.
struct Terminal {
    state: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

impl Terminal {
    fn new() -> Result<Self, Failed> {
        Ok(Self { state: tempfile::tempdir()?, variables: vec![("TERM", "xterm-256color")] })
    }

    /// What the program said, once it ended well.
    fn type_into(&self, arguments: &[&str], steps: &[Value]) -> Result<String, Failed> {
        let mut command = Command::new("python3");
        command.arg(top().join("tests/support/terminal.py")).arg(program()).args(arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("KINDRED_") {
                command.env_remove(name);
            }
        }
        command.env("XDG_STATE_HOME", self.state.path()).env_remove("NO_COLOR");
        command.envs(self.variables.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        child.stdin.take().expect("piped").write_all(json!(steps).to_string().as_bytes())?;
        let output = child.wait_with_output()?;
        let result: Value = serde_json::from_slice(&output.stdout)?;
        let said = result["said"].as_str().unwrap_or_default().to_owned();
        if result["code"] == json!(0) {
            Ok(said)
        } else {
            Err(format!("exit code {}: {said}", result["code"]).into())
        }
    }
}

fn talk(terminal: &Terminal, arguments: &[&str], compare: &str) -> Result<String, Failed> {
    let steps = [
        wait(PROMPT),
        // Of the built-in model's words only one begins so.
        keys("salamand"),
        // A busy machine may take longer than completion waits for; then the next one finds it.
        keys(&TAB.repeat(3)),
        wait("salamander"),
        keys("\r"),
        wait(END),
        wait(PROMPT),
        keys(":comp"),
        keys(TAB),
        keys("\r"),
        wait(compare),
        wait(PROMPT),
        keys(UP),
        keys(UP),
        keys("\r"),
        wait(END),
        wait(PROMPT),
        keys(CTRL_D),
    ];
    terminal.type_into(arguments, &steps)
}

fn talk_here() -> Result<(), Failed> {
    let terminal = Terminal::new()?;
    let cache = cache();
    let arguments = ["console", "--device", "cpu", "--cache-dir", cache.to_str().expect("UTF-8")];
    let said = talk(&terminal, &arguments, "compare is on")?;
    assert!(said.contains("demo (7fbc8351f31644a7), 30,000 rows × 100 dimensions"), "{said}");
    assert_eq!(said.matches("   1  ").count(), 2, "the word was asked twice: {said}");
    assert_eq!(said.matches("identical: rows and score bits").count(), 1, "{said}");
    assert!(said.contains('█'), "{said}");
    // What was typed is kept for the next time, whose first line it is.
    let history = std::fs::read_to_string(terminal.state.path().join("kindred/history"))?;
    assert!(history.contains("salamander\n:compare\n"), "{history}");
    // Between prompts the end of a line is the terminal's own affair, and Ctrl-D is no key.
    let steps = [
        wait(PROMPT),
        keys(UP),
        wait("salamander"),
        keys("\r"),
        wait(END),
        wait(PROMPT),
        keys(CTRL_D),
    ];
    terminal.type_into(&arguments, &steps)?;
    Ok(())
}

fn talk_by_url() -> Result<(), Failed> {
    let service = Service::with_default_model();
    let arguments = ["console", "--url", &service.url("")];
    let said = talk(&Terminal::new()?, &arguments, "--compare runs the reference")?;
    assert_eq!(said.matches("round trip").count(), 2, "{said}");
    // A service that is gone is said, twice; completion does not wait for it, and the console goes
    // on to its end.
    let gone = "is the service running there";
    let steps = [
        wait(PROMPT),
        keys("frog\r"),
        wait(END),
        wait(PROMPT),
        json!({"kill": service.child.id()}),
        keys("parliamen"),
        keys(TAB),
        keys("\r"),
        wait(gone),
        wait(PROMPT),
        keys("toad\r"),
        wait(gone),
        wait(PROMPT),
        keys(CTRL_D),
    ];
    let said = Terminal::new()?.type_into(&arguments, &steps)?;
    assert!(!said.contains("parliament"), "nobody was there to complete it: {said}");
    // Nor does a console begin then.
    let refused = Terminal::new()?.type_into(&arguments, &[]);
    assert!(format!("{refused:?}").contains(gone), "{refused:?}");
    Ok(())
}

fn texts() -> Result<(), Failed> {
    let cache = cache();
    let cache = ["--cache-dir", cache.to_str().expect("UTF-8")];
    for (command, answer) in [("classify", "positive"), ("expand", "movie")] {
        let steps = [
            wait("Ctrl-D ends"),
            keys("a funny film\r"),
            wait(answer),
            keys("a dull film\r"),
            wait(answer),
            keys(CTRL_D),
        ];
        Terminal::new()?.type_into(&[&[command][..], &cache].concat(), &steps)?;
    }
    Ok(())
}

fn clear() -> Result<(), Failed> {
    let cache = cache();
    let arguments = ["console", "--device", "cpu", "--cache-dir", cache.to_str().expect("UTF-8")];
    let steps = [
        wait(PROMPT),
        keys("no such word"),
        keys(CTRL_C),
        wait(PROMPT),
        keys("frog\r"),
        wait(END),
        wait(PROMPT),
        keys(":quit\r"),
    ];
    let said = Terminal::new()?.type_into(&arguments, &steps)?;
    assert!(!said.contains("does not have") && !said.contains("two words"), "{said}");
    Ok(())
}

fn colours() -> Result<(), Failed> {
    let cache = cache();
    let arguments =
        ["nearest", "frog", "--device", "cpu", "--cache-dir", cache.to_str().expect("UTF-8")];
    let mut terminal = Terminal::new()?;
    assert!(terminal.type_into(&arguments, &[])?.contains("\x1b[36m"));
    terminal.variables.push(("NO_COLOR", "1"));
    let plain = terminal.type_into(&arguments, &[])?;
    assert!(!plain.contains('\x1b') && plain.contains('█'), "{plain}");
    Ok(())
}

fn steers() -> Result<(), Failed> {
    for arguments in
        [["nearest", "-k", "\x1b[31mEVIL\x07"], ["health", "--url", "\x1b[31mEVIL\x07"]]
    {
        let Err(refused) = Terminal::new()?.type_into(&arguments, &[]) else {
            return Err("it takes what is no number, or no address".into());
        };
        let said = refused.message().unwrap_or_default();
        assert!(said.contains("EVIL") && !said.contains(['\x1b', '\x07']), "{said:?}");
    }
    Ok(())
}

fn progress() -> Result<(), Failed> {
    const COLUMNS: usize = 120;
    let scratch = tempfile::tempdir()?;
    let [pipe, out] = ["pipe", "model"].map(|name| scratch.path().join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());
    // So long that the pace is known.
    let writing = std::thread::spawn({
        let pipe = pipe.clone();
        move || -> std::io::Result<()> {
            let mut pipe = std::fs::File::options().write(true).open(pipe)?;
            let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
            for row in 0u64.. {
                writeln!(pipe, "word{row} 1 2 3 4 5 6 7 8")?;
                if row % 1000 == 0 && std::time::Instant::now() > until {
                    break;
                }
            }
            Ok(())
        }
    });
    let [pipe, out] = [&pipe, &out].map(|path| path.to_str().expect("UTF-8"));
    let said = Terminal::new()?.type_into(&["prepare", pipe, "--out", out], &[])?;
    writing.join().expect("it ends")?;
    assert!(said.contains(" rows/s, ") && said.contains(" read"), "{said}");
    // Without what moves the cursor.
    let mut plain = String::new();
    for (index, piece) in said.split("\x1b[").enumerate() {
        let ends = |c: char| c.is_ascii_alphabetic();
        plain +=
            if index == 0 { piece } else { piece.split_once(ends).map_or("", |(_, rest)| rest) };
        plain.push('\r');
    }
    let bars = plain.split(['\r', '\n']).filter(|line| line.contains("rows/s"));
    let wide = bars.map(|line| line.chars().count()).max();
    assert!(wide <= Some(COLUMNS), "{wide:?}: {said}");
    Ok(())
}

fn recorded() -> Result<(), Failed> {
    let mut command = Command::new("python3");
    command.arg(top().join("scripts/record-console")).arg("--check").arg(program());
    let output = command.arg("--cache-dir").arg(cache()).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(()) } else { Err(said.into()) }
}
