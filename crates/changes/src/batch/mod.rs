//! A batch of changes: upserts and deletes that are applied together or not at all.
//!
//! [`BatchBuilder`] checks each row as it comes and names all that are bad; [`Payload`] is the form
//! of a batch in a record of the log, and is read from there in place.

mod builder;
mod json;
mod key;
mod payload;
#[cfg(test)]
mod tests;

pub use builder::{BadRow, BadRows, Batch, BatchBuilder, MAX_BATCH_BYTES, RowTexts, Upsert};
pub use json::RowJson;
pub use key::MAX_KEY_BYTES;
pub(crate) use payload::{Payload, add_request, add_sources};
