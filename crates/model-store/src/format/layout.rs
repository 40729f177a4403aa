//! Where the tensors of `vectors.safetensors` are.

use std::ops::Range;

use super::DATA_START;

/// The position of a tensor's bytes, relative to [`DATA_START`], as in safetensors.
pub struct Layout {
    /// The components, float32, row after row.
    pub vectors: Range<usize>,
    /// Nothing, or the 4 bytes after which the norms are aligned.
    pub alignment: Range<usize>,
    /// The rows' norms, float64.
    pub norms: Range<usize>,
    /// Where the words begin in their file, and where the last one ends, as u64.
    pub word_offsets: Range<usize>,
    /// Empty without biases. Behind the others, so that it moves nothing and needs no alignment of
    /// its own.
    pub biases: Range<usize>,
    /// The numbers of the rows; empty if those are their places.
    pub numbers: Range<usize>,
}

impl Layout {
    /// `None` if the sizes overflow.
    pub fn new(rows: usize, dim: usize, has_biases: bool, has_numbers: bool) -> Option<Self> {
        let vectors = rows.checked_mul(dim)?.checked_mul(size_of::<f32>())?;
        // `norms` is aligned to 8 bytes. After an odd number of float32, 4 bytes fill the
        // gap, in a separate tensor, because safetensors allows no holes.
        let norms = vectors.checked_next_multiple_of(align_of::<f64>())?;
        let word_offsets = norms.checked_add(rows.checked_mul(size_of::<f64>())?)?;
        let biases = word_offsets.checked_add((rows + 1).checked_mul(size_of::<u64>())?)?;
        let bias_bytes = if has_biases { size_of::<f32>() } else { 0 };
        let numbers = biases.checked_add(rows.checked_mul(bias_bytes)?)?;
        let number_bytes = if has_numbers { size_of::<u32>() } else { 0 };
        let end = numbers.checked_add(rows.checked_mul(number_bytes)?)?;
        end.checked_add(DATA_START)?;
        Some(Self {
            vectors: 0..vectors,
            alignment: vectors..norms,
            norms: norms..word_offsets,
            word_offsets: word_offsets..biases,
            biases: biases..numbers,
            numbers: numbers..end,
        })
    }

    /// Where the last tensor ends.
    pub fn end(&self) -> usize {
        self.numbers.end
    }
}
