//! The CUDA engine and what it stands on, from the driver up:
//!
//! - [`device`]: the GPU; `raw`: driver functions that cust does not wrap; `memory`: arrays on the
//!   device and pinned ones on the host; `launch`: kernels and graphs;
//! - `upload`: a table's way to the device;
//! - `engine`: the search.

mod constants;
pub mod device;
mod engine;
mod fatbins;
mod launch;
mod memory;
mod raw;
mod upload;

pub use device::Gpu;
pub use engine::{Counters, CudaEngine, Paths};
pub use memory::Array;
pub use upload::upload;
