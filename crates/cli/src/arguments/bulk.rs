//! Flags of `bulk`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use jobs::bulk::BulkFormat;
use kindred::heads::Form;
use kindred::method::Method;

use super::asking::QuestionOptions;
use super::heads::{LabelArguments, ModelArguments, ServiceArguments, TermArguments};
use super::{DeviceArguments, methods, one_of};

/// What is asked of each row.
#[derive(Debug, Subcommand)]
#[command(after_help = BULK_EXAMPLES)]
pub enum BulkCommand {
    /// The labels that a head gives to each text
    #[command(after_help = CLASSIFY_EXAMPLES)]
    Classify {
        #[command(flatten)]
        labels: LabelArguments,
        #[command(flatten)]
        files: BulkFiles,
        #[command(flatten)]
        engine: BulkEngine,
    },
    /// The terms that each text implies, with weights
    #[command(after_help = EXPAND_EXAMPLES)]
    Expand {
        #[command(flatten)]
        terms: TermArguments,
        /// Form of the terms in JSON lines or Parquet: terms, impacts, rank_features,
        /// sparse_vector, qdrant or vespa
        #[arg(long, value_name = "FORM", default_value_t, value_parser = str::parse::<Form>)]
        format: Form,
        #[command(flatten)]
        files: BulkFiles,
        #[command(flatten)]
        engine: BulkEngine,
    },
    /// The nearest neighbours of each word, or of each text
    #[command(after_help = NEAREST_EXAMPLES)]
    Nearest {
        /// Rows are texts: ask for the neighbours of the sum of each text's words
        #[arg(long)]
        texts: bool,
        #[command(flatten)]
        options: QuestionOptions,
        #[command(flatten)]
        files: BulkFiles,
        #[command(flatten)]
        engine: BulkEngine,
    },
    /// The nearest neighbours of each expression such as `king - man + woman`
    #[command(after_help = ANALOGY_EXAMPLES)]
    Analogy {
        #[command(flatten)]
        options: QuestionOptions,
        /// Analogy method, for an expression `b - a + c` [default: 3cosadd]
        #[arg(long, value_parser = methods(), help_heading = "Query")]
        method: Option<Method>,
        #[command(flatten)]
        files: BulkFiles,
        #[command(flatten)]
        engine: BulkEngine,
    },
}

const BULK_EXAMPLES: &str = "\
Each row of --in has an answer in --out, in the same order, with the same bits as a single answer, beside its question in `asked`. \
A row that can't be answered has an `error` with the code and the text that the HTTP API gives, and does not end the work; \
--strict ends it there. If no row can be answered, the exit code is 1.

--in is .jsonl, .csv or .tsv with names in the first line, or .txt with a text in each line, \
plain or compressed as \
`kindred prepare` reads it. --out is .jsonl, .csv, .jsonl.gz or .csv.gz. `-` is standard input or \
output. Both may be .parquet, in a \
build with the Cargo feature `parquet`.

--out is written atomically. Until then the work is in OUT.partial. After a kill, a failure or Ctrl-C, the same command goes on \
from there; it refuses work that was begun with another input, other options or another version of the model. Work on standard \
input or for standard output can't go on.

Examples:
  kindred bulk classify --in reviews.jsonl --out labels.jsonl
  kindred bulk expand --in documents.csv --column body --id key --format rank_features --out terms.jsonl.gz
  kindred bulk nearest --in words.txt --out neighbours.csv
  kindred bulk analogy --in questions.txt --out answers.jsonl
  kindred bulk classify --url http://127.0.0.1:8080 --in reviews.jsonl --out labels.jsonl    # a running service

Exit codes: 0: rows are answered, perhaps some with errors; 1: none is, or the work failed; 2: invalid flags; 130: stopped.";

const CLASSIFY_EXAMPLES: &str = "\
Examples:
  kindred bulk classify --in reviews.jsonl --out labels.jsonl    # the field `text` of each line
  kindred bulk classify --in reviews.csv --column body --id key --top 1 --out labels.csv
  kindred bulk classify --head heads/topics --model models/glove.6B.300d --in texts.txt.gz --out topics.jsonl.gz --json
  zcat texts.txt.gz | kindred bulk classify --in - --out - | jq -r '.labels[0].label'
  kindred bulk classify --device cuda:all --head heads/topics --in texts.csv --out topics.csv.gz";

const EXPAND_EXAMPLES: &str = "\
Examples:
  kindred bulk expand --in documents.jsonl --out terms.jsonl
  kindred bulk expand --head heads/clicks --in documents.csv --column body --id key --top 50 --out terms.csv
  kindred bulk expand --format rank_features --in documents.jsonl --id key --out terms.jsonl    # for OpenSearch";

const NEAREST_EXAMPLES: &str = "\
Words are looked up by their exact bytes.

Examples:
  kindred bulk nearest --in words.txt --out neighbours.csv
  kindred bulk nearest -k 100 --min-score 0.5 --in words.jsonl --out near.jsonl    # the field `word` of each line
  kindred bulk nearest --texts --in queries.csv --out words.jsonl                  # the column `text`";

const ANALOGY_EXAMPLES: &str = "\
Examples:
  kindred bulk analogy --in questions.txt --out answers.jsonl
  kindred bulk analogy -k 1 --method 3cosmul --in questions.csv --out answers.csv    # the column `expression`";

/// The files, and how they are read and written.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Files")]
pub struct BulkFiles {
    /// File to read; `-` is standard input
    #[arg(long = "in", value_name = "FILE")]
    pub input: PathBuf,
    /// File to write; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Column of CSV, TSV or Parquet, or field of JSON lines, with the text, word or expression;
    /// its name in any case [default: text; for nearest, word; for analogy, expression]
    #[arg(long, value_name = "NAME", visible_alias = "field")]
    pub column: Option<String>,
    /// Column or field whose value is the `id` of an answer [default: the row's line in the input,
    /// from 1]
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// Format of --in [default: as its name says; lines for standard input]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(BulkFormat::ALL, BulkFormat::name))]
    pub from: Option<BulkFormat>,
    /// Format of --out [default: as its name says; jsonl for standard output]
    #[arg(long, value_name = "FORMAT")]
    #[arg(value_parser = one_of(BulkFormat::WRITTEN, BulkFormat::name))]
    pub to: Option<BulkFormat>,
    /// Stop at the first row that can't be answered
    #[arg(long)]
    pub strict: bool,
    /// Replace an existing file
    #[arg(long)]
    pub replace: bool,
    /// Print the summary as JSON; with `--out -`, on standard error
    #[arg(long)]
    pub json: bool,
}

/// The model and the engine.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Model and engine", mut_args(here))]
pub struct BulkEngine {
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub service: ServiceArguments,
    #[command(flatten)]
    pub devices: DeviceArguments,
}

/// Devices are those of this machine.
fn here(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "device" | "placement" => argument.conflicts_with("url"),
        _ => argument,
    }
}
