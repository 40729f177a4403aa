//! Turns the driver's status codes into results, and declares what cust_raw does not.

use std::ffi::c_void;

use cust_raw::{CUfunction, CUresult, CUstream};

use crate::GpuError;

/// # Errors
/// For every status except success.
pub(crate) fn check(status: CUresult, doing: &'static str) -> Result<(), GpuError> {
    match status {
        CUresult::CUDA_SUCCESS => Ok(()),
        error => Err(GpuError::Driver { doing, source: format!("{error:?}").into() }),
    }
}

/// `CUlaunchAttribute` of cuda.h: an id and a union of 64 bytes.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: u32,
    pub(crate) padding: u32,
    pub(crate) value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
pub(crate) const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;

/// `CUlaunchConfig` of cuda.h.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: u32,
}

#[allow(unsafe_code)]
// SAFETY: the declaration is cuda.h's; driver/functions.txt has the name.
unsafe extern "C" {
    pub(crate) fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: CUfunction,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CUresult;
}
