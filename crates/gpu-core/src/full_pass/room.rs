//! Buffers on both sides that grow as they are needed.

use bytemuck::Pod;
use cust::stream::Stream;

use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};
use crate::driver::{Array, Pinned, start_clearing, start_download, start_upload};

/// Values that are copied between host and device.
#[derive(Debug)]
pub(super) struct Room<T> {
    device: Array<T>,
    host: Pinned<T>,
    len: usize,
}

#[allow(unsafe_code)]
impl<T: Pod> Room<T> {
    pub(super) fn new() -> Result<Self, GpuError> {
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
    /// No kernel that uses the values, and no copy of them, is under way; until the stream has been synchronised, nothing
    /// else changes them, and this stays alive.
    pub(super) unsafe fn upload(&mut self, values: &[T], stream: &Stream) -> Result<(), GpuError> {
        self.resize(values.len())?;
        self.host[..values.len()].copy_from_slice(values);
        // SAFETY: the caller's promise.
        unsafe { start_upload(&self.host, &self.device, values.len(), stream) }
    }

    /// Starts setting this many values to zero on the device.
    ///
    /// # Safety
    /// As for [`upload`](Self::upload).
    pub(super) unsafe fn clear(&mut self, len: usize, stream: &Stream) -> Result<(), GpuError> {
        self.resize(len)?;
        // SAFETY: the caller's promise.
        unsafe { start_clearing(&self.device, len, stream) }
    }

    /// Starts copying the values to the host.
    ///
    /// # Safety
    /// Until the stream has been synchronised, nothing but earlier work in it changes them, and this stays alive.
    pub(super) unsafe fn download(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: the caller's promise.
        unsafe { start_download(&self.device, &self.host, self.len, stream) }
    }

    /// The values on the host, after a download.
    pub(super) fn values(&self) -> &[T] {
        &self.host[..self.len]
    }

    pub(super) fn pointer(&self) -> DevicePointer<T> {
        self.device.pointer()
    }

    pub(super) fn pointer_mut(&self) -> DevicePointerMut<T> {
        self.device.pointer_mut()
    }
}
