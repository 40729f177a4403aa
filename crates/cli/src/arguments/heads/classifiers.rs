//! Commands that train, import and ask classifiers.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args};
use jobs::bulk::WantedLabels;
use kindred::heads::{Format, Padding, TrainingOptions};
use kindred::prepare::TextEncoding;

use super::{MOST_EPOCHS, ModelArguments, ServiceArguments, TokensArguments, model_folder};
use crate::arguments::values::{number, one_of, thread_counts, value, whole};

const TRAIN_EXAMPLES: &str = "\
FILE has a text and its label in each line:
  - TSV: a first line with the names `label` and `text` (or `sentence`), in any case and order, \
among other columns; or no names and two columns, the label first. Quotes are plain characters.
  - CSV: the same names in its first line. Quotes are those of RFC 4180.
  - JSON lines with `label` and `text`.
  - fastText: `__label__x` anywhere in a line.
  - A label, a space and the text: `1 a good film`. Labels that are words need --format space.
The format is detected from the first line. Columns and fields with other names are given with --text-column and \
--label-column.

If texts have several labels or none (a list `labels` in JSON lines, two labels of fastText), \
each label gets a probability of its own, and F1 over all labels decides when to stop.

The same data, options and seed give the same weights on every machine. Ctrl-C keeps the best weights so far.

Examples:
  kindred train classifier --model models/glove.6B.50d --data train.tsv --dev dev.tsv --out heads/sentiment
  kindred train classifier --data reviews.csv --out heads/reviews    # the built-in model
  kindred train classifier --data imdb.csv --text-column review --label-column sentiment --out heads/imdb
  kindred train classifier --data avis.tsv --encoding latin1 --out heads/avis
  kindred train classifier --data topics.jsonl --balance --skip-bad-rows --out heads/topics
  kindred classify --head heads/reviews \"I don't like it.\"";

/// The columns of files of texts with labels.
#[derive(Debug, Clone, Default, Args)]
pub struct ColumnsArguments {
    /// Column of CSV or TSV, or field of JSON lines, with the text: its name in any case, or its
    /// number from 1 if the first line has no names [default: text, or else sentence]
    #[arg(long, value_name = "NAME")]
    pub text_column: Option<String>,
    /// Column or field with the label, or with a list of labels [default: label; in JSON lines also
    /// labels]
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
    /// Encoding of files of texts with labels, by its WHATWG name, such as windows-1252 (latin1),
    /// shift_jis or utf-16le; a byte order mark overrides it [default: utf-8]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<TextEncoding>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = TRAIN_EXAMPLES)]
pub struct TrainClassifierArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// File of texts with labels to learn from
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// File of texts that decide when to stop, and that probabilities are fitted to [default: a
    /// tenth of the data]
    #[arg(long, value_name = "FILE")]
    pub dev: Option<PathBuf>,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Format of the files [default: detected from the first line]
    #[arg(long, value_parser = one_of(Format::ALL, Format::name))]
    pub format: Option<Format>,
    #[command(flatten)]
    pub columns: ColumnsArguments,
    /// Skip and count invalid lines instead of stopping at the first
    #[arg(long)]
    pub skip_bad_rows: bool,
    #[command(flatten)]
    pub tokens: TokensArguments,
    /// Let all labels count alike, however rare they are
    #[arg(long, help_heading = "Training")]
    pub balance: bool,
    /// Any number of labels may be right: each gets a probability of its own [default: if a text
    /// has several labels or none]
    #[arg(long, help_heading = "Training")]
    pub sigmoid: bool,
    /// Leave the words' vectors as they are
    #[arg(long = "static", help_heading = "Training")]
    pub is_static: bool,
    /// Factor for the vectors of words that are not in the data, from 0 to 1; without effect with
    /// --static
    #[arg(long, value_name = "X", default_value_t = TrainingOptions::OTHER_WORDS, help_heading = "Training")]
    #[arg(value_parser = number::<f32>("a number from 0 to 1", |x| (0.0..=1.0).contains(&x)))]
    pub other_words: f32,
    /// Give words that the model does not have vectors of their own, if at least N texts have them
    /// [default: they are left out]
    #[arg(long, value_name = "N", conflicts_with = "is_static", help_heading = "Training")]
    #[arg(value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub add_words: Option<NonZeroUsize>,
    /// Widths of the filters, in words, comma-separated
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "3,4,5",
        help_heading = "Training",
        value_parser = whole::<usize>(1, 100)
    )]
    pub widths: Vec<usize>,
    /// Channels of each width
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Training")]
    #[arg(value_parser = whole::<usize>(1, 10_000))]
    pub channels: usize,
    /// The part of the features that each step leaves out
    #[arg(long, value_name = "X", default_value_t = 0.5, help_heading = "Training")]
    #[arg(value_parser = number::<f32>(
        "a number of at least 0 and less than 1", |x| (0.0..1.0).contains(&x)
    ))]
    pub dropout: f32,
    /// Texts of a step
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Training")]
    #[arg(value_parser = whole::<usize>(1, 100_000))]
    pub batch: usize,
    /// The size of steps
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training")]
    #[arg(value_parser = number::<f32>("a number above 0", |x| x > 0.0))]
    pub learning_rate: f32,
    /// The most passes over the data
    #[arg(long, value_name = "N", default_value_t = 12, help_heading = "Training")]
    #[arg(value_parser = whole::<usize>(1, MOST_EPOCHS))]
    pub epochs: usize,
    /// Stop after this number of epochs without a better result
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Training")]
    #[arg(value_parser = whole::<usize>(1, MOST_EPOCHS))]
    pub patience: usize,
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, help_heading = "Training")]
    #[arg(value_parser = whole::<u64>(0, u64::MAX))]
    pub seed: u64,
    /// Number of threads; 0 means one per core. The weights do not depend on it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}

const IMPORT_HEAD_EXAMPLES: &str = "\
FILE is a classifier of fastText (.bin, or quantised: .ftz), or a model of PyTorch. One of fastText has its labels, words \
and vectors in it, so it needs no other option, and it is served beside any model.

A classifier in PyTorch must be Kim's: convolutions over words, ReLU, the maximum over the text, and dense layers with ReLU \
between them; dropout has no part in answers. FILE is its state dict, in F32, F64, F16 or BF16:

  safetensors.torch.save_file(model.state_dict(), 'state.safetensors')

Convolutions are Conv1d [channels, dim, width] or Conv2d [channels, 1, width, dim], named convs.0, convs.1, … (also conv1, \
conv2, …). Dense layers are fc, or fc1, fc2, … (also linear, classifier, out), in this order. Features follow the order of the \
convolutions. An embedding is embedding (also embed, embeddings, emb). Other names are given with --map.

With --vocabulary, rows for words of the model replace the model's vectors where they differ, and rows for other words \
become the head's own. <unk> (or [UNK]) is the vector for unknown words, and <pad> (or [PAD]) is left out. Words that only \
the model has keep its vectors.

With --expander, FILE has the terms' vectors head.weight [terms, dim] and biases head.bias [terms] (also weight and bias), \
and perhaps projection.weight [dim, dim] (also turn), an nn.Linear without biases that tokens' vectors pass through. Terms are \
the words of --vocabulary, or else the first rows of the model; without vectors they have those of the model.

Examples:
  kindred import-head lid.176.ftz --out heads/language
  kindred import-head https://dl.fbaipublicfiles.com/fasttext/supervised-models/lid.176.ftz --out heads/language
  kindred import-head --weights splade.safetensors --expander --out heads/learnt
  kindred import-head --weights state.safetensors --labels negative,positive --out heads/sentiment
  kindred import-head --model models/glove.6B.300d --weights kim.safetensors --vocabulary vocab.txt --labels neg,pos \
--out heads/kim
  kindred import-head --weights cnn.safetensors --labels-file topics.txt --padding 1,2,2 --map convs=encoder.filters \
--map fc1=hidden --map fc2=scores --ignore step --out heads/topics";

#[derive(Debug, Clone, Args)]
#[command(after_help = IMPORT_HEAD_EXAMPLES)]
#[command(mut_args(model_folder("whose vectors the head was trained with")))]
#[command(group(ArgGroup::new("input").args(["file", "weights"]).required(true)))]
pub struct ImportHeadArguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Classifier of fastText, or state dict of a PyTorch model in safetensors; or the address of
    /// one on the web
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// SHA-256 of the file at the address FILE, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Head folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Replace an existing head in DIR
    #[arg(long)]
    pub replace: bool,
    /// Names of the classes, in the order of the last layer's outputs, comma-separated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// File of the classes' names, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "labels")]
    pub labels_file: Option<PathBuf>,
    /// Any number of labels may be right: each has a probability of its own (BCEWithLogitsLoss)
    #[arg(long)]
    pub sigmoid: bool,
    /// FILE is a SPLADE head: make an expander
    #[arg(long, conflicts_with_all = ["labels", "labels_file", "sigmoid", "padding"])]
    pub expander: bool,
    /// Weights of terms are values, not logarithms of 1 + value
    #[arg(long, requires = "expander")]
    pub linear: bool,
    /// File of the words of the embedding or of the terms, one per line in row order [default: the
    /// rows of the model]
    #[arg(long, value_name = "FILE", help_heading = "Tensors")]
    pub vocabulary: Option<PathBuf>,
    /// Zero vectors at each end of a text: none, same (odd widths only), full (one fewer than the
    /// width), a number, or a number for each convolution, comma-separated
    #[arg(long, value_name = "N", default_value = "none", help_heading = "Tensors")]
    pub padding: Padding,
    /// The name that Kindred knows, and the name in FILE, such as convs.0=encoder.conv_a; may be
    /// repeated
    #[arg(long, value_name = "NAME=NAME", value_parser = pair(), help_heading = "Tensors")]
    pub map: Vec<(String, String)>,
    /// A tensor of FILE, or a layer, that class scores do not depend on; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Tensors")]
    pub ignore: Vec<String>,
    #[command(flatten)]
    pub tokens: TokensArguments,
}

/// Parses `NAME=NAME`.
fn pair() -> impl TypedValueParser<Value = (String, String)> {
    value("two names, such as convs.0=encoder.conv_a".to_owned(), |text| {
        let (known, name) = text.split_once('=')?;
        let is_whole = !known.is_empty() && !name.is_empty();
        is_whole.then(|| (known.to_owned(), name.to_owned()))
    })
}

const CLASSIFY_EXAMPLES: &str = "\
Without texts, each line of standard input is one. A text that has no label (without a known word) is an error on \
standard error; if there was one, the exit code is 1. If standard output is not a terminal, each label is a line of \
tab-separated columns: text, label, probability.

Examples:
  kindred classify 'a moving and funny film'
  kindred classify --head heads/reviews \"I don't like it.\"
  kindred classify --model models/glove.6B.50d --head heads/sentiment --explain 'a moving and funny film'
  kindred classify --head heads/reviews --json < texts.txt | jq -r '.labels[0].label'
  kindred classify --url http://127.0.0.1:8080 --head sentiment --json < texts.txt";

/// The head that classifies, and which of its labels are wanted.
#[derive(Debug, Clone, Args)]
pub struct LabelArguments {
    /// Head folder written by `kindred train classifier` or `kindred import-head` [default:
    /// KINDRED_HEAD, or the head of the settings file, or the built-in head, with the built-in
    /// model]
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
    /// Give at most this number of labels [default: all]
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub top: Option<NonZeroUsize>,
    /// Give only labels of at least this probability
    #[arg(long, value_name = "P")]
    #[arg(value_parser = number::<f64>("a number from 0 to 1", |p| (0.0..=1.0).contains(&p)))]
    pub threshold: Option<f64>,
}

impl LabelArguments {
    /// Which labels are wanted.
    pub fn wanted(&self) -> WantedLabels {
        WantedLabels { top: self.top.map(NonZeroUsize::get), threshold: self.threshold }
    }
}

#[derive(Debug, Clone, Args)]
#[command(after_help = CLASSIFY_EXAMPLES, mut_args(model_folder("that the head was made for")))]
pub struct ClassifyArguments {
    /// Texts to classify [default: the lines of standard input]
    #[arg(value_name = "TEXT")]
    pub texts: Vec<String>,
    #[command(flatten)]
    pub model: ModelArguments,
    #[command(flatten)]
    pub service: ServiceArguments,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Also print which n-grams decided
    #[arg(long)]
    pub explain: bool,
    /// Also print the class scores
    #[arg(long)]
    pub scores: bool,
    /// Print each answer as one JSON object: the text, then the fields of the HTTP answer
    #[arg(long)]
    pub json: bool,
    /// Number of threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}
