//! The command line.

mod asking;
mod bulk;
mod changes;
mod embed;
mod graph;
mod heads;
mod synth;
mod values;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use clap_complete::Shell;
use kindred::attributes::AttributeType;
use kindred::contract::Metric;
use kindred::prepare::{Separator, TextEncoding, VectorsFormat};

pub(crate) use asking::{
    AnalogyArguments, AnswerSource, ConsoleArguments, NearestArguments, OddOneOutArguments,
    OutputOptions, QuestionOptions, RankArguments, SimilarityArguments,
};
pub(crate) use bulk::{BulkCommand, BulkEngine, BulkFiles};
pub(crate) use changes::{
    ChangesCommand, CreateArguments, DeleteArguments, FoldArguments, KeysArguments, ListArguments,
    PutArguments, RowsCommand,
};
pub(crate) use embed::EmbedArguments;
pub(crate) use graph::GraphArguments;
pub(crate) use heads::{
    ClassifyArguments, ColumnsArguments, ExpandArguments, ImportHeadArguments, ModelArguments,
    ModelOrFolder, ServiceArguments, TermArguments, TokensArguments, TrainClassifierArguments,
    TrainCommand, TrainExpanderArguments,
};
pub(crate) use synth::SynthArguments;
pub(crate) use values::MustBe;
use values::{cases, given_type, methods, one_of, thread_counts, whole};

use kindred::device::{Device, Placement};
use kindred::evaluation::results::Case;
use kindred::method::Method;
use server::config::ServeFlags;

use crate::version;

/// Kindred finds exact nearest neighbours of vectors, and serves them over HTTP.
#[derive(Debug, Parser)]
#[command(name = "kindred", version, long_version = version::long())]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
#[command(help_template = TEMPLATE, override_usage = "kindred [COMMAND] [OPTIONS]")]
#[command(mut_args(hidden))]
pub struct Cli {
    /// The command to run [default: serve].
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of `serve`, for use without a command.
    #[command(flatten)]
    pub serve: ServeFlags,
}

/// The help of the program itself fits on a screen.
const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Commands:
{subcommands}{after-help}";

const EXAMPLES: &str = "\
Examples:
  kindred nearest frog                         # the built-in model, no server
  kindred prepare glove.6B.zip --member glove.6B.50d.txt --out models/glove
  kindred serve --model models/glove  # 127.0.0.1:8080/nearest?word=frog&k=5

`kindred COMMAND --help` has examples; of the default, `kindred serve --help`.";

/// The settings of `serve` are in the help of `serve`.
fn hidden(setting: clap::Arg) -> clap::Arg {
    setting.hide(true)
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve queries over HTTP; the default command
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeFlags>),
    /// Query a model line by line: words and expressions
    Console(Box<ConsoleArguments>),
    /// Print the nearest neighbours of a word or a text
    Nearest(Box<NearestArguments>),
    /// Print the neighbours of an expression: `king - man + woman`
    Analogy(Box<AnalogyArguments>),
    /// Print how similar two words or two sets of words are
    Similarity(Box<SimilarityArguments>),
    /// Print which of some words fits the others least
    OddOneOut(Box<OddOneOutArguments>),
    /// Print the ranks of words among the neighbours of another
    Rank(Box<RankArguments>),
    /// Print the vectors of texts, or write them into a file
    Embed(Box<EmbedArguments>),
    /// Convert a file of word vectors into a model folder
    #[command(after_help = PREPARE_EXAMPLES)]
    Prepare(PrepareArguments),
    /// Convert a model into a format that other programs read
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Generate a model folder of synthetic word vectors, of any size
    Synth(SynthArguments),
    /// Print a model's attributes: types, missing and frequent values
    #[command(after_help = ATTRIBUTES_EXAMPLES)]
    Attributes(AttributesArguments),
    /// Verify every checksum of a model folder or a head folder
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Make a model folder without rows, to put rows into
    Create(CreateArguments),
    /// Insert, replace, print and delete rows of a model
    #[command(subcommand)]
    Rows(RowsCommand),
    /// List, verify and export the changes of a model's rows
    #[command(subcommand)]
    Changes(ChangesCommand),
    /// Fold the changes of a model's rows into a new base
    Fold(FoldArguments),
    /// Train a head: a small model over a model's rows
    #[command(subcommand)]
    Train(TrainCommand),
    /// Make a head of a classifier or SPLADE head trained in PyTorch
    ImportHead(Box<ImportHeadArguments>),
    /// Print the labels that a head gives to texts
    Classify(ClassifyArguments),
    /// Print the terms that texts imply, with weights
    Expand(ExpandArguments),
    /// Measure the quality of a model, or of a head, on test sets
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(Box<EvalArguments>),
    /// Write the exact graph of nearest neighbours of a whole model
    Graph(GraphArguments),
    /// Answer each row of a file: labels, terms, neighbours, analogies
    #[command(subcommand)]
    Bulk(Box<BulkCommand>),
    /// Create an API key
    #[command(after_help = API_KEY_EXAMPLES)]
    ApiKey {
        /// Name of the key's owner, for the log; no spaces
        name: String,
        /// Allow changes of rows
        #[arg(long)]
        write: bool,
        /// Allow administration, such as reloads, and all changes
        #[arg(long, conflicts_with = "write")]
        admin: bool,
    },
    /// Check whether a running service is ready
    #[command(after_help = HEALTH_EXAMPLES)]
    Health {
        /// Address of the service; overrides KINDRED_URL. https works only for loopback addresses;
        /// the certificate is not checked [default: http://127.0.0.1:8080]
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Timeout, in ms; should exceed the service's readiness_timeout_ms
        #[arg(long, value_name = "MS", default_value_t = 6000)]
        #[arg(value_parser = whole::<u64>(1, u64::MAX))]
        timeout_ms: u64,
    },
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Shell to complete for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write one page per command
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// Folder to write the pages to, one per command; created if missing
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

const SERVE_EXAMPLES: &str = "\
Every setting can also be given in a file (--config FILE) or in the environment (KINDRED_LISTEN=…). \
Flags override the environment; the environment overrides the file.

Exit codes: 0: stopped cleanly, all requests answered, or the settings are valid (--check); 1: could not start, or \
did not stop in time; 2: a mistake in the settings (flags, environment, file, address, API keys, certificate, or a \
folder that is no model's or no head's), which no restart mends; 70: the engine failed too often or hung: restart \
the service.

With --log-format json, all output is lines of JSON on standard error, and nothing is printed on standard output. \
If NOTIFY_SOCKET is set, as by systemd with Type=notify, the service manager is told when the service is ready, \
reloads and stops.

Examples:
  kindred serve
  kindred serve --check --config /etc/kindred.toml    # before a restart or a reload
  kindred serve --model models/glove.6B.50d --listen 0.0.0.0:8080
  # Two models: /nearest uses the first, /models/fr/nearest the second
  kindred serve --model en=models/glove --model fr=models/cc.fr.300
  kill -HUP PID                          # reload models, keys and certificates without interruption
  kindred serve --listen 127.0.0.1:0     # listen on a free port, named in the start-up message";

const PREPARE_EXAMPLES: &str = "\
INPUT may be GloVe text, word2vec text or binary, fastText .vec or .bin, or, with --words, .npy, safetensors or \
text of numbers, plain or compressed (.gz, .bz2, .zst, .xz, .zip). The format is detected from the content, not from the name. \
DIR is written atomically: if the command fails, DIR is unchanged.

--metric dot is for vectors whose lengths matter, such as the output layer of a language model or the items of a \
recommender: a row's score is its dot product with the query, plus its bias if --bias gives biases.

--attributes says what the rows are: columns of texts, numbers, true and false, and date-times, of which values may \
be missing. The types that the columns turn out to have are printed; --type overrides one.

Examples:
  kindred prepare https://nlp.stanford.edu/data/glove.6B.zip --member glove.6B.50d.txt --out models/glove.6B.50d    # 862 MB
  kindred prepare GoogleNews-vectors-negative300.bin.gz --out models/news
  kindred prepare vectors.npy --words words.txt --out models/mine
  curl -s https://example.org/v.vec.xz | kindred prepare - --out models/v
  kindred prepare mine.txt --out models/mine --skip-bad-rows --replace
  kindred prepare crawl-300d-2M.vec.zip --out models/small --limit 100000    # the first 100,000 rows
  kindred prepare mots.tsv --out models/mots --separator tab --encoding latin1
  kindred prepare titles.txt --out models/titles --dim 300 --allow-numeric-words    # `route 66` is a word
  kindred prepare mine.txt --out models/mine --if-missing    # in scripts that run at every start
  kindred prepare output.npy --words words.txt --metric dot --bias output-bias.npy --out models/output
  kindred prepare products.npy --words ids.txt --attributes products.csv --out models/products
  kindred prepare products.npy --words ids.txt --attributes products.jsonl --key id --out models/products
  kindred prepare potion-base-8M --out models/static    # a folder of Model2Vec, or a StaticEmbedding
  kindred prepare docs.jsonl --encoder models/static --text body --key id --attributes docs.jsonl --keep-text --out models/docs
  kindred prepare docs.jsonl --vectors docs.npy --key id --attributes docs.jsonl --out models/docs    # made by a transformer
  kindred prepare glove.6B.50d.txt --text-weights sif --out models/sif    # frequent words count less in texts
  kindred prepare mine.txt --text-weights sif --counts counts.txt --out models/sif
  kindred prepare mine.txt --attributes mine.csv --type zip=text --type tags=list --out models/mine";

#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("documents").args(["encoder", "vectors"])))]
pub struct PrepareArguments {
    /// File of word vectors, its address on the web, or folder of a static model; `-` is standard
    /// input (not for .zip). With --encoder or --vectors, file of texts: CSV with a header or JSON
    /// lines
    pub input: PathBuf,
    /// SHA-256 of the file at the address INPUT, in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub sha256: Option<String>,
    /// Model folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// File of the words, one per line in row order; needed for npy, safetensors, binary glove-norm
    /// and text of numbers only, which contain no words
    #[arg(long, value_name = "FILE")]
    pub words: Option<PathBuf>,
    /// Format of INPUT [default: detected from its content]
    #[arg(long, value_parser = one_of(VectorsFormat::ALL, VectorsFormat::name))]
    pub format: Option<VectorsFormat>,
    /// How a vector and a row become a score: the cosine similarity, or the dot product
    #[arg(long, default_value = Metric::Cosine.name(), value_parser = one_of(Metric::ALL, Metric::name))]
    pub metric: Metric,
    /// File of biases for --metric dot: .npy, or text with one number per line; one for each row of
    /// INPUT, in its order, also for rows that are skipped
    #[arg(long, value_name = "FILE")]
    pub bias: Option<PathBuf>,
    /// File of attributes: CSV with a header, JSON lines, or Parquet in builds with the Cargo
    /// feature `parquet`; one line for each row of INPUT, in its order, also for rows that are
    /// skipped, or joined by --key
    #[arg(long, value_name = "FILE")]
    pub attributes: Option<PathBuf>,
    /// Column or field of the attributes' file with the word of a row: lines are joined to rows by
    /// it, in any order; rows without a line have no values. With --encoder or --vectors, also the
    /// field of INPUT that becomes the row's word [default: the number of the text, from 1]
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,
    /// Weigh the words of texts by SIF, a / (a + p) with a = 0.001: frequent words count less. The
    /// probability p of a word is estimated from the rank of its row by Zipf's law (the first row
    /// has the most frequent word), or from --counts
    #[arg(long, value_name = "KIND", value_parser = ["sif"], conflicts_with = "encoder")]
    #[arg(help_heading = "Texts")]
    pub text_weights: Option<String>,
    /// File with the count of each word for --text-weights: a word and a whole number per line
    #[arg(long, value_name = "FILE", requires = "text_weights", help_heading = "Texts")]
    pub counts: Option<PathBuf>,
    /// Encode the texts of INPUT by the model in this folder: a static model, or a model folder by
    /// its words. The new model's rows are the texts
    #[arg(long, value_name = "DIR", help_heading = "Texts")]
    pub encoder: Option<PathBuf>,
    /// Take the vectors of the texts of INPUT from this array (.npy, two dimensions): row n belongs
    /// to record n. The new model has no encoder, so queries come as vectors
    #[arg(long, value_name = "FILE", conflicts_with_all = ["encoder", "text_weights"])]
    #[arg(help_heading = "Texts")]
    pub vectors: Option<PathBuf>,
    /// Field of INPUT with the text
    #[arg(long, value_name = "NAME", requires = "documents", default_value = "text")]
    #[arg(help_heading = "Texts")]
    pub text: String,
    /// Keep the texts, as the attribute that --text names
    #[arg(long, requires = "documents", help_heading = "Texts")]
    pub keep_text: bool,
    /// Type of an attribute: text, list, integer, number, boolean, date-time or stored; may be
    /// repeated
    /// [default: as all of its values look]
    #[arg(long = "type", value_name = "NAME=TYPE", value_parser = given_type)]
    #[arg(requires = "attributes")]
    pub types: Vec<(String, AttributeType)>,
    /// File to read from a zip archive [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Tensor to read from a safetensors file [default: the only two-dimensional one]
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    /// Components per row [default: from the file's header, or from its first line]
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub dim: Option<NonZeroUsize>,
    /// Read only the first N rows; those that are skipped or repeated count, too. The rest of INPUT
    /// is read for its checksum only
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroUsize>(1, u64::MAX))]
    pub limit: Option<NonZeroUsize>,
    /// Encoding of text in INPUT and in the files of --words, --bias, --attributes and --counts, by its
    /// WHATWG name, such as windows-1252 (latin1), shift_jis or utf-16le; a byte order mark
    /// overrides it [default: utf-8]
    #[arg(long, value_name = "NAME")]
    pub encoding: Option<TextEncoding>,
    /// Sign between the fields of text that contains its words; with commas, words may be between
    /// quotes, as in CSV
    #[arg(long, default_value = Separator::default().name())]
    #[arg(value_parser = one_of(Separator::ALL, Separator::name))]
    pub separator: Separator,
    /// Skip and count invalid rows instead of stopping at the first; more than half of the rows
    /// must be valid
    #[arg(long)]
    pub skip_bad_rows: bool,
    /// Take the first field of each line for its word, even if all of these are numbers; with
    /// --words, each line of that file, even if all of these end in numbers. With --dim or a
    /// header, words may also end in a number after a space
    #[arg(long)]
    pub allow_numeric_words: bool,
    /// Replace an existing model in DIR
    #[arg(long)]
    pub replace: bool,
    /// Replace also a model whose rows were changed, and lose the changes
    #[arg(long, requires = "replace")]
    pub discard_changes: bool,
    /// Do nothing if DIR already holds a model; INPUT need not exist then
    #[arg(long, conflicts_with = "replace")]
    pub if_missing: bool,
}

const EXPORT_EXAMPLES: &str = "\
The output reads back bit for bit. npy and safetensors contain no words: give a file for them with --words. \
No format contains biases or attributes: give files for them with --bias and --attributes-out.

Examples:
  kindred export --model models/mine --format word2vec-bin --out mine.bin
  kindred export --model models/mine --format npy --out mine.npy --words mine.words.txt
  kindred export --model models/mine --format glove --out - | gzip > mine.txt.gz
  kindred export --model models/output --format npy --out out.npy --words words.txt --bias bias.npy
  kindred prepare out.npy --words words.txt --metric dot --bias bias.npy --out models/again    # the same model";

#[derive(Debug, Clone, Args)]
#[command(mut_args(heads::model_folder("to export")))]
pub struct ExportArguments {
    #[command(flatten)]
    pub model: ModelOrFolder,
    /// Output format
    #[arg(long, value_parser = one_of(VectorsFormat::WRITTEN, VectorsFormat::name))]
    pub format: VectorsFormat,
    /// File to write; `-` means standard output
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// File to write the words to, for npy and safetensors
    #[arg(long, value_name = "FILE")]
    pub words: Option<PathBuf>,
    /// File to write the biases to, as .npy; for models with biases
    #[arg(long, value_name = "FILE")]
    pub bias: Option<PathBuf>,
    /// File to write the attributes to, a line for each row: CSV if it ends in .csv, JSON lines if
    /// in .jsonl; for models with attributes
    #[arg(long, value_name = "FILE")]
    pub attributes_out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub replace: bool,
}

const ATTRIBUTES_EXAMPLES: &str = "\
Reads all attributes. Of numbers and date-times the smallest and the largest value are printed, of others the most \
frequent values, each with its number of rows.

Examples:
  kindred attributes models/products
  kindred attributes models/products --values 20
  kindred attributes models/products --json | jq -r '.attributes[].name'";

#[derive(Debug, Clone, Args)]
#[command(mut_args(heads::model_folder("to describe")))]
pub struct AttributesArguments {
    #[command(flatten)]
    pub model: ModelOrFolder,
    /// Maximum number of frequent values of an attribute
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<usize>(0, 1000))]
    pub values: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Reads the whole model. Exits with 0 if every checksum matches. A head is checked with the model that it was made for.

Examples:
  kindred verify --model models/glove.6B.50d
  kindred verify --model models/glove.6B.50d --head heads/sentiment";

#[derive(Debug, Clone, Args)]
#[command(mut_args(heads::model_folder("to check")))]
pub struct VerifyArguments {
    #[command(flatten)]
    pub model: ModelOrFolder,
    /// Head folder to check, too
    #[arg(long, value_name = "DIR")]
    pub head: Option<PathBuf>,
}

const EVAL_EXAMPLES: &str = "\
Analogies (a is to b as c is to d) are correct if d is the best word, not counting a, b and c. A question with \
an unknown word counts as wrong. Formats: Google's questions-words; four words per line, with or without a tag, \
as in MSR; BATS: each line is a pair `a b1/b2`; every two pairs form questions; a folder is one set. Lines that \
begin with `# ` or `// ` are comments.

Similarities (word, word, score) are compared with the model's cosines by Spearman's rank correlation. Formats: \
WordSim-353, SimLex-999, MEN, RG-65 and similar: fields separated by tabs, semicolons, commas or white space, \
with an optional header line.

Texts with labels are classified by a head. Formats: those of `kindred train classifier`.

Examples:
  kindred eval --model models/glove.6B.50d --analogies questions-words.txt --similarities EN-RG-65.txt
  kindred eval --model models/glove.6B.50d --analogies BATS_3.0 --methods 3cosadd,3cosmul
  kindred eval --head heads/reviews --classification test.tsv    # the built-in model
  kindred eval --model models/mine --similarities SimLex-999.txt --json | jq '.similarities[0].spearman'
  kindred eval --model models/glove.6B.50d --head heads/sentiment --classification test.tsv";

#[derive(Debug, Clone, Args)]
#[command(mut_args(of_classification))]
#[command(group(
    ArgGroup::new("sets").args(["analogies", "similarities", "classification"])
        .required(true).multiple(true)
))]
pub struct EvalArguments {
    #[command(flatten)]
    pub model: ModelOrFolder,
    /// Analogy sets: files, or folders of files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub analogies: Vec<PathBuf>,
    /// Similarity sets: word pairs with human scores
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub similarities: Vec<PathBuf>,
    /// Files of texts with labels, for a head
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub classification: Vec<PathBuf>,
    /// Head folder written by `kindred train classifier` [default: KINDRED_HEAD, or the head of the
    /// settings file, or the built-in head, with the built-in model]
    #[arg(long, value_name = "DIR", requires = "classification")]
    pub head: Option<PathBuf>,
    #[command(flatten)]
    pub columns: ColumnsArguments,
    /// Analogy methods for `b - a + c`, comma-separated [default: 3cosadd,3cosmul,pairdirection;
    /// 3cosadd under the metric dot]
    #[arg(long, value_parser = methods(), value_delimiter = ',')]
    pub methods: Vec<Method>,
    /// Case handling when words are looked up
    #[arg(long, value_parser = cases(), default_value_t = Case::Lower)]
    pub case: Case,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Device to run searches on: auto (a GPU if there is one, else the CPU), cpu, cuda (an error
    /// without a GPU), or cuda:N
    #[arg(long, default_value_t = Device::Auto)]
    pub device: Device,
    /// Number of CPU engine threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}

/// Columns are those of files of texts with labels.
fn of_classification(argument: clap::Arg) -> clap::Arg {
    match argument.get_id().as_str() {
        "text_column" | "label_column" | "encoding" => argument.requires("classification"),
        _ => argument,
    }
}

const API_KEY_EXAMPLES: &str = "\
Prints the key, and the line to add to the keys file: its hash, its name and, with --admin, `admin`. The key \
itself is not stored anywhere. Clients send it as `Authorization: Bearer KEY`. The setting api_keys_file names the \
keys file. A reload reads the file again.

Examples:
  kindred api-key search-frontend
  kindred api-key operator --admin
  kindred serve --api-keys-file keys.txt";

const HEALTH_EXAMPLES: &str = "\
Exits with 0 if /health/ready reports ready, otherwise with 1 and the reason, also for an address or a key \
that can't be used; with 2 for flags that can't be read and misspelt variables. Useful in containers without curl. \
If KINDRED_API_KEY is set, its key is sent.

Examples:
  kindred health
  kindred health --url http://127.0.0.1:9000/behind/a/prefix
  KINDRED_URL=http://127.0.0.1:9000 kindred health
  kindred health --url https://127.0.0.1:8443    # https works only for loopback addresses";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc ~/.config/fish/completions
  kindred completions bash > ~/.local/share/bash-completion/completions/kindred
  kindred completions zsh > ~/.zfunc/_kindred    # with ~/.zfunc in fpath
  kindred completions fish > ~/.config/fish/completions/kindred.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  kindred man | man -l -
  kindred man --out ~/.local/share/man/man1    # kindred.1, kindred-serve.1 and so on";

/// Devices and threads of long work, such as `graph` and `bulk`.
#[derive(Debug, Clone, Args)]
pub struct DeviceArguments {
    /// Devices to work on: auto (a GPU if there is one, else the CPU), cpu, cuda (the first GPU, an
    /// error without one), cuda:all, or some GPUs, as in cuda:1 or cuda:0,2
    #[arg(long, default_value_t = Device::Auto)]
    pub device: Device,
    /// Placement of the model on several GPUs: replicate, shard, or auto (copies if they fit, else
    /// shards)
    #[arg(long, default_value_t = Placement::Auto)]
    pub placement: Placement,
    /// Number of CPU engine threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}
