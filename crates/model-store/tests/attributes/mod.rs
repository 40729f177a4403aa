//! Attributes of rows: from files into model folders, in memory, and out again.

mod bad_files;
mod damage;
mod folder;
mod joined;
mod many_rows;
mod odd_input;
#[cfg(feature = "parquet")]
mod parquet;
mod support;
mod synth;
mod tables;
