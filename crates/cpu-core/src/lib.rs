//! Exact search on the CPU: two engines behind one interface, the contract's [`Engine`].
//!
//! - [`ReferenceEngine`] is a loop that is obviously right. Every other engine, here and on the GPU,
//!   is held against it, to the bit.
//! - [`FullScanEngine`] reads the table once for a whole batch, on all cores.
//!
//! [`Engine`]: model_store::Engine

mod full_scan;
mod reference;

pub use full_scan::{FullScanEngine, InstructionSet, StartError};
pub use reference::ReferenceEngine;
