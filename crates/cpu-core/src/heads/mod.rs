//! Heads on the CPU: training classifiers, and computing their class scores.

pub mod classify;
pub mod train;

/// Training has left the numbers that there are: the loss, or a weight, is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "training diverged in epoch {epoch}: the loss or a weight is not finite any more; lower \
     --learning-rate"
)]
pub struct Diverged {
    /// The epoch, from 1.
    pub epoch: usize,
}
