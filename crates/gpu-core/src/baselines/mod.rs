//! What benchmarks hold the search against: one plain read of its bytes, and the 2020 report's programs.

pub mod report;

use crate::driver::{Array, Doing, Gpu, Kernel, Shape, fatbins, load};

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

    let module = load(fatbins::READ_TABLE)?;
    let kernel = Kernel::find(&module, "read_table")?;
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)
        .doing("making a stream")?;
    let never = Array::<[u32; 4]>::zeroed(1)?;
    let shape = Shape { grid: (16 * gpu.multiprocessors, 1), block: 512, shared: 0 };
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
