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
    /// The provenance of rows that were never in a file.
    pub fn of_memory(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            source_format: "memory".to_owned(),
            source_bytes: 0,
            source_checksum: Checksum::of(&[]),
            prepared_by: Self::this_program(),
            prepared_at: Self::now(),
            bad_rows_skipped: 0,
            duplicate_words_dropped: 0,
        }
    }

    /// The value of `prepared_by`.
    pub(crate) fn this_program() -> String {
        concat!("kindred ", env!("CARGO_PKG_VERSION")).to_owned()
    }

    /// The value of `prepared_at`.
    pub(crate) fn now() -> String {
        humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
    }
}
