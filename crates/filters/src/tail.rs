//! Filters over the rows of a table that changes. Those of its base have columns and indexes; those
//! that came since are looked at one by one, each once for a filter, because none ever changes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use changes::{Snapshot, TailRow};
use contract::row_set::WORD_ROWS;
use contract::{Row, RowBitmap};
use model_store::ModelStore;
use model_store::attributes::{AttributeType, Attributes, KEY, Value};

use super::ast::{self, Condition, Expression, Written};
use super::check::{self, unknown};
use super::error::FilterError;
use super::parse::parse;
use super::sets::FilterSets;
use super::wanted::Wanted;

/// A filter whose attributes and values were looked up, for rows one by one.
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Key(Texts),
    /// A test of the values of a column.
    Column(usize, Test),
}

enum Test {
    Exists,
    Integers(Wanted<i64>),
    Numbers(Wanted<f64>),
    Booleans([bool; 2]),
    /// Of a text, or of one of a list's.
    Texts(Texts),
}

/// Texts that are wanted.
enum Texts {
    OneOf(Vec<String>),
    StartsWith(String),
}

impl Node {
    /// Looks up what a filter names.
    fn of(filter: &Expression, model: &ModelStore) -> Result<Self, FilterError> {
        let all = |parts: &[Expression]| -> Result<Vec<Self>, FilterError> {
            parts.iter().map(|part| Self::of(part, model)).collect()
        };
        Ok(match filter {
            Expression::Test(test) => Self::of_test(test, model)?,
            Expression::Not(inner) => Self::Not(Box::new(Self::of(inner, model)?)),
            Expression::And(parts) => Self::All(all(parts)?),
            Expression::Or(parts) => Self::Any(all(parts)?),
        })
    }

    fn of_test(test: &ast::Test, model: &ModelStore) -> Result<Self, FilterError> {
        if test.name.text == KEY {
            return Ok(Self::Key(Texts::one_of(check::keys(test)?)));
        }
        let columns = model.attributes().map(Attributes::columns).unwrap_or_default();
        let Some(column) = columns.iter().position(|column| column.name() == test.name.text) else {
            return Err(unknown(&test.name, model));
        };
        if test.condition == Condition::Exists {
            return Ok(Self::Column(column, Test::Exists));
        }
        let kind = columns[column].kind();
        let test = match (kind, &test.condition) {
            (AttributeType::Integer, _) => Test::Integers(check::integers(test)?),
            (AttributeType::DateTime, _) => Test::Integers(check::date_times(test)?),
            (AttributeType::Number, _) => Test::Numbers(check::numbers(test)?),
            (AttributeType::Boolean, _) => Test::Booleans(check::booleans(test)?),
            (AttributeType::Stored, _) => return Err(check::stored(test)),
            (_, Condition::StartsWith(prefix)) => {
                Test::Texts(Texts::StartsWith(prefix.text.clone()))
            }
            (AttributeType::Text | AttributeType::List, _) => {
                Test::Texts(Texts::one_of(check::texts(test, kind)?))
            }
        };
        Ok(Self::Column(column, test))
    }

    fn meets(&self, row: &TailRow<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.meets(row)),
            Self::Any(parts) => parts.iter().any(|part| part.meets(row)),
            Self::Not(inner) => !inner.meets(row),
            Self::Key(wanted) => wanted.has(row.key),
            Self::Column(column, test) => {
                row.attributes[*column].as_ref().is_some_and(|value| test.meets(value))
            }
        }
    }
}

impl Test {
    /// Whether a value that is there meets it. Columns have one type, and so have their tests.
    fn meets(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Exists, _) => true,
            (Self::Integers(wanted), Value::Integer(value) | Value::DateTime(value)) => {
                wanted.has(*value, |value| value as u64)
            }
            (Self::Numbers(wanted), Value::Number(value)) => wanted.has(*value, f64::to_bits),
            (Self::Booleans(wanted), Value::Boolean(value)) => wanted[usize::from(*value)],
            (Self::Texts(wanted), Value::Text(value)) => wanted.has(value),
            (Self::Texts(wanted), Value::List(values)) => {
                values.iter().any(|value| wanted.has(value))
            }
            _ => false,
        }
    }
}

impl Texts {
    fn one_of(values: &[Written]) -> Self {
        let mut texts: Vec<String> = values.iter().map(|value| value.text.clone()).collect();
        texts.sort_unstable();
        Self::OneOf(texts)
    }

    fn has(&self, text: &str) -> bool {
        match self {
            Self::OneOf(texts) => texts.binary_search_by(|own| (**own).cmp(text)).is_ok(),
            Self::StartsWith(prefix) => text.starts_with(&**prefix),
        }
    }
}

/// The sets of filters over a table that changes: at most so many bytes. Those that were not used
/// for the longest time go first.
pub struct TailFilters {
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By the texts of the filters.
    filters: HashMap<Box<str>, (u64, Arc<Mutex<OfTail>>)>,
    uses: u64,
}

/// The rows behind a base that meet a filter, dead or alive.
struct OfTail {
    filter: Node,
    /// A bit for each row that was looked at.
    bits: Vec<u64>,
    rows: usize,
    /// The last set that was made, with those of the base's rows and of its position.
    joined: Option<(u64, u64, Arc<RowBitmap>)>,
}

impl TailFilters {
    /// For a table with this base.
    pub fn new(base: &ModelStore) -> Self {
        Self { most_bytes: FilterSets::most_bytes_for(base), kept: Mutex::default() }
    }

    /// The rows that live in a snapshot and meet a filter; `of_base` are those of the base that meet
    /// it, dead or alive.
    ///
    /// # Errors
    /// If the text is no filter, or names what the table does not have.
    pub fn of(
        &self,
        text: &str,
        base: &ModelStore,
        snapshot: &Snapshot,
        of_base: &RowBitmap,
    ) -> Result<Arc<RowBitmap>, FilterError> {
        let known = locked(&self.kept).used(text);
        let known = match known {
            Some(known) => known,
            None => {
                let filter = Node::of(&parse(text)?, base)?;
                let new = OfTail { filter, bits: Vec::new(), rows: 0, joined: None };
                locked(&self.kept).put(text, Arc::new(Mutex::new(new)))
            }
        };
        let set = locked(&known).of(snapshot, of_base);
        drop(known);
        locked(&self.kept).make_room(self.most_bytes);
        Ok(set)
    }
}

impl OfTail {
    fn of(&mut self, snapshot: &Snapshot, of_base: &RowBitmap) -> Arc<RowBitmap> {
        let of = (of_base.id(), snapshot.position());
        if let Some((base, position, set)) = &self.joined
            && (*base, *position) == of
        {
            return set.clone();
        }
        let (first, rows) = (snapshot.base_rows(), snapshot.rows());
        for place in self.rows..rows - first {
            let row = snapshot.tail_row(Row((first + place) as u32)).expect("a row of the tail");
            if place.is_multiple_of(WORD_ROWS) {
                self.bits.push(0);
            }
            self.bits[place / WORD_ROWS] |=
                u64::from(self.filter.meets(&row)) << (place % WORD_ROWS);
        }
        self.rows = self.rows.max(rows - first);
        let mut words = of_base.words().to_vec();
        words.resize(rows.div_ceil(WORD_ROWS), 0);
        for (index, &bits) in self.bits.iter().enumerate() {
            let mut rest = bits;
            while rest != 0 {
                let row = first + index * WORD_ROWS + rest.trailing_zeros() as usize;
                // Those of later positions are not in the set.
                if let Some(word) = words.get_mut(row / WORD_ROWS) {
                    *word |= 1 << (row % WORD_ROWS);
                }
                rest &= rest - 1;
            }
        }
        let live = snapshot.dead().live_bits(rows);
        words.iter_mut().zip(live).for_each(|(word, live)| *word &= live);
        let set = Arc::new(RowBitmap::new(words, rows, of_base.version()));
        self.joined = Some((of.0, of.1, set.clone()));
        set
    }

    fn bytes(&self) -> usize {
        let joined = self.joined.as_ref().map_or(0, |(.., set)| set.bytes());
        size_of::<Self>() + size_of_val(&self.bits[..]) + joined
    }
}

impl Kept {
    fn used(&mut self, text: &str) -> Option<Arc<Mutex<OfTail>>> {
        self.uses += 1;
        let (last_use, known) = self.filters.get_mut(text)?;
        *last_use = self.uses;
        Some(known.clone())
    }

    /// Keeps a filter, unless another caller has done it meanwhile.
    fn put(&mut self, text: &str, new: Arc<Mutex<OfTail>>) -> Arc<Mutex<OfTail>> {
        let uses = self.uses;
        let (_, kept) = self.filters.entry(text.into()).or_insert((uses, new));
        kept.clone()
    }

    /// Drops filters until the others are within the bound. Those in use are not counted.
    fn make_room(&mut self, most_bytes: usize) {
        let bytes = |text: &str, of: &Arc<Mutex<OfTail>>| {
            text.len() + of.try_lock().map_or(0, |of| of.bytes())
        };
        let mut all: usize = self.filters.iter().map(|(text, (_, of))| bytes(text, of)).sum();
        while all > most_bytes
            && let Some(oldest) = self.filters.iter().min_by_key(|(_, (last_use, _))| *last_use)
        {
            let oldest = oldest.0.clone();
            let Some((_, of)) = self.filters.remove(&oldest) else { return };
            all = all.saturating_sub(bytes(&oldest, &of));
        }
    }
}

/// Only complete entries are ever made, so a panic elsewhere has spoilt nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for TailFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} filters over a tail", locked(&self.kept).filters.len())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use changes::{BatchBuilder, ChangeOptions, Changes, Durability, Upsert};
    use model_store::prepare::{Input, PrepareOptions, prepare_folder};

    use super::*;

    #[test]
    fn the_filters_that_were_not_used_for_the_longest_time_go_first() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("m");
        let input = Input::Bytes { name: "m", bytes: b"a 1\nb 2\n" };
        let options = PrepareOptions::default();
        prepare_folder(input, &folder, &options, &mut |_| ControlFlow::Continue(())).unwrap();
        let changes = Changes::open(&folder, ChangeOptions::default()).unwrap();
        let put = |key: &str| {
            let mut batch = BatchBuilder::new(changes.schema());
            batch.upsert(Upsert { key, vector: &[1.0], bias: None, attributes: &[] });
            let batch = batch.finish().unwrap().unwrap();
            changes.commit(batch, Durability::None, None).unwrap();
            changes.snapshot()
        };
        let (base, first) = (&changes.base(), put("c"));
        let sets = FilterSets::for_model(base);
        let mut filters = TailFilters::new(base);
        let of = |filters: &TailFilters, text: &str, snapshot: &Snapshot| {
            let set = filters.of(text, base, snapshot, &sets.of(text).unwrap()).unwrap();
            let rows: Vec<u32> = set.members_in(0..set.rows()).map(|row| row.0).collect();
            (set.id(), rows)
        };
        let (id, rows) = of(&filters, "key IN [a, c]", &first);
        assert_eq!(rows, [0, 2]);
        assert_eq!(of(&filters, "key IN [a, c]", &first).0, id, "the same position");
        // A later position, and the earlier one again.
        let second = put("a");
        assert_eq!(of(&filters, "key IN [a, c]", &second).1, [2, 3]);
        assert_eq!(of(&filters, "key IN [a, c]", &first).1, [0, 2]);
        assert_eq!(of(&filters, "NOT key = c", &second).1, [1, 3]);
        let kept = |filters: &TailFilters| locked(&filters.kept).filters.len();
        assert_eq!(kept(&filters), 2);
        let bytes = |filters: &TailFilters, text: &str| {
            text.len() + locked(&locked(&filters.kept).filters[text].1).bytes()
        };
        filters.most_bytes = bytes(&filters, "key IN [a, c]") + bytes(&filters, "NOT key = c");
        of(&filters, "key IN [a, c]", &second);
        assert_eq!(of(&filters, "NOT key = b", &second).1, [2, 3]);
        assert!(!locked(&filters.kept).filters.contains_key("NOT key = c"));
        assert_eq!(kept(&filters), 2);
        assert!(filters.of("key <", base, &second, &sets.of("key = a").unwrap()).is_err());
        assert_eq!(kept(&filters), 2, "faults keep nothing");
    }
}
