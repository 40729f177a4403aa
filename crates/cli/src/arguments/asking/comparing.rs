//! Commands that compare words that are given: `similarity`, `odd-one-out` and `rank`.

use clap::builder::TypedValueParser;
use clap::{Arg, ArgGroup, Args};
use kindred::Unknown;
use kindred::method::Method;
use kindred::question::{MAX_COMPARED_WORDS, MAX_RANKED, MAX_SET_WORDS, MIN_COMPARED_WORDS};

use super::AnswerSource;
use super::options::RankOptions;
use crate::arguments::heads::model_folder;
use crate::arguments::values::{methods, one_of};

/// The form of the output of these commands if it is not a terminal.
const FORM: &str = "If standard output is not a terminal, it has lines of tab-separated columns:";

/// The rule for words that would be read as flags.
const HYPHENS: &str = "Words that begin with `-` follow `--`.";

/// Parses the treatment of words that the model does not have.
fn unknown() -> impl TypedValueParser<Value = Unknown> {
    one_of([Unknown::Error, Unknown::Skip, Unknown::Subwords], |unknown| match unknown {
        Unknown::Error => "error",
        Unknown::Skip => "skip",
        Unknown::Subwords => "subwords",
    })
}

/// A model beside a service is for `--compare`, which these commands do not have.
fn here_or_there(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "model" => model_folder("written by `kindred prepare`")(argument),
        "url" => argument.conflicts_with("model"),
        _ => argument,
    }
}

/// The options that `similarity` and `odd-one-out` share.
#[derive(Debug, Clone, Args)]
pub struct ComparisonOptions {
    /// Whether words that the model does not have fail the question or are left
    /// out [default: error]
    #[arg(long, value_parser = unknown(), help_heading = "Query")]
    pub unknown: Option<Unknown>,
    /// Print the answer as one JSON object: the HTTP answer with the question
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub source: AnswerSource,
}

fn similarity_help() -> String {
    format!(
        "\
The score is the cosine of the two words, from -1 to 1; under the metric dot, their dot product. A set of words, up to \
{MAX_SET_WORDS}, is the sum of their unit vectors. {FORM} the two words or sets, score. {HYPHENS}

Examples:
  kindred similarity frog toad
  kindred similarity --left paris rome --right berlin madrid
  kindred similarity frog toad --json | jq '.results[0].score'
  kindred similarity frog toad --url http://127.0.0.1:8080"
    )
}

#[derive(Debug, Clone, Args)]
#[command(after_help = similarity_help(), mut_args(here_or_there))]
#[command(group(ArgGroup::new("sides").args(["words", "left"]).required(true).multiple(true)))]
pub struct SimilarityArguments {
    /// The two words
    #[arg(value_name = "WORD", num_args = 2, conflicts_with_all = ["left", "right"])]
    pub words: Vec<String>,
    /// The words of a set, to compare with those of --right
    #[arg(long, value_name = "WORD", num_args = 1.., requires = "right")]
    pub left: Vec<String>,
    /// The words of the other set
    #[arg(long, value_name = "WORD", num_args = 1.., requires = "left")]
    pub right: Vec<String>,
    #[command(flatten)]
    pub comparison: ComparisonOptions,
}

fn odd_one_out_help() -> String {
    format!(
        "\
The odd one of {MIN_COMPARED_WORDS} to {MAX_COMPARED_WORDS} words has the lowest cosine to the sum of all their unit vectors: it is \
the last of the ranking. {FORM} word, score, row. {HYPHENS}

Examples:
  kindred odd-one-out breakfast lunch dinner piano
  kindred odd-one-out breakfast lunch dinner piano | tail -n 1 | cut -f 1    # piano
  kindred odd-one-out red green blue seven --json | jq -r .odd_one_out"
    )
}

#[derive(Debug, Clone, Args)]
#[command(after_help = odd_one_out_help(), mut_args(here_or_there))]
pub struct OddOneOutArguments {
    /// The words, at least 3
    #[arg(value_name = "WORD", required = true, num_args = 1..)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub comparison: ComparisonOptions,
}

fn rank_help() -> String {
    format!(
        "\
Ranks up to {MAX_RANKED} words, in their order, among all neighbours of a word, a text or an expression. The best neighbour has the \
rank 1. A word that a filter excludes has none. {FORM} word, rank, score, row. {HYPHENS}

Examples:
  kindred rank toad car --word frog
  kindred rank queen princess --expression 'king - man + woman' --method 3cosmul
  kindred rank fox hound --text 'a quick brown animal' --vocab-limit 20000
  kindred rank toad car --word frog --json | jq '.ranked[].rank'"
    )
}

#[derive(Debug, Clone, Args)]
#[command(after_help = rank_help(), mut_args(here_or_there))]
#[command(group(
    ArgGroup::new("among").args(["word", "text", "expression"]).required(true).multiple(true)
))]
pub struct RankArguments {
    /// The words to rank
    #[arg(value_name = "WORD", required = true, num_args = 1..)]
    pub words: Vec<String>,
    /// Rank them among the neighbours of this word
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["text", "expression"])]
    pub word: Option<String>,
    /// Rank them among the neighbours of a text: of the sum of its words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "expression")]
    pub text: Option<String>,
    /// Rank them among the neighbours of an expression such as `king - man + woman`
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub expression: Option<String>,
    /// Analogy method, for an expression `b - a + c` [default: 3cosadd]
    #[arg(long, value_parser = methods(), help_heading = "Query")]
    #[arg(conflicts_with_all = ["word", "text"])]
    pub method: Option<Method>,
    /// Whether words that the model does not have fail the question or are left out
    #[arg(long, value_parser = unknown(), help_heading = "Query")]
    pub unknown: Option<Unknown>,
    #[command(flatten)]
    pub options: RankOptions,
    /// Print the answer as one JSON object: the HTTP answer with the question and timings
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    #[command(flatten)]
    pub source: AnswerSource,
}
