//! The `kindred` program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use cli::{Cli, commands, complaint};
use server::config::{LogFormat, log_format};
use server::escape::escaped_lines;
use server::logging;

/// The exit code for a command line that is wrong, as for a setting that is.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if logs_json(&arguments) {
        logging::panics_in_json();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.exit()
        }
        Err(error) if error.use_stderr() => return refuse(&error, &arguments),
        // Help and version are results: failing to write them is an error, unless the pipe was
        // closed.
        Err(error) => match error.print().and_then(|()| io::stdout().flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                eprintln!("kindred: can't write to standard output: {e}");
                return ExitCode::FAILURE;
            }
            _ => return ExitCode::SUCCESS,
        },
    };
    let Err(error) = commands::run(&cli) else { return ExitCode::SUCCESS };
    let code = error.exit_code();
    if logs_json(&arguments) {
        logging::error_in_json(&error.to_string(), Some(code));
    } else {
        eprintln!("kindred: {}", escaped_lines(&error.to_string()));
    }
    ExitCode::from(code)
}

/// Says why a command line is wrong. The message repeats what was typed.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let complaint = complaint(error, arguments);
    if logs_json(arguments) {
        let message = complaint.trim_end();
        logging::error_in_json(message.strip_prefix("kindred: ").unwrap_or(message), Some(USAGE));
    } else {
        eprint!("{}", escaped_lines(&complaint));
    }
    ExitCode::from(USAGE)
}

/// Whether a command line is that of a service whose log is in JSON, as far as that is known
/// without the settings. Then nothing else may be written.
fn logs_json(arguments: &[OsString]) -> bool {
    let arguments = arguments.get(1..).unwrap_or_default();
    let is_json = log_format(arguments, |name| std::env::var_os(name)) == LogFormat::Json;
    is_json && is_of_service(arguments.first())
}

/// Whether a command line with this first argument is that of `serve`, which may be left out, or of
/// none of the other commands, which have no log.
fn is_of_service(first: Option<&OsString>) -> bool {
    let Some(first) = first.and_then(|first| first.to_str()) else { return true };
    first == "serve" || first.starts_with('-') || Cli::command().find_subcommand(first).is_none()
}
