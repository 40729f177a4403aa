//! The naive table, batches at random, and a base for both.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use contract::{Metric, Row};
use model_store::attributes::{AttributeFiles, AttributeType, ColumnBuilder, Value};
use model_store::format::{
    ATTRIBUTES_FOLDER, INDEX_FILE, Provenance, TableId, VECTORS_FILE, WORDS_FILE,
};
use model_store::prepare::ModelWriter;

use crate::storage::simulated::{Image, Random, Simulated};
use crate::{
    Access, Batch, BatchBuilder, ChangeError, ChangeOptions, Changes, Counts, Generation, Schema,
    Snapshot, Sources, Upsert,
};

/// The rows `k0` to `k4` of a base.
const BASE_ROWS: u32 = 5;

fn columns() -> Vec<(String, AttributeType)> {
    let columns = [("name", AttributeType::Text), ("size", AttributeType::Integer)];
    columns.map(|(name, kind)| (name.to_owned(), kind)).into()
}

/// The files of a model folder with these rows.
fn files_of(rows: &[NaiveRow]) -> BTreeMap<String, Vec<u8>> {
    let mut builders = columns().into_iter().map(|(name, kind)| ColumnBuilder::new(name, kind));
    let [mut name, mut size] = [(); 2].map(|()| builders.next().unwrap());
    for row in rows {
        name.push(row.name.as_deref().map(|name| Value::Text(name.into())));
        size.push(row.size.map(Value::Integer));
    }
    let sources: Vec<Option<u32>> = (0..rows.len() as u32).map(Some).collect();
    let attributes = AttributeFiles::of_columns(vec![name, size], &sources);
    let writer = ModelWriter::new(Cursor::new(Vec::new()), 3, Metric::Dot).unwrap();
    let mut writer = writer.with_attributes(attributes.checksum());
    if rows.is_empty() {
        writer = writer.with_table_id(TableId::random());
    }
    for row in rows {
        writer.add(&row.key, &row.vector, None).unwrap();
    }
    let (vectors, words, index) = writer.finish(Provenance::of_memory("m")).unwrap();
    let files = [(VECTORS_FILE, vectors.into_inner()), (WORDS_FILE, words), (INDEX_FILE, index)];
    let files = files.map(|(name, content)| (name.to_owned(), content)).into_iter();
    let attributes = attributes.files().iter();
    let attributes =
        attributes.map(|(name, content)| (format!("{ATTRIBUTES_FOLDER}/{name}"), content.clone()));
    files.chain(attributes).collect()
}

/// The files of the usual base.
pub(super) fn base_files() -> BTreeMap<String, Vec<u8>> {
    static FILES: LazyLock<BTreeMap<String, Vec<u8>>> =
        LazyLock::new(|| files_of(&Naive::new().base));
    FILES.clone()
}

/// A disk with the usual base.
pub(super) fn usual_disk() -> Simulated {
    Simulated::of(Image { root: base_files(), ..Image::default() })
}

/// A disk with a base without rows.
pub(super) fn empty_disk() -> Simulated {
    Simulated::of(Image { root: files_of(&[]), ..Image::default() })
}

pub(super) fn open(disk: &Simulated, max_log_bytes: u64) -> Result<Changes, ChangeError> {
    open_keeping(disk, max_log_bytes, Duration::ZERO)
}

/// Opens a table whose old files stay for this time after a fold.
pub(super) fn open_keeping(
    disk: &Simulated,
    max_log_bytes: u64,
    keep_old: Duration,
) -> Result<Changes, ChangeError> {
    let options = ChangeOptions { access: Access::Write, max_log_bytes, keep_old };
    Changes::with(Arc::new(disk.clone()), options)
}

pub(super) fn read(disk: &Simulated) -> Result<Changes, ChangeError> {
    let options = ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
    Changes::with(Arc::new(disk.clone()), options)
}

/// Folds, to the end.
pub(super) fn fold(changes: &Changes) -> Result<Option<Arc<Generation>>, ChangeError> {
    changes.fold(&mut |_| ControlFlow::Continue(()))
}

/// A row, as a person would keep it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NaiveRow {
    pub(super) key: String,
    vector: [f32; 3],
    bias: f32,
    name: Option<String>,
    size: Option<i64>,
}

/// A batch, as a person would write it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct NaiveBatch {
    pub(super) upserts: Vec<NaiveRow>,
    pub(super) deletes: Vec<String>,
    /// Positions; none forgets the source.
    pub(super) sources: BTreeMap<String, Option<u64>>,
}

impl NaiveBatch {
    /// Up to three upserts and two deletes of a dozen keys, with long texts now and then. Every third
    /// has positions of sources, and may have nothing else.
    pub(super) fn random(random: &mut Random) -> Self {
        let mut keys: Vec<usize> = (0..12).collect();
        let mut key = |random: &mut Random| format!("k{}", keys.remove(random.below(keys.len())));
        let mut sources = BTreeMap::new();
        for _ in 0..[0, 0, random.below(3)][random.below(3)] {
            let position = (random.below(4) > 0).then(|| random.below(1 << 20) as u64);
            sources.insert(format!("kafka:{}", random.below(4)), position);
        }
        let (upserts, deletes) = match (random.below(4), random.below(3)) {
            (0, 0) if sources.is_empty() => (1, 0),
            other => other,
        };
        let upserts = (0..upserts).map(|_| NaiveRow {
            key: key(random),
            vector: [0; 3].map(|_| random.below(9) as f32 - 4.0),
            bias: random.below(5) as f32,
            name: random.coin().then(|| "é".repeat(random.below(60))),
            size: random.coin().then(|| random.below(100) as i64),
        });
        let upserts = upserts.collect();
        let deletes = (0..deletes).map(|_| format!("k{}", random.below(6) + 20)).collect();
        let mut batch = Self { upserts, deletes, sources };
        // Mostly keys that may be there; each once.
        let mut seen = Vec::new();
        for delete in &mut batch.deletes {
            let candidate = format!("k{}", random.below(12));
            let is_upserted = batch.upserts.iter().any(|row| row.key == candidate);
            if !is_upserted && !seen.contains(&candidate) {
                delete.clone_from(&candidate);
            }
            if seen.contains(delete) {
                delete.push_str("-again");
            }
            seen.push(delete.clone());
        }
        batch
    }

    pub(super) fn built(&self, schema: &Schema) -> Batch {
        let text = |at: &Option<u64>| at.map_or("-".to_owned(), |at| at.to_string());
        let sources: Vec<String> =
            self.sources.iter().map(|(name, at)| format!("{name}:{}", text(at))).collect();
        let sources = match sources.is_empty() {
            true => Sources::default(),
            false => sources.join(", ").parse().unwrap(),
        };
        let mut batch = BatchBuilder::new(schema).with_sources(sources);
        for row in &self.upserts {
            let mut attributes = Vec::new();
            attributes.extend(row.size.map(|size| ("size", Value::Integer(size))));
            attributes.extend(row.name.as_deref().map(|name| ("name", Value::Text(name.into()))));
            let NaiveRow { key, vector, bias, .. } = row;
            batch.upsert(Upsert { key, vector, bias: Some(*bias), attributes: &attributes });
        }
        self.deletes.iter().for_each(|key| batch.delete(key));
        batch.finish().unwrap().unwrap()
    }
}

/// A table, as a person would keep it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Naive {
    /// Those that there were at first.
    base: Vec<NaiveRow>,
    /// The rows that came since.
    rows: Vec<NaiveRow>,
    live: BTreeMap<String, u32>,
    sources: BTreeMap<String, u64>,
}

impl Naive {
    pub(super) fn new() -> Self {
        let row = |row: u32| NaiveRow {
            key: format!("k{row}"),
            vector: [row as f32, 1.0, -0.5],
            bias: 0.0,
            name: row.is_multiple_of(2).then(|| format!("of the base {}", row / 2)),
            size: (row > 1).then_some(-i64::from(row)),
        };
        let live = (0..BASE_ROWS).map(|row| (format!("k{row}"), row)).collect();
        let base = (0..BASE_ROWS).map(row).collect();
        Self { base, live, ..Self::empty() }
    }

    pub(super) fn empty() -> Self {
        let (live, sources) = (BTreeMap::new(), BTreeMap::new());
        Self { base: Vec::new(), rows: Vec::new(), live, sources }
    }

    fn of_number(&self, number: u32) -> &NaiveRow {
        let number = number as usize;
        number.checked_sub(self.base.len()).map_or_else(|| &self.base[number], |at| &self.rows[at])
    }

    pub(super) fn apply(&mut self, batch: &NaiveBatch) -> Counts {
        let mut counts = Counts::default();
        for row in &batch.upserts {
            let number = (self.base.len() + self.rows.len()) as u32;
            self.rows.push(row.clone());
            match self.live.insert(row.key.clone(), number) {
                Some(_) => counts.replaced += 1,
                None => counts.inserted += 1,
            }
        }
        for key in &batch.deletes {
            match self.live.remove(key) {
                Some(_) => counts.deleted += 1,
                None => counts.missing += 1,
            }
        }
        for (name, position) in &batch.sources {
            match position {
                Some(position) => self.sources.insert(name.clone(), *position),
                None => self.sources.remove(name),
            };
        }
        counts
    }

    /// Whether a snapshot has these rows, in every way in which it can be asked.
    pub(super) fn check(&self, snapshot: &Snapshot) -> Result<(), String> {
        let next = (self.base.len() + self.rows.len()) as u32;
        if (snapshot.next_number(), snapshot.live_rows()) != (next, self.live.len()) {
            return Err(format!("{snapshot:?} instead of {next}, {} alive", self.live.len()));
        }
        let sources = snapshot.sources().iter();
        let sources: BTreeMap<String, u64> =
            sources.map(|(name, position)| (name.to_owned(), position.number)).collect();
        if sources != self.sources {
            return Err(format!("sources at {sources:?} instead of {:?}", self.sources));
        }
        for number in 0..24 {
            let key = format!("k{number}");
            let (found, expected) = (snapshot.row_of(&key), self.live.get(&key).copied());
            if found.map(|row| snapshot.number(row)) != expected {
                return Err(format!("{key} has {found:?} instead of {expected:?}"));
            }
        }
        let all = snapshot.rows() as u32;
        let live: Vec<u32> = (0..all).filter(|&row| snapshot.is_live(Row(row))).collect();
        let bits = snapshot.dead().live_bits(all as usize);
        let of_bits = (0..all).filter(|row| bits[*row as usize / 64] >> (row % 64) & 1 == 1);
        let numbers: Vec<u32> = live.iter().map(|&row| snapshot.number(Row(row))).collect();
        let mut expected: Vec<u32> = self.live.values().copied().collect();
        expected.sort_unstable();
        if numbers != expected || !of_bits.eq(live.iter().copied()) {
            return Err(format!("{numbers:?} are alive instead of {expected:?}"));
        }
        for number in 0..=next {
            let from = snapshot.row_from(number);
            let before = from.0.checked_sub(1).map(|before| snapshot.number(Row(before)));
            let is_first = before.is_none_or(|before| before < number);
            if !is_first || (from.0 < all && snapshot.number(from) < number) {
                return Err(format!("row {from} is not the first from {number} on"));
            }
        }
        self.check_base(snapshot)?;
        let mut row = snapshot.base_rows() as u32;
        for part in snapshot.tail() {
            for index in 0..part.len() {
                let found = part.row(index);
                let expected = self.of_number(snapshot.number(found.row));
                let [name, size] = found.attributes else { return Err("attributes".to_owned()) };
                let is_same = found.row.0 == row
                    && found.key == expected.key
                    && found.vector == expected.vector
                    && part.vectors()[index * 3..][..3] == expected.vector
                    && found.bias == Some(expected.bias)
                    && part.norms()[index].to_bits() == norm(expected)
                    && *name == expected.name()
                    && *size == expected.size.map(Value::Integer)
                    && snapshot.tail_row(found.row) == Some(found);
                if !is_same {
                    return Err(format!("{found:?} instead of {expected:?}"));
                }
                row += 1;
            }
        }
        match row == all && snapshot.tail_row(Row(all)).is_none() {
            true => Ok(()),
            false => Err(format!("{row} rows of {all}")),
        }
    }

    /// Whether the rows of the base are those that had their numbers, dead ones with them.
    fn check_base(&self, snapshot: &Snapshot) -> Result<(), String> {
        let base = snapshot.base();
        let (table, attributes) = (base.table(), base.attributes().unwrap());
        for row in (0..base.rows() as u32).map(Row) {
            let expected = self.of_number(snapshot.number(row));
            let values: Vec<_> = attributes.get(row).map(|(_, value)| value).collect();
            let is_same = base.words().word(row) == expected.key
                && base.words().row(&expected.key) == Some(row)
                && table.row(row) == expected.vector
                && table.bias(row).to_bits() == expected.bias.to_bits()
                && table.norm(row).to_bits() == norm(expected)
                && values == [expected.name(), expected.size.map(Value::Integer)];
            if !is_same {
                return Err(format!("row {row} of the base is not {expected:?}"));
            }
        }
        Ok(())
    }
}

fn norm(row: &NaiveRow) -> u64 {
    contract::score::norm(&row.vector).to_bits()
}

impl NaiveRow {
    fn name(&self) -> Option<Value<'_>> {
        self.name.as_deref().map(|name| Value::Text(name.into()))
    }
}
