//! A baseline for benchmarks of the search: one plain read of the table's bytes. No answer of the
//! service comes from here.

pub(crate) mod abi;
mod read;

pub use read::time_reading;
