//! Attributes in Parquet: types of its schema, and what no attribute can be.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int32Array,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt64Array,
};
use contract::Row;
use kindred::attributes::AttributeType::{self, Boolean, DateTime, Integer, List, Number, Text};
use kindred::prepare::{AttributesFile, Input, PrepareOptions, Summary, prepare_folder};
use kindred::{ModelError, ModelStore};
use parquet::arrow::ArrowWriter;

use super::PARQUET;

const VECTORS: &str = "a 1 0\nb 0 1\nc 1 1\n";

/// The name of the file of attributes.
const FILE: &str = "attributes.any";

/// A folder for one preparation.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn prepare(&self, vectors: &str, options: &PrepareOptions) -> Result<Summary, ModelError> {
        let input = Input::Bytes { name: "vectors", bytes: vectors.as_bytes() };
        let out = self.path("model");
        prepare_folder(input, &out, options, &mut |_| ControlFlow::Continue(()))
    }

    fn open(&self) -> ModelStore {
        let model = ModelStore::open(&self.path("model")).unwrap();
        model.verify(|_| ()).unwrap();
        model
    }
}

/// The values of an attribute as JSON, row by row, after its type.
fn values(model: &ModelStore, name: &str) -> (AttributeType, Vec<String>) {
    let column = model.attributes().unwrap().column(name).unwrap();
    let value = |row| serde_json::to_string(&column.get(Row(row))).unwrap();
    (column.kind(), (0..model.rows() as u32).map(value).collect())
}

/// Writes these columns in place of the file of attributes.
fn write(scratch: &Scratch, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let file = File::create(scratch.path(FILE)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// The options for vectors with these attributes.
fn options(scratch: &Scratch, columns: Vec<(&str, ArrayRef)>) -> PrepareOptions {
    write(scratch, columns);
    let path = scratch.path(FILE);
    let file = AttributesFile { path, parquet: PARQUET, ..AttributesFile::default() };
    PrepareOptions { attributes: Some(file), ..PrepareOptions::default() }
}

fn lists(rows: &[Option<&[&str]>]) -> ListBuilder<StringBuilder> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        row.iter().copied().flatten().for_each(|text| lists.values().append_value(text));
        lists.append(row.is_some());
    }
    lists
}

#[test]
fn columns_have_the_types_of_the_schema() {
    let scratch = Scratch::new();
    let zoned = TimestampMillisecondArray::from(vec![Some(1500), None, Some(-1)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from(vec![Some("1"), None, Some("")]))),
        ("none", Arc::new(StringArray::from(vec![None::<&str>; 3]))),
        ("tags", Arc::new(lists(&[Some(&["x", "y"]), None, Some(&[])]).finish())),
        ("small", Arc::new(Int32Array::from(vec![Some(-7), None, Some(7)]))),
        ("large", Arc::new(UInt64Array::from(vec![Some(0), None, Some(i64::MAX as u64)]))),
        ("empty", Arc::new(Int32Array::from(vec![None; 3]))),
        ("single", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(-0.0)]))),
        ("double", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(2.0)]))),
        ("truth", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("at", Arc::new(zoned.with_timezone("UTC"))),
        (
            "fine",
            Arc::new(
                TimestampNanosecondArray::from(vec![Some(1999), None, Some(-1)])
                    .with_timezone("UTC"),
            ),
        ),
    ];
    let summary = scratch.prepare(VECTORS, &options(&scratch, columns)).unwrap();
    assert_eq!(summary.warnings, [""; 0]);
    let model = scratch.open();
    for (name, kind, expected) in [
        ("text", Text, [r#""1""#, "null", r#""""#]),
        ("none", Text, ["null"; 3]),
        ("tags", List, [r#"["x","y"]"#, "null", "[]"]),
        ("small", Integer, ["-7", "null", "7"]),
        ("large", Integer, ["0", "null", "9223372036854775807"]),
        ("empty", Integer, ["null"; 3]),
        ("single", Number, ["0.5", "null", "0.0"]),
        ("double", Number, ["0.1", "null", "2.0"]),
        ("truth", Boolean, ["true", "null", "false"]),
        ("at", DateTime, [r#""1970-01-01T00:00:01.5Z""#, "null", r#""1969-12-31T23:59:59.999Z""#]),
        (
            "fine",
            DateTime,
            [r#""1970-01-01T00:00:00.000001Z""#, "null", r#""1969-12-31T23:59:59.999999Z""#],
        ),
    ] {
        assert_eq!(values(&model, name), (kind, expected.map(str::to_owned).into()), "{name}");
    }
}

#[test]
fn timestamps_without_a_zone_are_utc_with_a_warning_and_types_can_be_given() {
    let scratch = Scratch::new();
    let micros = vec![Some(0), None, Some(1_000_000)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("at", Arc::new(TimestampMicrosecondArray::from(micros))),
        ("n", Arc::new(Int32Array::from(vec![1, 2, 3]))),
    ];
    let mut options = options(&scratch, columns);
    options.attributes.as_mut().unwrap().types.push(("n".to_owned(), Text));
    let summary = scratch.prepare(VECTORS, &options).unwrap();
    let expected = "the timestamps of `at` have no time zone, and were taken for UTC";
    assert!(summary.warnings.iter().any(|one| one.contains(expected)), "{:?}", summary.warnings);
    let model = scratch.open();
    let [first, second] = ["at", "n"].map(|name| values(&model, name));
    assert_eq!((first.0, &*first.1[2]), (DateTime, r#""1970-01-01T00:00:01Z""#));
    assert_eq!((second.0, &*second.1[0]), (Text, r#""1""#));
}

#[test]
fn many_rows_are_joined_by_their_words() {
    const ROWS: usize = 5000;
    let scratch = Scratch::new();
    let vectors: String = (0..ROWS).map(|row| format!("w{row} 1 {row}\n")).collect();
    let words = (0..ROWS).rev().map(|row| Some(format!("w{row}")));
    let numbers = (0..ROWS as i32).rev().collect::<Vec<_>>();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(words.collect::<StringArray>())),
        ("n", Arc::new(Int32Array::from(numbers))),
    ];
    let mut options = options(&scratch, columns);
    options.attributes.as_mut().unwrap().key = Some("id".to_owned());
    scratch.prepare(&vectors, &options).unwrap();
    let (kind, found) = values(&scratch.open(), "n");
    assert_eq!(kind, Integer);
    assert!(found.iter().enumerate().all(|(row, value)| *value == row.to_string()));
}

#[test]
fn what_no_attribute_can_be_is_refused_with_its_name() {
    let mut with_null = lists(&[Some(&["x"]), None]);
    with_null.values().append_null();
    with_null.append(true);
    let decimal = Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(10, 2).unwrap();
    let late = TimestampMillisecondArray::from(vec![0, i64::MAX, 0]).with_timezone("UTC");
    let columns: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(decimal), "its column `bad` has the type Decimal128(10, 2)"),
        (Arc::new(Date32Array::from(vec![1, 2, 3])), "its column `bad` has the type Date32"),
        (Arc::new(Float64Array::from(vec![0.0, f64::NAN, 1.0])), "row 2: `bad` is not a finite"),
        (Arc::new(UInt64Array::from(vec![1, 2, u64::MAX])), "row 3: `bad` is a whole number"),
        (Arc::new(with_null.finish()), "row 3: `bad` has a list with a null in it"),
        (Arc::new(late), "row 2: `bad` is before the year 0 or after 9999"),
    ];
    for (column, part) in columns {
        let scratch = Scratch::new();
        let good: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let options = options(&scratch, vec![("good", good), ("bad", column)]);
        let error = scratch.prepare(VECTORS, &options).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(FILE), "{part}: {error}");
    }
    // A model has as many lines as rows, whatever the format.
    let scratch = Scratch::new();
    let short: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let error = scratch.prepare(VECTORS, &options(&scratch, vec![("n", short)])).unwrap_err();
    assert!(error.to_string().contains("2 lines of attributes"), "{error}");
}

#[test]
fn a_name_of_two_columns_and_a_reader_that_is_missing_are_told() {
    let scratch = Scratch::new();
    let column = || -> ArrayRef { Arc::new(Int32Array::from(vec![1, 2, 3])) };
    let twice = options(&scratch, vec![("a", column()), ("a", column())]);
    let error = scratch.prepare(VECTORS, &twice).unwrap_err().to_string();
    assert!(error.contains("two columns have the name \"a\"; rename one"), "{error}");
    let mut options = options(&scratch, vec![("a", column())]);
    options.attributes.as_mut().unwrap().parquet = None;
    let error = scratch.prepare(VECTORS, &options).unwrap_err().to_string();
    assert!(error.contains("--features parquet"), "{error}");
}

#[test]
fn a_damaged_file_is_an_error_and_never_a_panic() {
    let scratch = Scratch::new();
    let column: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let options = options(&scratch, vec![("a", column)]);
    let whole = fs::read(scratch.path(FILE)).unwrap();
    for end in (4..whole.len()).step_by(7) {
        fs::write(scratch.path(FILE), &whole[..end]).unwrap();
        assert!(scratch.prepare(VECTORS, &options).is_err(), "{end}");
    }
    for at in (4..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        fs::write(scratch.path(FILE), damaged).unwrap();
        // A checksum that nobody wrote finds nothing; but no damage ends the process.
        let _ = scratch.prepare(VECTORS, &options);
        let _ = fs::remove_dir_all(scratch.path("model"));
    }
}
