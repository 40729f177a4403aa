//! Errors of the console, and of single questions on the command line.

use std::error::Error;

use server::client::ClientError;
use server::config::ConfigError;
use server::models::LoadError;

/// Why a question has no answer, for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The variables of the environment.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings, the model, the heads or the engine in this process.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The URL is invalid.
    #[error("--url {url}: {reason}; give it as http://HOST:PORT or http://HOST:PORT/models/NAME")]
    BadUrl {
        url: String,
        #[source]
        reason: Box<dyn Error + Send + Sync>,
    },
    /// The service can't be reached.
    #[error("can't query {url}: {source}; {cure}")]
    Unreachable { url: String, source: Box<ureq::Error>, cure: String },
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
    /// The API key, or the certificates to trust.
    #[error(transparent)]
    Client(Box<ClientError>),
    /// The service requires an API key, or a different one.
    #[error("{0}; set KINDRED_API_KEY or give --api-key")]
    NoKey(String),
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
    /// An error of the terminal, of standard input or of standard output.
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: std::io::Error },
}

impl From<ClientError> for ConsoleError {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}
