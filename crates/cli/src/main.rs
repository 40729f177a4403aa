//! The `kindred` program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use cli::{Cli, commands, complaint};
use server::escape::escaped_lines;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                error.exit()
            }
            if error.use_stderr() {
                let arguments: Vec<OsString> = std::env::args_os().collect();
                // It repeats what was typed.
                eprint!("{}", escaped_lines(&complaint(&error, &arguments)));
                return ExitCode::from(2);
            }
            // Help and version are results: failing to write them is an error, unless the pipe was
            // closed.
            return match error.print().and_then(|()| io::stdout().flush()) {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
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
