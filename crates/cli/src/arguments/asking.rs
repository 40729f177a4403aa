//! Commands that query a model.

mod comparing;
mod options;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args};

use super::{methods, thread_counts};
pub(crate) use comparing::{OddOneOutArguments, RankArguments, SimilarityArguments};
use kindred::device::Device;
use kindred::method::Method;
pub(crate) use options::QuestionOptions;

/// The model and the engine.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Model and engine")]
pub struct AnswerSource {
    /// Model folder written by `kindred prepare` [default: KINDRED_MODEL, or the model of the
    /// settings file, or the built-in model]. With --url, only --compare uses it: give the folder
    /// that the service serves
    #[arg(long, value_name = "[NAME=]DIR", value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,
    /// Query a running service: http(s)://HOST:PORT, or http(s)://HOST:PORT/models/NAME for one of
    /// several models
    #[arg(long, conflicts_with_all = ["device", "threads", "keep_tables"])]
    pub url: Option<String>,
    /// API key of the service. Other users of this machine can see this flag; the variable
    /// KINDRED_API_KEY is safer
    #[arg(long, value_name = "KEY", requires = "url")]
    pub api_key: Option<String>,
    /// Device to run searches on: auto (a GPU if there is one, else the CPU), cpu, cuda (an error
    /// without a GPU), or cuda:N [default: auto]
    #[arg(long)]
    pub device: Option<Device>,
    /// Number of CPU engine threads; 0 means one per core [default: 0]
    #[arg(long, value_name = "N", value_parser = thread_counts())]
    pub threads: Option<usize>,
    /// Cache the CPU engine's 8-bit copy of the vectors beside the model folder, for faster starts
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    pub keep_tables: Option<bool>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Head folders, for `:classify`.
    #[arg(skip)]
    pub head: Vec<String>,
}

/// The form of answers.
#[derive(Debug, Default, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Also run the reference implementation, a simple loop over all rows. Print both times, and
    /// whether rows and scores are bit-identical
    #[arg(long)]
    pub compare: bool,
    /// Print each answer as one JSON object: the HTTP answer with the question and timings
    #[arg(long)]
    pub json: bool,
}

const CONSOLE_EXAMPLES: &str = "\
A line is a word or an expression: `frog`, `king - man + woman`, `0.5*(paris + \"new york\")`. A colon and a letter \
start a command; `:help` lists them. On a terminal, arrow keys recall history and tab completes words and \
commands. If the input is a pipe, each line is a question. Errors go to standard error; if there was one, the \
exit code is 1. If the output is a pipe, it has tab-separated columns: question, word, score, row.

Examples:
  kindred console
  kindred console --model models/glove.6B.50d --compare
  kindred console --url http://127.0.0.1:8080
  echo 'king - man + woman' | kindred console --json | jq -r '.neighbors[].word'
  printf 'bottle 0\\nsnake 1\\nking - queen ! 0\\n' | kindred console --compat";

#[derive(Debug, Default, Clone, Args)]
#[command(after_help = CONSOLE_EXAMPLES)]
pub struct ConsoleArguments {
    #[command(flatten)]
    pub source: AnswerSource,
    /// Head folder written by `kindred train classifier`, for `:classify`. Repeat the flag for
    /// several [default: the built-in head, with the built-in model]
    #[arg(long, value_name = "[NAME=]DIR", conflicts_with = "url")]
    pub head: Vec<String>,
    #[command(flatten)]
    pub options: QuestionOptions,
    /// Analogy method, for an expression `b - a + c` [default: 3cosadd]
    #[arg(long, value_parser = methods(), help_heading = "Query")]
    pub method: Option<Method>,
    #[command(flatten)]
    pub output: OutputOptions,
    /// Read lines in the format of the 2020 report: a query, then 0 or 1, such as `bottle 0` or
    /// `king - queen ! 0`. With 1, also run the plain reference
    #[arg(long, conflicts_with_all = ["compare", "method"])]
    pub compat: bool,
}

const NEAREST_EXAMPLES: &str = "\
The word is looked up by its exact bytes. If the model does not have it, the command suggests similar words and \
exits with 1. The vector of a text is the sum of its words; words that the model does not have are left out. If standard \
output is not a terminal, each neighbour is a line of tab-separated columns: word, score, row, and attributes as JSON with \
--with-attributes.

Examples:
  kindred nearest frog
  kindred nearest --text 'a quick brown fox'
  kindred nearest frog -k 5 --exclude frogs
  kindred nearest frog | cut -f 1    # the words alone
  kindred nearest 'new york' --model models/phrases --json
  kindred nearest frog --url http://127.0.0.1:8080 --compare --model models/served";

#[derive(Debug, Clone, Args)]
#[command(after_help = NEAREST_EXAMPLES)]
#[command(group(ArgGroup::new("asked").args(["word", "text"]).required(true).multiple(true)))]
pub struct NearestArguments {
    /// Word to look up
    #[arg(allow_hyphen_values = true)]
    pub word: Option<String>,
    /// Look up the sum of the words of a text instead
    #[arg(long, value_name = "TEXT", conflicts_with = "word", allow_hyphen_values = true)]
    pub text: Option<String>,
    #[command(flatten)]
    pub source: AnswerSource,
    #[command(flatten)]
    pub options: QuestionOptions,
    #[command(flatten)]
    pub output: OutputOptions,
}

const ANALOGY_EXAMPLES: &str = "\
An expression has words, +, -, weights such as 0.5*, and parentheses. Put a word in double quotes if it has spaces \
or would be read as an operator.

Examples:
  kindred analogy 'king - man + woman'
  kindred analogy '0.5*(paris + rome) - \"new york\"' --model models/phrases
  kindred analogy 'king - man + woman' --method 3cosmul --explain
  kindred analogy 'king - man + woman' --json | jq -r '.neighbors[0].word'";

#[derive(Debug, Clone, Args)]
#[command(after_help = ANALOGY_EXAMPLES)]
pub struct AnalogyArguments {
    /// Expression to answer
    #[arg(allow_hyphen_values = true)]
    pub expression: String,
    #[command(flatten)]
    pub source: AnswerSource,
    #[command(flatten)]
    pub options: QuestionOptions,
    /// Analogy method, for an expression `b - a + c` [default: 3cosadd]
    #[arg(long, value_parser = methods(), help_heading = "Query")]
    pub method: Option<Method>,
    #[command(flatten)]
    pub output: OutputOptions,
}
