//! Uploads a table from the mapped file to the device, through two pinned buffers. All cores fill
//! one while the other is being copied.

use bytemuck::Pod;
use cust::event::{Event, EventFlags};
use cust::stream::Stream;
use rayon::prelude::*;

use crate::GpuError;
use crate::driver::{Array, Doing, Pinned, start_upload};

/// Bytes of each buffer, if nobody else uses the device.
const STAGING_BYTES: usize = 32 << 20;
/// Beside others: while the system pins memory, the driver starts no passes, and it pins 4 MiB in
/// 3 ms, 32 in 20.
const STAGING_BESIDE_OTHERS: usize = 4 << 20;
/// Parts of a buffer, each of which one thread fills at a time.
const PIECES: usize = 32;

/// Waits for the stream when dropped, even after an error or a panic.
struct Synchronised<'a>(&'a Stream);

impl Drop for Synchronised<'_> {
    fn drop(&mut self) {
        let _ = self.0.synchronize();
    }
}

/// Copies `values` to a new array on the device, with room for `room` values behind them, which
/// are zero. If the device `is_shared`, others' passes go on meanwhile. Calls `progress` with the number of bytes whose copies have started.
///
/// # Errors
/// If the device lacks the memory, or a copy fails.
#[allow(unsafe_code)]
pub fn upload<T: Pod>(
    values: &[T],
    room: usize,
    (stream, is_shared): (&Stream, bool),
    mut progress: impl FnMut(u64),
) -> Result<Array<T>, GpuError> {
    let array = Array::zeroed(values.len() + room)?;
    let bytes: &[u8] = bytemuck::cast_slice(values);
    let most = if is_shared { STAGING_BESIDE_OTHERS } else { STAGING_BYTES };
    let size = most.min(bytes.len());
    let mut staging = [Pinned::<u8>::zeroed(size)?, Pinned::<u8>::zeroed(size)?];
    // Dropped before the arrays above.
    let waits = Synchronised(stream);
    let mut sent: [Option<Event>; 2] = [None, None];
    let mut done = 0;
    for (i, chunk) in bytes.chunks(most).enumerate() {
        let (staging, sent) = (&mut staging[i % 2], &mut sent[i % 2]);
        if let Some(event) = sent.take() {
            event.synchronize().doing("waiting for an upload")?;
        }
        staging[..chunk.len()]
            .par_chunks_mut(most / PIECES)
            .zip(chunk.par_chunks(most / PIECES))
            .for_each(|(to, from)| to.copy_from_slice(from));
        // SAFETY: the chunk's place is in the array, of which any bits are values. The staging
        // buffer is written again only after its event; the stream is synchronised before either
        // side is dropped, by `waits` at the latest.
        unsafe {
            let place = Array::borrowed(array.address() + done as u64, chunk.len());
            start_upload(&staging[..chunk.len()], &place, stream)?;
        }
        let event = Event::new(EventFlags::DISABLE_TIMING).doing("making an event")?;
        event.record(stream).doing("recording an event")?;
        *sent = Some(event);
        done += chunk.len();
        progress(done as u64);
    }
    stream.synchronize().doing("uploading the table")?;
    drop(waits);
    Ok(array)
}
