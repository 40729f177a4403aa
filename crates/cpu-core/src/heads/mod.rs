//! Heads on the CPU: training classifiers, and computing their class scores; gradients of expanders.

pub mod classify;
pub mod expand;
pub mod train;
