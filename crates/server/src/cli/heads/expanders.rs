//! Commands that make and ask expanders.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use kindred::device::Device;
use kindred::heads::{Form, WantedTerms};

use super::{
    MOST_EPOCHS, ModelArguments, TokensArguments, above_zero, model_folder, not_negative, up_to,
};
use crate::cli::thread_counts;

pub(super) const TRAIN_EXAMPLES: &str = "\
With FILE, a bias for each term and a projection of the tokens' vectors are learnt, so that a query and its relevant text have \
terms in common. Lines are a query, a tab, a relevant text, and perhaps a tab and an irrelevant text; or JSON objects with \
`query`, `relevant` and perhaps `irrelevant`.

Without FILE, nothing is learnt: the value of a word w for a token x is x · w − |w|² / 2 − reach, which grows as their distance \
falls. The reach is chosen so that half of the frequent words have N terms or more.

The same data, options and seed give the same weights on every machine. Ctrl-C keeps the best weights so far.

Examples:
  kindred train expander --model models/glove.6B.50d --out heads/nearby
  kindred train expander --model models/glove.6B.50d --terms 50 --out heads/wide
  kindred train expander --model models/glove.6B.50d --data clicks.tsv --out heads/clicks
  kindred expand --model models/glove.6B.50d --head heads/clicks 'cheap flights'";

/// Arguments of `train expander`.
#[derive(Debug, Clone, Args)]
pub struct TrainExpanderArguments {
    /// The model.
    #[command(flatten)]
    pub model: ModelArguments,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Terms of a typical word; with --data, of a typical text when training starts [default: 20; with --data, 100]
    #[arg(long, value_name = "N")]
    pub terms: Option<NonZeroUsize>,
    /// File of queries with relevant texts to learn from
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// File of queries with relevant texts that decide which epoch is the best [default: a tenth of the data]
    #[arg(long, value_name = "FILE", requires = "data")]
    pub dev: Option<PathBuf>,
    /// Skip and count invalid lines instead of stopping at the first
    #[arg(long, requires = "data")]
    pub skip_bad_rows: bool,
    /// How texts become tokens.
    #[command(flatten)]
    pub tokens: TokensArguments,
    /// The first N words of the model are terms; each step compares them with all tokens
    #[arg(
        long,
        value_name = "N",
        default_value = "20000",
        requires = "data",
        help_heading = "Training"
    )]
    pub vocab: NonZeroUsize,
    /// What is minimised: infonce (the relevant text against all others of the step) or margin (against the line's irrelevant text)
    #[arg(long, value_parser = ["infonce", "margin"], default_value = "infonce", help_heading = "Training")]
    #[arg(requires = "data")]
    pub loss: String,
    /// What scores are divided by, for infonce
    #[arg(long, value_name = "X", default_value_t = 4.0, help_heading = "Training")]
    #[arg(value_parser = above_zero())]
    pub temperature: f32,
    /// How much higher the relevant text should score, for margin
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Training")]
    #[arg(value_parser = above_zero())]
    pub margin: f32,
    /// How dear terms of queries are: the factor of their FLOPS
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training", value_parser = not_negative())]
    pub flops_queries: f32,
    /// How dear terms of texts are
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training", value_parser = not_negative())]
    pub flops_texts: f32,
    /// Steps in which both factors grow to that
    #[arg(long, value_name = "N", default_value = "500", help_heading = "Training")]
    pub warm_up: usize,
    /// Learn a vector for each term, too: a head of terms × dimensions
    #[arg(long, requires = "data", help_heading = "Training")]
    pub own_vectors: bool,
    /// Learn no projection of the tokens' vectors
    #[arg(long, requires = "data", help_heading = "Training")]
    pub no_projection: bool,
    /// Weights are values, not logarithms of 1 + value
    #[arg(long, help_heading = "Training")]
    pub linear: bool,
    /// Pairs of a step
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Training")]
    #[arg(value_parser = up_to(8192))]
    pub batch: usize,
    /// Passes over the data
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Training")]
    #[arg(value_parser = up_to(MOST_EPOCHS))]
    pub epochs: usize,
    /// The size of steps of projection and vectors
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training")]
    #[arg(value_parser = above_zero())]
    pub learning_rate: f32,
    /// The size of steps of biases
    #[arg(long, value_name = "X", default_value_t = 1e-2, help_heading = "Training")]
    #[arg(value_parser = above_zero())]
    pub bias_learning_rate: f32,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Training")]
    pub seed: u64,
    /// What learns: auto (a GPU if there is one), cpu, cuda or cuda:N; the result is the same
    #[arg(long, value_name = "DEVICE", default_value = "auto", requires = "data")]
    pub device: Device,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}

pub(in crate::cli) const EXPAND_EXAMPLES: &str = "\
Without texts, each line of standard input is one. A text without a known word is an error on standard error; if there was \
one, the exit code is 1.

With --vectors, the vectors of tokens come from an encoder of your own. Padding counts as tokens, so save texts of different \
lengths in a file each. The answers are those of the same `vectors` in POST /expand.

Examples:
  kindred expand 'cheap flights'
  kindred expand --top 10 --max-ratio 0.3 --explain 'cheap flights'
  kindred expand --model models/items --json < texts.txt    # a model under the metric dot: its own words
  kindred expand --format rank_features 'cheap flights'     # the field of a document of OpenSearch
  python3 -c 'import numpy; numpy.save(\"tokens.npy\", encode(\"cheap flights\").astype(\"<f4\"))'
  kindred expand --model models/terms --vectors tokens.npy";

/// The head that expands, and which of its terms are wanted.
#[derive(Debug, Clone, Args)]
pub struct TermArguments {
    /// Head folder written by `kindred train expander` [default: KINDRED_HEAD, or the head of the
    /// settings file, or the words of a model under the metric dot, or those near a text's, with
    /// the built-in model]
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
    /// Give at most this number of terms
    #[arg(long, value_name = "N", default_value_t = WantedTerms::TOP)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=WantedTerms::MOST as u64))]
    pub top: usize,
    /// Give only terms of at least this weight
    #[arg(long, value_name = "W", default_value_t = 0.0)]
    pub min_weight: f64,
    /// Give only terms of at least this part of the largest weight
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub max_ratio: f64,
}

/// Arguments of `expand`.
#[derive(Debug, Clone, Args)]
#[command(mut_args(model_folder("that the head was made for")))]
pub struct ExpandArguments {
    /// Texts to expand [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Expand vectors of tokens instead: a NumPy file (.npy) of float32, [tokens, components] for one text or
    /// [texts, tokens, components]
    #[arg(long, value_name = "FILE", conflicts_with = "texts")]
    pub vectors: Option<PathBuf>,
    /// The model.
    #[command(flatten)]
    pub model: ModelArguments,
    /// The head, and its terms.
    #[command(flatten)]
    pub terms: TermArguments,
    /// Print each answer as one JSON object: terms, impacts, rank_features, sparse_vector, qdrant or vespa
    #[arg(long, value_name = "FORM", value_parser = str::parse::<Form>)]
    pub format: Option<Form>,
    /// Also print which token gave each term
    #[arg(long)]
    pub explain: bool,
    /// Print each answer as one JSON object; the same as `--format terms`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}
