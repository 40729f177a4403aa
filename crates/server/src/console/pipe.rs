//! Lines from a pipe: each is answered or said to be wrong, until the pipe ends.

use std::io::{self, BufRead, ErrorKind, Write};

use super::turn::{Fault, Then, Turn};
use super::{ConsoleError, Form, Question, Session};
use crate::shown::shown;

/// Answers standard input line by line. That nobody reads the answers any more ends it, too, and is no fault.
///
/// # Errors
/// At the end, if some lines could not be answered; each was said on standard error. At once if the input can't be read
/// or the output not be written.
pub fn answer_lines(session: &mut Session, form: Form, compat: bool) -> Result<(), ConsoleError> {
    let out = &mut io::stdout().lock();
    let (mut asked, mut failed) = (0, 0);
    // By bytes: a line that is not UTF-8 is wrong, and the next one need not be.
    for (number, line) in (1..).zip(io::stdin().lock().split(b'\n')) {
        let line = line.map_err(|source| ConsoleError::System {
            doing: "can't read standard input",
            source,
        })?;
        let turn = Turn { session, form, out, number: Some(number) };
        let answered = match std::str::from_utf8(&line) {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) if compat => turn.line_of_report(line),
            Ok(line) => turn.line(line),
            Err(_) => Err(ConsoleError::BadLine("the line is not UTF-8".to_owned()).into()),
        };
        asked += 1;
        match answered {
            Ok(Then::GoOn) => {}
            Ok(Then::End) => break,
            Err(Fault::Line(error)) => {
                failed += 1;
                // Nobody may read this either; the exit code says it as well.
                let _ =
                    writeln!(io::stderr(), "kindred: line {number}: {}", shown(&error.to_string()));
            }
            Err(Fault::Output(e)) => return unread(e),
        }
    }
    if failed > 0 { Err(ConsoleError::LinesFailed { failed, asked }) } else { Ok(()) }
}

/// Answers one question.
///
/// # Errors
/// If it has no answer.
pub fn answer_one(
    session: &mut Session,
    form: Form,
    question: &Question,
    asked: &str,
) -> Result<(), ConsoleError> {
    let mut turn = Turn { session, form, out: &mut io::stdout().lock(), number: None };
    match turn.question(question, asked) {
        Ok(()) => Ok(()),
        Err(Fault::Line(error)) => Err(error),
        Err(Fault::Output(e)) => unread(e),
    }
}

/// What it means that standard output can't be written.
pub(super) fn unread(error: io::Error) -> Result<(), ConsoleError> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(ConsoleError::System { doing: "can't write the answers", source: error }),
    }
}
