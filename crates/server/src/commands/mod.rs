//! What each command does.

/// `println!` that returns an error if standard output can't be written. A closed pipe is no error: the work is done
/// all the same, as in `kindred synth … | head -1`.
macro_rules! say {
    ($($text:tt)*) => {
        super::print((format!($($text)*) + "\n").as_bytes())
    };
}

mod api_key;
mod console;
mod eval;
mod export;
mod health;
mod manual;
mod prepare;
mod progress;
mod serve;
mod synth;
mod verify;

use std::io::{self, Write};

pub use api_key::api_key;
pub use console::{analogy, console, nearest};
pub use eval::eval;
pub use export::export;
pub use health::health;
pub use manual::{completions, man};
pub use prepare::prepare;
pub use serve::{serve, serve_with};
pub use synth::synth;
pub use verify::verify;

use crate::assembly::AssemblyError;
use crate::config::ConfigError;
use crate::console::ConsoleError;
use kindred::engines::EngineStartError;
use kindred::evaluation::EvaluationError;
use kindred::queue::EngineLost;
use model_store::ModelError;

/// Why a command failed, for the person who typed it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineStartError),
    /// The service: keys, certificates, origins, a model or its engine.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A set to evaluate with, or the engine meanwhile.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// A question, or who should answer it. Boxed, for it is the largest.
    #[error(transparent)]
    Console(Box<ConsoleError>),
    /// The address.
    #[error(
        "can't listen on {address}: {source}; choose another address with --listen ADDR:PORT (port 0 selects \
         a free port)"
    )]
    Listen {
        /// As given.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A service that was asked whether it is.
    #[error("{url} is not ready: {reason}")]
    NotReady {
        /// Where it was asked.
        url: String,
        /// What it said, or why it said nothing.
        reason: String,
    },
    /// What was asked for does not go together.
    #[error("{0}")]
    Usage(String),
    /// The service had an engine, and has none any more.
    #[error("{0}; restart the service")]
    EngineLost(EngineLost),
    /// Requests were still in flight when the time for draining was over.
    #[error(
        "stopped with requests in flight, because they took longer than drain_timeout_ms ({0} ms)"
    )]
    DrainTimeout(u64),
}

impl From<ConsoleError> for CommandError {
    fn from(error: ConsoleError) -> Self {
        Self::Console(Box::new(error))
    }
}

impl CommandError {
    /// What the program ends with: 1, or 70 (`EX_SOFTWARE` of sysexits.h) if the engine was lost, so that whoever
    /// starts it knows that another start may help. 2 is for a command line that can't be read.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::EngineLost(_) => 70,
            _ => 1,
        }
    }
}

/// Writes to standard output. That nobody reads on is no error, as in `kindred eval … | head -1`.
fn print(text: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::System { doing: "can't write to standard output", source: e })
        }
        _ => Ok(()),
    }
}
