//! Memory that grows at its end while others read what is there.
//!
//! One owner appends; each reader holds the part that was filled when it asked. Neither waits for
//! the other, and nothing is copied or moved: vectors of the tail are read in place, by engines
//! that may keep their addresses, for as long as somebody holds them.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;

/// Room for a fixed number of values.
struct Cells<T>(Box<[MaybeUninit<UnsafeCell<T>>]>);

// SAFETY: a cell is written once, by the only `Growing` of these cells, before any `Filled` that
// reaches it exists (see there); afterwards it is only read. So threads share values as they would
// through `&T`, and values are moved to the thread that reads copies of them.
#[allow(unsafe_code)]
unsafe impl<T: Copy + Send + Sync> Sync for Cells<T> {}

/// Memory for a fixed number of values, filled from its start.
pub(crate) struct Growing<T> {
    cells: Arc<Cells<T>>,
    filled: usize,
}

/// The values that were there at some time. Clones share the memory.
pub struct Filled<T> {
    cells: Arc<Cells<T>>,
    length: usize,
}

impl<T: Copy + Send + Sync> Growing<T> {
    /// Room for this many values. A page is allocated when it is first written.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { cells: Arc::new(Cells(Box::new_uninit_slice(capacity))), filled: 0 }
    }

    /// Appends values.
    ///
    /// # Panics
    /// If there is no room for them.
    #[allow(unsafe_code)]
    pub(crate) fn extend(&mut self, values: &[T]) {
        let room = &self.cells.0[self.filled..][..values.len()];
        for (cell, value) in room.iter().zip(values) {
            // SAFETY: nobody reads this cell now: every `Filled` ends at or before `filled`, which
            // only this method raises. Nobody else writes it: `&mut self` is the only `Growing` of
            // these cells, which can't be cloned. The pointer is to a whole cell, in which a write
            // through a shared reference is allowed.
            unsafe { UnsafeCell::raw_get(cell.as_ptr()).write(*value) };
        }
        self.filled += values.len();
    }

    /// The values so far.
    pub(crate) fn filled(&self) -> Filled<T> {
        Filled { cells: Arc::clone(&self.cells), length: self.filled }
    }
}

impl<T: Copy + Send + Sync> Deref for Filled<T> {
    type Target = [T];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[T] {
        let cells = &self.cells.0[..self.length];
        // SAFETY: `Growing::filled` made this when the first `length` cells had been written, and
        // none of them is written again, so these are initialised values that do not change while
        // they are borrowed. `UnsafeCell` and `MaybeUninit` have the layout of what is in them. A
        // thread can have this only after the writes happened, since it was handed over by one that
        // saw them.
        unsafe { std::slice::from_raw_parts(cells.as_ptr().cast::<T>(), cells.len()) }
    }
}

impl<T> Clone for Filled<T> {
    fn clone(&self) -> Self {
        Self { cells: Arc::clone(&self.cells), length: self.length }
    }
}

impl<T> fmt::Debug for Filled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.length)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn readers_keep_what_was_there_when_they_asked() {
        let mut growing = Growing::with_capacity(5);
        let none = growing.filled();
        growing.extend(&[1.0_f32, 2.0]);
        let two = growing.filled();
        growing.extend(&[]);
        growing.extend(&[3.0, 4.0, 5.0]);
        let all = growing.filled();
        drop(growing);
        assert_eq!((&*none, &*two), (&[][..], &[1.0, 2.0][..]));
        assert_eq!(*all, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(std::ptr::eq(&raw const two[0], &raw const all[0]), "nothing moved");
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn more_than_there_is_room_for_is_refused() {
        let mut growing = Growing::with_capacity(2);
        growing.extend(&[1_u8]);
        growing.extend(&[2, 3]);
    }

    #[test]
    fn threads_read_while_another_appends() {
        let (send, receive) = channel::<Filled<u64>>();
        let reader = thread::spawn(move || {
            let mut last = 0;
            for filled in receive {
                assert!(filled.len() >= last && filled.iter().copied().eq(0..filled.len() as u64));
                last = filled.len();
            }
            last
        });
        let count = if cfg!(miri) { 50 } else { 5_000 };
        let mut growing = Growing::with_capacity(count);
        for value in 0..count as u64 {
            growing.extend(&[value]);
            send.send(growing.filled()).unwrap();
        }
        drop(send);
        assert_eq!(reader.join().unwrap(), count);
    }
}
