//! Bulk work as all its threads know it.

use kindred::Kindred;

use super::formats::{BulkFormat, BulkInput};
use super::work::BulkWork;

/// What is read, asked and written.
pub(super) struct Job<'a> {
    pub(super) kindred: Kindred,
    pub(super) work: &'a BulkWork,
    pub(super) input: BulkInput<'a>,
    /// The format of the input.
    pub(super) format: BulkFormat,
    /// The column or field with what is asked.
    pub(super) column: &'a str,
    /// The column or field with an id, if rows have one.
    pub(super) id: Option<&'a str>,
    /// Whether the first row without an answer ends the work.
    pub(super) strict: bool,
    /// The format of the output: JSON lines, also for Parquet, which is made of them at the end, or
    /// CSV.
    pub(super) to: BulkFormat,
    /// Whether it is compressed with gzip.
    pub(super) is_packed: bool,
}
