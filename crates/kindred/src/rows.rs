//! The rows that questions are about: those of a model, or of a table that changes at a position.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use changes::{RowJson, Snapshot, Sources, TableAt, TailRow};
use contract::{Metric, Row, RowBitmap, RowSet, TableRows as _};
use filters::{FilterError, TailFilters};
use model_store::ModelStore;
use model_store::attributes::{Attributes, Column, Value};

use crate::added::{AddedWords, AllRows};

/// Rows with their numbers, words and attributes: of a model alone, or with what was changed since.
/// Whoever asks a question asks it about these. Questions take a trait object, not a type parameter:
/// a look-up costs far more than an indirect call.
pub trait Rows: fmt::Debug + Send + Sync {
    /// The model; of a table that changes, its base.
    fn base(&self) -> &ModelStore;

    /// The position, if the table changes.
    fn at(&self) -> Option<&AtPosition>;

    /// Words that a question adds to the rows.
    fn added(&self) -> Option<&AddedWords> {
        None
    }

    /// The rows at the position.
    fn snapshot(&self) -> Option<&Snapshot> {
        self.at().map(AtPosition::snapshot_of)
    }

    /// A row that came after the base. `None` for those of the base.
    fn tail_row(&self, row: Row) -> Option<TailRow<'_>> {
        self.snapshot()?.tail_row(row)
    }

    /// The version of the content from which positions count.
    fn version(&self) -> &str {
        self.base().version()
    }

    /// Number of rows, dead ones with them.
    fn count(&self) -> usize {
        self.snapshot().map_or_else(|| self.base().rows(), Snapshot::rows)
    }

    /// Components in a row.
    fn dim(&self) -> usize {
        self.base().dim()
    }

    /// How a vector and a row become a score.
    fn metric(&self) -> Metric {
        self.base().metric()
    }

    /// The numbers.
    fn table(&self) -> AllRows<'_> {
        AllRows::new(TableAt::new(self.base().table(), self.snapshot()), self.added())
    }

    /// The number of a row, dead or alive, which answers tell: it is kept when changes are folded into
    /// a new base, and is the row's place until then.
    ///
    /// # Panics
    /// If there is no such row.
    fn number(&self, row: Row) -> u32 {
        match self.snapshot() {
            Some(snapshot) => snapshot.number(row),
            None => self.base().number(row),
        }
    }

    /// The weight of a row in texts: 1 if words have none.
    ///
    /// # Panics
    /// If there is no such row.
    fn text_weight(&self, row: Row) -> f64 {
        self.base().text_weights().map_or(1.0, |weights| weights.of(self.number(row)))
    }

    /// The first row whose number is not below this one; the one behind the last if there is none.
    fn row_from(&self, number: u32) -> Row {
        match self.snapshot() {
            Some(snapshot) => snapshot.row_from(number),
            None => self.base().row_from(number),
        }
    }

    /// The row of a word, if there is one.
    fn row_of(&self, word: &str) -> Option<Row> {
        match self.snapshot() {
            Some(snapshot) => snapshot.row_of(word),
            None => self.base().words().row(word),
        }
    }

    /// The word of a row, dead or alive.
    ///
    /// # Panics
    /// If there is no such row.
    fn word(&self, row: Row) -> &str {
        if let Some(word) = self.added().and_then(|added| added.word(row)) {
            return word;
        }
        match self.tail_row(row) {
            Some(tail) => tail.key,
            None => self.base().words().word(row),
        }
    }

    /// The first rows, at most `limit`, whose words start with `prefix`, by exact bytes. It may
    /// read all words, so it is no work for a thread with connections.
    fn with_prefix(&self, prefix: &str, limit: usize) -> Vec<Row> {
        let words = self.base().words();
        let Some(now) = self.snapshot() else { return words.with_prefix(prefix, limit) };
        let mut most = limit;
        let mut found: Vec<Row> = loop {
            let of_base = words.with_prefix(prefix, most);
            let is_all = of_base.len() < most;
            let live = of_base.into_iter().filter(|&row| now.is_live(row)).take(limit);
            let live: Vec<Row> = live.collect();
            if is_all || live.len() == limit {
                break live;
            }
            most = most.saturating_mul(2);
        };
        let tail = (now.base_rows() as u32..now.rows() as u32).map(Row);
        let starts = |row: &Row| now.is_live(*row) && self.word(*row).starts_with(prefix);
        found.extend(tail.filter(starts).take(limit - found.len()));
        found
    }

    /// Words of the base that are similar to `word`, and whose rows are still there.
    fn suggestions(&self, word: &str) -> Vec<&str> {
        let similar = self.base().words().suggestions(word).into_iter();
        similar.filter(|word| self.row_of(word).is_some()).collect()
    }

    /// Whether there is such a row, and it was neither replaced nor deleted.
    fn is_live(&self, row: Row) -> bool {
        match self.snapshot() {
            Some(snapshot) => snapshot.is_live(row),
            None => row.index() < self.base().rows(),
        }
    }

    /// Whether rows were inserted, replaced or deleted since the base was made.
    fn is_changed(&self) -> bool {
        let is_changed = |now: &Snapshot| now.rows() > now.base_rows() || !now.dead().is_empty();
        self.snapshot().is_some_and(is_changed)
    }

    /// The attributes that rows may have.
    fn columns(&self) -> &[Column] {
        self.base().attributes().map(Attributes::columns).unwrap_or_default()
    }

    /// An attribute of a row, by the number of its column.
    ///
    /// # Panics
    /// If there is no such row or column.
    fn value(&self, row: Row, column: usize) -> Option<Value<'_>> {
        match self.tail_row(row) {
            Some(tail) => tail.attributes[column].clone(),
            None => self.columns()[column].get(row),
        }
    }

    /// The rows that may be neighbours, if nothing else is said.
    fn live(&self) -> RowSet {
        self.at().map_or_else(RowSet::all, AtPosition::all)
    }

    /// The rows that meet a filter, if those of the base that meet it are these.
    ///
    /// # Errors
    /// As those of the base.
    fn meeting(
        &self,
        filter: &str,
        of_base: Arc<RowBitmap>,
    ) -> Result<Arc<RowBitmap>, FilterError> {
        match self.at() {
            Some(at) => at.filters.of(filter, &at.base, &at.snapshot, &of_base),
            None => Ok(of_base),
        }
    }
}

impl Rows for ModelStore {
    fn base(&self) -> &ModelStore {
        self
    }

    fn at(&self) -> Option<&AtPosition> {
        None
    }
}

impl Rows for Arc<ModelStore> {
    fn base(&self) -> &ModelStore {
        self
    }

    fn at(&self) -> Option<&AtPosition> {
        None
    }
}

/// Writes a row as an object of JSON, as it is put, with its number; without its vector and its bias
/// if they are not wanted.
///
/// # Errors
/// If `out` can't be written.
///
/// # Panics
/// If there is no such row.
pub fn write_row(
    out: &mut dyn io::Write,
    rows: &dyn Rows,
    row: Row,
    with_vector: bool,
) -> io::Result<()> {
    let table = rows.table();
    let attributes = rows
        .columns()
        .iter()
        .enumerate()
        .map(|(index, column)| (column.name(), rows.value(row, index).map(Cow::Owned)));
    let bias = (rows.metric() == Metric::Dot).then(|| table.bias(row));
    let json = RowJson::new(rows.word(row), table.row(row), bias, attributes);
    let json = RowJson { row: Some(rows.number(row)), ..json };
    let json = if with_vector { json } else { RowJson { vector: None, bias: None, ..json } };
    Ok(serde_json::to_writer(out, &json)?)
}

/// The rows of a table that changes, at one position.
pub struct AtPosition {
    base: Arc<ModelStore>,
    snapshot: Snapshot,
    /// The rows that live, once a query has asked for them.
    live: OnceLock<Arc<RowBitmap>>,
    filters: Arc<TailFilters>,
}

impl AtPosition {
    /// The rows of a snapshot of the changes of this base. `filters` are those of the same table.
    pub fn new(base: Arc<ModelStore>, snapshot: Snapshot, filters: Arc<TailFilters>) -> Self {
        Self { base, snapshot, live: OnceLock::new(), filters }
    }

    /// The position.
    pub fn position(&self) -> u64 {
        self.snapshot.position()
    }

    /// The positions that it has reached of the systems that it follows.
    pub fn sources(&self) -> &Sources {
        self.snapshot.sources()
    }

    /// Whether its rows are others than those of its base.
    pub fn is_changed(&self) -> bool {
        let of_base = self.snapshot.base_rows();
        self.snapshot.rows() != of_base || self.live_rows() != of_base
    }

    /// Number of rows that live.
    pub fn live_rows(&self) -> usize {
        self.snapshot.live_rows()
    }

    fn snapshot_of(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The rows that live, as one set for all queries at this position.
    pub fn bitmap(&self) -> &Arc<RowBitmap> {
        self.live.get_or_init(|| {
            let rows = self.snapshot.rows();
            let words = self.snapshot.dead().live_bits(rows);
            Arc::new(RowBitmap::new(words, rows, self.base.content()))
        })
    }

    fn all(&self) -> RowSet {
        match (u32::try_from(self.snapshot.rows()), self.snapshot.dead().is_empty()) {
            // Rows that come later are not among them.
            (Ok(rows), true) => RowSet::first(rows),
            _ => RowSet::of(self.bitmap().clone()),
        }
    }
}

impl Rows for AtPosition {
    fn base(&self) -> &ModelStore {
        &self.base
    }

    fn at(&self) -> Option<&AtPosition> {
        Some(self)
    }
}

impl fmt::Debug for AtPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{:?}", self.base.name(), self.base.version(), self.snapshot)
    }
}
