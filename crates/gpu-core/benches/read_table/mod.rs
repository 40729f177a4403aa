//! Measures the time of one plain read of a table's bytes, with which the benchmark compares scans.

mod abi;

use std::time::Duration;

use cust::event::{Event, EventFlags};
use gpu_core::GpuError;
use gpu_core::driver::{Array, Doing, Gpu, Modules, Shape, new_stream};

use abi::{ReadTableParams, entries};

/// Reads an array once and does nothing with it. Returns the median of the device's times.
///
/// # Errors
/// If the device fails.
#[allow(unsafe_code)]
pub(crate) fn time_reading<T: bytemuck::Pod>(
    array: &Array<T>,
    gpu: &Gpu,
    times: usize,
) -> Result<Duration, GpuError> {
    let mut modules = Modules::default();
    let kernel = modules.kernel(entries::read_table::read_table)?;
    let stream = new_stream()?;
    let never = Array::<[u32; 4]>::zeroed(1)?;
    let shape = Shape::grid(16 * gpu.multiprocessors as usize, 1);
    let params = ReadTableParams {
        data: array.pointer().cast(),
        never: never.pointer_mut(),
        count: (array.bytes() / size_of::<[u32; 4]>()) as u64,
    };
    let mut milliseconds = Vec::new();
    for _ in 0..times.max(1) {
        let event = || Event::new(EventFlags::DEFAULT).doing("making an event");
        let (start, end) = (event()?, event()?);
        start.record(&stream).doing("recording an event")?;
        // SAFETY: the array has this many pieces of 16 bytes, and its alignment is larger; any grid
        // is valid. The stream is synchronised below, unless recording the event fails; then the
        // device has failed too.
        unsafe { kernel.launch(&stream, shape, &params)? };
        end.record(&stream).doing("recording an event")?;
        stream.synchronize().doing("reading the table")?;
        milliseconds.push(end.elapsed_time_f32(&start).doing("reading an event")?);
    }
    milliseconds.sort_by(f32::total_cmp);
    Ok(Duration::from_secs_f64(f64::from(milliseconds[milliseconds.len() / 2]) / 1e3))
}
