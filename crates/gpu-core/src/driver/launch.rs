//! Kernels and their launches. The declaration by which a kernel is found gives the type of its
//! parameters.

use std::ffi::c_void;
use std::marker::PhantomData;

use cust::module::Module;
use cust::stream::Stream;
use cust_raw::{CUfunction, CUfunction_attribute_enum};

use super::device::Doing;
use super::entries::Entry;
use super::raw::{self, LaunchAttribute, LaunchConfig, check};
use crate::GpuError;
use crate::abi::Params;

/// The kernel files that are loaded. Kernels found here are valid as long as this value exists.
#[derive(Debug, Default)]
pub struct Modules {
    files: Vec<(&'static str, Module)>,
    /// Every kernel that was found.
    kernels: Vec<CUfunction>,
}

impl Modules {
    /// Finds a kernel; first loads its file if necessary.
    ///
    /// # Errors
    /// If the device can't run the code.
    pub fn kernel<P: Params>(&mut self, entry: Entry<P>) -> Result<Kernel<P>, GpuError> {
        let Entry { file, code, name, threads, .. } = entry;
        if self.file(file).is_none() {
            let module = Module::from_fatbin(code(), &[]).doing("loading a kernel")?;
            self.files.push((file, module));
        }
        let module = self.file(file).expect("loaded above");
        let function = module.get_function(name).doing(name)?.to_raw();
        self.kernels.push(function);
        Ok(Kernel { function, name, threads, params: PhantomData })
    }

    /// The file of this name, if it is loaded.
    pub fn file(&self, stem: &str) -> Option<&Module> {
        self.files.iter().find(|(loaded, _)| *loaded == stem).map(|(_, module)| module)
    }

    /// The lowest compute capability, such as 75 for 7.5, that a kernel found here or its
    /// intermediate code was compiled for.
    #[allow(unsafe_code)]
    pub(crate) fn oldest_code(&self) -> Result<u32, GpuError> {
        let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PTX_VERSION;
        let mut oldest = u32::MAX;
        for &kernel in &self.kernels {
            let mut version = 0;
            // SAFETY: the function's module is loaded; `version` outlives the call.
            let status =
                unsafe { cust_raw::cuFuncGetAttribute(&raw mut version, attribute, kernel) };
            check(status, "asking what a kernel was compiled for")?;
            oldest = oldest.min(u32::try_from(version).unwrap_or(0));
        }
        Ok(oldest)
    }
}

/// A kernel that takes a `P`. Its module must stay loaded while the kernel is in use.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<P> {
    function: CUfunction,
    name: &'static str,
    threads: u32,
    params: PhantomData<fn(P)>,
}

/// How a kernel is launched. The number of threads per block belongs to the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    grid: (u32, u32),
    /// Dynamic shared memory of a block, bytes.
    shared: usize,
    /// Blocks may start while the previous kernel still runs. The kernel must then call
    /// `wait_for_previous`.
    early: bool,
}

impl Shape {
    /// A grid of this size, without dynamic shared memory, which starts when the previous kernel
    /// has ended.
    pub fn grid(x: usize, y: usize) -> Self {
        let [x, y] = [x, y].map(|blocks| u32::try_from(blocks).expect("a grid fits 32 bits"));
        Self { grid: (x, y), shared: 0, early: false }
    }

    /// The same with this much dynamic shared memory for a block, in bytes.
    pub fn shared(self, bytes: usize) -> Self {
        Self { shared: bytes, ..self }
    }

    pub(crate) fn early(self, early: bool) -> Self {
        Self { early, ..self }
    }
}

#[allow(unsafe_code)]
impl<P: Params> Kernel<P> {
    /// The same kernel with fewer threads per block, for kernels that work with any multiple of a
    /// warp.
    pub(crate) fn with_threads(self, threads: u32) -> Self {
        assert!(threads <= self.threads && threads.is_multiple_of(32), "{threads} threads");
        Self { threads, ..self }
    }

    /// Threads per block.
    pub fn threads(self) -> usize {
        self.threads as usize
    }

    /// Allows blocks this much dynamic shared memory, in bytes.
    pub(crate) fn allow_shared(self, bytes: usize) -> Result<Self, GpuError> {
        let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function's module is loaded.
        let status =
            unsafe { cust_raw::cuFuncSetAttribute(self.function, attribute, bytes as i32) };
        check(status, self.name)?;
        Ok(self)
    }

    /// The number of blocks, each with this much dynamic shared memory, that a multiprocessor runs
    /// at the same time.
    pub(crate) fn resident_blocks(self, shared: usize) -> Result<usize, GpuError> {
        let mut blocks = 0;
        // SAFETY: the function's module is loaded; `blocks` outlives the call.
        let status = unsafe {
            cust_raw::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function,
                self.threads as i32,
                shared,
            )
        };
        check(status, self.name)?;
        Ok(usize::try_from(blocks).unwrap_or(0).max(1))
    }

    /// Puts a launch into the stream. The parameters are copied before this returns, into the graph
    /// if one is being recorded.
    ///
    /// # Safety
    /// - The grid and the dynamic shared memory are what the kernel's comment asks for, given these
    ///   parameters.
    /// - Each pointer in the parameters points to memory of the length that the field's comment
    ///   states, aligned for its type, or is null where the comment allows that. Indices and counts
    ///   that the kernel reads are within those lengths.
    /// - That memory stays allocated, and nothing else writes what the kernel reads or accesses
    ///   what it writes, until the stream has been synchronised. If the launch is recorded, this
    ///   holds during each launch of the graph.
    /// - With `early`, the kernel calls `wait_for_previous`.
    /// - The [`Modules`] that found the kernel exist for as long.
    ///
    /// # Errors
    /// If the driver refuses, or work before this has failed.
    pub unsafe fn launch(self, stream: &Stream, shape: Shape, params: &P) -> Result<(), GpuError> {
        let Shape { grid, shared, early } = shape;
        if grid.0 == 0 || grid.1 == 0 {
            return Ok(());
        }
        let mut params: [*mut c_void; 1] = [(&raw const *params).cast_mut().cast()];
        let mut attribute = LaunchAttribute {
            id: raw::PROGRAMMATIC_STREAM_SERIALIZATION,
            padding: 0,
            value: [0; 16],
        };
        attribute.value[0] = 1;
        let config = LaunchConfig {
            grid: [grid.0, grid.1, 1],
            block: [self.threads, 1, 1],
            shared_bytes: shared as u32,
            stream: stream.as_inner(),
            attributes: &raw const attribute,
            attribute_count: u32::from(early),
        };
        // SAFETY: the kernel has one parameter, of the layout of `P` (see `Params`), which the
        // driver copies. The caller's promise covers the memory that they point to.
        let status = unsafe {
            raw::cuLaunchKernelEx(
                &raw const config,
                self.function,
                params.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        check(status, self.name)
    }
}
