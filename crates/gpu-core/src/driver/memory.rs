//! Arrays in device memory, and pinned arrays on the host.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use bytemuck::Pod;
use contract::Staging;
use cust::stream::Stream;
use cust_raw::CUresult;

use super::device::{Doing, new_background_stream};
use super::raw::check;
use crate::GpuError;
use crate::abi::{DevicePointer, DevicePointerMut};

/// `len` values in device memory. Freed when dropped, unless they are borrowed; the device's
/// context must still exist then.
#[derive(Debug)]
pub struct Array<T> {
    pub(super) address: u64,
    pub(super) len: usize,
    is_borrowed: bool,
    values: PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Room for `len` values, all bits zero.
    ///
    /// # Errors
    /// If the device lacks the memory.
    #[allow(unsafe_code)]
    pub fn zeroed(len: usize) -> Result<Self, GpuError> {
        let array = Self::uninitialised(len)?;
        in_own_stream("clearing device memory", |stream| {
            // SAFETY: the allocation has this many bytes; it is never empty.
            unsafe {
                cust_raw::cuMemsetD8Async(array.address, 0, array.bytes().max(1), stream.as_inner())
            }
        })?;
        Ok(array)
    }

    /// Room for `len` values with arbitrary bits, for arrays that are written before they are read.
    ///
    /// # Errors
    /// If the device lacks the memory.
    #[allow(unsafe_code)]
    pub fn uninitialised(len: usize) -> Result<Self, GpuError> {
        let mut address = 0;
        // The driver refuses empty allocations.
        let bytes = (len * size_of::<T>()).max(1);
        // SAFETY: `address` outlives the call.
        let status = unsafe { cust_raw::cuMemAlloc_v2(&raw mut address, bytes) };
        check(status, "allocating device memory")?;
        Ok(Self { address, len, is_borrowed: false, values: PhantomData })
    }

    /// Values at an address in the memory of another library, which frees them.
    ///
    /// # Safety
    /// - There are as many values at the address, in memory of this device, aligned for their type.
    /// - They stay there for as long as work uses the array.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn borrowed(address: u64, len: usize) -> Self {
        Self { address, len, is_borrowed: true, values: PhantomData }
    }

    /// These values, copied to the device.
    ///
    /// # Errors
    /// If the device lacks the memory, or the copy fails.
    pub fn from_slice(values: &[T]) -> Result<Self, GpuError> {
        let mut array = Self::zeroed(values.len())?;
        array.write(values)?;
        Ok(array)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size in device memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Where the values are on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The values, for a kernel that reads them.
    #[doc(hidden)]
    pub fn pointer(&self) -> DevicePointer<T> {
        DevicePointer::new(self.address)
    }

    /// The values, for a kernel that writes them.
    #[doc(hidden)]
    pub fn pointer_mut(&self) -> DevicePointerMut<T> {
        DevicePointerMut::new(self.address)
    }

    /// Overwrites the first values, and waits until that is done.
    ///
    /// # Errors
    /// If the copy fails.
    #[allow(unsafe_code)]
    pub fn write(&mut self, values: &[T]) -> Result<(), GpuError> {
        assert!(
            values.len() <= self.len,
            "{} values for a device array of {}",
            values.len(),
            self.len
        );
        if values.is_empty() {
            return Ok(());
        }
        let (from, bytes) = (values.as_ptr().cast(), size_of_val(values));
        in_own_stream("copying to the device", |stream| {
            // SAFETY: both sides have this many bytes, and are there until the stream has been
            // synchronised.
            unsafe { cust_raw::cuMemcpyHtoDAsync_v2(self.address, from, bytes, stream.as_inner()) }
        })
    }

    /// Reads all values. The caller must have synchronised the streams that write here.
    ///
    /// # Errors
    /// If the copy, or an earlier kernel, fails.
    #[allow(unsafe_code)]
    pub fn read(&self) -> Result<Vec<T>, GpuError> {
        let mut values = vec![T::zeroed(); self.len];
        if self.len > 0 {
            let (to, bytes) = (values.as_mut_ptr().cast(), self.bytes());
            in_own_stream("copying from the device", |stream| {
                // SAFETY: both sides have this many bytes, and are there until the stream has been
                // synchronised; any bits are a `T`, which is plain old data.
                unsafe {
                    cust_raw::cuMemcpyDtoHAsync_v2(to, self.address, bytes, stream.as_inner())
                }
            })?;
        }
        Ok(values)
    }
}

impl<T> Drop for Array<T> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.is_borrowed {
            return;
        }
        // SAFETY: the address comes from cuMemAlloc and is freed here only. After a fatal device
        // error the driver refuses; then there is nothing left to free.
        let _ = unsafe { cust_raw::cuMemFree_v2(self.address) };
    }
}

/// `len` values in page-locked host memory, which the device copies from and to by itself.
#[derive(Debug)]
pub struct Pinned<T> {
    pub(super) address: *mut T,
    pub(super) len: usize,
}

impl<T: Pod> Pinned<T> {
    /// Room for `len` values, all bits zero.
    ///
    /// # Errors
    /// If the system does not lock so much memory.
    #[allow(unsafe_code)]
    pub fn zeroed(len: usize) -> Result<Self, GpuError> {
        let mut address: *mut c_void = std::ptr::null_mut();
        let bytes = (len * size_of::<T>()).max(1);
        // SAFETY: `address` outlives the call.
        let status = unsafe { cust_raw::cuMemHostAlloc(&raw mut address, bytes, 0) };
        check(status, "allocating pinned memory")?;
        // SAFETY: the allocation has this many bytes, aligned to a page.
        unsafe { std::ptr::write_bytes(address.cast::<u8>(), 0, bytes) };
        Ok(Self { address: address.cast(), len })
    }

    /// The values, for a kernel that reads them in place, over the bus.
    pub(crate) fn pointer(&self) -> Result<DevicePointer<T>, GpuError> {
        self.device_address().map(DevicePointer::new)
    }

    /// The values, for a kernel that writes them in place, over the bus.
    pub(crate) fn pointer_mut(&self) -> Result<DevicePointerMut<T>, GpuError> {
        self.device_address().map(DevicePointerMut::new)
    }

    #[allow(unsafe_code)]
    fn device_address(&self) -> Result<u64, GpuError> {
        let mut address = 0;
        // SAFETY: the memory comes from cuMemHostAlloc; `address` outlives the call.
        let status = unsafe {
            cust_raw::cuMemHostGetDevicePointer_v2(&raw mut address, self.address.cast(), 0)
        };
        check(status, "mapping pinned memory")?;
        Ok(address)
    }
}

impl Pinned<u32> {
    /// The first value, which the device may write at any time.
    #[allow(unsafe_code)]
    pub(crate) fn watch(&self) -> u32 {
        assert!(self.len > 0);
        // SAFETY: the first value is allocated, aligned to a page, and stays so while `self` is
        // borrowed.
        unsafe { self.address.read_volatile() }
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];
    #[allow(unsafe_code)]
    fn deref(&self) -> &[T] {
        // SAFETY: allocated and initialised with `len` values. A caller that lets the device write
        // here has promised to synchronise before it reads (`start_download`, `Kernel::launch`).
        unsafe { std::slice::from_raw_parts(self.address, self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: allocated and initialised with `len` values, to which nobody else has a
        // reference, because `self` is borrowed mutably. A caller that lets the device write here
        // has promised to synchronise before it reads.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the address comes from cuMemHostAlloc and is freed here only.
        let _ = unsafe { cust_raw::cuMemFreeHost(self.address.cast()) };
    }
}

/// Blocks of memory for callers' vectors that were made known to the device: it copies from them by
/// itself.
#[derive(Debug)]
pub(crate) struct Registered {
    /// Addresses.
    blocks: Vec<Range<usize>>,
    /// Keeps the memory.
    _of: Arc<Staging>,
}

impl Registered {
    /// Makes the blocks known to the device. Those that it refuses are left out: another device may
    /// have them.
    #[allow(unsafe_code)]
    pub(crate) fn new(staging: &Arc<Staging>) -> Self {
        let mut blocks = Vec::new();
        for (address, bytes) in staging.blocks() {
            let memory = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: `staging` keeps these pages allocated. The device does nothing with them
            // until a copy is started.
            let status = unsafe { cust_raw::cuMemHostRegister_v2(memory, bytes, 0) };
            if check(status, "page-locking memory").is_ok() {
                blocks.push(address..address + bytes);
            }
        }
        Self { blocks, _of: staging.clone() }
    }

    /// Whether `count` values, of which these are the first, are all in one block.
    pub(crate) fn holds<T>(&self, first: &[T], count: usize) -> bool {
        let start = first.as_ptr().addr();
        let Some(end) =
            count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(start))
        else {
            return false;
        };
        self.blocks.iter().any(|block| block.start <= start && end <= block.end)
    }
}

impl Drop for Registered {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        for block in &self.blocks {
            let memory = std::ptr::with_exposed_provenance_mut(block.start);
            // SAFETY: the block was registered once, and the engine has waited for all copies.
            let _ = unsafe { cust_raw::cuMemHostUnregister(memory) };
        }
    }
}

/// Starts something in a stream of its own, and waits until it has ended. Not in the default
/// stream, which must not be used while another engine on the same device records a graph.
fn in_own_stream(
    doing: &'static str,
    start: impl FnOnce(&Stream) -> CUresult,
) -> Result<(), GpuError> {
    let stream = new_background_stream()?;
    let started = check(start(&stream), doing);
    started.and(stream.synchronize().doing(doing))
}
