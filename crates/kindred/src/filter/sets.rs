//! Sets of rows that filters have made, so that each is made once for all queries that name it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contract::RowBitmap;
use model_store::ModelStore;

use super::ast::Expression;
use super::check::check;
use super::columns::Columns;
use super::error::FilterError;
use super::parse::parse;

/// Sets that are kept, however small they are.
const MAX_SETS: usize = 1024;

/// Ways to write them that are kept.
const MAX_TEXTS: usize = 4 * MAX_SETS;

/// Longer texts are read each time.
const MAX_KEPT_TEXT: usize = 1024;

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

/// The model's version and a filter's form.
type Key = (String, String);

#[derive(Debug, Default)]
struct Kept {
    sets: HashMap<Key, Slot>,
    /// Whose set a text names.
    texts: HashMap<String, Key>,
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

    /// As much as suits a model: a thirty-second of its table, but at least 16 MB.
    pub fn for_model(model: &ModelStore) -> Self {
        const LEAST: usize = 16 << 20;
        Self::new((size_of_val(model.table().components()) / 32).max(LEAST))
    }

    /// The rows of a model that meet a filter. `version` is that of the model.
    ///
    /// # Errors
    /// If the text is no filter, or names what the model does not have.
    pub fn of(
        &self,
        text: &str,
        columns: &dyn Columns,
        version: &str,
    ) -> Result<Arc<RowBitmap>, FilterError> {
        if let Some(set) = self.kept(text, version) {
            return Ok(set);
        }
        let filter = parse(text)?;
        let plan = check(&filter, columns)?;
        let key = (version.to_owned(), filter.to_string());
        let set = self.get_by(key.clone(), || plan.bitmap(version));
        if text.len() <= MAX_KEPT_TEXT {
            self.locked().name(text, key);
            self.make_room();
        }
        Ok(set)
    }

    /// The set that a text names, if it is there. Nothing is read or made.
    pub fn kept(&self, text: &str, version: &str) -> Option<Arc<RowBitmap>> {
        let mut kept = self.locked();
        let Kept { sets, texts, uses } = &mut *kept;
        let key = texts.get(text).filter(|(of, _)| of == version)?;
        let slot = sets.get_mut(key)?;
        *uses += 1;
        slot.last_use = *uses;
        slot.set.get().cloned()
    }

    /// The set of a filter over a model of this version. If it is not there, this caller makes it,
    /// and others that want it wait.
    pub fn get(
        &self,
        filter: &Expression,
        version: &str,
        make: impl FnOnce() -> RowBitmap,
    ) -> Arc<RowBitmap> {
        self.get_by((version.to_owned(), filter.to_string()), make)
    }

    fn get_by(&self, key: Key, make: impl FnOnce() -> RowBitmap) -> Arc<RowBitmap> {
        let slot = self.slot(key);
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

    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: Key) -> Arc<OnceLock<Arc<RowBitmap>>> {
        let mut kept = self.locked();
        kept.uses += 1;
        let last_use = kept.uses;
        let slot = kept.sets.entry(key).or_insert_with(|| Slot { set: Arc::default(), last_use });
        slot.last_use = last_use;
        slot.set.clone()
    }

    /// Drops sets until the others are within the bounds. Queries that use them keep them.
    fn make_room(&self) {
        let mut kept = self.locked();
        while kept.sets.len() > MAX_SETS || kept.bytes() > self.most_bytes {
            let made = kept.sets.iter().filter(|(_, slot)| slot.set.get().is_some());
            let Some(oldest) = made.min_by_key(|(_, slot)| slot.last_use) else { return };
            let oldest = oldest.0.clone();
            kept.sets.remove(&oldest);
            kept.texts.retain(|_, key| *key != oldest);
        }
    }

    /// Bytes of the sets that are kept, and of the ways to write them.
    pub fn bytes(&self) -> usize {
        self.locked().bytes()
    }

    /// The number of sets that are kept.
    pub fn len(&self) -> usize {
        self.locked().sets.len()
    }

    /// Whether no set is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let of_key = |(version, form): &Key| version.len() + form.len();
        let of_set =
            |(key, slot): (&Key, &Slot)| of_key(key) + slot.set.get().map_or(0, |set| set.bytes());
        let of_text = |(text, key): (&String, &Key)| text.len() + of_key(key);
        let sets: usize = self.sets.iter().map(of_set).sum();
        sets + self.texts.iter().map(of_text).sum::<usize>()
    }

    /// Keeps a way to write the filter of a set, if the set is kept.
    fn name(&mut self, text: &str, key: Key) {
        if !self.sets.contains_key(&key) {
            return;
        }
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        self.texts.insert(text.to_owned(), key);
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
