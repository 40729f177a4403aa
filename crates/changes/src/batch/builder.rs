//! Batches while they are filled, row by row.

use std::fmt;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use model_store::attributes::Value;

use super::key;
use super::payload::PREFIX_BYTES;
use crate::fields::Aligned;
use crate::record::HEADER_BYTES;
use crate::schema::Schema;
use crate::sources::Sources;
use crate::values;

/// Maximum size of a batch, in bytes of the log.
pub const MAX_BATCH_BYTES: usize = 256 << 20;

/// A row that is inserted, or replaces the row with its key.
#[derive(Debug, Clone, Copy)]
pub struct Upsert<'a> {
    /// The key: the row's word in a model folder.
    pub key: &'a str,
    /// Its components, as many as the table's rows have.
    pub vector: &'a [f32],
    /// The bias; only under the dot product, where `None` is 0.
    pub bias: Option<f32>,
    /// Names and values of its attributes, in any order. Others are missing.
    pub attributes: &'a [(&'a str, Value<'a>)],
}

/// Why a row of a batch was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Its number among all rows of the batch, upserts and deletes, from 0.
    pub index: usize,
    /// Its key.
    pub key: String,
    /// The fault, with the cure.
    pub reason: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {} ({:?}): {}", self.index, self.key, self.reason)
    }
}

/// The bad rows of a batch, which was refused whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", all_of(.0))]
pub struct BadRows(pub Vec<BadRow>);

fn all_of(rows: &[BadRow]) -> String {
    let texts: Vec<String> = rows.iter().map(BadRow::to_string).collect();
    format!("{} of the batch's rows can't be taken: {}", rows.len(), texts.join("; "))
}

/// A batch of good rows, in the form in which it is written to the log.
#[derive(Debug)]
pub struct Batch {
    /// Room for the header of a record, then the payload without its padding.
    pub(crate) record: Aligned,
    pub(crate) upserts: usize,
    pub(crate) deletes: usize,
    /// Of the schema.
    pub(crate) fingerprint: u64,
    pub(crate) sources: Sources,
    /// The position that the table must have.
    pub(crate) only_at: Option<u64>,
}

impl Batch {
    /// Number of rows that are inserted or replaced.
    pub fn upserts(&self) -> usize {
        self.upserts
    }

    /// Number of keys whose rows are deleted.
    pub fn deletes(&self) -> usize {
        self.deletes
    }

    /// The same batch, which is refused unless the table has exactly this position, if one is
    /// given. So a caller that knows the rows at a position changes those and no others.
    #[must_use]
    pub fn only_at(self, position: impl Into<Option<u64>>) -> Self {
        Self { only_at: position.into(), ..self }
    }
}

/// A batch that is filled, row by row. A bad row is left out, and named at the end.
///
/// ```
/// use contract::Metric;
/// use changes::{BatchBuilder, Schema, Upsert};
///
/// let schema = Schema { dim: 2, metric: Metric::Cosine, columns: Vec::new() };
/// let mut batch = BatchBuilder::new(&schema);
/// let row = |key, vector| Upsert { key, vector, bias: None, attributes: &[] };
/// batch.upsert(row("frog", &[1.0, 2.0]));
/// batch.upsert(row("toad", &[1.0]));
/// batch.delete("newt");
/// let (batch, bad) = batch.finish_without_bad();
/// assert_eq!(batch.map(|batch| (batch.upserts(), batch.deletes())), Some((1, 1)));
/// assert_eq!(bad[0].to_string(), "row 1 (\"toad\"): its vector has 1 component instead of 2");
/// ```
#[derive(Debug)]
pub struct BatchBuilder<'s> {
    pub(super) schema: &'s Schema,
    /// What makes vectors of rows that have a text.
    pub(super) texts: Option<&'s dyn RowTexts>,
    sources: Sources,
    /// The rows so far, good and bad.
    rows: usize,
    bad: Vec<BadRow>,
    /// The good rows by their keys.
    seen: HashMap<Box<str>, usize>,
    /// Room for the header of a record and the numbers of the payload, and then vectors: the largest
    /// part is copied once.
    record: Aligned,
    biases: Vec<f32>,
    upserted: Keys,
    deleted: Keys,
    attributes: Vec<u8>,
    attribute_ends: Vec<u32>,
}

/// Makes the vectors of rows that have a text instead.
pub trait RowTexts: std::fmt::Debug + Sync {
    /// The vector of a text, `[dim]`.
    ///
    /// # Errors
    /// The reason why it has none.
    fn vector(&self, text: &str) -> Result<Vec<f32>, String>;
}

#[derive(Debug, Default)]
struct Keys {
    text: String,
    ends: Vec<u32>,
}

impl Keys {
    fn push(&mut self, key: &str) {
        self.text.push_str(key);
        self.ends.push(end(self.text.len()));
    }
}

impl<'s> BatchBuilder<'s> {
    /// An empty batch for a table of this schema.
    pub fn new(schema: &'s Schema) -> Self {
        Self {
            schema,
            texts: None,
            sources: Sources::default(),
            rows: 0,
            bad: Vec::new(),
            seen: HashMap::new(),
            record: Aligned::zeroed(HEADER_BYTES + PREFIX_BYTES),
            biases: Vec::new(),
            upserted: Keys::default(),
            deleted: Keys::default(),
            attributes: Vec::new(),
            attribute_ends: Vec::new(),
        }
    }

    /// The same batch, whose rows may have a text instead of a vector.
    #[must_use]
    pub fn with_texts(self, texts: &'s dyn RowTexts) -> Self {
        Self { texts: Some(texts), ..self }
    }

    /// The same batch, with which the table reaches these positions of the systems that it follows.
    /// It may have no rows.
    #[must_use]
    pub fn with_sources(self, sources: Sources) -> Self {
        Self { sources, ..self }
    }

    /// Reserves memory for this number of further rows to upsert.
    pub fn reserve(&mut self, rows: usize) {
        let of_row = self.schema.dim * size_of::<f32>() + 3 * size_of::<u32>();
        self.record.reserve(rows.saturating_mul(of_row).min(MAX_BATCH_BYTES));
    }

    /// Adds a row that is inserted, or replaces the row with its key.
    pub fn upsert(&mut self, row: Upsert<'_>) {
        let before = self.attributes.len();
        let fault = self.fault(&row).or_else(|| self.too_much(&row));
        let fault = fault.or_else(|| self.take_key(row.key));
        if let Some(reason) = fault {
            self.attributes.truncate(before);
            return self.refuse(row.key, reason);
        }
        self.record.extend(bytemuck::cast_slice(row.vector));
        if self.schema.has_biases() {
            self.biases.push(row.bias.unwrap_or(0.0));
        }
        if !self.schema.columns.is_empty() {
            self.attribute_ends.push(end(self.attributes.len()));
        }
        self.upserted.push(row.key);
        self.rows += 1;
    }

    /// Adds a key whose row is deleted, if the table has one.
    pub fn delete(&mut self, key: &str) {
        let row = Upsert { key, vector: &[], bias: None, attributes: &[] };
        let fault = key::fault(key).map(str::to_owned).or_else(|| self.too_much(&row));
        let fault = fault.or_else(|| self.take_key(key));
        if let Some(reason) = fault {
            return self.refuse(key, reason);
        }
        self.deleted.push(key);
        self.rows += 1;
    }

    /// The size of the good rows so far, in bytes of the log.
    pub fn bytes(&self) -> usize {
        let numbers = self.biases.len()
            + self.attribute_ends.len()
            + self.upserted.ends.len()
            + self.deleted.ends.len();
        let texts = self.upserted.text.len() + self.deleted.text.len() + self.attributes.len();
        self.record.bytes().len() + numbers * size_of::<f32>() + texts
    }

    /// The batch of all rows.
    ///
    /// # Errors
    /// Names every bad row. `None` if there are no rows at all, and no sources.
    pub fn finish(self) -> Result<Option<Batch>, BadRows> {
        match self.finish_without_bad() {
            (batch, bad) if bad.is_empty() => Ok(batch),
            (_, bad) => Err(BadRows(bad)),
        }
    }

    /// The batch of the good rows, if there are any or sources, and the bad ones.
    pub fn finish_without_bad(self) -> (Option<Batch>, Vec<BadRow>) {
        let (upserts, deletes) = (self.upserted.ends.len(), self.deleted.ends.len());
        if upserts + deletes == 0 && self.sources.is_empty() {
            return (None, self.bad);
        }
        let start = end(self.upserted.text.len());
        let deleted: Vec<u32> = self.deleted.ends.iter().map(|&end| start + end).collect();
        let keys = (self.upserted.text.len() + self.deleted.text.len()) as u64;
        let mut record = self.record;
        let head = &mut record.bytes_mut()[HEADER_BYTES..][..PREFIX_BYTES];
        head[..4].copy_from_slice(&end(upserts).to_le_bytes());
        head[4..8].copy_from_slice(&end(deletes).to_le_bytes());
        head[8..16].copy_from_slice(&keys.to_le_bytes());
        head[16..24].copy_from_slice(&(self.attributes.len() as u64).to_le_bytes());
        for part in [
            bytemuck::cast_slice(&self.biases),
            bytemuck::cast_slice(&self.upserted.ends),
            bytemuck::cast_slice(&deleted),
            bytemuck::cast_slice(&self.attribute_ends),
            self.upserted.text.as_bytes(),
            self.deleted.text.as_bytes(),
            &self.attributes,
        ] {
            record.extend(part);
        }
        let fingerprint = self.schema.fingerprint();
        let sources = self.sources;
        let batch = Batch { record, upserts, deletes, fingerprint, sources, only_at: None };
        (Some(batch), self.bad)
    }

    pub(super) fn refuse(&mut self, key: &str, reason: String) {
        self.bad.push(BadRow { index: self.rows, key: key.to_owned(), reason });
        self.rows += 1;
    }

    /// What is wrong with a row beside those before, whose attributes are written.
    fn too_much(&self, row: &Upsert<'_>) -> Option<String> {
        let more = size_of_val(row.vector) + row.key.len() + 3 * size_of::<u32>();
        let is_too_much = self.bytes() + more > MAX_BATCH_BYTES;
        is_too_much.then(|| "the batch is larger than 256 MiB; send it in parts".to_owned())
    }

    /// Notes the key; what is wrong if a row before has it.
    fn take_key(&mut self, key: &str) -> Option<String> {
        match self.seen.entry(key.into()) {
            Entry::Occupied(before) => {
                let before = before.get();
                Some(format!("row {before} has the same key; keep one of them"))
            }
            Entry::Vacant(free) => {
                free.insert(self.rows);
                None
            }
        }
    }

    /// What is wrong with a row; if nothing is, its attributes are written.
    fn fault(&mut self, row: &Upsert<'_>) -> Option<String> {
        if let Some(fault) = key::fault(row.key) {
            return Some(fault.to_owned());
        }
        let (found, dim) = (row.vector.len(), self.schema.dim);
        if found != dim {
            let plural = if found == 1 { "" } else { "s" };
            return Some(format!("its vector has {found} component{plural} instead of {dim}"));
        }
        if let Some(index) = row.vector.iter().position(|component| !component.is_finite()) {
            return Some(format!("component {index} of its vector is not a finite float32"));
        }
        match row.bias {
            Some(_) if !self.schema.has_biases() => {
                return Some("it has a bias, which only tables under the metric `dot` have".into());
            }
            Some(bias) if !bias.is_finite() => {
                return Some("its bias is not a finite float32".to_owned());
            }
            _ => (),
        }
        self.write_attributes(row.attributes).err()
    }

    fn write_attributes(&mut self, given: &[(&str, Value<'_>)]) -> Result<(), String> {
        let columns = &self.schema.columns;
        for (index, (name, value)) in given.iter().enumerate() {
            if given[..index].iter().any(|(before, _)| before == name) {
                return Err(format!("its attribute `{name}` is there twice"));
            }
            let Some((_, kind)) = columns.iter().find(|(known, _)| known == name) else {
                let names: Vec<&str> = columns.iter().map(|(name, _)| &**name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(format!("the table has no attribute `{name}`; it has {names}"));
            };
            let is_finite = !matches!(value, Value::Number(number) if !number.is_finite());
            if value.kind() != kind.of_values() || !is_finite {
                return Err(format!("its attribute `{name}` is not {}", kind.described()));
            }
        }
        for (name, _) in columns {
            let value = given.iter().find(|(given, _)| given == name).map(|(_, value)| value);
            values::write(value, &mut self.attributes);
        }
        Ok(())
    }
}

/// A count or an end, which a batch keeps below 4 GiB.
fn end(number: usize) -> u32 {
    u32::try_from(number).expect("a batch is smaller than 4 GiB")
}
