//! One engine made of several, each of which has some rows of a table: for tables that no device
//! holds alone, and for lower latency.
//!
//! A table's rows are cut into contiguous ranges, the *shards*. Each has an engine on a thread of
//! its own; the thread that calls [`Shards`] owns the first. Every query goes to every shard, in
//! the terms of that shard: rows get the shard's own numbers, and a vector that is a row of another
//! shard becomes its components. What the shards find is joined:
//!
//! - hits are merged by score, highest first, then by row;
//! - a rank is the sum of what each shard counts; a shard that does not have the ranked row counts
//!   the scores above it;
//! - the terms of expanders are cut in the same way, and each term lies on one shard;
//! - texts for classifiers are shared out.
//!
//! Scores do not depend on the other rows of a table, so the answers are those of one engine with
//! the whole table, to the bit.

mod engine;
mod heads;
mod join;
mod members;
mod ranks;
mod shard;

pub use engine::Shards;
pub use members::StartError;
pub use shard::{RowRange, split_evenly};
