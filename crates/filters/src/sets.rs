//! Sets of rows that filters have made, so that each is made once for all queries that name it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contract::RowBitmap;
use model_store::ModelStore;
use model_store::attributes::Attributes;

use super::check::check;
use super::error::{FilterError, SetError};
use super::parse::parse;

/// Sets that are kept, however small they are.
const MAX_SETS: usize = 1024;

/// Ways to write them that are kept.
const MAX_TEXTS: usize = 4 * MAX_SETS;

/// Longer texts are read each time.
const MAX_KEPT_TEXT: usize = 1024;

/// The sets of some filters of a model: at most so many bytes. Those that were not used for the
/// longest time go first.
///
/// ```
/// use std::sync::Arc;
///
/// use filters::FilterSets;
/// use model_store::ModelStore;
///
/// let model = ModelStore::from_rows("tiny", 2, [("a", &[1.0, 0.0][..]), ("b", &[1.0, 1.0])])?;
/// let sets = FilterSets::for_model(&Arc::new(model));
/// let one = sets.of("key = a OR key = c")?;
/// let again = sets.of("key=c or key=a")?;
/// assert_eq!((one.len(), one.id()), (1, again.id()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FilterSets {
    model: Arc<ModelStore>,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the forms of the filters.
    sets: HashMap<Arc<str>, Slot>,
    /// The forms of texts.
    texts: HashMap<Arc<str>, Arc<str>>,
    /// Of the sets with their forms, and of the texts.
    bytes: usize,
    /// Counts uses.
    uses: u64,
    hits: u64,
    made: u64,
    dropped: u64,
}

/// What is kept now, and what happened so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterCounts {
    /// Bytes of the indexes of attributes, those that are made. Sets do not count.
    pub index_bytes: usize,
    /// Sets that are kept.
    pub sets: usize,
    /// Bytes of these, and of the ways to write them.
    pub bytes: usize,
    /// At most so many bytes are kept.
    pub most_bytes: usize,
    /// Filters whose sets were there.
    pub hits: u64,
    /// Sets that were made.
    pub made: u64,
    /// Sets that made room for others.
    pub dropped: u64,
}

#[derive(Debug)]
struct Slot {
    made: Arc<Made>,
    /// 0 until they are counted. Until then the set is not dropped.
    bytes: usize,
    last_use: u64,
    /// The ways to write it that are kept.
    texts: Vec<Arc<str>>,
}

/// A set of which each caller has a hold that waits for it.
#[derive(Debug, Default)]
struct Made {
    /// Empty until the set is made.
    set: OnceLock<Arc<RowBitmap>>,
    /// Held by the caller that makes the set.
    making: Mutex<()>,
}

/// The sets of filters for a caller that may no longer want them. Nothing stops those of a
/// reference to [`FilterSets`].
#[derive(Clone, Copy)]
pub struct SetsWhile<'a> {
    sets: &'a FilterSets,
    goes_on: &'a dyn Fn() -> bool,
}

impl<'a> From<&'a FilterSets> for SetsWhile<'a> {
    fn from(sets: &'a FilterSets) -> Self {
        sets.wanted_while(&|| true)
    }
}

impl SetsWhile<'_> {
    /// The rows of the model that meet a filter, as [`FilterSets::of`] finds them.
    ///
    /// # Errors
    /// If the text is no filter, or names what the model does not have; if the caller did not want
    /// the set any more before it was made.
    pub fn of(self, text: &str) -> Result<Arc<RowBitmap>, SetError> {
        self.sets.of_while(text, self.goes_on)?.ok_or(SetError::Unwanted)
    }

    /// Whether the caller still wants sets.
    pub(super) fn goes_on(&self) -> &dyn Fn() -> bool {
        self.goes_on
    }
}

impl FilterSets {
    /// Keeps sets of at most this many bytes together.
    pub fn new(model: Arc<ModelStore>, most_bytes: usize) -> Self {
        Self { model, most_bytes, kept: Mutex::default() }
    }

    /// Keeps as much as suits the model: a thirty-second of its table, but at least 16 MB.
    pub fn for_model(model: &Arc<ModelStore>) -> Self {
        Self::new(model.clone(), Self::most_bytes_for(model))
    }

    /// Bytes that the sets of a model may take.
    pub fn most_bytes_for(model: &ModelStore) -> usize {
        const LEAST: usize = 16 << 20;
        (size_of_val(model.table().components()) / 32).max(LEAST)
    }

    /// The same sets for a caller that wants them as long as `goes_on` says so.
    pub fn wanted_while<'a>(&'a self, goes_on: &'a dyn Fn() -> bool) -> SetsWhile<'a> {
        SetsWhile { sets: self, goes_on }
    }

    /// The rows of the model that meet a filter. Takes about a sixth of a nanosecond for each test
    /// of a row, unless the set is kept; the first test of an attribute makes its index. If callers
    /// want the same set at once, one makes it, and the others wait.
    ///
    /// # Errors
    /// If the text is no filter, or names what the model does not have.
    pub fn of(&self, text: &str) -> Result<Arc<RowBitmap>, FilterError> {
        Ok(self.of_while(text, &|| true)?.expect("nothing stops it"))
    }

    fn of_while(
        &self,
        text: &str,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Arc<RowBitmap>>, FilterError> {
        {
            let mut kept = self.locked();
            if let Some(set) = kept.find(text) {
                kept.hits += 1;
                return Ok(Some(set));
            }
        }
        let filter = parse(text)?;
        let plan = check(&filter, &self.model)?;
        let form: Arc<str> = filter.to_string().into();
        let made = self.locked().slot(&form);
        let mut is_new = false;
        {
            let _alone = made.making.lock().unwrap_or_else(PoisonError::into_inner);
            if made.set.get().is_none()
                && let Some(set) = plan.bitmap_while(self.model.content(), goes_on)
            {
                is_new = made.set.set(set.into()).is_ok();
            }
        }
        let mut kept = self.locked();
        let Some(set) = made.set.get().cloned() else {
            kept.give_up(&form, made);
            return Ok(None);
        };
        *(if is_new { &mut kept.made } else { &mut kept.hits }) += 1;
        kept.count(&form, &set);
        kept.name(text, form);
        kept.make_room(self.most_bytes);
        Ok(Some(set))
    }

    /// The set that a text names, if it is there. Nothing is read or made.
    pub fn kept(&self, text: &str) -> Option<Arc<RowBitmap>> {
        self.locked().find(text)
    }

    /// What is kept now, and what happened so far.
    pub fn counts(&self) -> FilterCounts {
        let kept = self.locked();
        let &Kept { bytes, hits, made, dropped, .. } = &*kept;
        let (sets, most_bytes) = (kept.sets.len(), self.most_bytes);
        let index_bytes = self.model.attributes().map_or(0, Attributes::index_bytes);
        FilterCounts { index_bytes, sets, bytes, most_bytes, hits, made, dropped }
    }

    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FilterSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.counts(), self.model.name())
    }
}

impl Kept {
    /// The set that a text names.
    fn find(&mut self, text: &str) -> Option<Arc<RowBitmap>> {
        let form = self.texts.get(text)?.clone();
        let set = self.slot(&form).set.get()?.clone();
        self.count(&form, &set);
        Some(set)
    }

    /// The place of a filter's set.
    fn slot(&mut self, form: &Arc<str>) -> Arc<Made> {
        self.uses += 1;
        let new = || Slot { made: Arc::default(), bytes: 0, last_use: 0, texts: Vec::new() };
        let slot = self.sets.entry(form.clone()).or_insert_with(new);
        slot.last_use = self.uses;
        slot.made.clone()
    }

    /// Leaves a set that was not made, unless others wait for it.
    fn give_up(&mut self, form: &str, made: Arc<Made>) {
        // Holds are taken, and those of sets that were not made are dropped, under one lock.
        if Arc::strong_count(&made) == 2 {
            self.sets.remove(form);
        }
    }

    /// Counts the bytes of a set that was made. It may take more at each use, by its parts.
    fn count(&mut self, form: &str, set: &RowBitmap) {
        if let Some(slot) = self.sets.get_mut(form) {
            self.bytes -= slot.bytes;
            slot.bytes = set.bytes() + form.len();
            self.bytes += slot.bytes;
        }
    }

    /// Keeps a way to write the filter of a set, if the set is kept.
    fn name(&mut self, text: &str, form: Arc<str>) {
        if text.len() > MAX_KEPT_TEXT || !self.sets.contains_key(&form) {
            return;
        }
        if self.texts.len() >= MAX_TEXTS {
            self.bytes -= self.texts.keys().map(|text| text.len()).sum::<usize>();
            self.texts.clear();
            self.sets.values_mut().for_each(|slot| slot.texts.clear());
        }
        let text: Arc<str> = text.into();
        if self.texts.insert(text.clone(), form.clone()).is_none() {
            self.bytes += text.len();
            self.sets.entry(form).and_modify(|slot| slot.texts.push(text));
        }
    }

    /// Drops sets until the others are within the bounds. Queries that use them keep them.
    fn make_room(&mut self, most_bytes: usize) {
        while self.sets.len() > MAX_SETS || self.bytes > most_bytes {
            let counted = self.sets.iter().filter(|(_, slot)| slot.bytes > 0);
            let Some((oldest, _)) = counted.min_by_key(|(_, slot)| slot.last_use) else {
                return;
            };
            let oldest = oldest.clone();
            let Some(slot) = self.sets.remove(&oldest) else { return };
            self.dropped += 1;
            self.bytes -= slot.bytes + slot.texts.iter().map(|text| text.len()).sum::<usize>();
            slot.texts.iter().for_each(|text| drop(self.texts.remove(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Sets of a model of 6,400 rows with the words `w0`, `w1` and so on: each takes 800 bytes and
    /// some.
    fn sets(most_bytes: usize) -> FilterSets {
        let words: Vec<String> = (0..6400).map(|row| format!("w{row}")).collect();
        let rows = words.iter().map(|word| (&word[..], &[1.0f32][..]));
        FilterSets::new(ModelStore::from_rows("m", 1, rows).unwrap().into(), most_bytes)
    }

    #[test]
    fn a_set_is_made_once_for_each_form() {
        let sets = sets(1 << 20);
        let first = sets.of("key = w1").unwrap();
        assert_eq!((first.len(), first.rows()), (1, 6400));
        assert_eq!(first.version(), sets.model.version());
        assert_eq!(sets.of("key IN ['w1']").unwrap().id(), first.id());
        assert_ne!(sets.of("key = w2").unwrap().id(), first.id());
        assert_eq!(sets.counts().sets, 2);
        assert_eq!(sets.of("prize < 80").unwrap_err().column, 1);
        assert_eq!(sets.of("key = ").unwrap_err().column, 7);
        let FilterCounts { sets, hits, made, dropped, .. } = sets.counts();
        assert_eq!((sets, hits, made, dropped), (2, 1, 2, 0), "faults keep nothing");
    }

    #[test]
    fn callers_that_want_the_same_set_at_once_make_one() {
        let (sets, together) = (sets(1 << 20), Barrier::new(4));
        let ids = std::thread::scope(|scope| {
            let ask = || {
                together.wait();
                sets.of("NOT key = w7").unwrap().id()
            };
            [(); 4].map(|()| scope.spawn(ask)).map(|thread| thread.join().unwrap())
        });
        assert!(ids.iter().all(|id| *id == ids[0]) && sets.counts().sets == 1, "{ids:?}");
        let FilterCounts { hits, made, .. } = sets.counts();
        assert_eq!((hits, made), (3, 1));
    }

    #[test]
    fn a_set_that_nobody_wants_any_more_is_left_and_made_for_the_next() {
        let sets = sets(1 << 20);
        let unwanted = sets.wanted_while(&|| false).of("key = w1");
        assert_eq!(unwanted.unwrap_err(), SetError::Unwanted);
        assert_eq!(sets.counts(), FilterCounts { most_bytes: 1 << 20, ..FilterCounts::default() });
        assert!(sets.locked().sets.is_empty());
        // One leaves it while another waits for it.
        let (begun, goes_on) = (Barrier::new(2), Barrier::new(2));
        let leaves = || {
            begun.wait();
            goes_on.wait();
            false
        };
        let left = std::thread::scope(|scope| {
            let first = scope.spawn(|| sets.wanted_while(&leaves).of("key = w1").map(|_| ()));
            begun.wait();
            let second = scope.spawn(|| sets.of("key = w1").unwrap().len());
            while sets.locked().uses < 3 {
                std::thread::yield_now();
            }
            goes_on.wait();
            assert_eq!(second.join().unwrap(), 1);
            first.join().unwrap()
        });
        // Unless the second has made it before the first looked once more.
        assert!(matches!(left, Err(SetError::Unwanted) | Ok(())), "{left:?}");
        let FilterCounts { sets: kept, made, hits, .. } = sets.counts();
        assert_eq!((kept, made, hits), (1, 1, u64::from(left.is_ok())));
        // What is there needs no time.
        assert!(sets.wanted_while(&|| false).of("key = w1").is_ok());
    }

    #[test]
    fn a_text_is_read_once_while_its_set_is_kept() {
        let sets = sets(1 << 20);
        let id = |text| sets.kept(text).map(|set| set.id());
        assert_eq!(id("key = w1"), None);
        let one = sets.of("key = w1").unwrap();
        assert_eq!(id("key = w1"), Some(one.id()));
        // Another way to write it is read, and finds the same set.
        assert_eq!(id("key=w1"), None);
        assert_eq!(sets.of("key=w1").unwrap().id(), one.id());
        assert_eq!(id("key=w1"), Some(one.id()));
        let long = format!("key{}=w1", " ".repeat(MAX_KEPT_TEXT));
        assert_eq!(sets.of(&long).unwrap().id(), one.id());
        assert_eq!(id(&long), None);
    }

    #[test]
    fn the_sets_that_were_not_used_for_the_longest_time_go_first() {
        let texts = ["key = w0", "key = w1", "key = w2", "key = w3"];
        let sets = sets(3000);
        let ids = [0, 1, 2].map(|n: usize| sets.of(texts[n]).unwrap().id());
        assert_eq!(sets.counts().sets, 3);
        assert_eq!(sets.of(texts[0]).unwrap().id(), ids[0]);
        sets.of(texts[3]).unwrap();
        let counts = sets.counts();
        assert!(counts.sets == 3 && counts.bytes <= 3000 && counts.dropped == 1, "{counts:?}");
        assert_eq!(sets.of(texts[0]).unwrap().id(), ids[0]);
        assert_eq!(sets.kept(texts[1]), None, "a set that was dropped has no text");
        assert_ne!(sets.of(texts[1]).unwrap().id(), ids[1]);
    }

    #[test]
    fn bytes_are_those_of_what_is_kept() {
        // A set that is larger than the bound is made, and not kept.
        let small = sets(100);
        assert_eq!(small.of("key = w5").unwrap().len(), 1);
        let counts = small.counts();
        assert_eq!((counts.sets, counts.bytes, counts.made, counts.dropped), (0, 0, 1, 1));
        // Many ways to write few filters, and many filters.
        let sets = sets(1 << 20);
        for spaces in 0..MAX_TEXTS + 10 {
            sets.of(&format!("key{}= w{}", " ".repeat(spaces / 9), spaces % 9)).unwrap();
        }
        (0..MAX_SETS + 10).for_each(|row| drop(sets.of(&format!("key = w{row}")).unwrap()));
        // A set may take more after it was made.
        let last = sets.of("key = w7").unwrap();
        let before = sets.counts().bytes;
        let part = last.part(&(0..640));
        assert_eq!(sets.kept("key = w7").unwrap().id(), last.id());
        assert!(
            sets.counts().bytes >= before + part.bytes(),
            "{:?}, {before} before",
            sets.counts()
        );
        let kept = sets.locked();
        let of_sets = kept
            .sets
            .iter()
            .map(|(form, slot)| form.len() + slot.made.set.get().map_or(0, |set| set.bytes()));
        let of_texts = kept.texts.keys().map(|text| text.len());
        assert_eq!(kept.bytes, of_sets.chain(of_texts).sum::<usize>());
        assert_eq!(kept.sets.len(), MAX_SETS);
        assert!(kept.texts.len() <= MAX_TEXTS && kept.texts.len() >= MAX_SETS);
    }
}
