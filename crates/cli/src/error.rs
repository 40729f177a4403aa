//! Errors of the commands and of the console, for the person who typed them.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use jobs::JobError;
use kindred::ModelError;
use kindred::engines::EngineStartError;
use kindred::evaluation::EvaluationError;
use kindred::filters::FilterError;
use kindred::heads::{DataError, EncoderError, HeadError, ImportError, ReachError, TrainError};
use kindred::live::changes::ChangeError;
use kindred::queue::EngineLost;
use server::assembly::AssemblyError;
use server::client::ClientError;
use server::config::ConfigError;
use server::models::LoadError;

/// Why a command failed, for the person who typed it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum CommandError {
    /// The error of a part of the program, which says all. Boxed, so that a result is small.
    #[error(transparent)]
    Part(Box<dyn Error + Send + Sync>),
    #[error(
        "can't listen on {address}: {source}; choose another address with --listen ADDR:PORT, such as \
         127.0.0.1:8080, or 0.0.0.0:8080 for other machines too (port 0 selects a free port)"
    )]
    Listen { address: String, source: io::Error },
    /// Anything else that the system refused.
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
    #[error("can't read {}: {source}; give {wanted}", path.display())]
    Unreadable { path: PathBuf, source: io::Error, wanted: &'static str },
    /// The model was found damaged after it was used.
    #[error("{source}; {cure}")]
    UsedDamaged { source: Box<ModelError>, cure: String },
    /// A service that is not ready.
    #[error("{url} is not ready: {reason}")]
    NotReady { url: String, reason: String },
    #[error("--url {url}: {reason}; give it as http://HOST:PORT or http://HOST:PORT/models/NAME")]
    BadUrl {
        url: String,
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    #[error("can't query {url}: {source}; {cure}")]
    NoAnswer { url: String, source: Box<ureq::Error>, cure: String },
    /// The address belongs to something other than Kindred.
    #[error(
        "the answer of {url} is not Kindred's ({reason}); give --url as http://HOST:PORT or \
         http://HOST:PORT/models/NAME"
    )]
    NotKindred {
        url: String,
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The service requires an API key, or a different one.
    #[error("{0}; set KINDRED_API_KEY or give --api-key")]
    NoKey(String),
    #[error("can't write the answers: {0}")]
    Output(#[from] io::Error),
    /// The question is refused, with the reason.
    #[error("{0}")]
    Refused(String),
    /// A line that can't be parsed.
    #[error("{0}")]
    BadLine(String),
    /// There is no reference to compare with.
    #[error(
        "--compare runs the reference on this machine, so with --url it needs the served model folder; add \
         --model DIR"
    )]
    NoReference,
    /// A model is given with a URL, but there is no comparison that would use it.
    #[error("with --url, --model is only used for --compare; add --compare, or omit --model")]
    ModelElsewhere,
    /// The reference's model is not the one that the service uses.
    #[error(
        "{answers} has version {found}, but the reference's model has version {expected}, so answers can't be \
         compared; set --model to the folder that is served"
    )]
    OtherVersion { answers: String, found: String, expected: String },
    /// The engine's answer is not the reference's. This is a bug in Kindred.
    #[error("the answer DIFFERS from the reference's: {0}")]
    Different(String),
    /// Some lines had no answer. An error was printed for each.
    #[error("{failed} of {asked} lines could not be answered")]
    LinesFailed { failed: u64, asked: u64 },
    /// All rows of bulk work are errors.
    #[error(
        "{} answered ({errors}); {output} has the error of each: check --column, and that the \
         model is the one for these rows",
        none_of(*rows)
    )]
    NothingAnswered { rows: u64, errors: String, output: String },
    /// A signal stopped the work, which says what it leaves.
    #[error("{0}")]
    Stopped(#[source] Box<CommandError>),
    /// A signal stopped the training. Its head is written.
    #[error(
        "stopped; {} has the best weights so far, those of epoch {epoch}: with --replace the same \
         command begins anew", out.display()
    )]
    StoppedTraining { epoch: usize, out: PathBuf },
    /// Arguments that are invalid, or that do not go together.
    #[error("{0}")]
    Usage(String),
    /// The service has lost its engine.
    #[error("{0}; restart the service")]
    EngineLost(#[source] EngineLost),
    #[error(
        "stopped with requests in flight, because they took longer than drain_timeout_ms ({0} ms)"
    )]
    DrainTimeout(u64),
    #[error("stopped without draining, because of a second stop signal")]
    NotDrained,
}

macro_rules! parts {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::Part(Box::new(error))
            }
        })+
    };
}

parts!(
    AssemblyError,
    ChangeError,
    ClientError,
    ConfigError,
    DataError,
    EncoderError,
    EngineStartError,
    EvaluationError,
    FilterError,
    HeadError,
    ImportError,
    JobError,
    LoadError,
    ModelError,
    ReachError,
    TrainError,
);

/// That none of so many rows were answered, in words.
fn none_of(rows: u64) -> String {
    match rows {
        1 => "the only row was not".to_owned(),
        rows => format!("none of the {rows} rows could be"),
    }
}

impl CommandError {
    /// The program's exit code: 2 for a mistake in the settings, as for an invalid command line,
    /// because no restart mends it; 70 (`EX_SOFTWARE` of sysexits.h) if the engine was lost, which
    /// tells a supervisor that a restart may help; 130 after a signal, as shells have it for
    /// Ctrl-C; otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::EngineLost(_) => 70,
            Self::Stopped(_) => 130,
            // Another program uses the address, and may release it.
            Self::Listen { source, .. } if source.kind() != io::ErrorKind::AddrInUse => 2,
            Self::Part(part) if is_of_settings(&**part) => 2,
            _ => 1,
        }
    }
}

/// Whether an error is a mistake in the settings, or in a file that they name.
fn is_of_settings(part: &(dyn Error + Send + Sync + 'static)) -> bool {
    let start = part.downcast_ref::<AssemblyError>().is_some_and(AssemblyError::is_of_settings);
    let command = matches!(part.downcast_ref::<LoadError>(), Some(LoadError::Settings(_)));
    let client = matches!(part.downcast_ref::<ClientError>(), Some(ClientError::Variable(_)));
    part.is::<ConfigError>() || start || command || client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_settings_are_told_from_what_fails_later() {
        let setting = || ConfigError::Half { has: "tls_certificate", lacks: "tls_private_key" };
        let damaged = || LoadError::SeveralHeads("a, b".to_owned());
        let listen = |kind: io::ErrorKind| CommandError::Listen {
            address: "127.0.0.1:1".to_owned(),
            source: kind.into(),
        };
        for (error, code) in [
            (CommandError::from(setting()), 2),
            (AssemblyError::from(setting()).into(), 2),
            (AssemblyError::from(LoadError::from(setting())).into(), 2),
            (LoadError::from(setting()).into(), 2),
            (ClientError::from(setting()).into(), 2),
            (ClientError::Key.into(), 1),
            (damaged().into(), 1),
            (AssemblyError::from(damaged()).into(), 1),
            (listen(io::ErrorKind::InvalidInput), 2),
            (listen(io::ErrorKind::AddrNotAvailable), 2),
            (listen(io::ErrorKind::PermissionDenied), 2),
            (listen(io::ErrorKind::AddrInUse), 1),
            (CommandError::DrainTimeout(1), 1),
            (CommandError::NotDrained, 1),
        ] {
            assert_eq!(error.exit_code(), code, "{error}");
        }
    }
}
