//! The `kindred` program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use cli::{Cli, commands};
use server::config::{LogFormat, log_format};
use server::escape::{escaped, escaped_lines};
use server::logging;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for a command line that is wrong, as for a setting that is.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if logs_json(&arguments) {
        logging::panics_in_json();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return refuse(&error, &arguments),
        // Help and version are results: failing to write them is an error, unless the pipe was
        // closed.
        Err(error) => match error.print().and_then(|()| std::io::stdout().flush()) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => {
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

/// Says why a command line is wrong.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if logs_json(arguments) {
        logging::error_in_json(error.render().to_string().trim_end(), Some(USAGE));
        return ExitCode::from(USAGE);
    }
    // The message repeats what was typed, so escape control characters in it. That also removes
    // colours, so do it only if needed.
    let steers = |typed: OsString| {
        let typed = typed.to_string_lossy();
        escaped(&typed) != typed
    };
    if std::env::args_os().any(steers) {
        eprint!("{}", escaped_lines(&error.render().to_string()));
        return ExitCode::from(USAGE);
    }
    error.exit()
}

/// Whether a command line is that of a service whose log is in JSON, as far as that is known
/// without the settings. Then nothing else may be written.
fn logs_json(arguments: &[OsString]) -> bool {
    let is_json = log_format(arguments, |name| std::env::var_os(name)) == LogFormat::Json;
    is_json && is_of_service(arguments.first())
}

/// Whether a command line with this first argument is that of `serve`, which may be left out, or of
/// none of the other commands, which have no log.
fn is_of_service(first: Option<&OsString>) -> bool {
    let Some(first) = first.and_then(|first| first.to_str()) else { return true };
    first == "serve" || first.starts_with('-') || Cli::command().find_subcommand(first).is_none()
}
