//! Starts copies between host and device, which continue in their stream after the call.

#![allow(unsafe_code)]

use bytemuck::Pod;
use cust::stream::Stream;

use super::memory::{Array, Pinned};
use super::raw::check;
use crate::GpuError;

/// Starts setting all bits of the first `count` values to zero.
///
/// # Safety
/// - The array stays allocated until the stream has been synchronised.
/// - Nothing else accesses it until then.
/// - If the call is recorded, all of this holds during each launch of the graph.
///
/// # Errors
/// If the driver refuses.
pub(crate) unsafe fn start_clearing<T: Pod>(
    array: &Array<T>,
    count: usize,
    stream: &Stream,
) -> Result<(), GpuError> {
    assert!(count <= array.len, "{count} values of {}", array.len);
    let bytes = count * size_of::<T>();
    // SAFETY: the allocation has this many bytes; the caller promises the rest.
    let status = unsafe { cust_raw::cuMemsetD8Async(array.address, 0, bytes, stream.as_inner()) };
    check(status, "clearing device memory")
}

/// Starts copying these values to the device.
///
/// # Safety
/// - The values are in pinned memory, or in memory that was made known to the device.
/// - They and the array stay allocated until the stream has been synchronised, also after the
///   borrow has ended.
/// - Nothing writes the values until then.
/// - Nothing else accesses the array until then.
/// - If the call is recorded, all of this holds during each launch of the graph.
///
/// # Errors
/// If the driver refuses.
pub unsafe fn start_upload<T: Pod>(
    from: &[T],
    to: &Array<T>,
    stream: &Stream,
) -> Result<(), GpuError> {
    assert!(from.len() <= to.len, "{} values to {}", from.len(), to.len);
    let (address, bytes) = (from.as_ptr().cast(), size_of_val(from));
    // SAFETY: both sides have this many bytes; the caller promises the rest.
    let status =
        unsafe { cust_raw::cuMemcpyHtoDAsync_v2(to.address, address, bytes, stream.as_inner()) };
    check(status, "copying to the device")
}

/// Starts copying the first `count` values from the device.
///
/// # Safety
/// - Both sides stay allocated until the stream has been synchronised.
/// - Nothing else accesses the pinned values until then.
/// - Nothing else writes the array until then.
/// - If the call is recorded, all of this holds during each launch of the graph.
///
/// # Errors
/// If the driver refuses.
pub unsafe fn start_download<T: Pod>(
    from: &Array<T>,
    to: &Pinned<T>,
    count: usize,
    stream: &Stream,
) -> Result<(), GpuError> {
    assert!(count <= from.len && count <= to.len, "{count} values from {} to {}", from.len, to.len);
    let bytes = count * size_of::<T>();
    // SAFETY: both sides have this many bytes; the caller promises the rest. Any bits are a valid
    // `T`.
    let status = unsafe {
        cust_raw::cuMemcpyDtoHAsync_v2(to.address.cast(), from.address, bytes, stream.as_inner())
    };
    check(status, "copying from the device")
}
