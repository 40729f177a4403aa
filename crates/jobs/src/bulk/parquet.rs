//! Answers as Apache Parquet, made of the lines of JSON in which the work keeps them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek};
use std::path::Path;
use std::sync::Arc;

use arrow_json::ReaderBuilder;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

/// A row group ends after the row that makes it longer than one of these: rows that DuckDB reads in
/// one thread, and the length of their JSON, which bounds the memory.
const ROWS_PER_GROUP: usize = 122_880;
const BYTES_PER_GROUP: usize = 64 << 20;
/// Rows become columns together up to the row that makes them longer than one of these.
const ROWS_TOGETHER: usize = 1024;
const BYTES_TOGETHER: usize = 1 << 20;

/// Writes the rows, which are lines of JSON of this schema.
pub(super) fn write(
    to: &Path,
    mut rows: &File,
    schema: &str,
    about: &[(&str, &str)],
) -> io::Result<()> {
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(schema)?));
    let columns = Arc::new(parquet_to_arrow_schema(&schema, None)?);
    let about = about.iter().map(|&(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about.collect()));
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(schema);
    let file = BufWriter::new(File::create(to)?);
    let mut writer = ArrowWriter::try_new_with_options(file, columns.clone(), options)?;
    let lines = ReaderBuilder::new(columns).with_strict_mode(true).with_batch_size(ROWS_TOGETHER);
    let mut decoder = lines.build_decoder().map_err(io::Error::other)?;
    rows.rewind()?;
    let mut rows = BufReader::with_capacity(1 << 20, rows);
    let (mut line, mut in_group, mut together) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let length = rows.read_until(b'\n', &mut line)?;
        decoder.decode(&line).map_err(io::Error::other)?;
        (in_group, together) = (in_group + length, together + length);
        let group_rows = writer.in_progress_rows() + decoder.len();
        let is_full = group_rows >= ROWS_PER_GROUP || in_group >= BYTES_PER_GROUP;
        let is_enough = decoder.len() >= ROWS_TOGETHER || together >= BYTES_TOGETHER;
        if is_enough || is_full || length == 0 {
            if let Some(columns) = decoder.flush().map_err(io::Error::other)? {
                writer.write(&columns)?;
            }
            together = 0;
        }
        if is_full {
            writer.flush()?;
            in_group = 0;
        }
        if length == 0 {
            return writer.into_inner()?.into_inner()?.sync_all();
        }
    }
}
