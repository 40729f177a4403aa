//! The contract: the same query gives the same rows and the same score bits on every engine, in
//! every batch, for every `k`.
//!
//! - [`score`]: the float64 formula and its order of summation;
//! - [`Hit`] and [`TopK`]: the ranking, and the best `k` of a stream of scores;
//! - [`Query`], [`Filter`], [`QueryBatch`]: what an engine is asked;
//! - [`analogy`]: how word arithmetic becomes one query vector;
//! - [`full_pass`]: scores that are made of several cosine similarities, and ranks;
//! - [`Engine`]: who answers;
//! - [`certificate`]: what engines that scan rounded copies of the table have in common.
//!
//! No I/O and no threads: this crate says what is right, and the others do it.

pub mod analogy;
pub mod certificate;
mod engine;
pub mod full_pass;
mod hit;
mod query;
pub mod score;
mod table;
mod top_k;

pub use analogy::{AnalogyError, WeightedWord};
pub use engine::{Engine, EngineDescription, EngineError};
pub use full_pass::{
    FullPassAnswer, FullPassPart, FullPassQuery, FullPassShare, MAX_SCORING_WORDS, RankedRow,
    Scoring, ScoringError, ScoringVector,
};
pub use hit::{Hit, Row};
pub use query::{Filter, FilterParts, Query, QueryBatch, QueryError, QueryVector};
pub use table::Table;
pub use top_k::TopK;
