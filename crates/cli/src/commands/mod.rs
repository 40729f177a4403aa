//! The commands: one file for each, and their errors.

/// Like `println!`, but returns an error if standard output can't be written. A closed pipe is no
/// error: the work is done anyway, as in `kindred synth … | head -1`.
macro_rules! say {
    ($($text:tt)*) => {
        super::print((format!($($text)*) + "\n").as_bytes())
    };
}

mod api_key;
mod beside;
mod bulk;
mod classify;
mod console;
mod eval;
mod expand;
mod export;
mod graph;
mod health;
mod import_head;
mod long_work;
mod manual;
mod prepare;
mod progress;
mod serve;
mod signals;
mod synth;
mod train;
mod train_expander;
mod verify;
mod watch;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use serve::serve_with;

use crate::arguments::{Cli, Command, ModelArguments, TokensArguments, TrainCommand};
use crate::console::{ConsoleError, heading};
use kindred::bulk::BulkError;
use kindred::engines::EngineStartError;
use kindred::evaluation::EvaluationError;
use kindred::graph::GraphError;
use kindred::heads::{
    self, DataError, HeadError, ImportError, ReachError, ThreadPool, Tokens, TrainError,
    has_no_capitals,
};
use kindred::prepare::not_plain_reason;
use kindred::queue::EngineLost;
use kindred::{Device, ModelError, ModelStore, Settings};
use server::assembly::AssemblyError;
use server::client::ClientError;
use server::config::{ConfigError, ServeFlags, URL_VARIABLE};
use server::models::{LoadError, OneModel};

/// Runs the command of a command line.
///
/// # Errors
/// If it can't do all of its work.
pub fn run(cli: &Cli) -> Result<(), CommandError> {
    match &cli.command {
        None => serve::serve(&cli.serve),
        Some(Command::Serve(flags)) => serve::serve(flags),
        Some(Command::Console(arguments)) => console::console(arguments),
        Some(Command::Nearest(arguments)) => console::nearest(arguments),
        Some(Command::Analogy(arguments)) => console::analogy(arguments),
        Some(Command::Prepare(arguments)) => prepare::prepare(arguments),
        Some(Command::Export(arguments)) => export::export(arguments),
        Some(Command::Synth(arguments)) => synth::synth(arguments),
        Some(Command::Verify(arguments)) => verify::verify(arguments),
        Some(Command::Train(TrainCommand::Classifier(arguments))) => {
            train::train_classifier(arguments)
        }
        Some(Command::Train(TrainCommand::Expander(arguments))) => {
            train_expander::train_expander(arguments)
        }
        Some(Command::Expand(arguments)) => expand::expand(arguments),
        Some(Command::ImportHead(arguments)) => import_head::import_head(arguments),
        Some(Command::Classify(arguments)) => classify::classify(arguments),
        Some(Command::Eval(arguments)) => eval::eval(arguments),
        Some(Command::Bulk(command)) => bulk::bulk(command),
        Some(Command::Graph(arguments)) => graph::graph(arguments),
        Some(Command::ApiKey(arguments)) => api_key::api_key(arguments),
        Some(Command::Health(arguments)) => health::health(arguments),
        Some(Command::Completions(arguments)) => manual::completions(arguments),
        Some(Command::Man(arguments)) => manual::man(arguments),
    }
}

/// Why a command failed, for the person who typed it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A head.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Texts with labels.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The training of a head.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The reach of an expander that is not trained.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// Weights from another program.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineStartError),
    /// The service: keys, certificates, origins, a model or its engine.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// A test set, or the engine during the evaluation.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// Bulk work.
    #[error(transparent)]
    Bulk(#[from] BulkError),
    /// The graph of nearest neighbours.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A question that the facade refused.
    #[error(transparent)]
    Question(#[from] kindred::Error),
    /// A question, or the service that should answer it. Boxed, because it is the largest.
    #[error(transparent)]
    Console(Box<ConsoleError>),
    /// The address to listen on.
    #[error(
        "can't listen on {address}: {source}; choose another address with --listen ADDR:PORT (port 0 selects \
         a free port)"
    )]
    Listen {
        /// As given.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file that a command needs can't be read.
    #[error("can't read {}: {source}; give {wanted}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// The file that is wanted.
        wanted: &'static str,
    },
    /// The model was found damaged after it was used.
    #[error("{source}; {cure}")]
    UsedDamaged {
        /// The fault.
        source: Box<ModelError>,
        /// The output that was written, and the cure.
        cure: String,
    },
    /// The client that asks a service.
    #[error(transparent)]
    Client(Box<ClientError>),
    /// A service that does not answer.
    #[error(
        "{url} is not ready: {source}; is the service running there? set its address with --url \
         or {variable}",
        variable = URL_VARIABLE
    )]
    Unreachable {
        /// Its address.
        url: String,
        /// The HTTP client's error.
        source: Box<ureq::Error>,
    },
    /// A service that is not ready.
    #[error("{url} is not ready: {reason}")]
    NotReady {
        /// Its address.
        url: String,
        /// Its answer, or why there was none.
        reason: String,
    },
    /// Arguments that are invalid, or that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The service has lost its engine.
    #[error("{0}; restart the service")]
    EngineLost(#[source] EngineLost),
    /// Requests were still in flight when the drain timeout passed.
    #[error(
        "stopped with requests in flight, because they took longer than drain_timeout_ms ({0} ms)"
    )]
    DrainTimeout(u64),
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        Self::Assembly(error.into())
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

impl From<ConsoleError> for CommandError {
    fn from(error: ConsoleError) -> Self {
        Self::Console(Box::new(error))
    }
}

impl CommandError {
    /// The program's exit code: 1, or 70 (`EX_SOFTWARE` of sysexits.h) if the engine was lost,
    /// which tells a supervisor that a restart may help. 2 is for an invalid command line.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::EngineLost(_) => 70,
            _ => 1,
        }
    }
}

/// The model that a command asks: that of its flags, or of the environment, of the settings file,
/// or the built-in one.
fn model_of(model: Option<&str>, cache_dir: Option<&Path>) -> Result<OneModel, CommandError> {
    let flags = ServeFlags {
        model: model.map(str::to_owned).into_iter().collect(),
        cache_dir: cache_dir.map(Path::to_owned),
        ..ServeFlags::default()
    };
    Ok(OneModel::open(&flags)?)
}

/// The model of a head.
fn model_of_head(arguments: &ModelArguments) -> Result<OneModel, CommandError> {
    model_of(arguments.model.as_deref(), arguments.cache_dir.as_deref())
}

/// How texts become tokens of a head for this model: in lower case if the model has no capitals.
fn tokens(model: &ModelStore, arguments: TokensArguments) -> Tokens {
    let TokensArguments { tokeniser, limit, cut } = arguments;
    Tokens { tokeniser, lower_case: has_no_capitals(model), limit, cut }
}

/// Refuses to write a head where something is, before anything is computed.
fn check_is_free(out: &Path, replace: bool) -> Result<(), CommandError> {
    if out.exists() && !replace {
        let message = format!("{} exists; choose another --out, or add --replace", out.display());
        return Err(CommandError::Usage(message));
    }
    Ok(())
}

/// The content of a text file. `wanted` says which file is wanted.
fn read_text(path: &Path, wanted: &'static str) -> Result<String, CommandError> {
    let name = path.display();
    let content = std::fs::read(path).map_err(|source| CommandError::Unreadable {
        path: path.to_owned(),
        source,
        wanted,
    })?;
    if let Some(reason) = not_plain_reason(&content) {
        return Err(CommandError::Usage(format!("{name}: {reason}")));
    }
    String::from_utf8(content).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
        CommandError::Usage(format!("{name}, line {line}: it is not UTF-8; convert the file"))
    })
}

/// Has these texts answered, or without any the lines of standard input, `together` at a time.
fn each_batch(
    texts: &[String],
    together: usize,
    mut answer: impl FnMut(&[String]) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    if !texts.is_empty() {
        return answer(texts);
    }
    let mut lines = io::stdin().lock().lines();
    loop {
        let some = lines.by_ref().take(together).collect::<Result<Vec<String>, _>>();
        let some = some.map_err(|source| CommandError::System {
            doing: "can't read standard input",
            source,
        })?;
        if some.is_empty() {
            return Ok(());
        }
        answer(&some)?;
    }
}

/// Settings of an engine that answers this command alone: it may take its time, and leaves no files
/// behind.
fn own_engine(device: &Device, threads: usize) -> Settings {
    const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
    let (device, keep_tables, timeout) = (device.clone(), false, LONGEST);
    Settings { device, threads, keep_tables, timeout, ..Settings::default() }
}

/// Threads for work that belongs to no engine; 0: one per core.
fn threads(count: usize) -> Result<ThreadPool, CommandError> {
    heads::threads(count)
        .map_err(|source| CommandError::System { doing: "can't start threads", source })
}

/// Writes to standard output. A reader that stops early is no error, as in
/// `kindred eval … | head -1`.
fn print(text: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::System { doing: "can't write to standard output", source: e })
        }
        _ => Ok(()),
    }
}
