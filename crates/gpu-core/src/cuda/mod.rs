//! The CUDA engine and what it stands on, from the driver up:
//!
//! - [`device`]: the GPU; `raw`: driver functions that cust does not wrap; `memory`: arrays on the
//!   device and pinned ones on the host; `launch`: kernels and graphs;
//! - `upload`: a table's way to the device;
//! - `engine`: the search;
//! - [`report`]: the programs of the 2020 report, for benchmarks.

mod constants;
pub mod device;
mod engine;
mod fatbins;
mod launch;
mod memory;
mod raw;
pub mod report;
mod upload;

pub use device::Gpu;
pub use engine::{Counters, CudaEngine, Paths};
pub use memory::Array;
pub use upload::upload;

/// Reads an array once and does nothing with it: for benchmarks, which hold scans against it. Returns
/// the median of the device's times.
///
/// # Errors
/// If the device fails.
pub fn time_reading<T: bytemuck::Pod>(
    array: &Array<T>,
    gpu: &Gpu,
    times: usize,
) -> Result<std::time::Duration, crate::GpuError> {
    use cust::event::{Event, EventFlags};
    use device::Doing;

    let module = launch::load(fatbins::READ_TABLE)?;
    let kernel = launch::Kernel::find(&module, "read_table")?;
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)
        .doing("making a stream")?;
    let never = Array::<[u32; 4]>::zeroed(1)?;
    let shape = launch::Shape { grid: (16 * gpu.multiprocessors, 1), block: 512, shared: 0 };
    let count = (array.bytes() / 16) as u64;
    let mut milliseconds = Vec::new();
    for _ in 0..times.max(1) {
        let event = || Event::new(EventFlags::DEFAULT).doing("making an event");
        let (start, end) = (event()?, event()?);
        start.record(&stream).doing("recording an event")?;
        kernel.launch(&stream, shape, false, &[&array.address(), &count, &never.address()])?;
        end.record(&stream).doing("recording an event")?;
        stream.synchronize().doing("reading the table")?;
        milliseconds.push(end.elapsed_time_f32(&start).doing("reading an event")?);
    }
    milliseconds.sort_by(f32::total_cmp);
    Ok(std::time::Duration::from_secs_f64(f64::from(milliseconds[milliseconds.len() / 2]) / 1e3))
}
