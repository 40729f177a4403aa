//! A graph as Apache Parquet: a line for each edge.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::live_rows::LiveRows;
use super::tables::{Table, Tables};

/// Edges in a row group: what DuckDB reads in one thread. It bounds the memory.
const EDGES_PER_GROUP: u64 = 122_880;

/// `rank` counts from 1. Rows and neighbours are the model's rows. A string of Parquet has no size:
/// it is a large one only while it is written.
fn schema() -> Schema {
    let columns = [
        ("row", DataType::Int64),
        ("word", DataType::LargeUtf8),
        ("rank", DataType::Int32),
        ("neighbor_row", DataType::Int64),
        ("neighbor", DataType::LargeUtf8),
        ("score", DataType::Float64),
    ];
    Schema::new(columns.map(|(name, kind)| Field::new(name, kind, false)).to_vec())
}

/// Writes what both tables have.
pub(super) fn write(to: &Path, tables: &Tables, live: &LiveRows<'_>) -> io::Result<()> {
    let identity = &tables.identity;
    let about = [
        ("kindred.model", identity.model.clone()),
        ("kindred.version", identity.version.clone()),
        ("kindred.metric", identity.metric.clone()),
        ("kindred.k", identity.k.to_string()),
        ("kindred.rows", identity.rows.to_string()),
    ];
    let position = identity.position.map(|position| ("kindred.position", position.to_string()));
    let about = about.into_iter().chain(position);
    let about = about.map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about));
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true)
        .with_schema_root("graph".to_owned());
    let (file, schema) = (BufWriter::new(File::create(to)?), Arc::new(schema()));
    let mut writer = ArrowWriter::try_new_with_options(file, schema.clone(), options)?;
    let rows_per_group = (EDGES_PER_GROUP / identity.k).max(1);
    for first in (0..identity.rows).step_by(rows_per_group as usize) {
        let rows = first..identity.rows.min(first + rows_per_group);
        writer.write(&edges(tables, rows, live, &schema)?)?;
        writer.flush()?;
    }
    writer.into_inner()?.into_inner()?.sync_all()
}

/// The edges of some rows.
fn edges(
    tables: &Tables,
    rows: Range<u64>,
    live: &LiveRows<'_>,
    schema: &SchemaRef,
) -> io::Result<RecordBatch> {
    let (k, mut indices, mut scores) = (tables.identity.k, Vec::new(), Vec::new());
    tables.read(Table::Indices, &rows, &mut indices)?;
    tables.read(Table::Scores, &rows, &mut scores)?;
    let indices = indices.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
    let scores = scores.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
    let (mut edge_rows, mut ranks) = (Vec::new(), Vec::new());
    let (mut neighbors, mut edge_scores) = (Vec::new(), Vec::new());
    for (edge, (neighbor, score)) in (0..).zip(indices.zip(scores)) {
        // A row without k neighbours is filled up with −1.
        if neighbor >= 0 {
            edge_rows.push((rows.start + edge / k) as i64);
            ranks.push((edge % k) as i32 + 1);
            neighbors.push(neighbor);
            edge_scores.push(score);
        }
    }
    let words = |places: &[i64]| {
        let words = places.iter().map(|&place| live.word(place as u64));
        LargeStringArray::from_iter_values(words)
    };
    let (edge_words, neighbor_words) = (words(&edge_rows), words(&neighbors));
    let numbers = |places: Vec<i64>| {
        let numbers = places.into_iter().map(|place| i64::from(live.number(place as u64)));
        Int64Array::from_iter_values(numbers)
    };
    let columns: [ArrayRef; 6] = [
        Arc::new(numbers(edge_rows)),
        Arc::new(edge_words),
        Arc::new(Int32Array::from(ranks)),
        Arc::new(numbers(neighbors)),
        Arc::new(neighbor_words),
        Arc::new(Float64Array::from(edge_scores)),
    ];
    RecordBatch::try_new(schema.clone(), columns.to_vec()).map_err(io::Error::other)
}
