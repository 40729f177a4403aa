//! Commands that make and ask expanders.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use kindred::heads::{Form, WantedTerms};

use super::{ModelArguments, ServiceArguments, TokensArguments, model_folder};
use crate::arguments::values::{number, thread_counts, whole};

const TRAIN_EXAMPLES: &str = "\
The value of a word w for a token x is x · w − |w|² / 2 − reach, which grows as their distance falls. The reach is chosen so \
that half of the frequent words have N terms or more. English stop words (the, of, to …: Lucene's 33) are left out of \
texts, and are no terms. Nothing is learnt: to learn from queries with relevant texts, train a head in PyTorch \
with kindred.torch, and save it (docs/python-torch.md).

Examples:
  kindred train expander --model models/glove.6B.50d --out heads/nearby
  kindred train expander --model models/glove.6B.50d --terms 50 --out heads/wide
  kindred train expander --model models/cc.fr.300 --keep-stop-words --out heads/proches    # French
  kindred expand --model models/glove.6B.50d --head heads/nearby 'cheap flights'";

#[derive(Debug, Clone, Args)]
#[command(after_help = TRAIN_EXAMPLES)]
pub struct TrainExpanderArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Terms of a typical word [default: 20]
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub terms: Option<NonZeroUsize>,
    #[command(flatten)]
    pub tokens: TokensArguments,
    /// Treat the English stop words as other words, for models of other languages
    #[arg(long)]
    pub keep_stop_words: bool,
    /// Weights are values, not logarithms of 1 + value
    #[arg(long)]
    pub linear: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}

const EXPAND_EXAMPLES: &str = "\
Without texts, each line of standard input is one. A text without a known word is an error on standard error; if there was \
one, the exit code is 1. If standard output is not a terminal, each term is a line of tab-separated columns: text, term, weight. \
Words near a text's are terms, and so are opposites (good: bad), which stand in the same contexts.

With --vectors, the vectors of tokens come from an encoder of your own. Padding counts as tokens, so save texts of different \
lengths in a file each. The answers are those of the same `vectors` in POST /expand.

Examples:
  kindred expand 'cheap flights'
  kindred expand --top 10 --max-ratio 0.3 --explain 'cheap flights'
  kindred expand --model models/items --json < texts.txt    # a model under the metric dot: its own words
  kindred expand --format rank_features 'cheap flights'     # the field of a document of OpenSearch
  kindred expand --url http://127.0.0.1:8080 --json < texts.txt
  python3 -c 'import numpy; numpy.save(\"tokens.npy\", encode(\"cheap flights\").astype(\"<f4\"))'
  kindred expand --model models/terms --vectors tokens.npy";

/// The head that expands, and which of its terms are wanted.
#[derive(Debug, Clone, Args)]
pub struct TermArguments {
    /// Head folder of an expander [default: KINDRED_HEAD, or the head of the
    /// settings file, or the words of a model under the metric dot, or those near a text's, with
    /// the built-in model]
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
    /// Give at most this number of terms
    #[arg(long, value_name = "N", default_value_t = WantedTerms::TOP)]
    #[arg(value_parser = whole::<usize>(1, WantedTerms::MOST as u64))]
    pub top: usize,
    /// Give only terms of at least this weight
    #[arg(long, value_name = "W", default_value_t = 0.0)]
    #[arg(value_parser = number::<f64>("a number of at least 0", |weight| weight >= 0.0))]
    pub min_weight: f64,
    /// Give only terms of at least this part of the largest weight
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    #[arg(value_parser = number::<f64>("a number from 0 to 1", |x| (0.0..=1.0).contains(&x)))]
    pub max_ratio: f64,
    /// Give only terms that meet this filter of the attributes and words of the model that has
    /// them, such as `kind = noun`
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = EXPAND_EXAMPLES, mut_args(model_folder("that the head was made for")))]
pub struct ExpandArguments {
    /// Texts to expand [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Expand vectors of tokens instead: a NumPy file (.npy) of float32, [tokens, components] for
    /// one text or [texts, tokens, components]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["texts", "url"])]
    pub vectors: Option<PathBuf>,
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub service: ServiceArguments,
    #[command(flatten)]
    pub terms: TermArguments,
    /// Print each answer as one JSON object: terms, impacts, rank_features, sparse_vector, qdrant
    /// or vespa
    #[arg(long, value_name = "FORM", value_parser = str::parse::<Form>)]
    pub format: Option<Form>,
    /// Also print which token gave each term
    #[arg(long)]
    pub explain: bool,
    /// Print each answer as one JSON object: the text, then the fields of the HTTP answer. The same
    /// as `--format terms`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}
