//! The `kindred` program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, commands};
use server::escape::{escaped, escaped_lines};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The message repeats what was typed, so escape control characters in it. That also
            // removes colours, so do it only if needed.
            let steers = |typed: OsString| {
                let typed = typed.to_string_lossy();
                escaped(&typed) != typed
            };
            if error.use_stderr() && std::env::args_os().any(steers) {
                eprint!("{}", escaped_lines(&error.render().to_string()));
                return ExitCode::from(2);
            }
            if error.use_stderr() {
                error.exit()
            }
            // Help and version are results: failing to write them is an error, unless the pipe was
            // closed.
            return match error.print().and_then(|()| std::io::stdout().flush()) {
                Err(e) if e.kind() != ErrorKind::BrokenPipe => {
                    eprintln!("kindred: can't write to standard output: {e}");
                    ExitCode::FAILURE
                }
                _ => ExitCode::SUCCESS,
            };
        }
    };
    match commands::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kindred: {}", escaped_lines(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}
