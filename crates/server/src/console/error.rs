//! What can be wrong in the console, and with single questions on the command line.

use crate::assembly::AssemblyError;
use crate::config::ConfigError;

/// Why a question has no answer, for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The settings of a service in this process.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its model, its engine or its threads.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// The URL is none.
    #[error("--url {url}: {reason}; give it as http://HOST:PORT or http://HOST:PORT/models/NAME")]
    BadUrl {
        /// As given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The service can't be asked.
    #[error("can't query {url}: {reason}; {cure}")]
    Unreachable {
        /// As given.
        url: String,
        /// What the client said.
        reason: String,
        /// What may help.
        cure: String,
    },
    /// Something else answers there.
    #[error(
        "the answer of {url} is not Kindred's ({reason}); give --url as http://HOST:PORT or \
         http://HOST:PORT/models/NAME"
    )]
    NotKindred {
        /// As given.
        url: String,
        /// What came.
        reason: String,
    },
    /// There are no certificates to trust.
    #[error("{0}")]
    Certificates(String),
    /// The service wants a key, or another one.
    #[error("{0}; set KINDRED_API_KEY or give --api-key")]
    NoKey(String),
    /// The service says why it does not answer.
    #[error("{0}")]
    Refused(String),
    /// A line that means nothing.
    #[error("{0}")]
    BadLine(String),
    /// There is no reference to compare with.
    #[error(
        "--compare runs the reference on this machine, so with --url it needs the served model folder; add \
         --model DIR"
    )]
    NoReference,
    /// A model beside a URL, and nothing to hold against it.
    #[error("with --url, --model is only used for --compare; add --compare, or omit --model")]
    ModelElsewhere,
    /// The reference's model is not the one that answers.
    #[error(
        "{answers} has version {found}, but the reference's model has version {expected}, so answers can't be \
         compared; set --model to the folder that is served"
    )]
    OtherVersion {
        /// Who answers.
        answers: String,
        /// Its version.
        found: String,
        /// The reference's.
        expected: String,
    },
    /// The engine's answer is not the reference's. That is a fault of Kindred's.
    #[error("the answer DIFFERS from the reference's: {0}")]
    Different(String),
    /// Some lines had no answer; each was said.
    #[error("{failed} of {asked} lines could not be answered")]
    LinesFailed {
        /// How many.
        failed: u64,
        /// Of how many.
        asked: u64,
    },
    /// The terminal, standard input or output.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}
