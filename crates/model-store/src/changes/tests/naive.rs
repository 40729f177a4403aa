//! The naive table, batches at random, and a base for both.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::{Metric, Row};

use crate::attributes::{AttributeType, Value};
use crate::changes::base::Base;
use crate::changes::state::{BaseKeys, Counts};
use crate::changes::storage::simulated::{Random, Simulated};
use crate::changes::{
    Access, Batch, BatchBuilder, ChangeError, ChangeOptions, Changes, Schema, Snapshot, Upsert,
};

pub(super) const BASE_ROWS: u32 = 5;

/// The keys `k0` to `k4`.
struct FewKeys;

impl BaseKeys for FewKeys {
    fn row(&self, key: &str) -> Option<Row> {
        let row: u32 = key.strip_prefix('k')?.parse().ok()?;
        (row < BASE_ROWS).then_some(Row(row))
    }
}

pub(super) fn base(disk: &Simulated) -> Base {
    let columns = [("name", AttributeType::Text), ("size", AttributeType::Integer)];
    Base {
        version: "0123456789abcdef".to_owned(),
        schema: Schema {
            dim: 3,
            metric: Metric::Dot,
            columns: columns.map(|(name, kind)| (name.to_owned(), kind)).into(),
        },
        rows: BASE_ROWS,
        keys: Arc::new(FewKeys),
        has_changes: disk.live().is_raised,
    }
}

pub(super) fn open(disk: &Simulated, max_log_bytes: u64) -> Result<Changes, ChangeError> {
    let options = ChangeOptions { access: Access::Write, max_log_bytes };
    Changes::with(Arc::new(disk.clone()), &base(disk), options)
}

pub(super) fn read(disk: &Simulated) -> Result<Changes, ChangeError> {
    let options = ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
    Changes::with(Arc::new(disk.clone()), &base(disk), options)
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
}

impl NaiveBatch {
    /// Up to three upserts and two deletes of a dozen keys, with long texts now and then.
    pub(super) fn random(random: &mut Random) -> Self {
        let mut keys: Vec<usize> = (0..12).collect();
        let mut key = |random: &mut Random| format!("k{}", keys.remove(random.below(keys.len())));
        let (upserts, deletes) = match (random.below(4), random.below(3)) {
            (0, 0) => (1, 0),
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
        let mut batch = Self { upserts, deletes };
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
        let mut batch = BatchBuilder::new(schema);
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
    /// The rows behind the base.
    rows: Vec<NaiveRow>,
    live: BTreeMap<String, u32>,
}

impl Naive {
    pub(super) fn new() -> Self {
        let live = (0..BASE_ROWS).map(|row| (format!("k{row}"), row)).collect();
        Self { rows: Vec::new(), live }
    }

    pub(super) fn apply(&mut self, batch: &NaiveBatch) -> Counts {
        let mut counts = Counts::default();
        for row in &batch.upserts {
            let number = BASE_ROWS + self.rows.len() as u32;
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
        counts
    }

    /// Whether a snapshot has these rows, in every way in which it can be asked.
    pub(super) fn check(&self, snapshot: &Snapshot) -> Result<(), String> {
        let all = BASE_ROWS as usize + self.rows.len();
        if (snapshot.rows(), snapshot.live_rows()) != (all, self.live.len()) {
            return Err(format!("{snapshot:?} instead of {all}, {} alive", self.live.len()));
        }
        for number in 0..24 {
            let key = format!("k{number}");
            let (found, expected) = (snapshot.row_of(&key), self.live.get(&key).copied());
            if found.map(|row| row.0) != expected {
                return Err(format!("{key} has {found:?} instead of {expected:?}"));
            }
        }
        let live: Vec<u32> = (0..all as u32).filter(|&row| snapshot.is_live(Row(row))).collect();
        let mut expected: Vec<u32> = self.live.values().copied().collect();
        expected.sort_unstable();
        let bits = snapshot.dead().live_bits(all);
        let of_bits = (0..all as u32).filter(|row| bits[*row as usize / 64] >> (row % 64) & 1 == 1);
        if live != expected || !of_bits.eq(live.iter().copied()) {
            return Err(format!("{live:?} are alive instead of {expected:?}"));
        }
        let mut place = 0;
        for part in snapshot.tail() {
            for index in 0..part.len() {
                let (row, expected) = (part.row(index), &self.rows[place]);
                let [name, size] = row.attributes else { return Err("attributes".to_owned()) };
                let is_same = row.row.0 == BASE_ROWS + place as u32
                    && row.key == expected.key
                    && row.vector == expected.vector
                    && part.vectors()[index * 3..][..3] == expected.vector
                    && row.bias == Some(expected.bias)
                    && part.norms()[index].to_bits()
                        == contract::score::norm(&expected.vector).to_bits()
                    && *name == expected.name.clone().map(|name| Value::Text(name.into()))
                    && *size == expected.size.map(Value::Integer)
                    && snapshot.tail_row(row.row) == Some(row);
                if !is_same {
                    return Err(format!("{row:?} instead of {expected:?}"));
                }
                place += 1;
            }
        }
        match place == self.rows.len() && snapshot.tail_row(Row(all as u32)).is_none() {
            true => Ok(()),
            false => Err(format!("{place} rows of {}", self.rows.len())),
        }
    }
}
