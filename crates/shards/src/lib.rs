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
//! # Algorithm
//!
//! ```text
//! search(query, k):
//!     each shard, on its thread:
//!         list ← the shard's best k for the query in its terms, best first
//!     answer ← the lists with the rows' own numbers, merged; the first k
//! rank(query, row):
//!     score ← the formula's, once for all shards
//!     each shard: count ← its rows that come before this one:
//!         the shard with the row:   those that its engine ranks above it
//!         a shard before it:        scores ≥ score
//!         a shard after it:         scores > score
//!     rank ← 1 + the sum of the counts
//! ```
//!
//! # Why the answers are those of one engine, to the bit
//!
//! A score depends on the query and the row alone, and every engine computes the same one. Rows are
//! ordered by score, then by number; a shard's numbers are the table's less a constant, so its
//! order is the table's. A row of the best `k` of all has fewer than `k` before it, so fewer than
//! `k` in its shard, and is in the shard's list. Equal scores of a shard before the row come before
//! it, and those of a shard after it do not.
//!
//! # Cost
//!
//! A pass takes as long as on the slowest shard, and then `shards · k` comparisons on the caller's
//! thread. A query is copied for each shard, with the components of a row that the shard lacks.

mod engine;
mod heads;
mod join;
mod members;
mod ranks;
mod segments;
mod shard;

pub use engine::Shards;
pub use members::StartError;
pub use segments::{Now, Segments};
pub use shard::{RowRange, split_evenly};
