//! A model's tables on one device: the float32 table and its norms as stored, and what scans read, which is
//! derived from them there. Workloads share them by reference.

pub(crate) mod constants;
mod fit;
mod tables;
mod upload;
pub(crate) mod wire;

pub(crate) use fit::fit;
pub(crate) use tables::{Int4, Quantised, Tables, int4_bytes, int8_bytes, table_bytes};
pub use upload::upload;
