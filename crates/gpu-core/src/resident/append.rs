//! Rows that are put behind a table while passes search it.
//!
//! All work is in the stream of the passes: those that were started before see nothing of the rows,
//! and those after see all of them. A tile is rounded again when rows come into it; until it is full
//! none of its rows is ruled out by a bound. The tiles behind it are empty: a query ends before them,
//! at the last row that there is when it starts.

#![allow(unsafe_code)]

use contract::Table;
use cust::event::{Event, EventFlags};
use cust::stream::Stream;

use super::{Quantised, Resident, Rounding, TILE_ROWS};
use crate::GpuError;
use crate::driver::{Array, Doing, Pinned, start_upload};

/// Rows that are copied together.
const STAGED: usize = 1024;
/// Copies that may be under way.
const STAGES: usize = 4;
/// The tiles of which passes read more at once: each number of tiles has its own recorded passes.
const FEWEST_TILES: usize = 64;
/// Or this part of all tiles, if that is more.
const PART_OF_TILES: usize = 128;

/// Buffers and kernels for appending rows to tables.
#[derive(Debug)]
pub(crate) struct Appending {
    // In the order in which they must be dropped: what is on the device, then its modules.
    /// `[capacity]`.
    peaks: Array<f32>,
    /// `[tiles, TILE_ROWS, 2]`, of the tiles that one copy may be in.
    residuals: Array<f64>,
    stages: Vec<Stage>,
    next: usize,
    rounding: Rounding,
}

/// Memory from which rows are copied.
#[derive(Debug)]
struct Stage {
    components: Pinned<f32>,
    norms: Pinned<f64>,
    slot_rows: Pinned<u32>,
    /// After the copies in the stream.
    done: Event,
}

impl Appending {
    /// For these tables.
    ///
    /// # Errors
    /// If the device lacks the memory, or can't run the kernels.
    pub(crate) fn new(resident: &Resident) -> Result<Self, GpuError> {
        let stage = |_| {
            Ok::<_, GpuError>(Stage {
                components: Pinned::zeroed(STAGED * resident.dim)?,
                norms: Pinned::zeroed(STAGED)?,
                slot_rows: Pinned::zeroed(STAGED)?,
                done: Event::new(EventFlags::DISABLE_TIMING).doing("making an event")?,
            })
        };
        Ok(Self {
            rounding: Rounding::new(resident.lifted_dim())?,
            peaks: Array::zeroed(resident.capacity)?,
            residuals: Array::zeroed(2 * (STAGED + 2 * TILE_ROWS))?,
            stages: (0..STAGES).map(stage).collect::<Result<_, _>>()?,
            next: 0,
        })
    }
}

impl Resident {
    /// Starts putting rows behind those that are there, for searches alone. Returns how many of
    /// them there was room for.
    ///
    /// # Safety
    /// - All work that reads these tables is in this stream, which is synchronised before they or
    ///   `with` are dropped.
    /// - `with` was made for these tables, whose metric is the cosine.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) unsafe fn append(
        &self,
        table: &Table<'_>,
        with: &mut Appending,
        stream: &Stream,
    ) -> Result<usize, GpuError> {
        assert_eq!(table.dim(), self.dim, "rows of this table");
        let count = table.rows().min(self.capacity - self.searched());
        for from in (0..count).step_by(STAGED) {
            let rows = table.part(from..count.min(from + STAGED));
            // SAFETY: the caller's promise.
            unsafe { self.append_staged(&rows, with, stream)? };
        }
        Ok(count)
    }

    /// # Safety
    /// - As [`append`](Self::append).
    unsafe fn append_staged(
        &self,
        rows: &Table<'_>,
        with: &mut Appending,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (at, count, dim) = (self.searched(), rows.rows(), self.dim);
        assert!(count <= STAGED && at + count <= self.capacity);
        let Appending { rounding, peaks, residuals, stages, next } = with;
        let stage = &mut stages[*next % STAGES];
        *next += 1;
        stage.done.synchronize().doing("appending rows")?;
        stage.components[..count * dim].copy_from_slice(rows.components());
        stage.norms[..count].copy_from_slice(rows.norms());
        let (components, norms) = (&stage.components[..count * dim], &stage.norms[..count]);
        let components_at = self.components.address() + (at * dim * size_of::<f32>()) as u64;
        let norms_at = self.norms.address() + (at * size_of::<f64>()) as u64;
        // SAFETY: the places are within the arrays, as asserted; work before this in the stream
        // does not know these rows, and the stage is written again only after its event.
        unsafe {
            let to = (
                Array::borrowed(components_at, components.len()),
                Array::borrowed(norms_at, norms.len()),
            );
            start_upload(components, &to.0, stream)?;
            start_upload(norms, &to.1, stream)?;
        }
        if let Some(quantised) = &self.quantised {
            let (slots, slot_rows) = quantised.slots.borrow_mut().append(rows.norms());
            let tiles = slots.start / TILE_ROWS..slots.end.div_ceil(TILE_ROWS);
            assert!(tiles.end <= quantised.all_tiles(), "a slot for each row");
            stage.slot_rows[..slot_rows.len()].copy_from_slice(&slot_rows);
            let slots_at = quantised.slot_rows.address() + (slots.start * size_of::<u32>()) as u64;
            let peaks_at = peaks.address() + (at * size_of::<f32>()) as u64;
            let own = self.part(at..at + count);
            // SAFETY: the places are within the arrays; the rest as above. Of the tiles, the first
            // may have rows already, whose peaks are there.
            unsafe {
                if !slot_rows.is_empty() {
                    let to = Array::borrowed(slots_at, slot_rows.len());
                    start_upload(&stage.slot_rows[..slot_rows.len()], &to, stream)?;
                    let own_peaks = Array::borrowed(peaks_at, count);
                    rounding.peaks((own, self.lift_view()), &own_peaks, None, stream)?;
                    let of = (self.view(), self.lift_view());
                    rounding.round_tiles(of, peaks, quantised, tiles.clone(), residuals, stream)?;
                }
            }
            quantised.open(tiles.end);
        }
        stage.done.record(stream).doing("recording an event")?;
        self.searched.set(at + count);
        Ok(())
    }
}

impl Quantised {
    /// Has passes read at least this many tiles.
    fn open(&self, tiles: usize) {
        let (before, all) = (self.tiles(), self.all_tiles());
        if tiles > before {
            let more = FEWEST_TILES.max(before / PART_OF_TILES);
            self.tiles.set(tiles.max(before + more).min(all));
        }
    }
}
