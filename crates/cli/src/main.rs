//! The `kindred` program.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use cli::arguments::{Cli, Command, TrainCommand};
use cli::commands;
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
    let result = match cli.command {
        None => commands::serve(&cli.serve),
        Some(Command::Serve(flags)) => commands::serve(&flags),
        Some(Command::Console(arguments)) => commands::console(&arguments),
        Some(Command::Nearest(arguments)) => commands::nearest(&arguments),
        Some(Command::Analogy(arguments)) => commands::analogy(&arguments),
        Some(Command::Prepare(arguments)) => commands::prepare(&arguments),
        Some(Command::Export(arguments)) => commands::export(&arguments),
        Some(Command::Synth(arguments)) => commands::synth(&arguments),
        Some(Command::Verify(arguments)) => commands::verify(&arguments),
        Some(Command::Train(TrainCommand::Classifier(arguments))) => {
            commands::train_classifier(&arguments)
        }
        Some(Command::Train(TrainCommand::Expander(arguments))) => {
            commands::train_expander(&arguments)
        }
        Some(Command::Expand(arguments)) => commands::expand(&arguments),
        Some(Command::ImportHead(arguments)) => commands::import_head(&arguments),
        Some(Command::Classify(arguments)) => commands::classify(&arguments),
        Some(Command::Eval(arguments)) => commands::eval(&arguments),
        Some(Command::Bulk(command)) => commands::bulk(&command),
        Some(Command::Graph(arguments)) => commands::graph(&arguments),
        Some(Command::ApiKey(arguments)) => commands::api_key(&arguments),
        Some(Command::Health(arguments)) => commands::health(&arguments),
        Some(Command::Completions(arguments)) => commands::completions(&arguments),
        Some(Command::Man(arguments)) => commands::man(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kindred: {}", escaped_lines(&error.to_string()));
            ExitCode::from(error.exit_code())
        }
    }
}
