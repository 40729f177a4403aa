//! The first source, kept for comparison: the GPU scans of the 2020 report, in its four versions.
//! Benchmarks measure them beside today's engine; no answer of the service comes from here.
//!
//! `kernels/README.md` says what each version does, where the report left a choice, and what it
//! measured. Without the feature `cuda` the crate is empty.

#[cfg(feature = "cuda")]
mod versions;

// For the declarations of this crate's kernels.
#[cfg(feature = "cuda")]
use gpu_core::abi;

#[cfg(feature = "cuda")]
pub use gpu_core::GpuError;
#[cfg(feature = "cuda")]
pub use versions::{Report, Times, Version};
