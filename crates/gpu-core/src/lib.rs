//! Exact nearest-row search on an NVIDIA GPU, behind the contract's [`Engine`].
//!
//! The modules with the feature `cuda`, from the top down; each uses only those below it:
//!
//! - `search`: the engine, certified search over resident tables;
//! - `ranks`: counts of the rows that rank before given ones; `full_pass`: every row's score by a
//!   formula;
//! - `heads`: class scores of texts;
//! - `formulas`: formulas of several cosines;
//! - `sets`: sets of rows on one device, which workloads share;
//! - `resident`: a model's tables on one device, which workloads share;
//! - `driver`: the CUDA driver behind checked functions;
//! - `abi`: declarations that Rust and CUDA share.
//!
//! Without the feature, [`engine`] returns an error, so that callers need not know how the crate
//! was built.

// Hidden, as what other crates need only for kernels of their own.
#[cfg(feature = "cuda")]
#[doc(hidden)]
#[macro_use]
pub mod abi;
#[cfg(feature = "cuda")]
pub mod driver;
mod error;
#[cfg(feature = "cuda")]
mod formulas;
#[cfg(feature = "cuda")]
mod full_pass;
#[cfg(feature = "cuda")]
pub mod heads;
#[cfg(feature = "cuda")]
mod ranks;
#[cfg(feature = "cuda")]
pub mod resident;
#[cfg(feature = "cuda")]
pub mod search;
#[cfg(feature = "cuda")]
mod sets;

use std::sync::Arc;

pub use contract::Precision;
use contract::{Engine, HasTable, Staging, Table};

pub use error::GpuError;

/// Which GPU to use, and what to call during the upload.
#[derive(Default)]
pub struct Options<'a> {
    /// The GPU's index in the driver's order, from 0; the first GPU if `None`.
    pub ordinal: Option<u32>,
    /// Called from time to time with the number of bytes uploaded so far and the total.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
    /// How classifiers are kept.
    pub precision: Precision,
    /// The most memory for the products of a classifier, in bytes; half of what is free if `None`.
    pub products: Option<u64>,
    /// Whether too little memory for the derived tables is an error. If not, some queries are
    /// slower.
    pub at_full_speed: bool,
    /// Memory that callers fill with vectors: the device fetches them from there by itself.
    pub staging: Option<Arc<Staging>>,
    /// Rows that may be [appended](contract::SearchEngine::append). Fewer if memory is short, or
    /// the metric is not the cosine: none.
    pub room: usize,
}

/// Uploads a table to a GPU and returns the engine that searches it. Must be called on the thread
/// that will own the engine.
///
/// # Errors
/// If the program was built without the engine, there is no driver or GPU, or the table does not
/// fit.
pub fn engine(table: Arc<dyn HasTable>, options: Options<'_>) -> Result<Box<dyn Engine>, GpuError> {
    #[cfg(feature = "cuda")]
    return Ok(Box::new(search::CudaEngine::new(table, options, search::Paths::default())?));
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (table, options);
        Err(GpuError::NotBuilt)
    }
}

/// The number of GPUs.
///
/// # Errors
/// As [`engine`]; there is at least one otherwise.
pub fn count() -> Result<u32, GpuError> {
    #[cfg(feature = "cuda")]
    return driver::count();
    #[cfg(not(feature = "cuda"))]
    Err(GpuError::NotBuilt)
}

/// A GPU's name and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuMemory {
    /// Its index in the driver's order, from 0.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// Free memory, in bytes.
    pub free: u64,
    /// Total memory, in bytes.
    pub total: u64,
}

/// Asks GPUs for their memory, all at the same time: for each, in order, its memory, or the error
/// of [`engine`].
pub fn memory_of(ordinals: &[u32]) -> Vec<Result<GpuMemory, GpuError>> {
    #[cfg(feature = "cuda")]
    return std::thread::scope(|scope| {
        // A thread each, because making a context takes tenths of a second.
        let ask = |ordinal: u32| {
            let gpu = driver::Gpu::open(Some(ordinal))?;
            let (free, name, total) = (gpu.free_memory()?, gpu.name.clone(), gpu.total_memory);
            Ok(GpuMemory { ordinal, name, free, total })
        };
        let asked: Vec<_> = ordinals.iter().map(|&one| scope.spawn(move || ask(one))).collect();
        let answers = asked.into_iter().map(|asked| asked.join().expect("it does not panic"));
        answers.collect()
    });
    #[cfg(not(feature = "cuda"))]
    {
        ordinals.iter().map(|_| Err(GpuError::NotBuilt)).collect()
    }
}

/// Bytes that an engine for n rows of this table takes on a GPU: the least with which it starts,
/// and those with which it has its full speed. Zero if the program was built without the engine.
pub fn needed_memory(table: &Table<'_>, rows: usize) -> (u64, u64) {
    #[cfg(feature = "cuda")]
    return search::memory(table, rows);
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (table, rows);
        (0, 0)
    }
}
