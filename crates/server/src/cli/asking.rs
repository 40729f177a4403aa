//! The commands that ask a model, and what the command line itself can be made into.

mod options;

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::methods;
use kindred::device::Device;
use kindred::method::Method;
pub use options::QuestionOptions;

/// Where answers come from.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Where answers come from")]
pub struct Place {
    /// Model folder, as `kindred prepare` writes it [default: the built-in model]. With --url it is for
    /// comparing alone: the folder that the service serves, which --compare needs then
    #[arg(long, value_name = "[NAME=]DIR")]
    pub model: Option<String>,
    /// Ask a running service: http://HOST:PORT, or http://HOST:PORT/models/NAME for one of several models
    #[arg(long, conflicts_with_all = ["device", "threads", "keep_tables"])]
    pub url: Option<String>,
    /// The service's API key; better in the environment, as KINDRED_API_KEY, where other users do not see it
    #[arg(long, value_name = "KEY", requires = "url")]
    pub api_key: Option<String>,
    /// What searches: auto (a GPU if there is one), cpu, cuda, or cuda:N for one of several GPUs
    /// [default: auto]
    #[arg(long)]
    pub device: Option<Device>,
    /// Threads of the CPU engine; 0 is one for each core [default: 0]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Whether the CPU engine keeps the table that it derives beside the model folder, for the next start
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    pub keep_tables: Option<bool>,
    /// Where the built-in model is kept once prepared [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
}

/// How answers are given.
#[derive(Debug, Default, Clone, Copy, Args)]
#[command(next_help_heading = "How answers are given")]
pub struct Giving {
    /// Ask the plain reference, too: one loop over all rows. Prints both times and whether the answers are the
    /// same, rows and score bits
    #[arg(long)]
    pub compare: bool,
    /// One JSON object for each answer: that of HTTP with what was asked and the times
    #[arg(long)]
    pub json: bool,
}

pub(super) const CONSOLE_EXAMPLES: &str = "\
A line is a word or an expression: `frog`, `king - man + woman`, `0.5*(paris + \"new york\")`. A line that begins
with a colon and a letter is a command; `:help` lists them. On a terminal there are history (arrow up), and
completion of words and commands (tab). Where the input is a pipe, each line of it is a question, and the console
ends with the pipe: with exit code 1 if a line could not be answered, which is said on standard error.

Examples:
  kindred console
  kindred console --model models/glove.6B.50d --compare
  kindred console --url http://127.0.0.1:8080
  echo 'king - man + woman' | kindred console --json | jq -r '.neighbors[].word'
  printf 'bottle 0\\nsnake 1\\nking - queen ! 0\\n' | kindred console --compat";

/// What `console` needs to know.
#[derive(Debug, Default, Clone, Args)]
pub struct ConsoleArguments {
    /// Where answers come from.
    #[command(flatten)]
    pub place: Place,
    /// What all lines have in common.
    #[command(flatten)]
    pub options: QuestionOptions,
    /// How expressions are answered [default: 3cosadd]
    #[arg(long, value_parser = methods(), help_heading = "What is asked for")]
    pub method: Option<Method>,
    /// How answers are given.
    #[command(flatten)]
    pub giving: Giving,
    /// Read the lines of the 2020 report instead: `bottle 0`, `snake 1`, `king - queen ! 0`; flag 1 also asks the
    /// sequential search on the CPU
    #[arg(long, conflicts_with_all = ["compare", "method"])]
    pub compat: bool,
}

pub(super) const NEAREST_EXAMPLES: &str = "\
The word is looked up by its exact bytes. Exit code 1 if the model does not have it; what it has is said then.

Examples:
  kindred nearest frog
  kindred nearest frog -k 5 --exclude frogs
  kindred nearest 'new york' --model models/phrases --json
  kindred nearest frog --url http://127.0.0.1:8080 --compare --model models/served";

/// What `nearest` needs to know.
#[derive(Debug, Clone, Args)]
pub struct NearestArguments {
    /// The word
    #[arg(allow_hyphen_values = true)]
    pub word: String,
    /// Where answers come from.
    #[command(flatten)]
    pub place: Place,
    /// What is asked for.
    #[command(flatten)]
    pub options: QuestionOptions,
    /// How answers are given.
    #[command(flatten)]
    pub giving: Giving,
}

pub(super) const ANALOGY_EXAMPLES: &str = "\
Words, + and -, weights like 0.5* and parentheses. Words with spaces, and those that would read as something else,
stand in double quotes.

Examples:
  kindred analogy 'king - man + woman'
  kindred analogy '0.5*(paris + rome) - \"new york\"' --model models/phrases
  kindred analogy 'king - man + woman' --method 3cosmul --explain
  kindred analogy 'king - man + woman' --json | jq -r '.neighbors[0].word'";

/// What `analogy` needs to know.
#[derive(Debug, Clone, Args)]
pub struct AnalogyArguments {
    /// The expression
    #[arg(allow_hyphen_values = true)]
    pub expression: String,
    /// Where answers come from.
    #[command(flatten)]
    pub place: Place,
    /// What is asked for.
    #[command(flatten)]
    pub options: QuestionOptions,
    /// How the expression is answered [default: 3cosadd]
    #[arg(long, value_parser = methods(), help_heading = "What is asked for")]
    pub method: Option<Method>,
    /// How answers are given.
    #[command(flatten)]
    pub giving: Giving,
}

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions
  kindred completions bash > ~/.local/share/bash-completion/completions/kindred
  kindred completions zsh > ~/.zfunc/_kindred        with ~/.zfunc in fpath
  kindred completions fish > ~/.config/fish/completions/kindred.fish";

/// What `completions` needs to know.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArguments {
    /// For which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  kindred man | man -l -
  kindred man --out ~/.local/share/man/man1         kindred.1, kindred-serve.1 and so on";

/// What `man` needs to know.
#[derive(Debug, Clone, Args)]
pub struct ManArguments {
    /// Folder for all pages, one for each command; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
