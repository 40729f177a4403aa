//! Where a model came from.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Checksum;

/// The provenance of a model, and what was skipped. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Name of the vectors file, without its folder.
    pub source: String,
    /// Its format, such as `glove text` or `glove text, gzip`.
    pub source_format: String,
    /// Its size on disk, in bytes.
    pub source_bytes: u64,
    /// Its checksum on disk.
    pub source_checksum: Checksum,
    /// Program and version that wrote the model.
    pub prepared_by: String,
    /// When, in RFC 3339, UTC.
    pub prepared_at: String,
    /// Number of lines skipped because they were invalid (`--skip-bad-rows`).
    pub bad_rows_skipped: u64,
    /// Number of lines skipped because their word was a repetition.
    pub duplicate_words_dropped: u64,
}

impl Provenance {
    /// The provenance of rows that were prepared before, written by this program now.
    pub fn again(of: &Self) -> Self {
        let now = Self::of_memory(&of.source);
        Self { prepared_by: now.prepared_by, prepared_at: now.prepared_at, ..of.clone() }
    }

    /// The provenance of rows that were never in a file, prepared by this program now.
    pub fn of_memory(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            source_format: "memory".to_owned(),
            source_bytes: 0,
            source_checksum: Checksum::of(&[]),
            prepared_by: concat!("kindred ", env!("CARGO_PKG_VERSION")).to_owned(),
            prepared_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            bad_rows_skipped: 0,
            duplicate_words_dropped: 0,
        }
    }
}
