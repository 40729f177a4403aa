//! A graph as Apache Parquet: a line for each edge.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use contract::Row;
use model_store::ModelStore;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::npz::Rows;
use super::tables::{Tables, read_at};

/// Edges in a row group: what DuckDB reads in one thread. It bounds the memory.
const EDGES_PER_GROUP: u64 = 122_880;

/// `rank` counts from 1. Rows and neighbours are the model's rows.
const SCHEMA: &str = "message graph {
    REQUIRED INT64 row;
    REQUIRED BYTE_ARRAY word (UTF8);
    REQUIRED INT32 rank;
    REQUIRED INT64 neighbor_row;
    REQUIRED BYTE_ARRAY neighbor (UTF8);
    REQUIRED DOUBLE score;
}";

/// The columns of a row group.
#[derive(Default)]
struct Columns {
    rows: Vec<i64>,
    words: Vec<ByteArray>,
    ranks: Vec<i32>,
    neighbor_rows: Vec<i64>,
    neighbors: Vec<ByteArray>,
    scores: Vec<f64>,
}

/// Writes what both tables have.
pub(super) fn write(to: &Path, tables: &Tables, model: &ModelStore) -> io::Result<()> {
    let identity = &tables.identity;
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let about = [
        ("kindred.model", identity.model.clone()),
        ("kindred.version", identity.version.clone()),
        ("kindred.metric", identity.metric.clone()),
        ("kindred.k", identity.k.to_string()),
        ("kindred.rows", identity.rows.to_string()),
    ];
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about));
    let file = BufWriter::new(File::create(to)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    let rows_per_group = (EDGES_PER_GROUP / identity.k).max(1);
    let mut columns = Columns::default();
    let mut first = 0;
    while first < identity.rows {
        let end = identity.rows.min(first + rows_per_group);
        columns.read(tables, first..end, model)?;
        first = end;
        if !columns.rows.is_empty() {
            let mut group = writer.next_row_group()?;
            columns.write(&mut group)?;
            group.close()?;
        }
    }
    writer.into_inner()?.into_inner()?.sync_all()
}

impl Columns {
    /// The edges of some rows.
    fn read(
        &mut self,
        tables: &Tables,
        rows: std::ops::Range<u64>,
        model: &ModelStore,
    ) -> io::Result<()> {
        *self = Self::default();
        let k = tables.identity.k;
        let read = |table| {
            let mut bytes = vec![0; ((rows.end - rows.start) * k * 8) as usize];
            read_at(&tables.file, tables.layout.at(table, rows.start), &mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        let (indices, scores) = (read(Rows::Indices)?, read(Rows::Scores)?);
        let indices = indices.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
        let scores = scores.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        let word = |row: i64| ByteArray::from(model.words().word(Row(row as u32)));
        for (edge, (neighbor, score)) in indices.zip(scores).enumerate() {
            // A row without k neighbours is filled up with −1.
            if neighbor < 0 {
                continue;
            }
            let row = (rows.start + edge as u64 / k) as i64;
            self.rows.push(row);
            self.words.push(word(row));
            self.ranks.push((edge as u64 % k) as i32 + 1);
            self.neighbor_rows.push(neighbor);
            self.neighbors.push(word(neighbor));
            self.scores.push(score);
        }
        Ok(())
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>) -> io::Result<()> {
        column::<Int64Type>(group, &self.rows)?;
        column::<ByteArrayType>(group, &self.words)?;
        column::<Int32Type>(group, &self.ranks)?;
        column::<Int64Type>(group, &self.neighbor_rows)?;
        column::<ByteArrayType>(group, &self.neighbors)?;
        column::<DoubleType>(group, &self.scores)
    }
}

/// The next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    values: &[T::T],
) -> io::Result<()> {
    let missing = || io::Error::other("the schema has no more columns");
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}
