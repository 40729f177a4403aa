//! Long work over a model, asked through the facade: the [`graph`] of nearest neighbours, [`bulk`]
//! work on the rows of a file, and neighbours of many vectors as [`arrays`]. It has all that reads
//! and writes Parquet, also [`attributes`].
//!
//! Several threads ask for pieces and one keeps them, so that a job that was stopped goes on where
//! it was. A job says what a piece is, how a thread asks for it, and what becomes of its answer
//! (`run::Keep`); `run::run` keeps a number of them in flight. `requests` asks again where the
//! queue is full or a pass failed. A `journal` has what is done, in a folder beside the file.
#![forbid(unsafe_code)]

pub mod arrays;
pub mod attributes;
pub mod bulk;
mod cancellation;
#[cfg(feature = "parquet")]
mod damaged;
mod error;
pub mod graph;
mod journal;
mod requests;
mod run;

pub use error::JobError;
