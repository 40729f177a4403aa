//! All integration tests of this crate, in one program.

#[path = "../../cpu-core/tests/support/mod.rs"]
#[allow(dead_code)]
mod support;

mod appending;
mod failures;
mod overlap;
mod same;
mod segments;
