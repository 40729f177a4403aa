//! Errors of this crate, each with its cure.

/// Why there is no CUDA engine, or why it stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The program was built without one.
    #[error("this kindred was built without its CUDA engine; build it with --features cuda")]
    NotBuilt,
    /// No driver, or no GPU that it knows.
    #[error("no NVIDIA GPU: {reason}")]
    NoDevice {
        /// What the driver said.
        reason: String,
    },
    /// A driver of an older major version than the compiler that made the kernels.
    #[error(
        "the NVIDIA driver supports CUDA {major}.{minor}, but this kindred needs {needed}.0: update the \
         driver, or build kindred with nvcc of CUDA {major}"
    )]
    DriverTooOld {
        /// The CUDA version that the driver is for.
        major: i32,
        /// Its second part.
        minor: i32,
        /// The major version of the compiler.
        needed: i32,
    },
    /// There are GPUs, but not this one.
    #[error("there is no GPU cuda:{asked}; this machine has {found}, numbered from cuda:0")]
    NoSuchDevice {
        /// The one that was asked for.
        asked: u32,
        /// How many there are.
        found: u32,
    },
    /// A GPU that lacks the instructions.
    #[error("{name} has compute capability {major}.{minor}; the CUDA engine needs 7.5 or later")]
    TooOld {
        /// The GPU's name.
        name: String,
        /// Its compute capability.
        major: u32,
        /// The same, after the point.
        minor: u32,
    },
    /// The table and what is derived from it need more memory than is free.
    #[error(
        "the model does not fit on {name}: it needs {needed:.2} GB ({parts}), but {free:.2} GB of {total:.2} \
         GB are free; use a larger GPU, free some of its memory, or use --device cpu",
        needed = *.needed as f64 / 1e9, free = *.free as f64 / 1e9, total = *.total as f64 / 1e9
    )]
    DoesNotFit {
        /// The GPU's name.
        name: String,
        /// What needs how much, for people.
        parts: String,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
        /// Bytes.
        total: u64,
    },
    /// The driver refused something that should work.
    #[error("CUDA: {doing}: {reason}")]
    Driver {
        /// What was being done.
        doing: &'static str,
        /// What the driver said.
        reason: String,
    },
}
