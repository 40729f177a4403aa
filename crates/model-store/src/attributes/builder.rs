//! Columns while they are filled, value by value, before they become files.

use indexmap::IndexSet;
use rayon::slice::ParallelSliceMut;

use super::array::{BOOLEAN, FLOAT64, INT64, MICROSECONDS, UINT32, UINT64, npy_of};
use super::attribute_type::AttributeType;
use super::description::{ColumnEntry, FileEntry, Part};
use super::dictionary;
use super::stored::StoredWriter;
use super::value::Value;
use crate::format::Checksum;

/// A column that is filled, one value after the other.
///
/// ```
/// use contract::Row;
/// use model_store::attributes::{AttributeType, Attributes, ColumnBuilder, Value};
///
/// let mut price = ColumnBuilder::new("price", AttributeType::Number);
/// for value in [Some(9.5), None, Some(3.0)] {
///     price.push(value.map(Value::Number));
/// }
/// let attributes = Attributes::from_columns(vec![price])?;
/// let price = attributes.column("price").expect("it was added");
/// assert_eq!((price.distinct(), price.missing()), (2, 1));
/// assert_eq!(price.get(Row(2)), Some(Value::Number(3.0)));
/// # Ok::<(), model_store::attributes::AttributeError>(())
/// ```
#[derive(Debug)]
pub struct ColumnBuilder {
    name: String,
    values: Filled,
    /// A bit for each value, as in [`Column::missing_bits`](super::Column::missing_bits).
    missing: Bits,
}

#[derive(Debug)]
enum Filled {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Booleans(Vec<u8>),
    DateTimes(Vec<i64>),
    Texts { indices: Vec<u32>, texts: IndexSet<Box<str>> },
    Lists { ends: Vec<usize>, indices: Vec<u32>, texts: IndexSet<Box<str>> },
    Stored(StoredWriter),
}

/// A bit for each row.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.length / 64] |= u64::from(bit) << (self.length % 64);
        self.length += 1;
    }

    fn get(&self, index: usize) -> bool {
        (self.words[index / 64] >> (index % 64)) & 1 == 1
    }

    fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl ColumnBuilder {
    /// An empty column of this name and type.
    pub fn new(name: impl Into<String>, kind: AttributeType) -> Self {
        let texts = IndexSet::new;
        let values = match kind {
            AttributeType::Integer => Filled::Integers(Vec::new()),
            AttributeType::Number => Filled::Numbers(Vec::new()),
            AttributeType::Boolean => Filled::Booleans(Vec::new()),
            AttributeType::DateTime => Filled::DateTimes(Vec::new()),
            AttributeType::Text => Filled::Texts { indices: Vec::new(), texts: texts() },
            AttributeType::List => {
                Filled::Lists { ends: Vec::new(), indices: Vec::new(), texts: texts() }
            }
            AttributeType::Stored => Filled::Stored(StoredWriter::new()),
        };
        Self { name: name.into(), values, missing: Bits::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values.
    pub fn kind(&self) -> AttributeType {
        match self.values {
            Filled::Integers(_) => AttributeType::Integer,
            Filled::Numbers(_) => AttributeType::Number,
            Filled::Booleans(_) => AttributeType::Boolean,
            Filled::DateTimes(_) => AttributeType::DateTime,
            Filled::Texts { .. } => AttributeType::Text,
            Filled::Lists { .. } => AttributeType::List,
            Filled::Stored(_) => AttributeType::Stored,
        }
    }

    /// Number of values so far, with those that are missing.
    pub fn len(&self) -> usize {
        self.missing.length
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the value of the next row; `None` if it is missing.
    ///
    /// # Panics
    /// If the value has another type, or is a number that is not finite.
    pub fn push(&mut self, value: Option<Value<'_>>) {
        self.missing.push(value.is_none());
        match (&mut self.values, value) {
            (Filled::Integers(all), None) => all.push(0),
            (Filled::Integers(all), Some(Value::Integer(number))) => all.push(number),
            (Filled::Numbers(all), None) => all.push(f64::NAN),
            (Filled::Numbers(all), Some(Value::Number(number))) => {
                assert!(number.is_finite(), "a number of `{}` is not finite", self.name);
                // Turns −0 into 0.
                all.push(number + 0.0);
            }
            (Filled::Booleans(all), None) => all.push(0),
            (Filled::Booleans(all), Some(Value::Boolean(truth))) => all.push(truth.into()),
            (Filled::DateTimes(all), None) => all.push(i64::MIN),
            (Filled::DateTimes(all), Some(Value::DateTime(micros))) => all.push(micros),
            (Filled::Texts { indices, .. }, None) => indices.push(0),
            (Filled::Texts { indices, texts }, Some(Value::Text(text))) => {
                indices.push(index_of(texts, &text));
            }
            (Filled::Lists { ends, indices, .. }, None) => ends.push(indices.len()),
            (Filled::Lists { ends, indices, texts }, Some(Value::List(list))) => {
                indices.extend(list.iter().map(|text| index_of(texts, text)));
                ends.push(indices.len());
            }
            (Filled::Stored(texts), None) => texts.push(None),
            (Filled::Stored(texts), Some(Value::Text(text))) => texts.push(Some(&text)),
            (_, Some(value)) => {
                panic!("`{}` has another type than {}", self.name, value.kind().described())
            }
        }
    }

    /// The files of the column, number `index` of a folder, for rows that have these values:
    /// `None` is a row without one.
    pub(super) fn into_files(
        self,
        index: usize,
        sources: &[Option<u32>],
    ) -> (ColumnEntry, Vec<(String, Vec<u8>)>) {
        let kind = self.kind();
        let mut missing = Bits::default();
        let source =
            |source: &Option<u32>| source.map(|at| at as usize).filter(|&at| !self.missing.get(at));
        sources.iter().for_each(|at| missing.push(source(at).is_none()));
        let present: Vec<Option<usize>> = sources.iter().map(source).collect();
        let (distinct, mut contents) = match self.values {
            Filled::Integers(all) => {
                let values = picked(&all, &present, 0);
                (distinct_of(&values, &missing, Ord::cmp), vec![npy_of(INT64, &values)])
            }
            Filled::DateTimes(all) => {
                let values = picked(&all, &present, i64::MIN);
                (distinct_of(&values, &missing, Ord::cmp), vec![npy_of(MICROSECONDS, &values)])
            }
            Filled::Numbers(all) => {
                let values = picked(&all, &present, f64::NAN);
                (distinct_of(&values, &missing, f64::total_cmp), vec![npy_of(FLOAT64, &values)])
            }
            Filled::Booleans(all) => {
                let values = picked(&all, &present, 0);
                (distinct_of(&values, &missing, Ord::cmp), vec![npy_of(BOOLEAN, &values)])
            }
            Filled::Texts { indices, texts } => {
                let used = present.iter().flatten().map(|&at| indices[at]);
                let (codes_of, [lines, starts], distinct) = sorted(&texts, used);
                let code = |at: &Option<usize>| at.map_or(0, |at| codes_of[indices[at] as usize]);
                let codes: Vec<u32> = present.iter().map(code).collect();
                (distinct, vec![npy_of(UINT32, &codes), lines, starts])
            }
            Filled::Lists { ends, indices, texts } => {
                let list = |at: usize| {
                    let start = at.checked_sub(1).map_or(0, |before| ends[before]);
                    &indices[start..ends[at]]
                };
                let used = present.iter().flatten().flat_map(|&at| list(at).iter().copied());
                let (codes_of, [lines, line_starts], distinct) = sorted(&texts, used);
                let (mut starts, mut codes) = (vec![0_u64], Vec::<u32>::new());
                for at in &present {
                    let list = at.map(list).unwrap_or_default();
                    codes.extend(list.iter().map(|&index| codes_of[index as usize]));
                    starts.push(codes.len() as u64);
                }
                let files =
                    vec![npy_of(UINT64, &starts), npy_of(UINT32, &codes), lines, line_starts];
                (distinct, files)
            }
            Filled::Stored(texts) => {
                (present.iter().flatten().count(), texts.into_files(&present).into())
            }
        };
        let without = missing.count();
        if without > 0 {
            contents.push(npy_of(UINT64, &missing.words));
        }
        let names = Part::of(kind, without > 0).into_iter();
        let names = names.map(|part| part.file_name(index, &self.name));
        let files: Vec<(String, Vec<u8>)> = names.zip(contents).collect();
        let entry = |(name, content): &(String, Vec<u8>)| FileEntry {
            name: name.clone(),
            bytes: content.len() as u64,
            checksum: Checksum::of(content),
        };
        let entries = files.iter().map(entry).collect();
        let name = self.name;
        (ColumnEntry { name, kind, distinct, missing: without, files: entries }, files)
    }
}

/// The index of a text, which is added if it is new.
fn index_of(texts: &mut IndexSet<Box<str>>, text: &str) -> u32 {
    let index = match texts.get_index_of(text) {
        Some(index) => index,
        None => texts.insert_full(text.into()).0,
    };
    u32::try_from(index).expect("fewer texts than fit in memory")
}

/// The values of rows; `missing` where there is none.
fn picked<T: Copy>(all: &[T], present: &[Option<usize>], missing: T) -> Vec<T> {
    present.iter().map(|at| at.map_or(missing, |at| all[at])).collect()
}

/// The number of different values of rows that have one.
fn distinct_of<T: Copy + Send>(
    values: &[T],
    missing: &Bits,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering + Sync,
) -> usize {
    let present = values.iter().enumerate().filter(|&(row, _)| !missing.get(row));
    let mut sorted: Vec<T> = present.map(|(_, &value)| value).collect();
    sorted.par_sort_unstable_by(&compare);
    sorted.dedup_by(|a, b| compare(a, b).is_eq());
    sorted.len()
}

/// Codes by index of the texts that are used, from 1 in the order of the texts' bytes; the files of
/// the dictionary, and the number of texts in it.
fn sorted(
    texts: &IndexSet<Box<str>>,
    used: impl Iterator<Item = u32>,
) -> (Vec<u32>, [Vec<u8>; 2], usize) {
    let mut codes = vec![0; texts.len()];
    used.for_each(|index| codes[index as usize] = 1);
    let indices = (0..texts.len() as u32).filter(|&index| codes[index as usize] == 1);
    let mut order: Vec<u32> = indices.collect();
    order.par_sort_unstable_by_key(|&index| &texts[index as usize]);
    for (code, &index) in (1..).zip(&order) {
        codes[index as usize] = code;
    }
    let (lines, starts) = dictionary::files_of(order.iter().map(|&index| &*texts[index as usize]));
    (codes, [lines, starts], order.len())
}
