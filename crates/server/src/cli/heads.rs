//! Commands that train heads and ask them.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{RangedU64ValueParser, StringValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use kindred::heads::{Cut, Form, Format, Padding, Tokeniser, TrainingOptions, WantedTerms};

use super::one_of;
use crate::config::MAX_THREADS;

/// The kinds of head that can be trained.
#[derive(Debug, Subcommand)]
pub enum TrainCommand {
    /// Train a text classifier
    #[command(after_help = CLASSIFIER_EXAMPLES)]
    Classifier(Box<TrainClassifierArguments>),
    /// Make an expander: of texts to words near theirs, or learnt from queries with relevant texts
    #[command(after_help = EXPANDER_EXAMPLES)]
    Expander(Box<TrainExpanderArguments>),
}

pub(super) const TRAIN_EXAMPLES: &str = "\
Example:
  kindred train classifier --data reviews.csv --out heads/reviews";

const CLASSIFIER_EXAMPLES: &str = "\
FILE has a text and its label in each line: `label`, a tab and the text (no header; quotes are plain characters); or \
CSV whose first line names the columns `label` and `text`; or JSON lines with `label` and `text`; or `__label__x text`. \
The format is detected from the first line.

If texts have several labels or none (JSON lines with a list `labels`, `__label__x __label__y text`), each label gets a \
probability of its own, and F1 over all labels decides when to stop.

The same data, options and seed give the same weights on every machine. Ctrl-C keeps the best weights so far.

Examples:
  kindred train classifier --model models/glove.6B.50d --data train.tsv --dev dev.tsv --out heads/sentiment
  kindred train classifier --data reviews.csv --out heads/reviews    # the built-in model
  kindred train classifier --data topics.jsonl --balance --skip-bad-rows --out heads/topics
  kindred classify --head heads/reviews \"I don't like it.\"";

const EXPANDER_EXAMPLES: &str = "\
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
    /// Model folder written by `kindred prepare` [default: the built-in model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
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
    #[arg(long, value_name = "X", default_value_t = 4.0, help_heading = "Training", value_parser = above_zero())]
    pub temperature: f32,
    /// How much higher the relevant text should score, for margin
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Training", value_parser = above_zero())]
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
    #[arg(long, value_name = "N", default_value = "64", help_heading = "Training")]
    pub batch: NonZeroUsize,
    /// Passes over the data
    #[arg(long, value_name = "N", default_value = "10", help_heading = "Training")]
    pub epochs: NonZeroUsize,
    /// The size of steps of projection and vectors
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training", value_parser = above_zero())]
    pub learning_rate: f32,
    /// The size of steps of biases
    #[arg(long, value_name = "X", default_value_t = 1e-2, help_heading = "Training", value_parser = above_zero())]
    pub bias_learning_rate: f32,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Training")]
    pub seed: u64,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    pub threads: usize,
}

pub(super) const EXPAND_EXAMPLES: &str = "\
Without texts, each line of standard input is one. A text without a known word is an error on standard error; if there was \
one, the exit code is 1.

Examples:
  kindred expand 'cheap flights'
  kindred expand --top 10 --max-ratio 0.3 --explain 'cheap flights'
  kindred expand --model models/items --json < texts.txt    # a model under the metric dot: its own words
  kindred expand --format rank_features 'cheap flights'     # the field of a document of OpenSearch";

/// Arguments of `expand`.
#[derive(Debug, Clone, Args)]
pub struct ExpandArguments {
    /// Texts to expand [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Model folder that the head was made for [default: the built-in model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Head folder written by `kindred train expander` [default: the words of a model under the metric dot, or those near a
    /// text's, with the built-in model]
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
    /// Print at most this number of terms
    #[arg(long, value_name = "N", default_value_t = WantedTerms::TOP)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=WantedTerms::MOST as u64))]
    pub top: usize,
    /// Print only terms of at least this weight
    #[arg(long, value_name = "W", default_value_t = 0.0)]
    pub min_weight: f64,
    /// Print only terms of at least this part of the largest weight
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub max_ratio: f64,
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
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    pub threads: usize,
}

/// Arguments of `train classifier`.
#[derive(Debug, Clone, Args)]
pub struct TrainClassifierArguments {
    /// Model folder written by `kindred prepare` [default: the built-in model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// File of texts with labels to learn from
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// File of texts that decide when to stop, and that probabilities are fitted to [default: a tenth of the data]
    #[arg(long, value_name = "FILE")]
    pub dev: Option<PathBuf>,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Format of the files [default: detected from the first line]
    #[arg(long, value_parser = formats())]
    pub format: Option<Format>,
    /// Skip and count invalid lines instead of stopping at the first
    #[arg(long)]
    pub skip_bad_rows: bool,
    /// How texts become tokens.
    #[command(flatten)]
    pub tokens: TokensArguments,
    /// Let all labels count alike, however rare they are
    #[arg(long, help_heading = "Training")]
    pub balance: bool,
    /// Any number of labels may be right: each gets a probability of its own [default: if a text has several labels or none]
    #[arg(long, help_heading = "Training")]
    pub sigmoid: bool,
    /// Leave the words' vectors as they are
    #[arg(long = "static", help_heading = "Training")]
    pub is_static: bool,
    /// What vectors of words that the data do not have are multiplied by, from 0 to 1; without effect with --static
    #[arg(long, value_name = "X", default_value_t = TrainingOptions::OTHER_WORDS, help_heading = "Training")]
    #[arg(value_parser = fraction())]
    pub other_words: f32,
    /// Give words that the model does not have vectors of their own, if at least N texts have them [default: they are left
    /// out]
    #[arg(long, value_name = "N", conflicts_with = "is_static", help_heading = "Training")]
    pub add_words: Option<NonZeroUsize>,
    /// Widths of the filters, in words, comma-separated
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "3,4,5",
        help_heading = "Training"
    )]
    pub widths: Vec<NonZeroUsize>,
    /// Channels of each width
    #[arg(long, value_name = "N", default_value = "100", help_heading = "Training")]
    pub channels: NonZeroUsize,
    /// The part of the features that each step leaves out
    #[arg(long, value_name = "X", default_value_t = 0.5, help_heading = "Training")]
    #[arg(value_parser = fraction())]
    pub dropout: f32,
    /// Texts of a step
    #[arg(long, value_name = "N", default_value = "50", help_heading = "Training")]
    pub batch: NonZeroUsize,
    /// The size of steps
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training")]
    pub learning_rate: f32,
    /// The most passes over the data
    #[arg(long, value_name = "N", default_value = "12", help_heading = "Training")]
    pub epochs: NonZeroUsize,
    /// Stop after this number of epochs without a better result
    #[arg(long, value_name = "N", default_value = "4", help_heading = "Training")]
    pub patience: NonZeroUsize,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Training")]
    pub seed: u64,
    /// Number of threads; 0 means one per core. The weights do not depend on it
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    pub threads: usize,
}

/// How texts become tokens of a new head.
#[derive(Debug, Clone, Copy, Args)]
pub struct TokensArguments {
    /// How texts are split: ptb (`don't` becomes `do` and `n't`, punctuation is split off) or words (pieces between
    /// white space, in the first form that the model has)
    #[arg(long, value_parser = tokenisers(), default_value = "ptb", help_heading = "Texts")]
    pub tokeniser: Tokeniser,
    /// The most tokens of a text; longer texts are cut
    #[arg(long, value_name = "N", default_value = "512", help_heading = "Texts")]
    pub limit: NonZeroUsize,
    /// The end at which long texts are cut
    #[arg(long, value_parser = cuts(), default_value = "end", help_heading = "Texts")]
    pub cut: Cut,
}

/// Parses a number above 0.
fn above_zero() -> impl TypedValueParser<Value = f32> {
    number(|number| number > 0.0, "it must be above 0")
}

/// Parses a number of at least 0.
fn not_negative() -> impl TypedValueParser<Value = f32> {
    number(|number| number >= 0.0, "it must be at least 0")
}

fn number(is_right: fn(f32) -> bool, must_be: &'static str) -> impl TypedValueParser<Value = f32> {
    StringValueParser::new().try_map(move |text| {
        let number =
            text.parse::<f32>().ok().filter(|number| number.is_finite() && is_right(*number));
        number.ok_or(must_be)
    })
}

/// Parses a number from 0 to 1.
fn fraction() -> impl TypedValueParser<Value = f32> {
    |text: &str| match text.parse::<f32>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("it must be a number from 0 to 1"),
    }
}

pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    one_of(Format::ALL, Format::name)
}

fn tokenisers() -> impl TypedValueParser<Value = Tokeniser> {
    one_of([Tokeniser::Ptb, Tokeniser::Words], |one| match one {
        Tokeniser::Ptb => "ptb",
        Tokeniser::Words => "words",
    })
}

fn cuts() -> impl TypedValueParser<Value = Cut> {
    one_of([Cut::End, Cut::Start], |one| match one {
        Cut::End => "end",
        Cut::Start => "start",
    })
}

pub(super) const IMPORT_HEAD_EXAMPLES: &str = "\
The model in PyTorch must be Kim's: convolutions over words, ReLU, the maximum over the text, and dense layers with ReLU \
between them; dropout has no part in answers. FILE is its state dict, in F32, F64, F16 or BF16:

  safetensors.torch.save_file(model.state_dict(), 'state.safetensors')

Convolutions are Conv1d [channels, dim, width] or Conv2d [channels, 1, width, dim], named convs.0, convs.1, … (also conv1, \
conv2, …). Dense layers are fc, or fc1, fc2, … (also linear, classifier, out), in this order. Features follow the order of the \
convolutions. An embedding is embedding (also embed, embeddings, emb). Other names are given with --map.

With --vocabulary, rows for words of the model replace the model's vectors where they differ, and rows for other words \
become the head's own. <unk> (or [UNK]) is the vector for unknown words, and <pad> (or [PAD]) is left out. Words that only \
the model has keep its vectors.

Examples:
  kindred import-head --weights state.safetensors --labels negative,positive --out heads/sentiment
  kindred import-head --model models/glove.6B.300d --weights kim.safetensors --vocabulary vocab.txt --labels neg,pos \
--out heads/kim
  kindred import-head --weights cnn.safetensors --labels-file topics.txt --padding 1,2,2 --map convs=encoder.filters \
--map fc1=hidden --map fc2=scores --ignore step --out heads/topics";

/// Arguments of `import-head`.
#[derive(Debug, Clone, Args)]
pub struct ImportHeadArguments {
    /// Model folder whose vectors the head was trained with [default: the built-in model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// State dict of a PyTorch model, in safetensors
    #[arg(long, value_name = "FILE")]
    pub weights: PathBuf,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Names of the classes, in the order of the last layer's outputs, comma-separated
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        required_unless_present = "labels_file"
    )]
    pub labels: Vec<String>,
    /// File of the classes' names, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "labels")]
    pub labels_file: Option<PathBuf>,
    /// Any number of labels may be right: each has a probability of its own (BCEWithLogitsLoss)
    #[arg(long)]
    pub sigmoid: bool,
    /// File of the embedding's words, one per line in row order [default: the rows are those of the model]
    #[arg(long, value_name = "FILE", help_heading = "Tensors")]
    pub vocabulary: Option<PathBuf>,
    /// Zero vectors at each end of a text: none, same (odd widths only), full (one fewer than the width), a number, or a
    /// number for each convolution, comma-separated
    #[arg(long, value_name = "N", default_value = "none", help_heading = "Tensors")]
    pub padding: Padding,
    /// The name that Kindred knows, and the name in FILE, such as convs.0=encoder.conv_a; may be repeated
    #[arg(long, value_name = "NAME=NAME", value_parser = pair(), help_heading = "Tensors")]
    pub map: Vec<(String, String)>,
    /// A tensor of FILE, or a layer, that class scores do not depend on; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Tensors")]
    pub ignore: Vec<String>,
    /// How texts become tokens.
    #[command(flatten)]
    pub tokens: TokensArguments,
}

/// Parses `NAME=NAME`.
fn pair() -> impl TypedValueParser<Value = (String, String)> {
    |text: &str| match text.split_once('=') {
        Some((known, name)) if !known.is_empty() && !name.is_empty() => {
            Ok((known.to_owned(), name.to_owned()))
        }
        _ => Err("it must be two names, such as convs.0=encoder.conv_a"),
    }
}

pub(super) const CLASSIFY_EXAMPLES: &str = "\
Without texts, each line of standard input is one. A text that has no label (without a known word) is an error on \
standard error; if there was one, the exit code is 1.

Examples:
  kindred classify 'a moving and funny film'
  kindred classify --head heads/reviews \"I don't like it.\"
  kindred classify --model models/glove.6B.50d --head heads/sentiment --explain 'a moving and funny film'
  kindred classify --head heads/reviews --json < texts.txt | jq -r '.labels[0].label'";

/// Arguments of `classify`.
#[derive(Debug, Clone, Args)]
pub struct ClassifyArguments {
    /// Texts to classify [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    /// Model folder that the head was made for [default: the built-in model]
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Folder in which the prepared built-in model is stored [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Head folder written by `kindred train classifier` or `kindred import-head` [default: the built-in head, with the
    /// built-in model]
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
    /// Print at most this number of labels
    #[arg(long, value_name = "N")]
    pub top: Option<NonZeroUsize>,
    /// Print only labels of at least this probability
    #[arg(long, value_name = "P")]
    pub threshold: Option<f64>,
    /// Also print which n-grams decided
    #[arg(long)]
    pub explain: bool,
    /// Print each answer as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    pub threads: usize,
}
