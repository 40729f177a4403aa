//! The GPU: which one, and what it can do.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cust::CudaApiVersion;
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::stream::{Stream, StreamFlags};

use crate::GpuError;

/// A GPU with its context, current on the thread that opened it.
#[derive(Debug)]
pub struct Gpu {
    /// Its index in the driver's order, from 0.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// Compute capability, such as 75 for 7.5.
    pub capability: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Maximum shared memory of a block, in bytes.
    pub shared_memory: u32,
    /// Its second-level cache, in bytes.
    pub cache: u32,
    /// Total memory, in bytes.
    pub total_memory: u64,
    /// Whether this process had opened it before: others' passes may run beside the work of this one.
    pub is_shared: bool,
    // Dropped last: everything else on the device belongs to it.
    context: Context,
    _open: Open,
}

/// Counts how often this process has a GPU open.
#[derive(Debug)]
struct Open {
    ordinal: u32,
}

impl Open {
    fn counts() -> MutexGuard<'static, HashMap<u32, usize>> {
        static COUNTS: LazyLock<Mutex<HashMap<u32, usize>>> = LazyLock::new(Mutex::default);
        COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it once more. Returns how often it was open before, too.
    fn new(ordinal: u32) -> (Self, usize) {
        let mut counts = Self::counts();
        let count = counts.entry(ordinal).or_default();
        *count += 1;
        (Self { ordinal }, *count - 1)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(count) = Self::counts().get_mut(&self.ordinal) {
            *count -= 1;
        }
    }
}

/// Adds what was being done to an error of the driver.
pub trait Doing<T> {
    /// The value, or an error that says what was being done.
    ///
    /// # Errors
    /// The driver's.
    fn doing(self, doing: &'static str) -> Result<T, GpuError>;
}

impl<T> Doing<T> for Result<T, CudaError> {
    fn doing(self, doing: &'static str) -> Result<T, GpuError> {
        self.map_err(|e| GpuError::Driver { doing, source: e.into() })
    }
}

/// A stream for passes. It does not wait for the default stream, and its kernels go before those of
/// [background streams](new_background_stream).
///
/// # Errors
/// If the driver refuses.
pub fn new_stream() -> Result<Stream, GpuError> {
    let priorities = CurrentContext::get_stream_priority_range().doing("asking for priorities")?;
    let first = Some(priorities.greatest);
    Stream::new(StreamFlags::NON_BLOCKING, first).doing("making a stream")
}

/// A stream for background work, such as the upload of a table beside the passes of another engine
/// on the same device. A running block is not interrupted, so its kernels have short blocks.
///
/// # Errors
/// If the driver refuses.
pub fn new_background_stream() -> Result<Stream, GpuError> {
    Stream::new(StreamFlags::NON_BLOCKING, None).doing("making a stream")
}

/// The number of GPUs that the driver knows.
///
/// # Errors
/// If there is no driver or no GPU, or the driver is too old.
pub fn count() -> Result<u32, GpuError> {
    let none = |e: CudaError| GpuError::NoDevice { source: e.into() };
    cust::init(cust::CudaFlags::empty()).map_err(none)?;
    let version = CudaApiVersion::get().doing("asking the driver's version")?;
    let needed = env!("KINDRED_CUDA_MAJOR").parse().expect("the build script sets a number");
    if version.major() < needed {
        let (major, minor) = (version.major(), version.minor());
        return Err(GpuError::DriverTooOld { major, minor, needed });
    }
    match Device::num_devices().map_err(none)? {
        0 => Err(GpuError::NoDevice { source: "the driver knows none".into() }),
        found => Ok(found),
    }
}

impl Gpu {
    /// Opens this GPU; the first if `None`.
    ///
    /// # Errors
    /// If there is no driver or no such GPU, or if either is too old.
    pub fn open(ordinal: Option<u32>) -> Result<Self, GpuError> {
        let found = count()?;
        let asked = ordinal.unwrap_or(0);
        if asked >= found {
            return Err(GpuError::NoSuchDevice { asked, found });
        }
        let device = Device::get_device(asked).doing("opening the GPU")?;
        let name = device.name().doing("asking the GPU's name")?;
        let ask = |attribute| -> Result<u32, GpuError> {
            let value = device.get_attribute(attribute).doing("asking what the GPU can do")?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let major = ask(DeviceAttribute::ComputeCapabilityMajor)?;
        let minor = ask(DeviceAttribute::ComputeCapabilityMinor)?;
        let capability = 10 * major + minor;
        if capability < 75 {
            return Err(GpuError::TooOld { name, major, minor });
        }
        let multiprocessors = ask(DeviceAttribute::MultiprocessorCount)?;
        let cache = ask(DeviceAttribute::L2CacheSize)?;
        let shared_memory = shared_memory(device)?;
        let total_memory = device.total_memory().doing("asking the GPU's memory")? as u64;
        let context = Context::new(device).doing("making a context on the GPU")?;
        let (open, before) = Open::new(asked);
        Ok(Self {
            ordinal: asked,
            name,
            capability,
            multiprocessors,
            shared_memory,
            cache,
            total_memory,
            is_shared: before > 0,
            context,
            _open: open,
        })
    }

    /// Free memory, in bytes.
    ///
    /// # Errors
    /// If the driver does not report it.
    pub fn free_memory(&self) -> Result<u64, GpuError> {
        Ok(cust::memory::mem_get_info().doing("asking the GPU's free memory")?.0 as u64)
    }

    /// Makes this GPU current on the calling thread.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn make_current(&self) -> Result<(), GpuError> {
        CurrentContext::set_current(&self.context).doing("making the GPU current")
    }
}

/// The maximum shared memory of a block, in bytes. cust has no name for the attribute with this
/// opt-in limit.
#[allow(unsafe_code)]
fn shared_memory(device: Device) -> Result<u32, GpuError> {
    use cust_raw::CUdevice_attribute_enum as Attribute;
    let mut bytes = 0;
    // SAFETY: `bytes` outlives the call, and the device comes from the driver.
    let status = unsafe {
        cust_raw::cuDeviceGetAttribute(
            &raw mut bytes,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            device.as_raw(),
        )
    };
    super::raw::check(status, "asking what the GPU can do")?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}
