//! The rows of a table in memory: those of the base, then new and replaced ones in the order of
//! their batches. A row is given once and never reused.
//!
//! One owner applies batches to [`State`]. Readers hold a [`Snapshot`], which is one position:
//! later batches append behind its rows, and its set of dead rows is its own.

mod dead;
mod growing;
mod keys;
mod table;
mod tail;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use contract::Row;

pub use dead::DeadRows;
pub use growing::Filled;
use keys::{KeyRow, Keys};
pub use table::{TableAt, TailRows};
pub(crate) use tail::{NewRow, RowText};
use tail::{Parts, Tail};
pub use tail::{TailPart, TailRow};

use super::batch::Payload;
use super::schema::Schema;
use super::sources::Sources;
use model_store::ModelStore;

/// The changes of a batch by what they did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows with a new key.
    pub inserted: usize,
    /// Rows that took the place of another one.
    pub replaced: usize,
    /// Rows that were deleted.
    pub deleted: usize,
    /// Keys to delete that the table did not have.
    pub missing: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        let Self { inserted, replaced, deleted, missing } = more;
        self.inserted += inserted;
        self.replaced += replaced;
        self.deleted += deleted;
        self.missing += missing;
    }
}

/// The part of a batch's work that is done before it has its turn.
#[derive(Clone)]
pub(crate) struct Prepared {
    norms: Vec<f64>,
    texts: Vec<RowText>,
}

impl Prepared {
    /// # Errors
    /// If the batch's attributes are not those of the schema.
    pub(crate) fn new(schema: &Schema, payload: &Payload<'_>) -> Result<Self, &'static str> {
        let (norms, values) = (payload.norms().collect(), payload.values(schema)?);
        let texts = payload.upserted().zip(values);
        let texts = texts.map(|(key, values)| RowText { key: key.into(), values }).collect();
        Ok(Self { norms, texts })
    }
}

/// The rows after the last batch.
pub(crate) struct State {
    base: Arc<ModelStore>,
    base_rows: u32,
    keys: Arc<RwLock<Keys>>,
    tail: Tail,
    dead: DeadRows,
    /// Rows of the base and behind it, dead or alive.
    rows: u32,
    position: u64,
    sources: Arc<Sources>,
}

impl State {
    /// The rows of a base.
    pub(crate) fn new(schema: &Schema, base: Arc<ModelStore>) -> Self {
        let rows = u32::try_from(base.rows()).expect("rows have numbers of 32 bits");
        let position = base.header().folded.as_ref().map_or(0, |folded| folded.position);
        Self {
            sources: Arc::new(Sources::of_lines(base.requests())),
            base,
            base_rows: rows,
            keys: Arc::new(RwLock::new(Keys::new(Row(rows)))),
            tail: Tail::new(schema, Row(rows)),
            dead: DeadRows::default(),
            rows,
            position,
        }
    }

    /// Whether there are numbers for so many more rows.
    pub(crate) fn has_numbers_for(&self, rows: usize) -> bool {
        // The last number stays free, as in tables.
        let next = self.base.next_number().checked_add(self.rows - self.base_rows);
        let end =
            u32::try_from(rows).ok().zip(next).and_then(|(rows, next)| next.checked_add(rows));
        end.is_some_and(|end| end < u32::MAX)
    }

    pub(crate) fn base_rows(&self) -> u32 {
        self.base_rows
    }

    pub(crate) fn set_position(&mut self, position: u64, sources: &Arc<Sources>) {
        (self.position, self.sources) = (position, Arc::clone(sources));
    }

    /// Appends a row behind the others. One with its key that lives is to be buried.
    pub(crate) fn push(&mut self, row: NewRow<'_>) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::clone(&row.text.key);
        let before = keys.last(&key).or_else(|| self.base.words().row(&key));
        keys.push(key, before);
        self.tail.push(row);
        self.rows += 1;
    }

    /// A row that lives is replaced or deleted.
    pub(crate) fn bury(&mut self, row: Row) {
        self.dead.insert(row);
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn sources(&self) -> &Arc<Sources> {
        &self.sources
    }

    /// Applies a batch. The caller has made sure that there are numbers for its rows.
    pub(crate) fn apply(
        &mut self,
        payload: &Payload<'_>,
        prepared: Prepared,
        position: u64,
    ) -> Counts {
        let Prepared { norms, texts } = prepared;
        let mut counts = Counts::default();
        let keys = Arc::clone(&self.keys);
        // Only complete entries are ever made, so a panic elsewhere has spoilt nothing.
        let mut keys = keys.write().unwrap_or_else(PoisonError::into_inner);
        let dim = payload.vectors().len() / payload.upserts().max(1);
        let rows = texts.into_iter().zip(payload.vectors().chunks_exact(dim.max(1))).zip(norms);
        for (place, ((text, vector), norm)) in rows.enumerate() {
            let before = keys.last(&text.key).or_else(|| self.base.words().row(&text.key));
            match before.filter(|&before| !self.dead.contains(before)) {
                Some(before) => {
                    self.dead.insert(before);
                    counts.replaced += 1;
                }
                None => counts.inserted += 1,
            }
            keys.push(Arc::clone(&text.key), before);
            let bias = payload.biases().get(place).copied();
            self.tail.push(NewRow { text, vector, norm, bias });
            self.rows += 1;
        }
        for key in payload.deleted() {
            let row = keys.last(key).or_else(|| self.base.words().row(key));
            match row.filter(|&row| !self.dead.contains(row)) {
                Some(row) => {
                    self.dead.insert(row);
                    counts.deleted += 1;
                }
                None => counts.missing += 1,
            }
        }
        self.position = position;
        let sources = payload.sources();
        if !sources.is_empty() {
            Arc::make_mut(&mut self.sources).take(&sources);
        }
        counts
    }

    /// The rows as they are now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(Arc::new(Inner {
            base: Arc::clone(&self.base),
            base_rows: self.base_rows,
            keys: Arc::clone(&self.keys),
            parts: self.tail.parts(),
            dead: self.dead.clone(),
            rows: self.rows,
            position: self.position,
            sources: Arc::clone(&self.sources),
        }))
    }
}

/// The rows of a table at one position. Clones are cheap, and stay at it while batches are applied.
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    base: Arc<ModelStore>,
    base_rows: u32,
    keys: Arc<RwLock<Keys>>,
    parts: Parts,
    dead: DeadRows,
    rows: u32,
    position: u64,
    sources: Arc<Sources>,
}

impl Snapshot {
    /// Number of the last batch that was applied; 0 before the first.
    pub fn position(&self) -> u64 {
        self.0.position
    }

    /// The positions that it has reached of the systems that it follows.
    pub fn sources(&self) -> &Arc<Sources> {
        &self.0.sources
    }

    /// The base, whose rows come first.
    pub fn base(&self) -> &Arc<ModelStore> {
        &self.0.base
    }

    /// Number of rows of the base and behind it, dead ones with them.
    pub fn rows(&self) -> usize {
        self.0.rows as usize
    }

    /// Number of rows of the base, which come first.
    pub fn base_rows(&self) -> usize {
        self.0.base_rows as usize
    }

    /// The number of a row, dead or alive, which answers tell. It is given once, and kept when changes
    /// are folded into a new base; until then it is the row's place.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn number(&self, row: Row) -> u32 {
        let behind = row.index().checked_sub(self.base_rows());
        assert!(row.0 < self.0.rows, "row {row} of {}", self.0.rows);
        match behind {
            Some(behind) => self.0.base.next_number() + behind as u32,
            None => self.0.base.number(row),
        }
    }

    /// The first row whose number is not below this one; the one behind the last if there is none.
    pub fn row_from(&self, number: u32) -> Row {
        match number.checked_sub(self.0.base.next_number()) {
            Some(behind) => Row(self.0.base_rows.saturating_add(behind).min(self.0.rows)),
            None => self.0.base.row_from(number),
        }
    }

    /// The number that the next row will have.
    pub(crate) fn next_number(&self) -> u32 {
        self.0.base.next_number() + (self.0.rows - self.0.base_rows)
    }

    /// Number of rows that were neither replaced nor deleted.
    pub fn live_rows(&self) -> usize {
        self.rows() - self.0.dead.len()
    }

    /// The rows that were replaced or deleted.
    pub fn dead(&self) -> &DeadRows {
        &self.0.dead
    }

    /// Whether there is such a row, and it was neither replaced nor deleted.
    pub fn is_live(&self, row: Row) -> bool {
        row.0 < self.0.rows && !self.0.dead.contains(row)
    }

    /// The row that a key has at this position.
    pub fn row_of(&self, key: &str) -> Option<Row> {
        let keys = self.0.keys.read().unwrap_or_else(PoisonError::into_inner);
        let row = match keys.before(key, Row(self.0.rows)) {
            KeyRow::OfBase => self.0.base.words().row(key),
            KeyRow::Row(row) => Some(row),
            KeyRow::None => None,
        };
        row.filter(|&row| self.is_live(row))
    }

    /// A row behind those of the base, dead or alive. `None` for rows of the base, and for those
    /// that are not there.
    pub fn tail_row(&self, row: Row) -> Option<TailRow<'_>> {
        let place = row.0.checked_sub(self.0.base_rows)?;
        (row.0 < self.0.rows).then(|| self.0.parts.row(place as usize))
    }

    /// The rows behind those of the base, dead ones with them, in order: in parts that are
    /// contiguous in memory.
    pub fn tail(&self) -> impl Iterator<Item = &TailPart> {
        self.0.parts.all()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (position, rows, dead) = (self.position(), self.rows(), self.0.dead.len());
        write!(f, "position {position}: {rows} rows, {dead} of them dead")
    }
}
