//! Sets of rows that filters have made, so that each is made once for all queries that name it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use contract::RowBitmap;

use super::ast::Expression;

/// Sets that are kept, however small they are.
const MAX_SETS: usize = 1024;

/// The sets of some filters: at most so many bytes. Those that were not used for the longest time
/// go first.
///
/// ```
/// use kindred::contract::{Row, RowBitmap};
/// use kindred::filter::{FilterSets, parse};
///
/// let sets = FilterSets::new(1 << 20);
/// let make = || RowBitmap::of_rows([Row(2)], 100, "v1");
/// let one = sets.get(&parse("a = 1 AND b = 2")?, "v1", make);
/// let again = sets.get(&parse("b=2 and a=1")?, "v1", || unreachable!("it is there"));
/// assert_eq!(one.id(), again.id());
/// # Ok::<(), kindred::filter::FilterError>(())
/// ```
#[derive(Debug)]
pub struct FilterSets {
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the model's version and the filter's form.
    sets: HashMap<(String, String), Slot>,
    /// Counts uses.
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    /// Empty while the set is made.
    set: Arc<OnceLock<Arc<RowBitmap>>>,
    last_use: u64,
}

impl FilterSets {
    /// Keeps sets of at most this many bytes together.
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, kept: Mutex::default() }
    }

    /// The set of a filter over a model of this version. If it is not there, this caller makes it,
    /// and others that want it wait.
    pub fn get(
        &self,
        filter: &Expression,
        version: &str,
        make: impl FnOnce() -> RowBitmap,
    ) -> Arc<RowBitmap> {
        let slot = self.slot((version.to_owned(), filter.to_string()));
        let mut is_new = false;
        let set = slot.get_or_init(|| {
            is_new = true;
            Arc::new(make())
        });
        let set = set.clone();
        if is_new {
            self.make_room();
        }
        set
    }

    fn slot(&self, key: (String, String)) -> Arc<OnceLock<Arc<RowBitmap>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let last_use = kept.uses;
        let slot = kept.sets.entry(key).or_insert_with(|| Slot { set: Arc::default(), last_use });
        slot.last_use = last_use;
        slot.set.clone()
    }

    /// Drops sets until the others are within the bounds. Queries that use them keep them.
    fn make_room(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.sets.len() > MAX_SETS || kept.bytes() > self.most_bytes {
            let made = kept.sets.iter().filter(|(_, slot)| slot.set.get().is_some());
            let Some(oldest) = made.min_by_key(|(_, slot)| slot.last_use) else { return };
            let oldest = oldest.0.clone();
            kept.sets.remove(&oldest);
        }
    }

    /// Bytes of the sets that are kept.
    pub fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    /// The number of sets that are kept.
    pub fn len(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).sets.len()
    }

    /// Whether no set is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let of = |((version, form), slot): (&(String, String), &Slot)| {
            version.len() + form.len() + slot.set.get().map_or(0, |set| set.bytes())
        };
        self.sets.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use contract::Row;

    use super::*;
    use crate::filter::parse;

    fn make(row: u32) -> impl FnOnce() -> RowBitmap {
        move || RowBitmap::of_rows([Row(row)], 6400, "v")
    }

    #[test]
    fn a_set_is_made_once_for_each_form_and_version() {
        let sets = FilterSets::new(1 << 20);
        let made = AtomicUsize::new(0);
        let get = |filter: &str, version: &str| {
            sets.get(&parse(filter).unwrap(), version, || {
                made.fetch_add(1, Ordering::Relaxed);
                make(7)()
            })
        };
        let first = get("a = 1", "v1");
        assert_eq!(get("a IN ['1']", "v1").id(), first.id());
        assert_ne!(get("a = 1", "v2").id(), first.id());
        assert_ne!(get("a = 2", "v1").id(), first.id());
        assert_eq!((made.into_inner(), sets.len(), sets.is_empty()), (3, 3, false));
    }

    #[test]
    fn callers_that_want_the_same_set_at_once_make_one() {
        let (sets, made) = (FilterSets::new(1 << 20), AtomicUsize::new(0));
        let filter = parse("a = 1").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    sets.get(&filter, "v", || {
                        made.fetch_add(1, Ordering::Relaxed);
                        make(7)()
                    })
                });
            }
        });
        assert_eq!((made.into_inner(), sets.len()), (1, 1));
    }

    #[test]
    fn the_sets_that_were_not_used_for_the_longest_time_go_first() {
        let filters = ["a = 0", "a = 1", "a = 2", "a = 3"].map(|filter| parse(filter).unwrap());
        // Each set takes 800 bytes and some.
        let sets = FilterSets::new(3000);
        let ids = [0, 1, 2].map(|n| sets.get(&filters[n], "v", make(n as u32)).id());
        assert_eq!(sets.len(), 3);
        assert_eq!(sets.get(&filters[0], "v", make(9)).id(), ids[0]);
        sets.get(&filters[3], "v", make(3));
        assert!(sets.len() == 3 && sets.bytes() <= 3000, "{} bytes", sets.bytes());
        assert_eq!(sets.get(&filters[0], "v", make(9)).id(), ids[0]);
        assert_ne!(sets.get(&filters[1], "v", make(1)).id(), ids[1]);
        // One that is larger than the bound is made, and not kept.
        let small = FilterSets::new(100);
        assert_eq!(small.get(&filters[0], "v", make(5)).len(), 1);
        assert!(small.is_empty() && small.bytes() == 0);
    }
}
