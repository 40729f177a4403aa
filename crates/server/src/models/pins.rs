//! Positions that somebody reads page by page: they stay readable for a while.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use kindred::rows::AtPosition;

/// Maximum number of positions of a table that are kept.
const MAX_PINS: usize = 64;
/// A position is kept this long after its last page.
const KEPT: Duration = Duration::from_secs(300);

/// The last positions of a table of which a page was read. They share their rows; what each has for
/// itself is at most a bit for each row.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<VecDeque<(Arc<AtPosition>, Instant)>>);

impl Pins {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<AtPosition>, Instant)>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Keeps a position from now on.
    pub(crate) fn keep(&self, at: &Arc<AtPosition>) {
        self.keep_at(at, Instant::now());
    }

    fn keep_at(&self, at: &Arc<AtPosition>, now: Instant) {
        let mut pins = self.lock();
        pins.retain(|(kept, last)| kept.position() != at.position() && now < *last + KEPT);
        pins.push_back((at.clone(), now));
        if pins.len() > MAX_PINS {
            pins.pop_front();
        }
    }

    /// A position that is kept.
    pub(crate) fn find(&self, position: u64) -> Option<Arc<AtPosition>> {
        let pins = self.lock();
        let found = pins.iter().find(|(kept, _)| kept.position() == position);
        found.map(|(kept, _)| kept.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use kindred::live::Live;
    use kindred::live::changes::{ChangeOptions, Durability};
    use kindred::prepare::{Input, PrepareOptions, prepare_folder};

    use super::*;

    #[test]
    fn the_last_positions_are_kept_for_a_while_and_their_number_is_bounded() {
        let scratch = tempfile::tempdir().unwrap();
        let (input, folder) =
            (Input::Bytes { name: "m", bytes: b"a 1 0\n" }, scratch.path().join("m"));
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(input, &folder, &PrepareOptions::default(), go_on).unwrap();
        let live = Live::open(&folder, ChangeOptions::default()).unwrap();
        let (pins, begun) = (Pins::default(), Instant::now());
        for _ in 0..=MAX_PINS {
            pins.keep_at(&live.now(), begun);
            let mut batch = live.batch();
            batch.delete("b");
            live.commit(batch.finish().unwrap().unwrap(), Durability::None, None).unwrap();
        }
        assert!(pins.find(0).is_none(), "the oldest");
        assert_eq!(pins.find(1).unwrap().position(), 1);
        // Whoever reads on keeps it longer.
        let first = pins.find(1).unwrap();
        pins.keep_at(&first, begun + KEPT / 2);
        pins.keep_at(&live.now(), begun + KEPT);
        assert!(pins.find(1).is_some() && pins.find(2).is_none());
        assert_eq!(pins.lock().len(), 2);
    }
}
