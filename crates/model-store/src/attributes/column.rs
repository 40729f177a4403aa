//! A column in memory: its values as typed slices, mapped and not parsed.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use rayon::prelude::*;

use super::array::{Array, BOOLEAN, FLOAT64, INT64, MICROSECONDS, UINT32, UINT64};
use super::attribute_type::AttributeType;
use super::bins::{Bins, Ordered};
use super::classes::BINS;
use super::description::{AttributeDescription, ColumnEntry, Part};
use super::dictionary::Dictionary;
use super::postings::Postings;
use super::stored::Stored;
use super::value::Value;
use crate::mapped::Mapped;
use contract::Row;

/// Numbers checked together by one core.
const PER_TASK: usize = 1 << 16;

/// A fault in a file of a column.
pub(super) type Fault = (Part, String);

/// The values of an attribute: one for each row, some of which may be missing. Clones share the
/// memory.
#[derive(Debug, Clone)]
pub struct Column {
    description: AttributeDescription,
    rows: usize,
    /// Only if values are missing.
    missing: Option<Array<u64>>,
    data: Data,
}

#[derive(Debug, Clone)]
enum Data {
    Integers(Binned<i64>),
    Numbers(Binned<f64>),
    Booleans(Array<u8>),
    DateTimes(Binned<i64>),
    Texts {
        codes: Binned<u32>,
        dictionary: Dictionary,
        postings: Arc<OnceLock<Postings>>,
    },
    Lists {
        starts: Array<u64>,
        codes: Array<u32>,
        dictionary: Dictionary,
        postings: Arc<OnceLock<Postings>>,
    },
    Stored(Stored),
}

/// Numbers with their bins, which are made when they are first needed.
#[derive(Debug, Clone)]
struct Binned<T> {
    values: Array<T>,
    bins: Arc<OnceLock<Bins<T>>>,
}

impl<T: Pod + Ordered> Binned<T> {
    fn new(values: Array<T>) -> Self {
        Self { values, bins: Arc::default() }
    }

    fn all(&self) -> &[T] {
        self.values.all()
    }

    fn indexed(&self) -> (&[T], &Bins<T>) {
        let values = self.values.all();
        (values, self.bins.get_or_init(|| Bins::new(values)))
    }

    fn index_bytes(&self) -> usize {
        self.bins.get().map_or(0, Bins::bytes)
    }

    fn whole_index_bytes(&self) -> usize {
        Bins::<T>::bytes_of(self.all().len())
    }
}

/// All values of a column, by its type.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// `[rows]`; 0 where the value is missing.
    Integers(&'a [i64]),
    /// `[rows]`; NaN where the value is missing, otherwise finite, and never −0.
    Numbers(&'a [f64]),
    /// `[rows]`; 1 for true, 0 for false and where the value is missing.
    Booleans(&'a [u8]),
    /// `[rows]`, microseconds since 1970 (UTC); `i64::MIN` where the value is missing.
    DateTimes(&'a [i64]),
    /// Texts by their codes.
    Texts {
        /// `[rows]`; 0 where the value is missing, otherwise a code of the dictionary, from 1.
        codes: &'a [u32],
        /// The texts, sorted by their bytes.
        dictionary: &'a Dictionary,
    },
    /// Lists of texts by their codes.
    Lists {
        /// `[rows + 1]`; the codes of row `i` are `codes[starts[i]..starts[i + 1]]`. They are in
        /// the order of the list and may be repeated. A missing list has none, as has an empty one.
        starts: &'a [u64],
        /// Codes of the dictionary, from 1.
        codes: &'a [u32],
        /// The texts, sorted by their bytes.
        dictionary: &'a Dictionary,
    },
    /// Texts for display, by their rows.
    Stored(&'a Stored),
}

/// All values of a column with its index, by its type. Values are as in [`Values`].
#[derive(Debug, Clone, Copy)]
pub enum Indexed<'a> {
    /// Integers with their bins.
    Integers(&'a [i64], &'a Bins<i64>),
    /// Numbers with their bins.
    Numbers(&'a [f64], &'a Bins<f64>),
    /// Booleans, which are bins themselves.
    Booleans(&'a [u8]),
    /// Date-times with their bins.
    DateTimes(&'a [i64], &'a Bins<i64>),
    /// Codes of texts with their bins.
    Texts {
        /// `[rows]`
        codes: &'a [u32],
        /// Those of the codes.
        bins: &'a Bins<u32>,
        /// The rows of each code, if there are more texts than bins.
        postings: Option<&'a Postings>,
        /// The texts.
        dictionary: &'a Dictionary,
    },
    /// Lists of codes with the rows of each code.
    Lists {
        /// `[rows + 1]`
        starts: &'a [u64],
        /// Codes of the dictionary.
        codes: &'a [u32],
        /// The rows of each code.
        postings: &'a Postings,
        /// The texts.
        dictionary: &'a Dictionary,
    },
    /// Texts that are not compared, and have no index.
    Stored,
}

impl Column {
    /// Takes the files of a column. Checks sizes, and that every code and every start leads
    /// somewhere: it reads them once, on all cores.
    pub(super) fn new(
        entry: &ColumnEntry,
        rows: usize,
        mut file: impl FnMut(Part) -> Mapped,
    ) -> Result<Self, Fault> {
        let ColumnEntry { name, kind, distinct, missing, .. } = entry;
        let in_part = |part| move |reason: String| (part, reason);
        let in_values = in_part(Part::Values);
        let dictionary = |file: &mut dyn FnMut(Part) -> Mapped| {
            let (lines, starts) = (file(Part::Texts), file(Part::TextStarts));
            Dictionary::new(lines, starts, *distinct).map_err(in_part(Part::Texts))
        };
        let data = match kind {
            AttributeType::Integer => {
                let values = Array::new(file(Part::Values), INT64, rows);
                Data::Integers(Binned::new(values.map_err(in_values)?))
            }
            AttributeType::Number => {
                let values = Array::new(file(Part::Values), FLOAT64, rows);
                Data::Numbers(Binned::new(values.map_err(in_values)?))
            }
            AttributeType::Boolean => {
                Data::Booleans(Array::new(file(Part::Values), BOOLEAN, rows).map_err(in_values)?)
            }
            AttributeType::DateTime => {
                let values = Array::new(file(Part::Values), MICROSECONDS, rows);
                Data::DateTimes(Binned::new(values.map_err(in_values)?))
            }
            AttributeType::Text => {
                let codes = Array::new(file(Part::Codes), UINT32, rows);
                let codes: Array<u32> = codes.map_err(in_part(Part::Codes))?;
                check_codes(codes.all(), 0, *distinct).map_err(in_part(Part::Codes))?;
                let (codes, dictionary) = (Binned::new(codes), dictionary(&mut file)?);
                Data::Texts { codes, dictionary, postings: Arc::default() }
            }
            AttributeType::List => {
                let starts = Array::new(file(Part::ListStarts), UINT64, rows + 1);
                let starts: Array<u64> = starts.map_err(in_part(Part::ListStarts))?;
                let end = check_starts(starts.all()).map_err(in_part(Part::ListStarts))?;
                let codes = Array::new(file(Part::Codes), UINT32, end);
                let codes: Array<u32> = codes.map_err(in_part(Part::Codes))?;
                check_codes(codes.all(), 1, *distinct).map_err(in_part(Part::Codes))?;
                let dictionary = dictionary(&mut file)?;
                Data::Lists { starts, codes, dictionary, postings: Arc::default() }
            }
            AttributeType::Stored => {
                let (texts, starts) = (file(Part::Stored), file(Part::BlockStarts));
                let stored = Stored::new(texts, starts, file(Part::BlockRows), rows);
                Data::Stored(stored.map_err(in_part(Part::Stored))?)
            }
        };
        let missing_bits = match missing {
            0 => None,
            _ => {
                let bits = Array::new(file(Part::Missing), UINT64, rows.div_ceil(64));
                let bits: Array<u64> = bits.map_err(in_part(Part::Missing))?;
                let found: usize = bits.all().iter().map(|word| word.count_ones() as usize).sum();
                if found != *missing {
                    let reason = format!("it marks {found} rows, not {missing}");
                    return Err((Part::Missing, reason));
                }
                Some(bits)
            }
        };
        let (name, kind, distinct, missing) = (name.clone(), *kind, *distinct, *missing);
        let description = AttributeDescription { name, kind, distinct, missing };
        Ok(Self { description, rows, missing: missing_bits, data })
    }

    /// The attribute's name.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// The type of its values.
    pub fn kind(&self) -> AttributeType {
        self.description.kind
    }

    /// Name, type and counts.
    pub fn description(&self) -> &AttributeDescription {
        &self.description
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of different values; of a list, of different texts in any of them; of stored texts,
    /// which are not compared, of those that are there.
    pub fn distinct(&self) -> usize {
        self.description.distinct
    }

    /// Number of rows without a value.
    pub fn missing(&self) -> usize {
        self.description.missing
    }

    /// The rows without a value, `[rows / 64, rounded up]`: row `n` is bit `n % 64` of word
    /// `n / 64`, from the lowest bit, and bits behind the last row are 0. `None` if no value is
    /// missing.
    pub fn missing_bits(&self) -> Option<&[u64]> {
        self.missing.as_ref().map(Array::all)
    }

    /// Whether a row has no value.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn is_missing(&self, row: Row) -> bool {
        let index = row.index();
        self.missing_bits().is_some_and(|bits| (bits[index / 64] >> (index % 64)) & 1 == 1)
    }

    /// All values.
    pub fn values(&self) -> Values<'_> {
        match &self.data {
            Data::Integers(values) => Values::Integers(values.all()),
            Data::Numbers(values) => Values::Numbers(values.all()),
            Data::Booleans(values) => Values::Booleans(values.all()),
            Data::DateTimes(values) => Values::DateTimes(values.all()),
            Data::Texts { codes, dictionary, .. } => {
                Values::Texts { codes: codes.all(), dictionary }
            }
            Data::Lists { starts, codes, dictionary, .. } => {
                Values::Lists { starts: starts.all(), codes: codes.all(), dictionary }
            }
            Data::Stored(stored) => Values::Stored(stored),
        }
    }

    /// All values, with an index for tests of all rows. The first call makes it: it reads all
    /// values, which takes some 10 ms for two million, and of lists 20.
    pub fn indexed(&self) -> Indexed<'_> {
        match &self.data {
            Data::Integers(values) => {
                let (values, bins) = values.indexed();
                Indexed::Integers(values, bins)
            }
            Data::Numbers(values) => {
                let (values, bins) = values.indexed();
                Indexed::Numbers(values, bins)
            }
            Data::Booleans(values) => Indexed::Booleans(values.all()),
            Data::DateTimes(values) => {
                let (values, bins) = values.indexed();
                Indexed::DateTimes(values, bins)
            }
            Data::Texts { codes, dictionary, postings } => {
                let (codes, bins) = codes.indexed();
                let make = || Postings::of_texts(codes, dictionary.len());
                let has_rare = has_rare(dictionary);
                let postings = has_rare.then(|| postings.get_or_init(make));
                Indexed::Texts { codes, bins, postings, dictionary }
            }
            Data::Lists { starts, codes, dictionary, postings } => {
                let (starts, codes) = (starts.all(), codes.all());
                let make = || Postings::of_lists(starts, codes, dictionary.len());
                Indexed::Lists { starts, codes, postings: postings.get_or_init(make), dictionary }
            }
            Data::Stored(_) => Indexed::Stored,
        }
    }

    /// Bytes of memory that the index takes once it is made.
    pub(super) fn whole_index_bytes(&self) -> usize {
        match &self.data {
            Data::Integers(values) | Data::DateTimes(values) => values.whole_index_bytes(),
            Data::Numbers(values) => values.whole_index_bytes(),
            Data::Booleans(_) | Data::Stored(_) => 0,
            Data::Texts { codes, dictionary, .. } => {
                let (rows, distinct) = (codes.all().len(), dictionary.len());
                let of_texts =
                    if has_rare(dictionary) { Postings::bytes_of(rows, distinct) } else { 0 };
                codes.whole_index_bytes() + of_texts
            }
            Data::Lists { codes, dictionary, .. } => {
                Postings::bytes_of(codes.all().len(), dictionary.len())
            }
        }
    }

    /// Bytes of memory that the index takes; 0 until it is made.
    pub fn index_bytes(&self) -> usize {
        match &self.data {
            Data::Integers(values) | Data::DateTimes(values) => values.index_bytes(),
            Data::Numbers(values) => values.index_bytes(),
            Data::Booleans(_) | Data::Stored(_) => 0,
            Data::Texts { codes, postings, .. } => {
                codes.index_bytes() + postings.get().map_or(0, Postings::bytes)
            }
            Data::Lists { postings, .. } => postings.get().map_or(0, Postings::bytes),
        }
    }

    /// Bytes that a value of the usual length takes as JSON.
    pub fn usual_bytes(&self) -> usize {
        /// Of a number or a moment.
        const NUMBER_BYTES: usize = 24;
        match self.values() {
            Values::Texts { dictionary, .. } => dictionary.usual_bytes(),
            Values::Lists { codes, dictionary, .. } => {
                (codes.len() * dictionary.usual_bytes()).div_ceil(self.rows.max(1))
            }
            Values::Stored(stored) => stored.usual_bytes(),
            _ => NUMBER_BYTES,
        }
    }

    /// The value of a row; `None` if it is missing.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn get(&self, row: Row) -> Option<Value<'_>> {
        let index = row.index();
        assert!(index < self.rows, "row {row} of {}", self.rows);
        if self.is_missing(row) {
            return None;
        }
        Some(match self.values() {
            Values::Integers(values) => Value::Integer(values[index]),
            Values::Numbers(values) => Value::Number(values[index]),
            Values::Booleans(values) => Value::Boolean(values[index] != 0),
            Values::DateTimes(values) => Value::DateTime(values[index]),
            Values::Texts { codes, dictionary } => Value::Text(dictionary.text(codes[index])?),
            Values::Lists { starts, codes, dictionary } => {
                let codes = &codes[starts[index] as usize..starts[index + 1] as usize];
                let texts = codes.iter().map(|&code| dictionary.text(code).unwrap_or_default());
                Value::List(texts.collect::<Vec<Cow<'_, str>>>())
            }
            Values::Stored(stored) => Value::Text(stored.text(index)?.into()),
        })
    }

    /// Checks all that opening has not: that values which are missing are empty and the others
    /// possible, and the dictionary. `false` if `goes_on` said no.
    pub(super) fn verify(&self, goes_on: &dyn Fn() -> bool) -> Result<bool, Fault> {
        let in_part = |part, reason: &str| Err((part, reason.to_owned()));
        let bits = self.missing_bits().unwrap_or_default();
        let in_last = self.rows % 64;
        if in_last != 0 && bits.last().is_some_and(|last| last >> in_last != 0) {
            return in_part(Part::Missing, "it marks rows behind the last one");
        }
        let agrees = |is_empty: &dyn Fn(usize) -> bool| {
            (0..self.rows as u32).all(|row| self.is_missing(Row(row)) == is_empty(row as usize))
        };
        let missing_are = |is_empty: &dyn Fn(usize) -> bool| {
            let mut missing = (0..self.rows as u32).filter(|&row| self.is_missing(Row(row)));
            missing.all(|row| is_empty(row as usize))
        };
        let (part, is_right) = match self.values() {
            Values::Integers(values) => (Part::Values, missing_are(&|row| values[row] == 0)),
            Values::Numbers(values) => {
                let is_finite = values.iter().all(|value| value.is_finite() || value.is_nan());
                (Part::Values, is_finite && agrees(&|row| values[row].is_nan()))
            }
            Values::Booleans(values) => {
                let is_bit = values.iter().all(|&value| value <= 1);
                (Part::Values, is_bit && missing_are(&|row| values[row] == 0))
            }
            Values::DateTimes(values) => (Part::Values, agrees(&|row| values[row] == i64::MIN)),
            Values::Texts { codes, .. } => (Part::Codes, agrees(&|row| codes[row] == 0)),
            Values::Lists { starts, .. } => {
                (Part::ListStarts, missing_are(&|row| starts[row] == starts[row + 1]))
            }
            Values::Stored(_) => (Part::Stored, true),
        };
        if !is_right {
            return in_part(part, "it contradicts the rows whose values are missing");
        }
        match self.values() {
            Values::Texts { dictionary, .. } | Values::Lists { dictionary, .. } => {
                dictionary.verify(goes_on).map_err(|reason| (Part::Texts, reason))
            }
            Values::Stored(stored) => {
                let is_missing = |row| self.is_missing(Row(row as u32));
                stored.verify(&is_missing, goes_on).map_err(|reason| (Part::Stored, reason))
            }
            _ => Ok(goes_on()),
        }
    }
}

/// Whether texts share bins, so that it takes longer to find the rare ones by their bins.
fn has_rare(dictionary: &Dictionary) -> bool {
    dictionary.len() >= BINS
}

/// Checks that codes are within the dictionary.
fn check_codes(codes: &[u32], least: u32, distinct: usize) -> Result<(), String> {
    let is_right = codes.par_chunks(PER_TASK).all(|codes| {
        // Without an early exit, so that it is vectorised.
        let (min, max) = codes
            .iter()
            .fold((u32::MAX, 0), |(min, max): (u32, u32), &code| (min.min(code), max.max(code)));
        min >= least && max as usize <= distinct
    });
    match is_right {
        true => Ok(()),
        false => Err("it has codes of no text".to_owned()),
    }
}

/// Checks that lists are one behind another. Returns where the last ends.
fn check_starts(starts: &[u64]) -> Result<usize, String> {
    let ascending = starts.windows(2).all(|pair| pair[0] <= pair[1]);
    let end = starts.last().and_then(|&end| usize::try_from(end).ok());
    let end = end.filter(|_| ascending && starts.first() == Some(&0));
    end.ok_or_else(|| "its lists are not one behind another".to_owned())
}
