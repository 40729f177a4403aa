//! The arguments of `kindred embed`.

use std::path::PathBuf;

use clap::Args;
use kindred::Unknown;

use super::heads::ModelArguments;

const EXAMPLES: &str = "\
A line of JSON for each text: its vector, and how many words or tokens it is made of. A text without a vector has an `error`, \
and the exit code is 1. With --out, all vectors become one array [texts, dimensions], and the first such text ends the work.

Examples:
  kindred embed 'a small boat'                                        # the built-in model
  kindred embed --model models/static 'a boat' 'the sea' | jq .tokens
  kindred embed --model models/static --out vectors.npy < texts.txt   # numpy.load('vectors.npy')";

/// The arguments of `kindred embed`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EmbedArguments {
    /// Texts; without any, each line of standard input is one
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// File for all vectors: a NumPy array of float32
    #[arg(long, value_name = "FILE.npy")]
    pub out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "out")]
    pub replace: bool,
    /// Whether unknown words fail a text (error), are ignored (skip) or have the vectors of their
    /// subwords (subwords)
    #[arg(long, value_name = "RULE", value_parser = str::parse::<Unknown>)]
    pub unknown: Option<Unknown>,
    /// Divide each vector by its length (true), or print the mean of the words or tokens (false)
    /// [default: the vector that a search has]
    #[arg(long, value_name = "BOOLEAN")]
    pub normalize: Option<bool>,
    /// Cut texts that are too long (true) or refuse them (false) [default: true]
    #[arg(long, value_name = "BOOLEAN")]
    pub truncate: Option<bool>,
    #[command(flatten)]
    pub model: ModelArguments,
}
