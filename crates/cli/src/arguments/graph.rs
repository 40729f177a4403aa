//! Flags of `graph`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use kindred::options::{DEFAULT_K, MAX_K};

use super::DeviceArguments;
use super::heads::ModelArguments;
use super::values::{number, whole};

const EXAMPLES: &str = "\
For each row of the model, its k nearest other rows, with the scores of `nearest`: exact, and the same bytes on every device. \
The work grows with the square of the number of rows.

FILE.npz has the arrays `indices` (int64) and `scores` (float64), both [rows, k], best first, and k, model, version and metric. \
FILE.parquet has a line for each edge; it needs a build with the Cargo feature `parquet`. A row without k neighbours, such as a \
zero vector, is filled up with index -1 and score NaN; in Parquet it has fewer lines.

FILE is written atomically. Until then the work is in FILE.partial. After a kill, a failure or Ctrl-C, the same command goes on \
from there; it refuses work that was begun with other options or another version of the model.

Examples:
  kindred graph --model models/glove.6B.50d --k 10 --out glove.npz
  kindred graph --model models/glove.6B.50d --first-rows 20000 --out frequent.npz
  kindred graph --model models/glove.6B.50d --min-score 0.7 --out close.npz
  kindred graph --model products --filter 'stock > 0' --out in-stock.npz
  kindred graph --model models/glove.6B.50d --out edges.parquet
  kindred graph --model models/glove.840B.300d --device cuda:all --out glove.npz
  kindred graph --out demo.npz --json | jq .edges                # the built-in model";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct GraphArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Neighbours of each row
    #[arg(long, short = 'k', value_name = "N", default_value_t = DEFAULT_K as usize)]
    #[arg(value_parser = whole::<usize>(1, MAX_K))]
    pub k: usize,
    /// File to write; its name ends in .npz or .parquet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The graph of the first N rows, and among them: the most frequent words
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub first_rows: Option<NonZeroUsize>,
    /// Minimum score of a neighbour
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    #[arg(value_parser = number::<f64>("a finite number (cosines are from -1 to 1)", |_| true))]
    pub min_score: Option<f64>,
    /// Only neighbours that meet this filter of attributes and words, such as `kind = noun`. All
    /// rows have neighbours, whether they meet it or not
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub replace: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub devices: DeviceArguments,
}
