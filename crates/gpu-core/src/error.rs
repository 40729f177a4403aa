//! Errors of this crate, each with its cure.

use std::error::Error;

/// Why there is no CUDA engine, or why it stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The program was built without the CUDA engine.
    #[error("this kindred was built without its CUDA engine; build it with --features cuda")]
    NotBuilt,
    /// There is no driver, or it knows no GPU.
    #[error("no NVIDIA GPU: {}", source.to_string().trim_matches('"'))]
    NoDevice {
        /// The driver's reason, which it may quote.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The driver is of an older major version than the compiler that made the kernels.
    #[error(
        "the NVIDIA driver supports CUDA {major}.{minor}, but this kindred needs {needed}.0: update the \
         driver, or build kindred with nvcc of CUDA {major}"
    )]
    DriverTooOld {
        /// The major part of the CUDA version that the driver supports.
        major: i32,
        /// The minor part of that version.
        minor: i32,
        /// The major version of the compiler.
        needed: i32,
    },
    /// There are GPUs, but not the requested one.
    #[error("there is no GPU cuda:{asked}; this machine has {found}, numbered from cuda:0")]
    NoSuchDevice {
        /// The index that was requested.
        asked: u32,
        /// The number of GPUs.
        found: u32,
    },
    /// The GPU lacks the instructions that the kernels need.
    #[error("{name} has compute capability {major}.{minor}; the CUDA engine needs 7.5 or later")]
    TooOld {
        /// The GPU's name.
        name: String,
        /// The major part of its compute capability.
        major: u32,
        /// The minor part of its compute capability.
        minor: u32,
    },
    /// The table and the buffers need more memory than is free.
    #[error(
        "the model does not fit on {name}: it needs {needed:.2} GB ({parts}), but {free:.2} GB of {total:.2} \
         GB are free; use a larger GPU, free some of its memory, or use --device cpu",
        needed = *.needed as f64 / 1e9, free = *.free as f64 / 1e9, total = *.total as f64 / 1e9
    )]
    DoesNotFit {
        /// The GPU's name.
        name: String,
        /// How much memory each part needs, for people.
        parts: String,
        /// Needed memory, in bytes.
        needed: u64,
        /// Free memory, in bytes.
        free: u64,
        /// Total memory, in bytes.
        total: u64,
    },
    /// A text of a training step touches too many terms.
    #[error(
        "text {text} touches more terms than the GPU merges; raise the regularisation or lower the biases at the start, so that \
         texts touch at most 1,000 terms, or train with --device cpu"
    )]
    TooManyTerms {
        /// The text's number in its step, from 0.
        text: u32,
    },
    /// A vector or a bias of another library's terms is not finite.
    #[error(
        "the weight or the bias has values that are not finite, or whose squares are not; lower the learning rate"
    )]
    NotFinite,
    /// The driver refused something that should work.
    #[error("CUDA: {doing}: {source}")]
    Driver {
        /// What was being done.
        doing: &'static str,
        /// The driver's reason.
        source: Box<dyn Error + Send + Sync>,
    },
}
