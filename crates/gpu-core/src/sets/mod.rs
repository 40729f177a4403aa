//! Sets of rows on a device: bitmaps that workloads share.
//!
//! A set is uploaded when a pass needs it first, and kept by its identity. If there is no room for
//! another one, the set that was not used for longest makes room. All work with sets is in one
//! stream, so an upload to a place comes after the passes that read the set that was there.
//!
//! A set has two forms: by rows, for kernels that know a row; and by slots of the derived tables,
//! in the order in which lanes have the products of a tile.

#![allow(unsafe_code)]

pub(crate) mod abi;

use std::collections::HashMap;

use contract::{RowBitmap, RowSet};
use cust::event::{Event, EventFlags};
use cust::stream::Stream;

use crate::GpuError;
use crate::abi::DevicePointerMut;
use crate::driver::{Array, Doing, Kernel, Modules, Pinned, Shape, start_upload};
use crate::resident::{Quantised, Resident, TILE_ROWS};
use abi::{SET_WORDS, SetBySlotsParams, entries};

/// Sets that are allocated together.
const SLAB: usize = 64;
/// Different sets that any pass may have.
pub(crate) const FEWEST: usize = 256;
/// Sets that a device keeps: as many as a pass has queries, unless they would take more than this
/// part of the table.
const MOST: usize = 1024;
const PART_OF_TABLE: usize = 4;
/// Uploads that may be under way.
const UPLOADS: usize = 8;

/// The addresses of a set's forms; zero where all rows need none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DeviceSet {
    /// By rows: bit `r % 32` of word `r / 32` stands for row r.
    pub(crate) of_rows: u64,
    /// By slots, `[tiles, SET_WORDS]`.
    pub(crate) of_slots: u64,
}

/// The sets of one table that are on the device.
pub(crate) struct DeviceSets {
    // In the order in which they must be dropped: what is on the device, then its module.
    slabs: Vec<Array<u32>>,
    /// All rows, by slots. Made when it is needed first.
    all: Option<Array<u32>>,
    uploads: Vec<Upload>,
    next_upload: usize,
    /// By the identity of the bitmap.
    kept: HashMap<u64, Kept>,
    /// Places without a set.
    free: Vec<usize>,
    /// Counts passes.
    now: u64,
    most: usize,
    /// Words of a set's two forms.
    words_of_rows: usize,
    words_of_slots: usize,
    by_slots: Kernel<SetBySlotsParams>,
    _modules: Modules,
}

struct Kept {
    place: usize,
    /// The pass that used it last.
    used: u64,
}

/// Memory from which a set is copied.
struct Upload {
    words: Pinned<u32>,
    /// After the copy in the stream.
    done: Event,
}

/// Words of a set's two forms, for a table of these rows and tiles.
fn words(rows: usize, tiles: usize) -> [usize; 2] {
    // Whole words of the host's bitmap, and rows of 16 bytes.
    [2 * rows.div_ceil(64).next_multiple_of(2), tiles * SET_WORDS]
}

/// Bytes of device memory for the sets of a table of so many rows, before it keeps many.
pub(crate) fn bytes(rows: usize) -> usize {
    let words: usize = words(rows, rows.div_ceil(TILE_ROWS)).iter().sum();
    (SLAB + 1) * size_of::<u32>() * words
}

impl DeviceSets {
    /// Without any set.
    ///
    /// # Errors
    /// If the device can't run the kernel.
    pub(crate) fn new(resident: &Resident) -> Result<Self, GpuError> {
        let tiles = resident.quantised.as_ref().map_or(0, Quantised::all_tiles);
        let [words_of_rows, words_of_slots] = words(resident.capacity, tiles);
        let words_of_table = resident.rows * resident.dim;
        let fit = words_of_table / PART_OF_TABLE / (words_of_rows + words_of_slots).max(1);
        let mut modules = Modules::default();
        Ok(Self {
            slabs: Vec::new(),
            all: None,
            uploads: Vec::new(),
            next_upload: 0,
            kept: HashMap::new(),
            free: Vec::new(),
            now: 0,
            most: fit.clamp(FEWEST, MOST) / SLAB * SLAB,
            words_of_rows,
            words_of_slots,
            by_slots: modules.kernel(entries::row_sets::set_by_slots)?,
            _modules: modules,
        })
    }

    /// The number of different sets that a pass may have.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// A pass begins: its sets stay on the device until the next one begins.
    pub(crate) fn begin_pass(&mut self) {
        self.now += 1;
    }

    /// The set of all rows, for queries without a set beside others.
    ///
    /// # Errors
    /// If the device lacks the memory, or fails.
    pub(crate) fn all_rows(&mut self) -> Result<DeviceSet, GpuError> {
        if self.all.is_none() {
            self.all = Some(Array::from_slice(&vec![u32::MAX; self.words_of_slots])?);
        }
        let of_slots = self.all.as_ref().map_or(0, Array::address);
        Ok(DeviceSet { of_rows: 0, of_slots })
    }

    /// The set of a query's rows, for the pass that has begun: that of its bitmap, or `without` one.
    ///
    /// # Safety
    /// - As [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) unsafe fn of_query(
        &mut self,
        rows: &RowSet,
        without: DeviceSet,
        resident: &Resident,
        stream: &Stream,
    ) -> Result<DeviceSet, GpuError> {
        match rows.bitmap() {
            // SAFETY: the caller's promise.
            Some(bitmap) => unsafe { self.get(bitmap, resident, stream) },
            None => Ok(without),
        }
    }

    /// The set of a bitmap, for the pass that has begun. Uploads it if it is not there.
    ///
    /// # Safety
    /// - The resident tables are those that this was made for, and stay alive until the stream has
    ///   been synchronised.
    /// - Only work in this stream, at any time, uses what this returns.
    ///
    /// # Errors
    /// If the device lacks the memory, or fails.
    unsafe fn get(
        &mut self,
        bitmap: &RowBitmap,
        resident: &Resident,
        stream: &Stream,
    ) -> Result<DeviceSet, GpuError> {
        // One of fewer rows has none of those that were appended since.
        let rows = resident.rows..=resident.searched();
        assert!(rows.contains(&bitmap.rows()), "a set of this table");
        let now = self.now;
        if let Some(kept) = self.kept.get_mut(&bitmap.id()) {
            kept.used = now;
            let place = kept.place;
            return Ok(self.at(place));
        }
        let place = self.free_place()?;
        let set = self.at(place);
        let index = self.next_upload % UPLOADS;
        self.next_upload += 1;
        if self.uploads.len() <= index {
            let words = Pinned::zeroed(self.words_of_rows)?;
            let done = Event::new(EventFlags::DISABLE_TIMING).doing("making an event")?;
            self.uploads.push(Upload { words, done });
        }
        let upload = &mut self.uploads[index];
        upload.done.synchronize().doing("copying a set of rows")?;
        let from: &[u32] = bytemuck::cast_slice(bitmap.words());
        let (own, rest) = upload.words.split_at_mut(from.len());
        own.copy_from_slice(from);
        rest.fill(0);
        // SAFETY: the place is within its slab, which is never freed before this; nothing else
        // uses it, as no pass that has begun does; the caller promises that earlier passes are in
        // the stream. The pinned words are written again only after the event.
        unsafe {
            let to = Array::borrowed(set.of_rows, self.words_of_rows);
            start_upload(&upload.words, &to, stream)?;
            upload.done.record(stream).doing("recording an event")?;
            if let Some(quantised) = &resident.quantised {
                let params = SetBySlotsParams {
                    slot_rows: quantised.slot_rows.pointer(),
                    of_rows: set.of_rows,
                    of_slots: DevicePointerMut::new(set.of_slots),
                    tiles: quantised.all_tiles() as u32,
                    unused: 0,
                };
                let words_of_block = self.by_slots.threads() / 32;
                let blocks = self.words_of_slots.div_ceil(words_of_block);
                self.by_slots.launch(stream, Shape::grid(blocks, 1), &params)?;
            }
        }
        self.kept.insert(bitmap.id(), Kept { place, used: now });
        Ok(set)
    }

    /// The addresses of a place.
    fn at(&self, place: usize) -> DeviceSet {
        let each = self.words_of_rows + self.words_of_slots;
        let (slab, index) = (&self.slabs[place / SLAB], place % SLAB);
        let of_rows = slab.address() + (index * each * size_of::<u32>()) as u64;
        let of_slots = of_rows + (self.words_of_rows * size_of::<u32>()) as u64;
        DeviceSet { of_rows, of_slots }
    }

    /// A place that no set of the pass has.
    fn free_place(&mut self) -> Result<usize, GpuError> {
        let places = self.slabs.len() * SLAB;
        let mut refused = None;
        if self.free.is_empty() && places < self.most {
            match Array::uninitialised(SLAB * (self.words_of_rows + self.words_of_slots)) {
                Ok(slab) => {
                    self.slabs.push(slab);
                    self.free.extend((places..places + SLAB).rev());
                }
                Err(error) => refused = Some(error),
            }
        }
        if let Some(place) = self.free.pop() {
            return Ok(place);
        }
        let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
        match oldest.map(|(&id, kept)| (id, kept.used)) {
            Some((id, used)) if used < self.now => {
                Ok(self.kept.remove(&id).expect("it is kept").place)
            }
            _ => Err(refused.expect("a pass has no more sets than there are places")),
        }
    }
}
