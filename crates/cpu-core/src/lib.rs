//! Exact search on the CPU: three engines behind one interface, the contract's [`Engine`].
//!
//! - [`ReferenceEngine`] is a loop that is obviously right. Every other engine, here and on the GPU,
//!   is held against it, to the bit.
//! - [`FullScanEngine`] scores every row by the formula, for a whole batch at once, on all cores.
//! - [`CpuEngine`] reads a table of 8 or 4 bits a component, proves of nearly all rows that they are not in
//!   the answer, and scores the rest. What it can't prove, the full scan answers.
//!
//! [`Engine`]: model_store::Engine

mod certified;
mod full_scan;
mod instruction_set;
mod reference;
mod row_limits;

pub use certified::{Counters, CpuEngine, FirstLook, Options, Origin, Paths, TablesReport};
pub use full_scan::{FullScanEngine, StartError};
pub use instruction_set::InstructionSet;
pub use reference::ReferenceEngine;
