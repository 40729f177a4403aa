//! Flags of `changes` and `rows`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kindred::attributes::AttributeType;
use kindred::contract::Metric;
use kindred::prepare::MAX_DIM;

use super::values::{given_type, one_of, whole};

const CREATE_EXAMPLES: &str = "\
The folder has no rows until some are put. Dimension, metric, and names and types of the attributes stay as they are given here. \
Types: text, list (of texts), integer, number, boolean, date-time, stored (a text for display).

Examples:
  kindred create models/products --dim 384 --attribute price=number --attribute tags=list
  kindred rows put models/products products.jsonl
  kindred nearest 4711 --model models/products
  kindred create models/items --dim 64 --metric dot";

#[derive(Debug, Clone, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct CreateArguments {
    /// Model folder to make; it must not exist, or be empty
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Components of a vector
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MAX_DIM as u64))]
    pub dim: usize,
    /// Formula of the score of two vectors
    #[arg(long, default_value = Metric::Cosine.name(), value_parser = one_of(Metric::ALL, Metric::name))]
    pub metric: Metric,
    /// An attribute that rows may have, and its type; may be repeated
    #[arg(long = "attribute", value_name = "NAME=TYPE", value_parser = given_type)]
    pub attributes: Vec<(String, AttributeType)>,
}

const FOLD_EXAMPLES: &str = "\
Writes a new base with the rows that live, beside the old one, and then makes it the one that counts: version, position and \
the numbers of rows stay. If it is stopped or killed, the old base counts. The old files stay for an hour, for those who copy the \
folder meanwhile; then the next command that changes rows, or folds, removes them.

Examples:
  kindred fold models/products
  kindred fold models/products --remove-old    # nobody is copying the folder";

#[derive(Debug, Clone, Args)]
#[command(after_help = FOLD_EXAMPLES)]
pub struct FoldArguments {
    #[command(flatten)]
    pub model: ChangesFolder,
    /// Remove the old files at once; a copy that is being made may then be refused
    #[arg(long)]
    pub remove_old: bool,
}

const CHANGES_EXAMPLES: &str = "\
Reads the logs beside a model's base; a process may be changing the rows meanwhile. A batch of changes is a line of JSON in \
`export`: {\"position\": …, \"upserts\": [rows], \"deletes\": [keys]}. A record that was being written when a process stopped is \
dropped, and `verify` tells so; any other damage is an error.

Examples:
  kindred changes list models/products
  kindred changes verify models/products
  kindred changes export models/products | jq -c '.deletes[]'";

/// Commands about the logs of a table whose rows change.
#[derive(Debug, Subcommand)]
#[command(after_help = CHANGES_EXAMPLES)]
pub enum ChangesCommand {
    /// Print the logs: their batches, positions and sizes
    List(ChangesFolder),
    /// Verify every checksum of the base and of the logs
    Verify(ChangesFolder),
    /// Print every batch since the last fold as a line of JSON, oldest first
    Export(ChangesFolder),
}

#[derive(Debug, Clone, Args)]
pub struct ChangesFolder {
    /// Model folder
    #[arg(value_name = "MODEL")]
    pub folder: PathBuf,
}

const ROWS_EXAMPLES: &str = "\
A row is a line of JSON: {\"key\": \"frog\", \"vector\": [0.5, 1], \"attributes\": {\"year\": 2026}}, and under the metric dot \
a bias. A key is the row's word in answers. Every batch is on disk before it counts. Only one process changes a model's rows at \
a time.

Examples:
  kindred rows put models/products new.jsonl
  kindred rows get models/products 4711 4712
  kindred rows delete models/products 4711
  kindred rows delete models/products --filter 'price > 100'
  kindred rows list models/products --filter 'price < 10' --limit 5
  kindred rows list models/products | kindred rows put models/copy -";

/// Commands about the rows of a table that changes.
#[derive(Debug, Subcommand)]
#[command(after_help = ROWS_EXAMPLES)]
pub enum RowsCommand {
    /// Insert rows, or replace those with the same keys
    Put(PutArguments),
    /// Print rows by their keys
    Get(KeysArguments),
    /// Delete rows by their keys, or those that meet a filter
    Delete(DeleteArguments),
    /// Print all rows, in their order
    List(ListArguments),
}

#[derive(Debug, Clone, Args)]
pub struct PutArguments {
    #[command(flatten)]
    pub model: ChangesFolder,
    /// File of rows, a line of JSON each; `-` is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Rows of a batch, which is applied as a whole
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole::<usize>(1, 1_000_000))]
    pub batch: usize,
}

#[derive(Debug, Clone, Args)]
pub struct KeysArguments {
    #[command(flatten)]
    pub model: ChangesFolder,
    /// Keys of the rows
    #[arg(value_name = "KEY", required = true)]
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct DeleteArguments {
    #[command(flatten)]
    pub model: ChangesFolder,
    /// Keys of the rows
    #[arg(value_name = "KEY", required_unless_present = "filter", conflicts_with = "filter")]
    pub keys: Vec<String>,
    /// Delete all rows that meet this filter, such as `price > 100`, in one batch
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub struct ListArguments {
    #[command(flatten)]
    pub model: ChangesFolder,
    /// Only rows behind this one, by its number
    #[arg(long, value_name = "ROW", value_parser = whole::<u32>(0, u32::MAX as u64))]
    pub after: Option<u32>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, u64::MAX))]
    pub limit: Option<usize>,
    /// Only rows that meet this filter, such as `price < 10`
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
}
