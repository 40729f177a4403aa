//! The first source, kept for comparison: the GPU scans of the 2020 report, in its four versions.
//! Benchmarks measure them beside today's engine; no answer of the service comes from here.
//!
//! `kernels/README.md` says what each version does, where the report left a choice, and what it
//! measured. Without the feature `cuda` the crate is empty.

// gpu-core keeps its launches to itself, as nothing but kernels needs them. They are compiled here
// a second time, around this crate's kernels.
#[cfg(feature = "cuda")]
#[allow(dead_code)]
#[macro_use]
#[path = "../../gpu-core/src/abi/mod.rs"]
mod abi;
#[cfg(feature = "cuda")]
#[allow(dead_code, unreachable_pub, unused_imports)]
#[path = "../../gpu-core/src/driver/mod.rs"]
mod driver;
#[cfg(feature = "cuda")]
mod versions;

/// Asserts that the declarations of `abi` have the layouts that the kernels were compiled with.
#[cfg(feature = "cuda")]
mod layouts {
    include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
}

// By this gpu-core is linked, which has the driver's functions.
#[cfg(feature = "cuda")]
pub use gpu_core::GpuError;
#[cfg(feature = "cuda")]
pub use versions::{Report, Times, Version};
