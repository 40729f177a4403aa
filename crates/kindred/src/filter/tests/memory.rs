//! Attributes in memory, for tests of filters.

use std::ops::Range;

use contract::Row;

use crate::filter::{Column, Columns, Dictionary, FilterError, Values, check, parse};

/// The attributes of a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    pub(super) year: Option<i64>,
    pub(super) price: Option<f64>,
    pub(super) sold: Option<bool>,
    pub(super) made: Option<i64>,
    pub(super) brand: Option<String>,
    pub(super) tags: Option<Vec<String>>,
}

/// Sorted texts; the first has the code 1.
struct Sorted(Vec<String>);

impl Dictionary for Sorted {
    fn code(&self, text: &str) -> Option<u32> {
        self.0.binary_search_by(|own| (**own).cmp(text)).ok().map(|index| index as u32 + 1)
    }

    fn starting_with(&self, prefix: &str) -> Range<u32> {
        let first = self.0.partition_point(|own| &own[..] < prefix);
        let end = first + self.0[first..].partition_point(|own| own.starts_with(prefix));
        first as u32 + 1..end as u32 + 1
    }
}

/// The columns of some rows, whose words are `w0`, `w1` and so on.
pub(super) struct Memory {
    rows: usize,
    texts: Sorted,
    years: (Vec<i64>, Vec<u64>),
    prices: (Vec<f64>, Vec<u64>),
    sold: (Vec<u8>, Vec<u64>),
    made: (Vec<i64>, Vec<u64>),
    brands: (Vec<u32>, Vec<u64>),
    starts: Vec<u64>,
    tags: (Vec<u32>, Vec<u64>),
}

const NAMES: [&str; 6] = ["year", "price", "sold", "made", "brand", "tags"];

impl Memory {
    pub(super) fn new(items: &[Item]) -> Self {
        let brands = items.iter().filter_map(|item| item.brand.clone());
        let tags = items.iter().filter_map(|item| item.tags.clone()).flatten();
        let mut texts: Vec<String> = brands.chain(tags).collect();
        texts.sort();
        texts.dedup();
        let texts = Sorted(texts);
        let code = |text: &String| texts.code(text).unwrap();
        let mut starts = vec![0];
        let mut tags = Vec::new();
        for item in items {
            tags.extend(item.tags.iter().flatten().map(code));
            starts.push(tags.len() as u64);
        }
        Self {
            rows: items.len(),
            years: column(items, |item| item.year, 1),
            prices: column(items, |item| item.price, f64::NAN),
            sold: column(items, |item| item.sold.map(u8::from), 0),
            made: column(items, |item| item.made, i64::MIN),
            brands: column(items, |item| item.brand.as_ref().map(code), 0),
            tags: (tags, column(items, |item| item.tags.as_ref().map(|_| 0), 0).1),
            starts,
            texts,
        }
    }

    /// The rows that meet a filter.
    pub(super) fn found(&self, filter: &str) -> Result<Vec<u32>, FilterError> {
        let bitmap = check(&parse(filter)?, self)?.bitmap("v");
        Ok(bitmap.members_in(0..self.rows).map(|row| row.0).collect())
    }
}

/// Values, and bits of those that are missing.
fn column<T: Copy>(
    items: &[Item],
    value: impl Fn(&Item) -> Option<T>,
    missing: T,
) -> (Vec<T>, Vec<u64>) {
    let mut bits = vec![0; items.len().div_ceil(64)];
    for (row, item) in items.iter().enumerate() {
        bits[row / 64] |= u64::from(value(item).is_none()) << (row % 64);
    }
    (items.iter().map(|item| value(item).unwrap_or(missing)).collect(), bits)
}

impl Columns for Memory {
    fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, name: &str) -> Option<Column<'_>> {
        let dictionary = &self.texts;
        let (values, missing) = match name {
            "year" => (Values::Integers(&self.years.0), &self.years.1),
            "price" => (Values::Numbers(&self.prices.0), &self.prices.1),
            "sold" => (Values::Booleans(&self.sold.0), &self.sold.1),
            "made" => (Values::DateTimes(&self.made.0), &self.made.1),
            "brand" => (Values::Texts { codes: &self.brands.0, dictionary }, &self.brands.1),
            "tags" => {
                let (starts, codes) = (&self.starts[..], &self.tags.0[..]);
                (Values::Lists { starts, codes, dictionary }, &self.tags.1)
            }
            _ => return None,
        };
        let is_whole = missing.iter().all(|&word| word == 0);
        Some(Column { values, missing: (!is_whole).then_some(&missing[..]) })
    }

    fn names(&self) -> Vec<String> {
        NAMES.map(str::to_owned).into()
    }

    fn row(&self, key: &str) -> Option<Row> {
        let row = key.strip_prefix('w')?.parse().ok()?;
        ((row as usize) < self.rows).then_some(Row(row))
    }

    /// Seconds of one minute are enough here.
    fn date_time(&self, text: &str) -> Option<i64> {
        let seconds = text.strip_prefix("1970-01-01T00:00:")?.strip_suffix('Z')?;
        Some(seconds.parse::<i64>().ok()? * 1_000_000)
    }
}
