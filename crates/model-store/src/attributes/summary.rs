//! A column in a few numbers, for people: its smallest and largest or its most frequent values.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::attribute_type::AttributeType;
use super::column::{Column, Values};
use super::description::AttributeDescription;
use super::value::Value;
use contract::Row;

/// A value with the number of rows that have it. JSON has these names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frequent<'a> {
    /// The value; of lists, a text in them.
    pub value: Value<'a>,
    /// Number of rows.
    pub rows: usize,
}

/// A column in a few numbers. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnSummary<'a> {
    /// Name, type and counts.
    #[serde(flatten)]
    pub description: &'a AttributeDescription,
    /// The smallest value of numbers and date-times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Value<'a>>,
    /// The largest value of numbers and date-times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<Value<'a>>,
    /// The most frequent values of texts, lists and booleans; of equally frequent ones, those that
    /// are sorted first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frequent: Vec<Frequent<'a>>,
}

/// Maximum number of frequent texts of an [`AttributeSummary`].
const MAX_FREQUENT: usize = 10;

/// Maximum length of a frequent text of an [`AttributeSummary`], in bytes, so that the description
/// of a model stays small.
const MAX_FREQUENT_BYTES: usize = 64;

/// A text with the number of rows that have it. JSON has these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrequentText {
    /// The text.
    pub value: String,
    /// Number of rows.
    pub rows: usize,
}

/// An attribute in the description of a served model. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeSummary {
    /// Name, type and counts.
    #[serde(flatten)]
    pub description: AttributeDescription,
    /// Of texts and lists, those of the 10 most frequent texts that have at most 64 bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frequent: Vec<FrequentText>,
}

impl AttributeSummary {
    /// That of a column, all of which is read.
    pub(super) fn of(column: &Column) -> Self {
        let has_texts = matches!(column.kind(), AttributeType::Text | AttributeType::List);
        let frequent = if has_texts { column.summary(MAX_FREQUENT).frequent } else { Vec::new() };
        let short = |Frequent { value, rows }: Frequent<'_>| match value {
            Value::Text(text) if text.len() <= MAX_FREQUENT_BYTES => {
                Some(FrequentText { value: text.into_owned(), rows })
            }
            _ => None,
        };
        Self {
            description: column.description().clone(),
            frequent: frequent.into_iter().filter_map(short).collect(),
        }
    }
}

impl Column {
    /// The column in a few numbers, with at most `most` frequent values. Reads all of it, so do not
    /// call it on latency-critical threads.
    pub fn summary(&self, most: usize) -> ColumnSummary<'_> {
        let present = || (0..self.rows()).filter(|&row| !self.is_missing(Row(row as u32)));
        let mut summary = ColumnSummary {
            description: self.description(),
            smallest: None,
            largest: None,
            frequent: Vec::new(),
        };
        let mut range = |values: &[i64], value: fn(i64) -> Value<'static>| {
            summary.smallest = present().map(|row| values[row]).min().map(value);
            summary.largest = present().map(|row| values[row]).max().map(value);
        };
        match self.values() {
            Values::Integers(values) => range(values, Value::Integer),
            Values::DateTimes(values) => range(values, Value::DateTime),
            Values::Numbers(values) => {
                let numbers = || values.iter().copied().filter(|value| !value.is_nan());
                summary.smallest = numbers().min_by(f64::total_cmp).map(Value::Number);
                summary.largest = numbers().max_by(f64::total_cmp).map(Value::Number);
            }
            Values::Booleans(values) => {
                let mut counts = [0_usize; 2];
                present().for_each(|row| counts[usize::from(values[row] != 0)] += 1);
                let value = |index: usize| Some(Value::Boolean(index == 1));
                summary.frequent = most_frequent(&counts, most, value);
            }
            Values::Texts { codes, dictionary } => {
                // Code 0 is a missing value.
                let mut counts = vec![0_usize; dictionary.len() + 1];
                codes.iter().for_each(|&code| counts[code as usize] += 1);
                let value = |index: usize| Some(Value::Text(dictionary.text(index as u32 + 1)?));
                summary.frequent = most_frequent(&counts[1..], most, value);
            }
            Values::Lists { starts, codes, dictionary } => {
                let mut counts = vec![0_usize; dictionary.len()];
                // The last row that has a text, from 1: one that is repeated counts once.
                let mut last = vec![0_usize; dictionary.len()];
                for (row, pair) in (1_usize..).zip(starts.windows(2)) {
                    for &code in &codes[pair[0] as usize..pair[1] as usize] {
                        let index = code as usize - 1;
                        if last[index] != row {
                            last[index] = row;
                            counts[index] += 1;
                        }
                    }
                }
                let value = |index: usize| Some(Value::Text(dictionary.text(index as u32 + 1)?));
                summary.frequent = most_frequent(&counts, most, value);
            }
            // They are not compared.
            Values::Stored(_) => {}
        }
        summary
    }
}

/// The values with the highest counts above 0, by their indices.
fn most_frequent<'a>(
    counts: &[usize],
    most: usize,
    value: impl Fn(usize) -> Option<Value<'a>>,
) -> Vec<Frequent<'a>> {
    let mut order: Vec<usize> = (0..counts.len()).filter(|&index| counts[index] > 0).collect();
    let by_count = |&index: &usize| (Reverse(counts[index]), index);
    if order.len() > most {
        order.select_nth_unstable_by_key(most, by_count);
        order.truncate(most);
    }
    order.sort_unstable_by_key(by_count);
    let frequent = |index: usize| Some(Frequent { value: value(index)?, rows: counts[index] });
    order.into_iter().filter_map(frequent).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Attributes, ColumnBuilder};
    use super::*;

    /// The summary without the name.
    fn summary(kind: AttributeType, values: Vec<Option<Value<'_>>>) -> serde_json::Value {
        let mut column = ColumnBuilder::new("a", kind);
        values.into_iter().for_each(|value| column.push(value));
        let attributes = Attributes::from_columns(vec![column]).unwrap();
        let mut summary = serde_json::to_value(attributes.columns()[0].summary(2)).unwrap();
        assert_eq!(summary.as_object_mut().unwrap().remove("name"), Some(json!("a")));
        summary
    }

    #[test]
    fn a_column_is_told_by_its_range_or_its_frequent_values() {
        use AttributeType::{Boolean, DateTime, Integer, List, Number, Text};
        let text = |text: &'static str| Some(Value::Text(text.into()));
        let list = |texts: &[&'static str]| {
            Some(Value::List(texts.iter().map(|&text| text.into()).collect()))
        };
        let moment = "1970-01-01T00:00:00Z";
        for (found, expected) in [
            (
                summary(Integer, vec![Some(Value::Integer(3)), None, Some(Value::Integer(-5))]),
                json!({
                    "type": "integer", "distinct": 2, "missing": 1,
                    "smallest": -5, "largest": 3,
                }),
            ),
            (
                summary(Number, vec![Some(Value::Number(0.5)), Some(Value::Number(-0.0)), None]),
                json!({
                    "type": "number", "distinct": 2, "missing": 1,
                    "smallest": 0.0, "largest": 0.5,
                }),
            ),
            (
                summary(DateTime, vec![None, Some(Value::DateTime(0))]),
                json!({
                    "type": "date-time", "distinct": 1, "missing": 1,
                    "smallest": moment, "largest": moment,
                }),
            ),
            (
                summary(Boolean, vec![None, Some(Value::Boolean(false)), None]),
                json!({
                    "type": "boolean", "distinct": 1, "missing": 2,
                    "frequent": [{"value": false, "rows": 1}],
                }),
            ),
            (
                summary(Text, vec![text("z"), text("b"), None, text("a"), text("z"), text("")]),
                json!({
                    "type": "text", "distinct": 4, "missing": 1,
                    "frequent": [{"value": "z", "rows": 2}, {"value": "", "rows": 1}],
                }),
            ),
            (
                summary(List, vec![list(&["x", "x"]), None, list(&["y"]), list(&["y", "x", "w"])]),
                json!({
                    "type": "list", "distinct": 3, "missing": 1,
                    "frequent": [{"value": "x", "rows": 2}, {"value": "y", "rows": 2}],
                }),
            ),
            (summary(Integer, vec![None]), json!({"type": "integer", "distinct": 0, "missing": 1})),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_description_has_a_few_short_texts() {
        let mut texts = ColumnBuilder::new("t", AttributeType::Text);
        let mut lists = ColumnBuilder::new("l", AttributeType::List);
        let mut numbers = ColumnBuilder::new("n", AttributeType::Integer);
        let long = "é".repeat(MAX_FREQUENT_BYTES / 2 + 1);
        for row in 0..40 {
            let text = if row < 20 { long.clone() } else { format!("{}", row % 15) };
            texts.push(Some(Value::Text(text.into())));
            lists.push((row > 0).then(|| Value::List(vec!["x".into(), "x".into()])));
            numbers.push(Some(Value::Integer(row)));
        }
        let attributes = Attributes::from_columns(vec![texts, lists, numbers]).unwrap();
        let [texts, lists, numbers] = attributes.summaries() else { panic!("three") };
        assert_eq!(texts.description.distinct, 16);
        let expected = ["5", "6", "7", "8", "9", "0", "1", "10", "11"];
        let found: Vec<&str> = texts.frequent.iter().map(|one| &*one.value).collect();
        assert_eq!(found, expected, "one of ten is too long");
        assert_eq!(lists.frequent, [FrequentText { value: "x".to_owned(), rows: 39 }]);
        assert_eq!(numbers.frequent, []);
        let json = serde_json::to_value(lists).unwrap();
        assert_eq!(
            json,
            json!({
                "name": "l", "type": "list", "distinct": 1, "missing": 1,
                "frequent": [{"value": "x", "rows": 39}],
            })
        );
        assert_eq!(&serde_json::from_value::<AttributeSummary>(json).unwrap(), lists);
    }
}
