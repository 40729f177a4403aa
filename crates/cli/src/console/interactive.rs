//! The console on a terminal: reads lines with history and completion, and prints their answers.

use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::completion::Words;
use super::pipe::unread;
use super::print::{banner, heading};
use super::turn::Turn;
use super::{Form, Session};
use crate::error::CommandError;
use server::escape::escaped;

const PROMPT: &str = "kindred> ";
/// Maximum number of lines in the history.
const MAX_HISTORY: usize = 10_000;

/// Answers lines until Ctrl-D or `:quit`. Ctrl-C clears the line.
pub(crate) fn talk(session: &mut Session, form: Form, compat: bool) -> Result<(), CommandError> {
    let (named, banner) = {
        let facts = session.service.facts()?;
        (heading(None, &facts.name, &facts.version), banner(&facts))
    };
    session.named = Some(named);
    let hint = if compat {
        "WORD FLAG, or WORD - WORD ! FLAG; Ctrl-D ends"
    } else {
        ":help lists the commands; Ctrl-D ends"
    };
    let mut out = io::stdout();
    if let Err(e) = writeln!(out, "{banner}\n{hint}") {
        return unread(e);
    }
    let mut editor = editor(session)?;
    let history = history_file();
    if let Some(file) = &history {
        // The file does not exist before the first line is saved.
        let _ = editor.load_history(file);
    }
    let mut keeps = history.is_some();
    loop {
        let line = match editor.readline(PROMPT) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(e) => {
                let source = io::Error::other(e);
                return Err(CommandError::System { doing: "can't read the terminal", source });
            }
        };
        let is_new = !line.trim().is_empty() && editor.add_history_entry(&line).unwrap_or(false);
        // Save after each line, so that nothing is lost however the program ends.
        if let Some(file) = history.as_ref().filter(|_| is_new && keeps)
            && let Err(e) = editor.append_history(file)
        {
            keeps = false;
            eprintln!("the history is not saved: {}: {e}", file.display());
        }
        let turn = Turn { session, form, out: &mut out, number: None };
        let answered = if compat { turn.line_of_report(&line) } else { turn.line(&line) };
        match answered {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(()),
            Err(CommandError::Output(e)) => return unread(e),
            Err(error) => eprintln!("{}", escaped(&error.to_string())),
        }
        if let Some(advice) = advice(&line) {
            eprintln!("   {advice}");
        }
    }
}

/// The command that is meant by a word with which other consoles end or help. It is looked up, too.
fn advice(line: &str) -> Option<&'static str> {
    match line.trim() {
        "exit" | "quit" => Some("a word was looked up; to end: :quit, or Ctrl-D"),
        "help" => Some("a word was looked up; for the commands: :help"),
        _ => None,
    }
}

fn editor(session: &Session) -> Result<Editor<Words, FileHistory>, CommandError> {
    let no_terminal = |e: ReadlineError| CommandError::System {
        doing: "can't use the terminal",
        source: io::Error::other(e),
    };
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .max_history_size(MAX_HISTORY)
        .map_err(no_terminal)?
        .build();
    let mut editor = Editor::with_config(config).map_err(no_terminal)?;
    let service = session.service.clone();
    // If the service does not answer, there are none.
    let words = move |prefix: &str| service.words_with_prefix(prefix).unwrap_or_default();
    editor.set_helper(Some(Words { with_prefix: Box::new(words) }));
    Ok(editor)
}

/// The history file, in the user's folder for program state or data. Creates the folder if needed.
fn history_file() -> Option<PathBuf> {
    let folders = choose_base_strategy().ok()?;
    let folder = folders.state_dir().unwrap_or_else(|| folders.data_dir()).join("kindred");
    if let Err(e) = fs::create_dir_all(&folder) {
        eprintln!("the history is not saved: {}: {e}", folder.display());
        return None;
    }
    Some(folder.join("history"))
}
