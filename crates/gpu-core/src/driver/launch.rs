//! Kernels, their launches, and graphs of launches.

use std::ffi::c_void;

use bytemuck::Pod;
use cust::module::Module;
use cust::stream::Stream;
use cust_raw::{
    CUfunction, CUfunction_attribute_enum, CUgraph, CUgraphExec, CUstreamCaptureMode_enum,
};

use super::device::Doing;
use super::raw::{self, LaunchAttribute, LaunchConfig, check};
use crate::GpuError;

/// A kernel of a module that stays loaded as long as the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    function: CUfunction,
    name: &'static str,
}

/// Blocks, threads a block, and dynamic shared memory a block in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: (u32, u32),
    pub(crate) block: u32,
    pub(crate) shared: usize,
}

/// A kernel's argument: plain data, as the kernel declares it.
pub(crate) trait Argument {
    fn pointer(&self) -> *mut c_void;
}

impl<T: Pod> Argument for T {
    fn pointer(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }
}

/// Loads a module for this device.
pub(crate) fn load(fatbin: &[u8]) -> Result<Module, GpuError> {
    Module::from_fatbin(fatbin, &[]).doing("loading a kernel")
}

impl Kernel {
    pub(crate) fn find(module: &Module, name: &'static str) -> Result<Self, GpuError> {
        let function = module.get_function(name).doing(name)?.to_raw();
        Ok(Self { function, name })
    }

    /// Lets blocks ask for this much dynamic shared memory.
    #[allow(unsafe_code)]
    pub(crate) fn allow_shared(self, bytes: usize) -> Result<Self, GpuError> {
        let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function's module is loaded.
        let status =
            unsafe { cust_raw::cuFuncSetAttribute(self.function, attribute, bytes as i32) };
        check(status, self.name)?;
        Ok(self)
    }

    /// The compute capability, as 75 for 7.5, that the kernel was compiled for, or its intermediate code.
    #[allow(unsafe_code)]
    pub(crate) fn compiled_for(self) -> Result<u32, GpuError> {
        let mut version = 0;
        let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        // SAFETY: the function's module is loaded; `version` is a valid place for the answer.
        let status =
            unsafe { cust_raw::cuFuncGetAttribute(&raw mut version, attribute, self.function) };
        check(status, self.name)?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    /// Blocks of so many threads, with this much dynamic shared memory, that a multiprocessor runs at a
    /// time.
    #[allow(unsafe_code)]
    pub(crate) fn resident_blocks(self, threads: u32, shared: usize) -> Result<usize, GpuError> {
        let mut blocks = 0;
        // SAFETY: the function's module is loaded; `blocks` is a valid place for the answer.
        let status = unsafe {
            cust_raw::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function,
                threads as i32,
                shared,
            )
        };
        check(status, self.name)?;
        Ok(usize::try_from(blocks).unwrap_or(0).max(1))
    }

    /// Puts a launch into the stream. With `early` its blocks may come to the device while the kernel
    /// before it still runs; it must then call `wait_for_previous`.
    ///
    /// The callers are `engine/pass.rs`, `engine/tables.rs`, `report.rs` and `time_reading`: there the
    /// arguments must be the kernel's own and its arrays as long as it assumes.
    #[allow(unsafe_code)]
    pub(crate) fn launch(
        self,
        stream: &Stream,
        shape: Shape,
        early: bool,
        arguments: &[&dyn Argument],
    ) -> Result<(), GpuError> {
        if shape.grid.0 == 0 || shape.grid.1 == 0 {
            return Ok(());
        }
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|a| a.pointer()).collect();
        let mut attribute = LaunchAttribute {
            id: raw::PROGRAMMATIC_STREAM_SERIALIZATION,
            padding: 0,
            value: [0; 16],
        };
        attribute.value[0] = 1;
        let config = LaunchConfig {
            grid: [shape.grid.0, shape.grid.1, 1],
            block: [shape.block, 1, 1],
            shared_bytes: shape.shared as u32,
            stream: stream.as_inner(),
            attributes: &raw const attribute,
            attribute_count: u32::from(early),
        };
        // SAFETY: see above; the driver copies the arguments before it returns.
        let status = unsafe {
            if early {
                raw::cuLaunchKernelEx(
                    &raw const config,
                    self.function,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            } else {
                cust_raw::cuLaunchKernel(
                    self.function,
                    config.grid[0],
                    config.grid[1],
                    1,
                    shape.block,
                    1,
                    1,
                    config.shared_bytes,
                    config.stream,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
        };
        check(status, self.name)
    }
}

/// A recorded sequence of copies and launches, started as one.
#[derive(Debug)]
pub(crate) struct Graph {
    graph: CUgraph,
    executable: CUgraphExec,
}

impl Graph {
    /// Records what `work` puts into the stream; nothing of it runs yet.
    #[allow(unsafe_code)]
    pub(crate) fn record(
        stream: &Stream,
        work: impl FnOnce() -> Result<(), GpuError>,
    ) -> Result<Self, GpuError> {
        let mode = CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and nothing captures it yet: the engine has one thread.
        let status = unsafe { cust_raw::cuStreamBeginCapture_v2(stream.as_inner(), mode) };
        check(status, "recording a graph")?;
        let worked = work();
        let mut recorded = Self { graph: std::ptr::null_mut(), executable: std::ptr::null_mut() };
        // SAFETY: begun above; `graph` is a valid place for the answer.
        let status =
            unsafe { cust_raw::cuStreamEndCapture(stream.as_inner(), &raw mut recorded.graph) };
        worked?;
        check(status, "recording a graph")?;
        // SAFETY: the graph is complete; `executable` is a valid place for the answer.
        let status = unsafe {
            cust_raw::cuGraphInstantiateWithFlags(&raw mut recorded.executable, recorded.graph, 0)
        };
        check(status, "preparing a graph")?;
        // SAFETY: just made. Uploading now spares the first launch from it.
        let status = unsafe { cust_raw::cuGraphUpload(recorded.executable, stream.as_inner()) };
        check(status, "uploading a graph")?;
        Ok(recorded)
    }

    #[allow(unsafe_code)]
    pub(crate) fn launch(&self, stream: &Stream) -> Result<(), GpuError> {
        // SAFETY: the graph's arrays belong to the same engine and live as long.
        check(
            unsafe { cust_raw::cuGraphLaunch(self.executable, stream.as_inner()) },
            "starting a pass",
        )
    }
}

impl Drop for Graph {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: made by `record`, destroyed here only; null where it did not come so far, which the
        // driver refuses without harm.
        unsafe {
            let _ = cust_raw::cuGraphExecDestroy(self.executable);
            let _ = cust_raw::cuGraphDestroy(self.graph);
        }
    }
}
