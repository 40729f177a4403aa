//! From answers and errors to bytes and headers.

pub(super) mod caching;
mod problem;
pub(super) mod server_timing;
