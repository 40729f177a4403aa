//! Why a state dict becomes no head.

use contract::classifier::ShapeError;

/// Why no head was made. Each message names the tensor or the option, and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is no safetensors.
    #[error(
        "{file}: {reason}; write the file with `safetensors.torch.save_file(model.state_dict(), \
         \"state.safetensors\")`"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// What was found instead.
        reason: String,
    },
    /// A tensor is missing.
    #[error(
        "{file} has no tensor {expected}; if it has another name there, add --map. The file has {tensors}"
    )]
    Missing {
        /// The file.
        file: String,
        /// What was looked for, with an example of --map.
        expected: String,
        /// The tensors that the file has, with their shapes.
        tensors: String,
    },
    /// A tensor has a shape that does not fit.
    #[error("{file}: `{tensor}` has the shape {found:?}; {needed}")]
    Shape {
        /// The file.
        file: String,
        /// The tensor, by its name in the file.
        tensor: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape that is needed, and the cure.
        needed: String,
    },
    /// A tensor is not of floating-point numbers.
    #[error(
        "{file}: `{tensor}` has the type {found}; it must be F32, F64, F16 or BF16 (convert it with `.float()`)"
    )]
    Type {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its type.
        found: String,
    },
    /// A weight is NaN, infinite, or too large for a float32.
    #[error(
        "{file}: number {index} of `{tensor}` is not a finite float32; train the model again, or take an earlier state of it"
    )]
    NotFinite {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Which of its numbers, from 0.
        index: usize,
    },
    /// A tensor has no place in a head.
    #[error(
        "{file}: a head has no place for `{tensor}` {shape:?}; if it is a part of the head, say so \
         with --map, as in --map convs.0={prefix}; if answers do not depend on it, add --ignore {tensor}"
    )]
    Unused {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its name without `.weight` or `.bias`.
        prefix: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// An option does not fit the file.
    #[error("{0}")]
    Option(String),
    /// The words of the embedding's rows do not fit it.
    #[error("{0}")]
    Vocabulary(String),
    /// The weights make no classifier.
    #[error("{file}: {source}; a head has convolutions, their maxima, and dense layers")]
    Classifier {
        /// The file.
        file: String,
        /// Why.
        source: ShapeError,
    },
}
