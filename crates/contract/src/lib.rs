//! The contract: the same query gives the same rows and the same score bits on every engine, in
//! every batch, for every `k`.
//!
//! - [`score`]: the float64 formula and its order of summation;
//! - [`Hit`] and [`TopK`]: the ranking, and the best `k` of a stream of scores;
//! - [`Query`], [`Filter`]: the input of an engine;
//! - [`RowSet`], [`RowBitmap`]: which rows may be neighbours;
//! - [`analogy`]: word arithmetic as one query vector;
//! - [`Scoring`]: scores computed from several cosine similarities;
//! - [`full_pass`]: passes that score every row, and ranks;
//! - [`Device`], [`SearchEngine`], [`FullPassEngine`], [`HeadEngine`]: the traits of engines, one
//!   for each concern; [`Engine`]: all of them;
//! - [`workload`]: how a scheduler batches the input of engines;
//! - [`classifier`]: text classifiers over the table's vectors, and their formula;
//! - [`expansion`]: the terms that a text implies, and their formula;
//! - [`token_search`]: which tokens of texts engines search for together;
//! - [`certificate`]: the common parts of engines that scan rounded copies of the table.
//!
//! There is no I/O and there are no threads: this crate defines what is correct, the others
//! implement it.

pub mod analogy;
pub mod certificate;
pub mod classifier;
mod cost;
mod device;
mod engine;
pub mod expansion;
pub mod full_pass;
mod hit;
mod names;
mod query;
pub mod row_set;
pub mod score;
pub mod scoring;
mod staging;
mod table;
mod token_classifier;
pub mod token_search;
mod top_k;
mod vector;
pub mod workload;

pub use analogy::{AnalogyError, WeightedWord};
pub use cost::{COMPONENTS_OF_A_VECTOR, UsualCosts};
pub use device::{Device, EngineDescription, EngineError};
pub use engine::{Engine, FullPassEngine, HeadEngine, SearchEngine};
pub use expansion::{BestTerms, Expansion, PartOfExpansion, Term, TermExpander, TokenVectors};
pub use full_pass::{FullPassAnswer, FullPassPart, FullPassQuery, FullPassShare, RankedRow};
pub use hit::{Hit, Row};
pub use query::{Filter, Query, Ranking, complete};
pub use row_set::{RowBitmap, RowSet, RowSetParts};
pub use scoring::{HalfSpace, MAX_SCORING_WORDS, Scoring, ScoringError};
pub use staging::Staging;
pub use table::{HasTable, Metric, Table, TableRows};
pub use token_classifier::{Precision, Token, TokenClassifier, TokenText, VectorSource};
pub use top_k::TopK;
pub use vector::{Components, QueryError, QueryVector, ScoringVector};
pub use workload::Workload;
