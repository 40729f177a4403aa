//! The CUDA driver behind checked functions: the device, memory on it and pinned memory here, kernels and
//! graphs of launches. Knows nothing of tables and searches.

mod device;
pub(crate) mod fatbins;
mod launch;
mod memory;
mod raw;

pub(crate) use device::Doing;
pub use device::Gpu;
pub(crate) use launch::{Graph, Kernel, Shape, load};
pub use memory::Array;
pub(crate) use memory::{Pinned, start_clearing, start_download, start_upload};
pub(crate) use raw::check;
