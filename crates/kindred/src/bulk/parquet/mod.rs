//! Answers as Apache Parquet, made of the lines of JSON in which the work keeps them.

mod columns;
mod shred;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use columns::{Leaf, Values};
use shred::Shredder;

/// A row group ends after the row that makes it longer than one of these: rows that DuckDB reads in
/// one thread, and the length of their JSON, which bounds the memory.
const ROWS_PER_GROUP: usize = 122_880;
const BYTES_PER_GROUP: usize = 64 << 20;

/// Writes the rows, which are lines of JSON of this schema.
pub(super) fn write(
    to: &Path,
    mut rows: &File,
    schema: &str,
    about: &[(&str, String)],
) -> io::Result<()> {
    let schema = Arc::new(parse_message_type(schema)?);
    let about = about.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about.collect()));
    let mut shredder = Shredder::new(&schema);
    let file = BufWriter::new(File::create(to)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    rows.rewind()?;
    let mut rows = BufReader::with_capacity(1 << 20, rows);
    let (mut line, mut in_group, mut bytes) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let length = rows.read_until(b'\n', &mut line)?;
        if length > 0 {
            shredder.add(&line)?;
            (in_group, bytes) = (in_group + 1, bytes + length);
        }
        let is_full = in_group >= ROWS_PER_GROUP || bytes >= BYTES_PER_GROUP;
        if is_full || (length == 0 && in_group > 0) {
            let mut group = writer.next_row_group()?;
            for leaf in shredder.take() {
                write_leaf(&mut group, &leaf)?;
            }
            group.close()?;
            (in_group, bytes) = (0, 0);
        }
        if length == 0 {
            return writer.into_inner()?.into_inner()?.sync_all();
        }
    }
}

fn write_leaf(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    leaf: &Leaf,
) -> io::Result<()> {
    match &leaf.values {
        Values::Strings(values) => column::<ByteArrayType>(group, leaf, values),
        Values::Doubles(values) => column::<DoubleType>(group, leaf, values),
        Values::Floats(values) => column::<FloatType>(group, leaf, values),
        Values::Whole(values) => column::<Int64Type>(group, leaf, values),
        Values::Switches(values) => column::<BoolType>(group, leaf, values),
    }
}

/// The next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    leaf: &Leaf,
    values: &[T::T],
) -> io::Result<()> {
    let missing = || io::Error::other("the schema has no more columns");
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let (defined, repeated) = (Some(&leaf.defined[..]), Some(&leaf.repeated[..]));
    column.typed::<T>().write_batch(values, defined, repeated)?;
    Ok(column.close()?)
}
