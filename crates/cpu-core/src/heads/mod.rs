//! Heads on the CPU.

pub mod train;
