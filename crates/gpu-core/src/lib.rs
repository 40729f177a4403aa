//! Exact nearest-row search on an NVIDIA GPU, behind the contract's [`Engine`].
//!
//! Without the feature `cuda` there is only the answer that there is no such engine, so that whoever
//! joins the crates need not care how they were built.

#[cfg(feature = "cuda")]
pub mod baselines;
#[cfg(feature = "cuda")]
pub mod driver;
mod error;
#[cfg(feature = "cuda")]
pub mod resident;
#[cfg(feature = "cuda")]
pub mod search;

use std::sync::Arc;

use contract::Engine;
use model_store::ModelStore;

pub use error::GpuError;

/// Which GPU, and what to do while the table goes there.
#[derive(Default)]
pub struct Options<'a> {
    /// The GPU as the driver counts them, from 0; the first that can be used if `None`.
    pub ordinal: Option<u32>,
    /// Called now and then with the bytes that are uploaded and those that will be.
    pub progress: Option<&'a mut dyn FnMut(u64, u64)>,
}

/// Uploads the model's table to a GPU and returns the engine that searches it. To be called on the
/// thread that will own the engine.
///
/// # Errors
/// If the program was built without the engine, there is no driver or GPU, or the table does not fit.
pub fn engine(model: &Arc<ModelStore>, options: Options<'_>) -> Result<Box<dyn Engine>, GpuError> {
    #[cfg(feature = "cuda")]
    return Ok(Box::new(search::CudaEngine::new(model, options)?));
    #[cfg(not(feature = "cuda"))]
    {
        let _ = (model, options);
        Err(GpuError::NotBuilt)
    }
}
