//! Flags of `eval` that measure retrieval.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use kindred::retrieval::texts::QueryIds;

use super::one_of;

/// What is compared with BM25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetrievalRun {
    /// Nothing more than BM25.
    Bm25,
    /// Terms of the best documents.
    Rm3,
    /// Neighbours of each word.
    Neighbours,
    /// Neighbours of the words' sum.
    Centroid,
}

impl RetrievalRun {
    /// All.
    pub const ALL: [Self; 4] = [Self::Bm25, Self::Rm3, Self::Neighbours, Self::Centroid];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bm25 => "bm25",
            Self::Rm3 => "rm3",
            Self::Neighbours => "neighbours",
            Self::Centroid => "centroid",
        }
    }

    /// Whether it asks the model.
    pub fn needs_model(self) -> bool {
        matches!(self, Self::Neighbours | Self::Centroid)
    }
}

/// Flags of `eval` that measure retrieval.
#[derive(Debug, Clone, Args)]
pub struct RetrievalArguments {
    /// Measure whether expanding queries helps retrieval, on a collection with judged queries
    #[arg(long, requires_all = ["documents", "queries", "qrels"])]
    #[arg(conflicts_with_all = ["analogies", "similarities", "classification"])]
    pub retrieval: bool,
    /// Documents: TREC's markup, or JSON lines with `id`, `title` and `text`
    #[arg(long, value_name = "FILE", requires = "retrieval")]
    pub documents: Option<PathBuf>,
    /// Queries: TREC's topics, or JSON lines with `id` and `text`
    #[arg(long, value_name = "FILE", requires = "retrieval")]
    pub queries: Option<PathBuf>,
    /// Which documents are relevant to which query: TREC's qrels, BEIR's with a header, or JSON lines
    #[arg(long, value_name = "FILE", requires = "retrieval")]
    pub qrels: Option<PathBuf>,
    /// What the qrels number queries by: their ids in the file of queries, or their positions in it, from 1 [default:
    /// file, unless the qrels look otherwise, which is an error]
    #[arg(long, value_parser = one_of(QueryIds::ALL, QueryIds::name), requires = "retrieval")]
    pub query_ids: Option<QueryIds>,
    /// What is compared with BM25, comma-separated
    #[arg(long, value_parser = runs(), value_delimiter = ',', default_value = "rm3,neighbours,centroid", requires = "retrieval")]
    pub runs: Vec<RetrievalRun>,
    /// Also compare these expanders, head folders written by `kindred train expander`
    #[arg(long, value_name = "DIR", num_args = 1.., requires = "retrieval")]
    pub expanders: Vec<PathBuf>,
    /// Index words as they are, instead of their stems
    #[arg(long, requires = "retrieval")]
    pub no_stemming: bool,
    /// Words that are not indexed: english, none, or a file of words
    #[arg(long, value_name = "WORDS", default_value = "english", requires = "retrieval")]
    pub stop_words: String,
    /// BM25's k1, instead of tuning it
    #[arg(long, value_name = "X", value_parser = at_least_zero, requires = "retrieval")]
    pub k1: Option<f64>,
    /// BM25's b, from 0 to 1, instead of tuning it
    #[arg(long, value_name = "X", value_parser = share, requires = "retrieval")]
    pub b: Option<f64>,
    /// Number of folds of the cross-validation
    #[arg(long, value_name = "N", default_value_t = 5, requires = "retrieval")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(2..=1000))]
    pub folds: usize,
    /// How often the cross-validation is repeated with other folds; figures are means
    #[arg(long, value_name = "N", default_value_t = 10, requires = "retrieval")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub repetitions: usize,
    /// Seed of folds and permutations
    #[arg(long, value_name = "S", default_value_t = 1, requires = "retrieval")]
    pub seed: u64,
    /// Permutations behind each p-value
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "retrieval")]
    #[arg(value_parser = clap::value_parser!(u32).range(1000..=100_000_000))]
    pub permutations: u32,
}

/// Parses a run by its name.
fn runs() -> impl TypedValueParser<Value = RetrievalRun> {
    let value = |run: RetrievalRun| {
        PossibleValue::new(run.name()).help(match run {
            RetrievalRun::Bm25 => "BM25 alone, which is always measured",
            RetrievalRun::Rm3 => "RM3: terms of the best documents",
            RetrievalRun::Neighbours => "The model's neighbours of each word",
            RetrievalRun::Centroid => "The model's neighbours of the sum of the words",
        })
    };
    PossibleValuesParser::new(RetrievalRun::ALL.map(value)).map(|name| {
        let is_named = |run: &RetrievalRun| run.name() == name;
        RetrievalRun::ALL.into_iter().find(is_named).expect("one of the possible values")
    })
}

fn at_least_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "it must be a number, 0 or more".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    at_least_zero(text)
        .ok()
        .filter(|number| *number <= 1.0)
        .ok_or_else(|| "it must be a number from 0 to 1".to_owned())
}
