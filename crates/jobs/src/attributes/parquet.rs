//! Attributes in Parquet: the columns of the file, with the types of its schema.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, downcast_integer_array};
use arrow_schema::{DataType, Field as Column, TimeUnit};
use kindred::attributes::{AttributeType, is_date_time};
use kindred::prepare::{Field, TableReader, TakeRow};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use crate::damaged::guarded;

/// Rows that are decoded together.
const TOGETHER: usize = 1024;

/// Attributes in Parquet.
#[derive(Debug)]
pub(super) struct Parquet;

impl TableReader for Parquet {
    fn columns(&self, file: File) -> Result<Vec<(String, AttributeType)>, String> {
        let builder = open(file)?;
        let column = |column: &Arc<Column>| Ok((column.name().to_owned(), kind_of(column)?));
        builder.schema().fields().iter().map(column).collect()
    }

    fn read(&self, file: File, take: TakeRow<'_>) -> Result<Option<String>, String> {
        let builder = open(file)?;
        let schema = builder.schema().clone();
        let rows = builder.metadata().file_metadata().num_rows();
        let mut reader = guarded(|| builder.with_batch_size(TOGETHER).build())?;
        let mut number: i64 = 0;
        while let Some(batch) = guarded(|| reader.next().transpose())? {
            for row in 0..batch.num_rows() {
                number += 1;
                let field = |(index, column)| {
                    let name = |reason| format!("`{}` {reason}", schema.field(index).name());
                    field(column, row).map_err(name)
                };
                let fields: Result<Vec<_>, _> =
                    batch.columns().iter().enumerate().map(field).collect();
                let taken = fields.and_then(|fields| take(&fields));
                taken.map_err(|reason| format!("row {number}: {reason}"))?;
            }
        }
        if number != rows {
            return Err(format!("it has {number} of its {rows} rows; write it again"));
        }
        Ok(without_zone(schema.fields()))
    }
}

fn open(file: File) -> Result<ParquetRecordBatchReaderBuilder<File>, String> {
    // Some programs leave other types of theirs beside those of the format.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(file, options))
}

/// The type of a column.
fn kind_of(column: &Column) -> Result<AttributeType, String> {
    match column.data_type() {
        // Of a column that is always null, nothing else is known.
        DataType::Utf8 | DataType::Null => Ok(AttributeType::Text),
        DataType::List(item) if *item.data_type() == DataType::Utf8 => Ok(AttributeType::List),
        kind if kind.is_integer() => Ok(AttributeType::Integer),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Ok(AttributeType::Number),
        DataType::Boolean => Ok(AttributeType::Boolean),
        DataType::Timestamp(..) => Ok(AttributeType::DateTime),
        kind => Err(format!(
            "its column `{}` has the type {kind}, which no attribute has; cast it to strings, lists \
             of strings, whole numbers, floats, booleans or timestamps, or leave it out",
            column.name()
        )),
    }
}

/// A warning about timestamps of which nobody knows the time zone.
fn without_zone<'a>(columns: impl IntoIterator<Item = &'a Arc<Column>>) -> Option<String> {
    let is_local =
        |column: &&Arc<Column>| matches!(column.data_type(), DataType::Timestamp(_, None));
    let local = columns.into_iter().filter(is_local).map(|column| format!("`{}`", column.name()));
    let local: Vec<String> = local.collect();
    let names = local.join(", ");
    (!local.is_empty())
        .then(|| format!("the timestamps of {names} have no time zone, and were taken for UTC"))
}

/// The value of a row.
fn field(column: &ArrayRef, row: usize) -> Result<Field<'_>, String> {
    if column.is_null(row) {
        return Ok(Field::Missing);
    }
    Ok(downcast_integer_array!(
        column => {
            let number = i64::try_from(i128::from(column.value(row)));
            Field::Integer(number.map_err(|_| "is a whole number that 64 bits with a sign can't hold")?)
        },
        DataType::Null => Field::Missing,
        DataType::Utf8 => Field::Text(Cow::Borrowed(column.as_string::<i32>().value(row))),
        DataType::List(_) => list(&column.as_list::<i32>().value(row))?,
        DataType::Float16 => number(column.as_primitive::<Float16Type>().value(row).to_f64())?,
        DataType::Float32 => number(column.as_primitive::<Float32Type>().value(row).into())?,
        DataType::Float64 => number(column.as_primitive::<Float64Type>().value(row))?,
        DataType::Boolean => Field::Boolean(column.as_boolean().value(row)),
        DataType::Timestamp(unit, _) => date_time(column, row, *unit)?,
        other => return Err(format!("has the type {other}")),
    ))
}

fn number(number: f64) -> Result<Field<'static>, String> {
    match number.is_finite() {
        true => Ok(Field::Number(number)),
        false => Err(format!("is not a finite number: {number}; write null if it is missing")),
    }
}

fn list(texts: &ArrayRef) -> Result<Field<'static>, String> {
    let text = |text: Option<&str>| text.map(|text| Cow::Owned(text.to_owned()));
    let texts: Option<Vec<_>> = texts.as_string::<i32>().iter().map(text).collect();
    texts.map(Field::List).ok_or_else(|| "has a list with a null in it; remove it".to_owned())
}

/// Digits of a second after the sixth are left out, as everywhere.
fn date_time(column: &ArrayRef, row: usize, unit: TimeUnit) -> Result<Field<'static>, String> {
    let micros = match unit {
        TimeUnit::Second => {
            column.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000)
        }
        TimeUnit::Millisecond => {
            column.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1000)
        }
        TimeUnit::Microsecond => Some(column.as_primitive::<TimestampMicrosecondType>().value(row)),
        TimeUnit::Nanosecond => {
            Some(column.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000))
        }
    };
    let micros = micros.filter(|&micros| is_date_time(micros));
    micros.map(Field::DateTime).ok_or_else(|| "is before the year 0 or after 9999".to_owned())
}
