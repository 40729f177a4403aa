//! Attributes of rows in Parquet, for `kindred::prepare`: with the feature `parquet`.

#[cfg(feature = "parquet")]
mod parquet;
#[cfg(all(test, feature = "parquet"))]
mod tests;

use kindred::prepare::TableReader;

/// The reader for `kindred::prepare::AttributesFile`; `None` in builds without it.
#[cfg(feature = "parquet")]
pub const PARQUET: Option<&'static dyn TableReader> = Some(&parquet::Parquet);

/// The reader for `kindred::prepare::AttributesFile`; `None` in builds without it.
#[cfg(not(feature = "parquet"))]
pub const PARQUET: Option<&'static dyn TableReader> = None;
