//! Flags of `synth`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use kindred::contract::Metric;
use kindred::prepare::MAX_DIM;

use super::values::{one_of, whole};

const EXAMPLES: &str = "\
Give --out, --text or both. The same rows, dimension and seed give the same vectors on every machine. Use \
them for load tests and benchmarks without downloading a model. The words and vectors have no meaning. \
With --metric dot, norms vary from row to row and every row has a bias.

With --attributes, every row has `a`, an integer that is uniform in 0 to 999, and `keyword`, one of 10,000 texts with Zipf \
frequencies: about 10/n % of the rows have kn. Both are independent of the vectors.

Examples:
  kindred synth --rows 400000 --dim 50 --seed 1 --out models/synth
  kindred synth --rows 2196016 --dim 300 --seed 1 --out models/synth-large   # 2.7 GB
  kindred synth --rows 2196016 --dim 300 --text synth-large.txt              # GloVe text, 5.6 GB
  kindred synth --rows 400000 --dim 128 --metric dot --out models/synth-dot
  kindred synth --rows 400000 --dim 300 --attributes --out models/filtered   # a < 100: a tenth of the rows
  kindred synth --rows 400000 --dim 300 --buckets 2000000 --out models/subwords   # no word is unknown";

#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("output").args(["out", "text"]).required(true).multiple(true)))]
pub struct SynthArguments {
    /// Number of rows
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, u32::MAX.into()))]
    pub rows: u32,
    /// Components per row
    #[arg(long, value_name = "D", value_parser = whole::<u32>(1, MAX_DIM as u64))]
    pub dim: u32,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole::<u64>(0, u64::MAX))]
    pub seed: u64,
    /// Metric of the model
    #[arg(long, default_value = Metric::Cosine.name(), value_parser = one_of(Metric::ALL, Metric::name))]
    pub metric: Metric,
    /// Add the attributes `a` and `keyword` to the folder
    #[arg(long, requires = "out")]
    pub attributes: bool,
    /// Add vectors of n-grams to the folder, which share N rows as in a fastText model (lengths 3 to
    /// 6): words that are no rows have vectors, too
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, i32::MAX as u64), requires = "out")]
    pub buckets: Option<u32>,
    /// Model folder to write; required without --text
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// GloVe text file to write, with five significant digits per component; required without --out
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Replace existing output
    #[arg(long)]
    pub replace: bool,
}
