//! Heads over a model: texts with labels to learn from, how texts become tokens, training, import
//! from PyTorch, answers, and how good they are.
#![forbid(unsafe_code)]

mod answer;
mod any;
mod built_in;
mod data;
mod expansion;
mod fasttext;
mod import;
pub mod json_faults;
mod label;
mod plain_expander;
mod report;
pub mod text;
mod text_classifier;
mod tokens;
mod training;

pub use answer::{
    Explanation, MAX_NGRAM_BYTES, NGram, REASONS, best, explain, explanation_cost, labels,
};
pub use any::AnyHead;
pub use built_in::{BUILT_IN, BUILT_IN_REACH, built_in, has_no_capitals, own_expander};
pub use contract::Precision;
pub use cpu_core::heads::Diverged;
pub use cpu_core::heads::train::{Progress, Settings};
pub use data::{DataError, Format, Labelled, Texts, TextsOptions};
pub use encoders::EncoderError;
pub use expansion::{Cause, Form, Formed, Wanted as WantedTerms, cause, token_rows};
pub use fasttext::FastTextHead;
pub use import::{
    ExpanderImportOptions, ImportError, ImportOptions, Imported, ImportedExpander, Padding,
    expander_weights, import_expander, import_head,
};
pub use label::{ClassScores, Label, ScoresNotFinite};
pub use model_store::head::{
    About, Cut, Description, Expander, ExpanderDescription, ExpanderWeights, FastTextDescription,
    Head, HeadError, HeadFormat, HeadKind, MadeFor, Probabilities, TermsFrom, Token, Tokeniser,
    Tokens, about, check_free, write_expander,
};
pub use plain_expander::{ReachError, STOP_WORDS, plain_expander, reach_of};
pub use rayon::ThreadPool;
pub use report::{Classification, Judged, OfLabel};
pub use text_classifier::TextClassifier;
pub use tokens::{MAX_UNKNOWN_WORDS, Tokenised, Vocabulary};
pub use training::{
    CALIBRATION_BINS, Made, TrainError, TrainingOptions, quality_name, train_classifier,
};

/// Threads for heads outside of a service; 0: one per core.
///
/// # Errors
/// If the system refuses to start them.
pub fn threads(count: usize) -> std::io::Result<ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
    pool.map_err(std::io::Error::other)
}
