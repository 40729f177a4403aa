//! Exact search on the CPU: three engines behind one interface, the contract's [`Engine`].
//!
//! - [`ReferenceEngine`] is an obviously correct loop. Every other engine, here and on the GPU, is
//!   tested against it, to the bit.
//! - [`FullScanEngine`] scores every row by the formula, for a whole batch together, on all cores.
//! - [`CpuEngine`] scans a table of 8 or 4 bits per component, proves for nearly all rows that they
//!   are not in the answer, and scores the rest. Without a certificate it declines, and its caller
//!   asks for a full pass; [`SearchEngine::search`] scores every row itself.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cpu_core::{CpuEngine, Options, ReferenceEngine};
//! use contract::{Filter, Query, QueryVector, Row, SearchEngine};
//! use model_store::ModelStore;
//!
//! let rows: [(&str, &[f32]); 3] = [("frog", &[1.0, 0.0]), ("toad", &[0.8, 0.6]), ("king", &[0.0, 1.0])];
//! let model = Arc::new(ModelStore::from_rows("tiny", 2, rows)?);
//! let without_itself = Filter::excluding(vec![Row(0)]);
//! let frog = Query::new(&model.table(), QueryVector::Row(Row(0)), 10, without_itself)?;
//!
//! let mut engine = CpuEngine::new(Arc::clone(&model), Options::default())?;
//! let hits = engine.search(&[&frog])?;
//! let words: Vec<&str> = hits[0].iter().map(|hit| model.words().word(hit.row)).collect();
//! assert_eq!(words, ["toad", "king"]);
//!
//! // The same rows and score bits as the plain loop.
//! assert_eq!(hits, ReferenceEngine::new(model).search(&[&frog])?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Engine`]: contract::Engine
//! [`SearchEngine::search`]: contract::SearchEngine::search

mod certified;
mod engine;
mod full_scan;
pub mod heads;
mod instruction_set;
mod norms;
mod prefetch;
mod reference;
mod threads;

pub use certified::{Counters, FirstLook, Options, Origin, Paths, TablesReport, table_file};
pub use engine::CpuEngine;
pub use full_scan::{FullScanEngine, StartError};
pub use instruction_set::InstructionSet;
pub use norms::copy_with_norms;
pub use reference::ReferenceEngine;
