//! Random tables: in memory, out as CSV and JSON lines, and back from both.

use std::fs;
use std::ops::ControlFlow;

use contract::Row;
use model_store::ModelStore;
use model_store::attributes::{
    AttributeError, AttributeType, Attributes, Value, Values, format_date_time,
};
use model_store::export::{ExportOptions, export};
use model_store::prepare::VectorsFormat;
use proptest::prelude::*;

use super::support::{column, typed, with};
use crate::formats::support::Scratch;

type Texts = Vec<Option<String>>;

/// The values of a row.
type RowValues =
    (Option<String>, Option<Vec<String>>, Option<i64>, Option<f64>, Option<bool>, Option<i64>);

/// The years that RFC 3339 can write.
const MOMENTS: std::ops::RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

fn row() -> impl Strategy<Value = RowValues> {
    let text = "[a-c\"\\\\,;\n\té ]{0,3}";
    let number = prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL;
    (
        prop::option::of(text),
        prop::option::of(prop::collection::vec(text, 0..4)),
        prop::option::of(prop_oneof![-3_i64..3, any::<i64>()]),
        prop::option::of(number),
        prop::option::of(any::<bool>()),
        prop::option::of(MOMENTS),
    )
}

fn list(texts: &[String]) -> Value<'_> {
    Value::List(texts.iter().map(|text| text.as_str().into()).collect())
}

/// A model with attributes of these rows.
fn model_of(rows: &[RowValues]) -> ModelStore {
    let columns = vec![
        column(
            "text",
            AttributeType::Text,
            rows.iter().map(|row| row.0.as_deref().map(|text| Value::Text(text.into()))),
        ),
        column("list", AttributeType::List, rows.iter().map(|row| row.1.as_deref().map(list))),
        column("whole", AttributeType::Integer, rows.iter().map(|row| row.2.map(Value::Integer))),
        column("number", AttributeType::Number, rows.iter().map(|row| row.3.map(Value::Number))),
        column("truth", AttributeType::Boolean, rows.iter().map(|row| row.4.map(Value::Boolean))),
        column("at", AttributeType::DateTime, rows.iter().map(|row| row.5.map(Value::DateTime))),
    ];
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let model = ModelStore::from_rows("m", 2, words.iter().map(|word| (&**word, &[1.0, 0.5][..])));
    let attributes = Attributes::from_columns(columns).unwrap();
    model.unwrap().with_attributes(attributes).unwrap()
}

fn all_values(model: &ModelStore) -> Vec<Vec<Option<Value<'_>>>> {
    let attributes = model.attributes().unwrap();
    let rows = (0..model.rows() as u32).map(Row);
    rows.map(|row| attributes.get(row).map(|(_, value)| value).collect()).collect()
}

/// Prepares what a model was exported to, with its types.
fn again(model: &ModelStore, name: &str, is_typed: bool) -> Scratch {
    let scratch = Scratch::new();
    let options = ExportOptions {
        format: VectorsFormat::Word2vec,
        out: Some(scratch.path("exported")),
        words: None,
        biases: None,
        attributes: Some(scratch.path(name)),
        replace: true,
    };
    export(model, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let mut options = with(&scratch, fs::read(scratch.path(name)).unwrap());
    for column in model.attributes().unwrap().columns().iter().filter(|_| is_typed) {
        options = typed(options, column.name(), column.kind());
    }
    let vectors = fs::read(scratch.path("exported")).unwrap();
    scratch.prepare(vectors, &options).unwrap();
    scratch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_table_reads_as_it_was_written(rows in prop::collection::vec(row(), 1..150)) {
        let model = model_of(&rows);
        model.verify(|_| ()).unwrap();
        let attributes = model.attributes().unwrap();
        for (row, expected) in rows.iter().enumerate() {
            let found: Vec<_> = attributes.get(Row(row as u32)).map(|(_, value)| value).collect();
            prop_assert_eq!(&found[0], &expected.0.as_deref().map(|text| Value::Text(text.into())));
            prop_assert_eq!(&found[1], &expected.1.as_deref().map(list));
            prop_assert_eq!(&found[2], &expected.2.map(Value::Integer));
            prop_assert_eq!(&found[3], &expected.3.map(Value::Number));
            prop_assert_eq!(&found[4], &expected.4.map(Value::Boolean));
            prop_assert_eq!(&found[5], &expected.5.map(Value::DateTime));
            for (column, value) in attributes.columns().iter().zip(&found) {
                prop_assert_eq!(column.is_missing(Row(row as u32)), value.is_none());
            }
        }
        let mut texts: Vec<&String> = rows.iter().filter_map(|row| row.0.as_ref()).collect();
        texts.sort();
        texts.dedup();
        let text = attributes.column("text").unwrap();
        let Values::Texts { dictionary, .. } = text.values() else { panic!("texts") };
        prop_assert!(dictionary.texts().eq(texts.iter().map(|text| &***text)));
        prop_assert_eq!(text.distinct(), texts.len());
        let mut numbers: Vec<f64> = rows.iter().filter_map(|row| row.3).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        prop_assert_eq!(attributes.column("number").unwrap().distinct(), numbers.len());
        let missing = rows.iter().filter(|row| row.5.is_none()).count();
        let bits = attributes.column("at").unwrap().missing_bits();
        prop_assert_eq!(bits.is_some(), missing > 0);
        let ones: u32 = bits.unwrap_or_default().iter().map(|word| word.count_ones()).sum();
        prop_assert_eq!(ones as usize, missing);
    }
}

proptest! {
    // Each case writes folders, and syncs them to disk.
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn json_lines_read_back_as_the_same_attributes(
        rows in prop::collection::vec(row(), 1..20),
    ) {
        let model = model_of(&rows);
        let scratch = again(&model, "a.jsonl", true);
        let found = scratch.open();
        prop_assert_eq!(all_values(&found), all_values(&model));
        prop_assert_eq!(found.version(), model.version());
    }

    #[test]
    fn csv_reads_back_but_for_empty_texts(rows in prop::collection::vec(row(), 1..20)) {
        let without_empty = |mut row: RowValues| {
            row.0 = row.0.filter(|text| !text.is_empty());
            row
        };
        let rows: Vec<RowValues> = rows.into_iter().map(without_empty).collect();
        let model = model_of(&rows);
        let scratch = again(&model, "a.csv", true);
        let found = scratch.open();
        prop_assert_eq!(all_values(&found), all_values(&model));
    }
}

#[test]
fn a_column_of_gaps_reads_back_from_csv() {
    let gaps: Texts = vec![None, Some("x".to_owned()), None];
    let values = gaps.iter().map(|text| text.as_deref().map(|text| Value::Text(text.into())));
    let attributes = Attributes::from_columns(vec![column("a", AttributeType::Text, values)]);
    let rows: [(&str, &[f32]); 3] = [("p", &[1.0]), ("q", &[2.5]), ("r", &[3.0])];
    let model = ModelStore::from_rows("m", 1, rows).unwrap();
    let model = model.with_attributes(attributes.unwrap()).unwrap();
    let scratch = again(&model, "a.csv", false);
    assert_eq!(scratch.open().version(), model.version());
}

#[test]
fn an_export_names_what_it_can_not_write() {
    let scratch = Scratch::new();
    let rows: [(&str, &[f32]); 1] = [("a", &[1.0])];
    let write = |model: &ModelStore, name: &str| {
        let options = ExportOptions {
            format: VectorsFormat::Glove,
            out: Some(scratch.path("out")),
            words: None,
            biases: None,
            attributes: Some(scratch.path(name)),
            replace: false,
        };
        let error = export(model, &options, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert!(!scratch.path("out").exists());
        error.to_string()
    };
    let model = ModelStore::from_rows("m", 1, rows).unwrap();
    let said = write(&model, "a.csv");
    assert!(said.contains("it has no attributes; omit --attributes-out"), "{said}");
    let at = column("at", AttributeType::DateTime, [Some(Value::DateTime(0))]);
    let attributes = Attributes::from_columns(vec![at]).unwrap();
    let model = model.with_attributes(attributes).unwrap();
    let said = write(&model, "a.parquet");
    assert!(said.contains("in .csv or .jsonl"), "{said}");
    assert_eq!(format_date_time(0), "1970-01-01T00:00:00Z");
}

#[test]
fn columns_that_are_no_attributes_are_refused() {
    let of = |name: &str, rows: usize| {
        column(name, AttributeType::Integer, (0..rows as i64).map(|n| Some(Value::Integer(n))))
    };
    let refused = |columns| Attributes::from_columns(columns).unwrap_err();
    assert!(matches!(refused(vec![]), AttributeError::Number { found: 0 }));
    assert!(matches!(refused(vec![of("a b", 1)]), AttributeError::Name(_)));
    assert!(matches!(refused(vec![of("a", 1), of("a", 1)]), AttributeError::Repeated { .. }));
    let rows = refused(vec![of("a", 2), of("b", 3)]).to_string();
    assert!(rows.contains("the attribute `b` has 3 values for 2 rows"), "{rows}");
    let three = Attributes::from_columns(vec![of("a", 3)]).unwrap();
    let one: [(&str, &[f32]); 1] = [("a", &[1.0])];
    let model = ModelStore::from_rows("m", 1, one).unwrap();
    let error = model.with_attributes(three).unwrap_err().to_string();
    assert!(error.contains("the attribute `a` has 3 values for 1 rows"), "{error}");
}
