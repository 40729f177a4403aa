//! Parquet: read as CSV is, written with the values of JSON lines.

mod read;
mod written;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use serde_json::{Number, Value};

/// A column of a table.
enum Column<'a> {
    Text(&'a [Option<String>]),
    Bytes(&'a [Vec<u8>]),
    Long(&'a [i64]),
    /// Unsigned, by the bits.
    Int(&'a [i32]),
    Double(&'a [f64]),
    Switch(&'a [bool]),
}

/// Writes a table, of which each row group has this number of rows.
fn write(
    path: &Path,
    schema: &str,
    columns: &[Column<'_>],
    (rows, per_group): (usize, usize),
    compression: Compression,
) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    // Small pages, so that a row group has several.
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_data_page_row_count_limit(70)
        .set_write_batch_size(10);
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for first in (0..rows).step_by(per_group) {
        let some = first..rows.min(first + per_group);
        let mut group = writer.next_row_group().unwrap();
        for column in columns {
            let group = &mut group;
            match column {
                Column::Text(texts) => {
                    let texts = &texts[some.clone()];
                    let levels: Vec<i16> =
                        texts.iter().map(|text| i16::from(text.is_some())).collect();
                    let texts = texts.iter().flatten();
                    let texts: Vec<ByteArray> = texts.map(|text| text.as_str().into()).collect();
                    put::<ByteArrayType>(group, &texts, Some(&levels));
                }
                Column::Bytes(all) => {
                    let all: Vec<ByteArray> =
                        all[some.clone()].iter().map(|one| one.clone().into()).collect();
                    put::<ByteArrayType>(group, &all, None);
                }
                Column::Long(all) => put::<Int64Type>(group, &all[some.clone()], None),
                Column::Int(all) => put::<Int32Type>(group, &all[some.clone()], None),
                Column::Double(all) => put::<DoubleType>(group, &all[some.clone()], None),
                Column::Switch(all) => put::<BoolType>(group, &all[some.clone()], None),
            }
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, None).unwrap();
    column.close().unwrap();
}

/// The rows of a file as JSON lines have them.
fn rows(path: &Path) -> Vec<Value> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| object(&row.unwrap())).collect()
}

/// Without what is null, except for an id and the numbers that an explanation may lack.
fn object(row: &Row) -> Value {
    let is_kept = |(name, value): &(&String, Value)| !value.is_null() || *name == "id";
    let fields = row.get_column_iter().map(|(name, field)| (name, json(field)));
    fields.filter(is_kept).map(|(name, value)| (name.clone(), value)).collect()
}

fn json(field: &Field) -> Value {
    let number = |number: f64| Number::from_f64(number).unwrap().into();
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        // JSON has the shortest digits that mean it.
        Field::Float(value) => number(value.to_string().parse().unwrap()),
        Field::Double(value) => number(*value),
        Field::Str(value) => value.as_str().into(),
        Field::Group(row) => object(row),
        Field::ListInternal(list) => list.elements().iter().map(json).collect(),
        Field::MapInternal(map) => {
            let name = |field: &Field| json(field).as_str().unwrap().to_owned();
            map.entries().iter().map(|(key, value)| (name(key), json(value))).collect()
        }
        other => panic!("{other:?}"),
    }
}
