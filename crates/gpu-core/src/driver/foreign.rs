//! Streams of another library in this process, such as PyTorch's current one: the order of its work
//! and ours.

#![allow(unsafe_code)]

use cust::stream::Stream;
use cust_raw::{CUevent, CUevent_flags_enum, CUstream};

use super::raw::check;
use crate::GpuError;

/// Lets one stream wait for another, without the host. Can be used again while a wait is under way.
#[derive(Debug)]
pub(crate) struct Handover(CUevent);

impl Handover {
    pub(crate) fn new() -> Result<Self, GpuError> {
        let flags = CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = std::ptr::null_mut();
        // SAFETY: `event` outlives the call.
        let status = unsafe { cust_raw::cuEventCreate(&raw mut event, flags) };
        check(status, "making an event")?;
        Ok(Self(event))
    }

    /// What is put into `own` from now on starts when all that is in the foreign stream now has
    /// ended. That stream is given by the driver's handle as a number; 0 is the default stream.
    ///
    /// # Safety
    /// - The foreign stream exists, in this device's primary context.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(crate) unsafe fn after(&self, foreign: u64, own: &Stream) -> Result<(), GpuError> {
        // SAFETY: the foreign stream exists, as the caller promises; the other one is borrowed.
        unsafe { self.order(foreign as CUstream, own.as_inner()) }
    }

    /// What is put into the foreign stream from now on starts when all that is in `own` now has
    /// ended.
    ///
    /// # Safety
    /// - The foreign stream exists, in this device's primary context.
    ///
    /// # Errors
    /// If the driver refuses.
    pub(crate) unsafe fn before(&self, foreign: u64, own: &Stream) -> Result<(), GpuError> {
        // SAFETY: the foreign stream exists, as the caller promises; the other one is borrowed.
        unsafe { self.order(own.as_inner(), foreign as CUstream) }
    }

    /// # Safety
    /// - The stream `earlier` exists.
    /// - The stream `later` exists.
    unsafe fn order(&self, earlier: CUstream, later: CUstream) -> Result<(), GpuError> {
        // SAFETY: the stream exists, as the caller promises, and the event until `drop`.
        let status = unsafe { cust_raw::cuEventRecord(self.0, earlier) };
        check(status, "recording an event")?;
        // SAFETY: the stream exists, as the caller promises, and the event until `drop`.
        let status = unsafe { cust_raw::cuStreamWaitEvent(later, self.0, 0) };
        check(status, "waiting for an event")
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // SAFETY: made in `new` and destroyed only here. Waits that are under way keep what they
        // need.
        let _ = unsafe { cust_raw::cuEventDestroy_v2(self.0) };
    }
}
