//! Heads on the CPU: training classifiers, and computing their class scores.

pub mod classify;
pub mod train;
