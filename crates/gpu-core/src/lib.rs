//! The CUDA engine's place. This version has none: whoever asks for it is told so, and the server
//! falls back to the CPU unless it was told to insist.
#![forbid(unsafe_code)]

use std::sync::Arc;

use model_store::{Engine, ModelStore};

/// Why there is no CUDA engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// The program was built without one.
    #[error(
        "this kindred has no CUDA engine; use --device cpu, or --device auto to take what is there"
    )]
    NotBuilt,
}

/// Uploads the model's table to the GPU and returns the engine that searches it. To be called on the
/// thread that will own the engine.
///
/// # Errors
/// Always [`GpuError::NotBuilt`], so far.
pub fn engine(_model: &Arc<ModelStore>) -> Result<Box<dyn Engine>, GpuError> {
    Err(GpuError::NotBuilt)
}
