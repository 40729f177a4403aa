//! Kindred without a network: open models, look words up, ask, explain, evaluate and export.
//!
//! ```
//! use kindred::{Kindred, Model, Options, Settings};
//!
//! let kindred = Kindred::start(Model::demo()?, Settings::default())?;
//! let answer = kindred.nearest("frog", Options::new().k(3)).wait()?;
//! for neighbor in &answer.neighbors {
//!     println!("{:.4} {}", neighbor.score, neighbor.word);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Answers are exact: the same question has the same rows and the same score bits on every device.
//! A [`Model`] alone answers what needs no search; [`Kindred`] is a model with an engine. The
//! command line's other work is here as well: [`prepare`], [`export`], [`synth`],
//! [`Model::verify`], and [`evaluation`]; graphs and bulk work are in the crate `jobs`.
//!
//! The server and the command line are layers over the parts, which they have from here: [`demo`]
//! and [`ModelStore`] open a model, [`engines`] makes the engine that searches it by the
//! [`contract`], [`heads`] has the classifiers and expanders over it, and the `scheduler` lets many
//! callers share that engine. [`expression`] reads what people type, [`filters`] which rows they
//! want; [`question`] makes checked queries of it, with the options that are declared in
//! [`options`]; [`asking`] and [`search`] put them to the engine.
#![forbid(unsafe_code)]

mod added;
mod answer;
pub mod answering;
pub mod asking;
#[cfg(feature = "cuda")]
pub mod borrowed_terms;
pub mod demo;
mod description;
mod error;
pub mod evaluation;
pub mod expression;
pub mod live;
pub mod method;
mod model;
pub mod options;
pub mod prepare;
pub mod question;
pub mod queue;
pub mod rows;
pub mod search;
mod service;

pub use added::SubwordsOf;
pub use answer::{Answer, Classified, ImpliedTerm, ImpliedTerms, NamedLabel, Neighbor, Ranks};
pub use answering::Answering;
pub use asking::Times;
pub use cpu_core::ReferenceEngine;
pub use description::{DescribedAttribute, DescribedText, ModelDescription, ShardDescription};
pub use encoders::{MAX_TEXT_BYTES, TextEncoder, TextTokens, text_encoder};
pub use engines::device::{Device, Gpus, Placement};
pub use engines::{EngineStartError, background, device, numa, placement, warm_up};
pub use error::{Error, MAX_SUGGESTED_WORDS, UnknownWord, unknown_words_message};
pub use gpu_core::GpuError;
pub use heads::text;
pub use method::Method;
pub use model::Model;
pub use model_store::{
    ModelError, ModelStore, Number, Words, attributes, cut, export, npy, plus_in_url, replace_file,
    synth,
};
pub use options::{Options, Unknown, WithAttributes};
pub use question::{Placed, Side, Target, Term, vector_of_unknown};
pub use queue::Limits;
pub use service::{Kindred, STAGED_TOGETHER, Settings, check_terms};
pub use {::contract, ::engines, ::filters, ::heads};
