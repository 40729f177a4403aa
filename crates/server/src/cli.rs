//! The command line.

mod asking;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use model_store::export::ExportFormat;
use model_store::prepare::{MAX_DIM, VectorsFormat};

use asking::{
    ANALOGY_EXAMPLES, COMPLETIONS_EXAMPLES, CONSOLE_EXAMPLES, MAN_EXAMPLES, NEAREST_EXAMPLES,
};
pub use asking::{
    AnalogyArguments, CompletionsArguments, ConsoleArguments, Giving, ManArguments,
    NearestArguments, Place, QuestionOptions,
};

use crate::config::{MAX_THREADS, ServeFlags};
use kindred::device::Device;
use kindred::evaluation::results::Case;
use kindred::method::Method;

/// Kindred finds kindred words: exact nearest neighbours in a table of word vectors, over HTTP.
///
/// Without a command it serves the model that is built in.
#[derive(Debug, Parser)]
#[command(name = "kindred", version, args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do; to serve, if not said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of `serve`, for when no command is said.
    #[command(flatten)]
    pub serve: ServeFlags,
}

const EXAMPLES: &str = "\
Examples:
  kindred                                      serve the built-in model on 127.0.0.1:8080
  kindred console                              ask it here, line by line
  kindred nearest frog
  kindred prepare glove.6B.50d.txt.gz --out models/glove.6B.50d
  kindred serve --model models/glove.6B.50d    serve what was prepared
  curl '127.0.0.1:8080/nearest?word=frog&k=5'  ask it";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer queries over HTTP
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeFlags>),
    /// Ask a model line by line: words and expressions
    #[command(after_help = CONSOLE_EXAMPLES)]
    Console(Box<ConsoleArguments>),
    /// The words nearest to a word
    #[command(after_help = NEAREST_EXAMPLES)]
    Nearest(Box<NearestArguments>),
    /// The words nearest to sums and differences of words
    #[command(after_help = ANALOGY_EXAMPLES)]
    Analogy(Box<AnalogyArguments>),
    /// Turn a file of word vectors into a model folder
    #[command(after_help = PREPARE_EXAMPLES)]
    Prepare(PrepareArguments),
    /// Write a model in a format that other programs read
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Make a model folder of synthetic word vectors, of any size
    #[command(after_help = SYNTH_EXAMPLES)]
    Synth(SynthArguments),
    /// Check every checksum of a model folder
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Say how good a model is: sets of analogies and of similarities
    #[command(after_help = EVAL_EXAMPLES)]
    Eval(EvalArguments),
    /// Make an API key for the file that the setting api_keys_file names
    #[command(after_help = API_KEY_EXAMPLES)]
    ApiKey(ApiKeyArguments),
    /// Ask a running service whether it is ready
    #[command(after_help = HEALTH_EXAMPLES)]
    Health(HealthArguments),
    /// Print what a shell needs to complete this command line
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArguments),
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArguments),
}

const SERVE_EXAMPLES: &str = "\
Every setting can also stand in a file (--config FILE) or in the environment (KINDRED_LISTEN=…);
flags win over the environment, the environment over the file.

Exit codes: 0 told to stop, and everything was answered; 1 it could not start, or not stop in time; 2 wrong
flags; 70 the engine was lost: it failed too often or hangs, and another start may help.

Examples:
  kindred serve
  kindred serve --model models/glove.6B.50d --listen 0.0.0.0:8080
  kindred serve --model en=models/glove --model fr=models/cc.fr.300
                                               two of them: /nearest asks the first, /models/fr/nearest the other
  kill -HUP PID                                load the models again, while the old ones are served
  kindred serve --listen 127.0.0.1:0           on any free port; the start-up message says which";

const PREPARE_EXAMPLES: &str = "\
INPUT may be GloVe text, word2vec text or binary, fastText .vec, or, with --words, .npy or safetensors;
each plain or packed (.gz, .zst, .xz, .zip). Its first bytes tell what it is, not its name. The folder
appears when it is complete; until then DIR stays as it is.

Examples:
  kindred prepare glove.6B.50d.txt.gz --out models/glove.6B.50d
  kindred prepare glove.6B.zip --member glove.6B.300d.txt --out models/glove.6B.300d
  kindred prepare GoogleNews-vectors-negative300.bin.gz --out models/news
  kindred prepare vectors.npy --words words.txt --out models/mine
  curl -s https://example.org/v.vec.xz | kindred prepare - --out models/v
  kindred prepare mine.txt --out models/mine --skip-bad-rows --replace";

/// What `prepare` needs to know.
#[derive(Debug, Clone, Args)]
pub struct PrepareArguments {
    /// File of word vectors; `-` reads standard input
    pub input: PathBuf,
    /// Model folder to write
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// File of the words, one a line in row order, for formats that hold none: npy, safetensors, and
    /// glove-norm as numbers
    #[arg(long, value_name = "FILE")]
    pub words: Option<PathBuf>,
    /// What INPUT is [default: what its first bytes tell]
    #[arg(long, value_parser = one_of(VectorsFormat::ALL, VectorsFormat::name))]
    pub format: Option<VectorsFormat>,
    /// Which file of a zip archive [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Which tensor of a safetensors file [default: the only one of two dimensions]
    #[arg(long, value_name = "NAME")]
    pub tensor: Option<String>,
    /// Components in a row [default: what the file says, or the fields of its first line less one]
    #[arg(long, value_name = "N")]
    pub dim: Option<NonZeroUsize>,
    /// Leave out and count rows that can't be read, instead of stopping at the first
    #[arg(long)]
    pub skip_bad_rows: bool,
    /// Replace the model that is in DIR now
    #[arg(long)]
    pub replace: bool,
}

/// One of some values, by its name; `--help` lists them.
fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.map(name)).map(move |found| {
        let is_found = |one: &T| name(*one) == found;
        all.into_iter().find(is_found).expect("one of the possible values")
    })
}

const EXPORT_EXAMPLES: &str = "\
What is written reads back bit for bit. npy and safetensors hold no words: these go to a file of their own.

Examples:
  kindred export models/mine --format word2vec-bin --out mine.bin
  kindred export models/mine --format npy --out mine.npy --words mine.words.txt
  kindred export models/mine --format glove --out - | gzip > mine.txt.gz";

/// What `export` needs to know.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// Model folder to read
    pub model: PathBuf,
    /// In which format
    #[arg(long, value_parser = one_of(ExportFormat::ALL, ExportFormat::name))]
    pub format: ExportFormat,
    /// File to write; `-` writes to standard output
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// File for the words, with npy and safetensors
    #[arg(long, value_name = "FILE")]
    pub words: Option<PathBuf>,
    /// Replace files that are there already
    #[arg(long)]
    pub replace: bool,
}

const SYNTH_EXAMPLES: &str = "\
The same rows, dimension and seed give the same vectors on every machine: for load tests and
benchmarks of tables that nobody has to download. They mean nothing.

Examples:
  kindred synth --rows 400000 --dim 50 --seed 1 --out models/synth
  kindred synth --rows 2196016 --dim 300 --seed 1 --out models/synth-large   2.7 GB
  kindred synth --rows 2196016 --dim 300 --text synth-large.txt   the same as GloVe text, 5.6 GB";

/// What `synth` needs to know.
#[derive(Debug, Clone, Args)]
pub struct SynthArguments {
    /// Number of rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rows: u32,
    /// Components in a row
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=MAX_DIM as i64))]
    pub dim: u32,
    /// Another seed, another table
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Model folder to write
    #[arg(long, value_name = "DIR", required_unless_present = "text")]
    pub out: Option<PathBuf>,
    /// GloVe text to write, five significant digits a component
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,
    /// Replace what is there now
    #[arg(long)]
    pub replace: bool,
}

const VERIFY_EXAMPLES: &str = "\
Reads the whole model and exits with 0 if every byte is as it was written.

Example:
  kindred verify models/glove.6B.50d";

/// What `verify` needs to know.
#[derive(Debug, Clone, Args)]
pub struct VerifyArguments {
    /// Model folder to check
    pub model: PathBuf,
}

const EVAL_EXAMPLES: &str = "\
Analogies (a is to b as c is to d) are counted right if d is the best word; the words a, b and c are left out.
A question with a word that the model does not have is wrong. Forms: Google's questions-words; four words a
line, with or without a tag as in the MSR set; BATS, where a line is a pair `a b1/b2`, every pair is asked
against every other and a folder of files is one set.

Similarities (word, word, score) are compared with the model's cosines by Spearman's rank correlation. Forms:
WordSim-353, SimLex-999, MEN, RG-65 and the like, with tabs, semicolons, commas or white space between the
fields; a first line may name the columns.

Examples:
  kindred eval models/glove.6B.50d --analogies questions-words.txt --similarities EN-MEN-TR-3k.txt EN-RG-65.txt
  kindred eval models/glove.6B.50d --analogies BATS_3.0 --methods 3cosadd,3cosmul
  kindred eval models/glove.6B.50d --similarities SimLex-999.txt --json | jq .similarities[0].spearman";

/// What `eval` needs to know.
#[derive(Debug, Clone, Args)]
pub struct EvalArguments {
    /// Model folder, as `kindred prepare` writes it
    #[arg(value_name = "DIR")]
    pub model: PathBuf,
    /// Sets of analogies: files, or folders of files
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "similarities")]
    pub analogies: Vec<PathBuf>,
    /// Sets of pairs that people found more or less similar
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "analogies")]
    pub similarities: Vec<PathBuf>,
    /// How analogies are answered, with commas between several
    #[arg(long, value_parser = methods(), value_delimiter = ',', default_values_t = Method::ALL)]
    pub methods: Vec<Method>,
    /// How words are looked up
    #[arg(long, value_parser = cases(), default_value_t = Case::Lower)]
    pub case: Case,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// What searches: auto (a GPU if there is one), cpu, cuda, or cuda:N for one of several GPUs
    #[arg(long, default_value_t = Device::Auto)]
    pub device: Device,
    /// Threads of the CPU engine; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    pub threads: usize,
}

const API_KEY_EXAMPLES: &str = "\
Prints a new key, which is kept nowhere, and the line for the file: the key's hash, its name, and `admin`.
Clients send the key as `Authorization: Bearer KEY`. A reload reads the file again.

Examples:
  kindred api-key search-frontend
  kindred api-key operator --admin
  kindred serve --api-keys-file keys.txt";

/// What `api-key` needs to know.
#[derive(Debug, Clone, Args)]
pub struct ApiKeyArguments {
    /// Whose key it is, for the log; without spaces
    pub name: String,
    /// The key may also change the service, such as reload it
    #[arg(long)]
    pub admin: bool,
}

const HEALTH_EXAMPLES: &str = "\
Exits with 0 if /health/ready says so, else with 1 and the reason: for containers, which have no curl.
Sends the key in KINDRED_API_KEY, if that is set, to services that want one for their health, too.

Examples:
  kindred health
  kindred health --url http://127.0.0.1:9000/behind/a/prefix
  KINDRED_URL=http://127.0.0.1:9000 kindred health
  kindred health --url https://127.0.0.1:8443   on this machine the certificate is not checked";

/// What `health` needs to know.
#[derive(Debug, Clone, Args)]
pub struct HealthArguments {
    /// Where the service is; else the environment's KINDRED_URL says it [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Milliseconds until it must have answered; it waits for its engine itself (readiness_timeout_ms)
    #[arg(long, value_name = "MS", default_value_t = 6000, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout_ms: u64,
}

/// Methods of analogies, by their short names.
fn methods() -> impl TypedValueParser<Value = Method> {
    let value = |method: Method| {
        PossibleValue::new(method.short_name()).help(match method {
            Method::ThreeCosAdd => "The nearest word to b − a + c",
            Method::ThreeCosMul => "The similarities to b and c, multiplied, divided by that to a",
            Method::PairDirection => "From c in the direction from a to b",
        })
    };
    PossibleValuesParser::new(Method::ALL.map(value)).try_map(|name| name.parse::<Method>())
}

/// How words of test sets are looked up.
fn cases() -> impl TypedValueParser<Value = Case> {
    let value = |case: Case| {
        PossibleValue::new(case.name()).help(match case {
            Case::Lower => "As written, else in lower case",
            Case::Exact => "As written only",
        })
    };
    PossibleValuesParser::new(Case::ALL.map(value)).try_map(|name| name.parse::<Case>())
}
