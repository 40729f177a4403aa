//! Damaged Parquet files: they can break what the decoders assert.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a decoder reads. Its panic is an error of the file, and no end of the process.
///
/// # Errors
/// The reason, as a sentence about the file.
pub(crate) fn guarded<T, E: Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    let reason = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(found)) => return Ok(found),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "Parquet error: it is damaged".to_owned(),
    };
    Err(format!("it can't be read as Parquet: {reason}; write it again"))
}
