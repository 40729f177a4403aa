//! Baselines for benchmarks of the search: one plain read of the table's bytes, and the 2020
//! report's programs. No answer of the service comes from here.

pub(crate) mod abi;
mod read;
pub mod report;

pub use read::time_reading;
