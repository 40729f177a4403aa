//! Lines from a pipe: prints an answer or an error for each, until the pipe ends.

use std::io::{self, BufRead, ErrorKind, Read as _, Write};
use std::ops::ControlFlow;

use super::turn::Turn;
use super::{Form, Session};
use crate::error::CommandError;
use server::escape::escaped;

/// Size limit of a line. An expression with the maximum number of words is far shorter.
const MAX_LINE_BYTES: u64 = 1 << 20;
/// Maximum number of characters that an error echoes of a word or a line. Our own texts between
/// backticks are shorter.
const MAX_ECHOED: usize = 250;

/// Answers standard input line by line. It also ends, without an error, when nobody reads the
/// answers any more.
///
/// # Errors
/// At the end, if some lines could not be answered; standard error has an error for each.
/// Immediately, if the input can't be read or the output can't be written.
pub(crate) fn answer_lines(
    session: &mut Session,
    form: Form,
    compat: bool,
) -> Result<(), CommandError> {
    let out = &mut io::stdout().lock();
    let (mut asked, mut failed) = (0, 0);
    let (mut input, mut line) = (io::stdin().lock(), Vec::new());
    for number in 1.. {
        let read = read_line(&mut input, &mut line).map_err(|source| CommandError::System {
            doing: "can't read standard input",
            source,
        })?;
        let text = match (number, &line[..]) {
            // Some programs begin a UTF-8 file with a byte order mark.
            (1, [0xef, 0xbb, 0xbf, text @ ..]) => text,
            (_, text) => text,
        };
        let turn = Turn { session, form, out, number: Some(number) };
        let bad = |reason: String| Err(CommandError::BadLine(reason));
        // Lines are read as bytes, so that a line that is not UTF-8 does not affect the next one.
        let answered = match (read, std::str::from_utf8(text)) {
            (Read::End, _) => break,
            (Read::TooLong, _) => bad(format!("the line is longer than {MAX_LINE_BYTES} bytes")),
            (Read::Line, Ok(line)) if line.trim().is_empty() => continue,
            (Read::Line, Ok(line)) if compat => turn.line_of_report(line),
            (Read::Line, Ok(line)) => turn.line(line),
            (Read::Line, Err(_)) => bad("the line is not UTF-8".to_owned()),
        };
        asked += 1;
        match answered {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => break,
            Err(CommandError::Output(e)) => return unread(e),
            Err(error) => {
                failed += 1;
                let said = match error {
                    // Only these errors echo what was read.
                    CommandError::BadLine(said) | CommandError::Refused(said) => shortened(&said),
                    error => error.to_string(),
                };
                // Writing may fail here, too. The exit code also reports the failure.
                let _ = writeln!(io::stderr(), "kindred: line {number}: {}", escaped(&said));
            }
        }
    }
    if failed > 0 { Err(CommandError::LinesFailed { failed, asked }) } else { Ok(()) }
}

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Line,
    TooLong,
    End,
}

/// Reads the next line, without its line end. A line that is too long is read to its end, but not
/// kept.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Read> {
    line.clear();
    // One byte more, for the line end.
    if input.take(MAX_LINE_BYTES + 1).read_until(b'\n', line)? == 0 {
        return Ok(Read::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() as u64 > MAX_LINE_BYTES {
        line.clear();
        input.skip_until(b'\n')?;
        return Ok(Read::TooLong);
    }
    Ok(Read::Line)
}

/// Shortens what an error echoes of a line: the text between its backticks.
fn shortened(error: &str) -> String {
    error.split('`').map(|piece| beginning(piece, MAX_ECHOED)).collect::<Vec<_>>().join("`")
}

/// The first `most` characters and `…` of a text that has more, otherwise all of it.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The result if standard output can't be written. A closed pipe is no error.
pub(super) fn unread(error: io::Error) -> Result<(), CommandError> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(CommandError::Output(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_too_long_are_passed_over() {
        let most = MAX_LINE_BYTES as usize;
        let (fits, long) = ("a".repeat(most), "b".repeat(most + 1));
        let text = format!("{fits}\n{long}\nc\n\n{long}{fits}\nd");
        let mut input = io::BufReader::with_capacity(1000, text.as_bytes());
        let mut line = Vec::new();
        for (read, expected) in [
            (Read::Line, &fits[..]),
            (Read::TooLong, ""),
            (Read::Line, "c"),
            (Read::Line, ""),
            (Read::TooLong, ""),
            (Read::Line, "d"),
            (Read::End, ""),
        ] {
            assert_eq!(read_line(&mut input, &mut line).unwrap(), read);
            assert!(line == expected.as_bytes(), "{} bytes", line.len());
        }
    }

    #[test]
    fn errors_echo_the_beginning_of_what_is_long() {
        let long = "ä".repeat(1000);
        let said = shortened(&format!("no `{long}`; it has `frog`"));
        assert_eq!(said, format!("no `{}…`; it has `frog`", "ä".repeat(MAX_ECHOED)));
        assert_eq!(shortened("no `frog`"), "no `frog`");
    }
}
