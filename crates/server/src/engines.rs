//! Which engine searches.

use std::sync::Arc;

use cpu_core::{FullScanEngine, StartError};
use gpu_core::GpuError;
use model_store::{Engine, ModelStore};
use tracing::info;

use crate::config::Device;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineStartError {
    /// The CPU engine does not start.
    #[error(transparent)]
    Cpu(#[from] StartError),
    /// The GPU engine does not start, and was insisted on.
    #[error("--device cuda: {0}; use --device cpu, or --device auto to take what is there")]
    Gpu(#[from] GpuError),
    /// The thread that owns the engine does not start.
    #[error("can't start the engine's thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The thread that owns the engine ended before it had one.
    #[error("the engine broke while it was being made; the log has more")]
    Broken,
}

/// Makes the engine for a model. To be called on the thread that will own it.
///
/// # Errors
/// If the device that was asked for is not there.
pub fn make(
    model: &Arc<ModelStore>,
    device: Device,
    threads: usize,
) -> Result<Box<dyn Engine>, EngineStartError> {
    match device {
        Device::Cuda => return Ok(gpu_core::engine(model)?),
        Device::Auto => match gpu_core::engine(model) {
            Ok(engine) => return Ok(engine),
            Err(e) => info!("searching on the CPU: {e}"),
        },
        Device::Cpu => {}
    }
    Ok(Box::new(FullScanEngine::new(model.clone(), threads)?))
}
