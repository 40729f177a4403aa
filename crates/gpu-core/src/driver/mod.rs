//! The CUDA driver behind checked functions: the device, memory on it and pinned memory on the
//! host, kernels and graphs of launches. It has no notion of tables or searches.
//!
//! Starting work that continues after the call is `unsafe`: the caller promises that memory stays
//! as it is until the stream has been synchronised. What is hidden is for crates that have kernels
//! of their own.

mod arrays;
mod copies;
mod device;
mod entries;
mod foreign;
mod graph;
mod launch;
mod memory;
mod raw;
mod room;

pub(crate) use arrays::device_arrays;
pub(crate) use copies::start_clearing;
#[doc(hidden)]
pub use copies::{start_download, start_upload};
#[doc(hidden)]
pub use device::{Doing, new_background_stream, new_stream};
pub use device::{Gpu, count};
#[doc(hidden)]
pub use entries::Entry;
pub(crate) use foreign::Handover;
pub(crate) use graph::Graph;
#[doc(hidden)]
pub use launch::{Kernel, Modules, Shape};
pub use memory::Array;
#[doc(hidden)]
pub use memory::Pinned;
pub(crate) use memory::Registered;
pub(crate) use room::Room;
