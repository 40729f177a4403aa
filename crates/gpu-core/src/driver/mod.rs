//! The CUDA driver behind checked functions: the device, memory on it and pinned memory on the
//! host, kernels and graphs of launches. It has no notion of tables or searches.
//!
//! Starting work that continues after the call is `unsafe`: the caller promises that memory stays
//! as it is until the stream has been synchronised.

mod copies;
mod device;
mod fatbins;
mod foreign;
mod graph;
mod launch;
mod memory;
mod raw;
mod room;

pub(crate) use copies::{
    start_clearing, start_download, start_upload, start_upload_bytes, start_upload_of,
};
pub(crate) use device::{Doing, new_stream};
pub use device::{Gpu, count};
pub(crate) use foreign::{ForeignStream, Handover};
pub(crate) use graph::Graph;
pub(crate) use launch::{Kernel, Modules, Shape};
pub use memory::Array;
pub(crate) use memory::{Pinned, Registered};
pub(crate) use room::Room;
