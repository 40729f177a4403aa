//! Buffers on both sides that grow as they are needed.

use bytemuck::Pod;
use cust::stream::Stream;
use rayon::prelude::*;

use super::copies::{start_clearing, start_download, start_upload};
use super::memory::{Array, Pinned};
use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};

/// More bytes are copied by several threads.
const MANY_BYTES: usize = 1 << 18;

/// Values that are copied between host and device.
#[derive(Debug)]
pub(crate) struct Room<T> {
    device: Array<T>,
    host: Pinned<T>,
    len: usize,
}

#[allow(unsafe_code)]
impl<T: Pod + Send + Sync> Room<T> {
    pub(crate) fn new() -> Result<Self, GpuError> {
        Ok(Self { device: Array::zeroed(0)?, host: Pinned::zeroed(0)?, len: 0 })
    }

    /// Sets the number of values. No copy may be under way.
    fn resize(&mut self, len: usize) -> Result<(), GpuError> {
        if len > self.device.len() {
            let room = len.next_power_of_two();
            (self.device, self.host) = (Array::zeroed(room)?, Pinned::zeroed(room)?);
        }
        self.len = len;
        Ok(())
    }

    /// Starts copying these values to the device.
    ///
    /// # Safety
    /// - No kernel that uses the values, and no copy of them, is under way.
    /// - Nothing else changes them until the stream has been synchronised.
    /// - This stays alive until then.
    pub(crate) unsafe fn upload(&mut self, values: &[T], stream: &Stream) -> Result<(), GpuError> {
        self.resize(values.len())?;
        let host = &mut self.host[..values.len()];
        if size_of_val(values) > MANY_BYTES {
            let piece = MANY_BYTES / size_of::<T>();
            let pieces = host.par_chunks_mut(piece).zip(values.par_chunks(piece));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
        } else {
            host.copy_from_slice(values);
        }
        // SAFETY: nothing else uses either side until the stream has been synchronised, and both
        // stay allocated, because this stays alive: the caller's promise.
        unsafe { start_upload(&self.host[..values.len()], &self.device, stream) }
    }

    /// Starts setting this many values to zero on the device.
    ///
    /// # Safety
    /// - No kernel that uses the values, and no copy of them, is under way.
    /// - Nothing else changes them until the stream has been synchronised.
    /// - This stays alive until then.
    pub(crate) unsafe fn clear(&mut self, len: usize, stream: &Stream) -> Result<(), GpuError> {
        self.resize(len)?;
        // SAFETY: nothing else uses the values until the stream has been synchronised, and they
        // stay allocated, because this stays alive: the caller's promise.
        unsafe { start_clearing(&self.device, len, stream) }
    }

    /// Starts copying the values to the host.
    ///
    /// # Safety
    /// - Nothing but earlier work in the stream changes the values until it has been synchronised.
    /// - This stays alive until then.
    pub(crate) unsafe fn download(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: nothing else changes the values until the stream has been synchronised, and both
        // sides stay allocated, because this stays alive: the caller's promise.
        unsafe { start_download(&self.device, &self.host, self.len, stream) }
    }

    /// The values on the host, after a download.
    pub(crate) fn values(&self) -> &[T] {
        &self.host[..self.len]
    }

    pub(crate) fn pointer(&self) -> DevicePointer<T> {
        self.device.pointer()
    }

    pub(crate) fn pointer_mut(&self) -> DevicePointerMut<T> {
        self.device.pointer_mut()
    }
}
