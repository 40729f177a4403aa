//! Heads on the CPU: training classifiers, and computing their class scores.

pub mod classify;
pub mod train;

use contract::classifier::Convolution;

/// Filters of a block: as many sums as vector registers hold for a few words.
const BLOCK_FILTERS: usize = 32;

/// One component of some filters.
type FilterBlock = [f32; BLOCK_FILTERS];

/// All filters as columns in blocks, `[blocks, dim]`: those of a convolution tap by tap, each tap
/// with as many columns as `padded` makes of the channels.
fn filter_columns(
    convolutions: &[Convolution],
    dim: usize,
    padded: impl Fn(usize) -> usize,
) -> Vec<FilterBlock> {
    let columns: usize = convolutions.iter().map(|one| one.width * padded(one.channels())).sum();
    let mut blocks = vec![[0.0; BLOCK_FILTERS]; columns.div_ceil(BLOCK_FILTERS) * dim];
    let mut first = 0;
    for one in convolutions {
        for tap in 0..one.width {
            for channel in 0..one.channels() {
                let column = first + channel;
                let weights = &one.weights[(channel * one.width + tap) * dim..][..dim];
                let block = &mut blocks[column / BLOCK_FILTERS * dim..][..dim];
                for (columns, weight) in block.iter_mut().zip(weights) {
                    columns[column % BLOCK_FILTERS] = *weight;
                }
            }
            first += padded(one.channels());
        }
    }
    blocks
}

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
