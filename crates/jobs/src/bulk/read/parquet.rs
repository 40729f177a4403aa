//! Rows of Parquet: of the file's columns, only the one with the text and the one with the id are
//! read, some rows at a time.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, downcast_primitive_array};
use arrow_schema::{ArrowError, DataType};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{BasicTypeInfo, SchemaDescriptor, Type};

use super::{Fault, Job, JobError, MOST_ROW_BYTES, Piece, Position, Rows, too_large};
use crate::damaged;

/// Rows that are decoded together. An array takes 2 GiB of text: twice as much as these may have.
const TOGETHER: usize = 64;

/// The columns of a file that are read.
pub(super) struct Columns {
    reader: ParquetRecordBatchReader,
    /// In messages.
    name: String,
    /// Places of the text and the id among the columns that are read.
    text: usize,
    id: Option<usize>,
    /// Rows that are decoded, and how many of them were used.
    batch: RecordBatch,
    at: usize,
    /// Rows that were used, and all that the file has.
    rows: u64,
    all_rows: u64,
    file_bytes: u64,
    /// Bytes of the values that were used, and their hash.
    used: u64,
    hasher: blake3::Hasher,
}

/// The text of a row, and its id; `None` where it has no value.
type TextAndId<'a> = (Option<Cow<'a, [u8]>>, Option<Cow<'a, [u8]>>);

impl Columns {
    pub(super) fn open(path: &Path, wanted: &Job<'_>) -> Result<Self, JobError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (file_bytes, file) = opened.map_err(JobError::io("open", path))?;
        // Some programs leave other types of theirs beside those of the format.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let found = guarded(&name, || ArrowReaderMetadata::load(&file, options.clone()))?;
        let fields = found.parquet_schema().root_schema().get_fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        let column = |column: &str| {
            let at = wanted.find(column, &names)?;
            let field = found.schema().field_with_name(&names[at]);
            match field.is_ok_and(|field| is_read(field.data_type(), fields[at].get_basic_info())) {
                true => Ok(at),
                false => Err(JobError::Refused(format!(
                    "{name}: the column `{column}` has neither strings nor whole numbers, floats \
                     or booleans; cast it to strings"
                ))),
            }
        };
        let text = column(wanted.column)?;
        let id = wanted.id.map(column).transpose()?;
        let columns: Vec<usize> = [Some(text), id].into_iter().flatten().collect();
        let reader = guarded(&name, || {
            let schema = Arc::new(as_bytes(found.parquet_schema(), &columns)?);
            let options = options.with_parquet_schema(schema);
            let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
            let mask = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
            builder.with_projection(mask).with_batch_size(TOGETHER).build()
        })?;
        let groups = found.metadata().row_groups().iter();
        let all_rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        Ok(Self {
            batch: RecordBatch::new_empty(reader.schema()),
            reader,
            name,
            text: usize::from(id.is_some_and(|id| id < text)),
            id: id.map(|id| usize::from(text < id)),
            at: 0,
            rows: 0,
            all_rows: all_rows.fold(0, u64::saturating_add),
            file_bytes,
            used: 0,
            hasher: blake3::Hasher::new(),
        })
    }

    /// Decodes some rows, when all that were decoded are used; `false` at the end.
    fn more(&mut self) -> Result<bool, JobError> {
        let (reader, is_short) = (&mut self.reader, self.rows < self.all_rows);
        let batch = guarded(&self.name, || match reader.next() {
            None if is_short => {
                Err("Parquet error: a column has fewer rows than its group".to_owned())
            }
            batch => batch.transpose().map_err(|error| match error {
                ArrowError::ParquetError(reason) => reason,
                error => error.to_string(),
            }),
        })?;
        let Some(batch) = batch else { return Ok(false) };
        (self.batch, self.at) = (batch, 0);
        Ok(true)
    }

    /// The text and the id of the next row; `None` at the end.
    fn row(&mut self) -> Result<Option<TextAndId<'_>>, JobError> {
        while self.at == self.batch.num_rows() {
            if !self.more()? {
                return Ok(None);
            }
        }
        let (batch, at) = (&self.batch, self.at);
        let value = move |column: usize| as_text(batch.column(column), at);
        let (text, id) = (value(self.text), self.id.and_then(value));
        for value in [&text, &id] {
            let length = value.as_ref().map_or(u64::MAX, |value| value.len() as u64);
            self.hasher.update(&length.to_le_bytes());
            if let Some(value) = value {
                self.hasher.update(value);
                self.used += length;
            }
        }
        (self.at, self.rows) = (at + 1, self.rows + 1);
        Ok(Some((text, id)))
    }
}

impl Rows for Columns {
    fn next(&mut self, piece: &mut Piece) -> Result<bool, JobError> {
        let line = self.rows + 1;
        let Some((text, id)) = self.row()? else { return Ok(false) };
        let text = text.as_deref();
        let id = id.as_deref().filter(|id| id.len() <= MOST_ROW_BYTES);
        let length = text.map_or(0, <[u8]>::len) + id.map_or(0, <[u8]>::len);
        match text {
            Some(_) if length > MOST_ROW_BYTES => piece.push(line, b"", id, Some(too_large())),
            Some(text) => piece.push(line, text, id, None),
            None => {
                let detail = "it is null; give it a string".to_owned();
                let fault = Fault { code: "invalid_value".into(), detail };
                piece.push(line, b"", id, Some(fault));
            }
        }
        Ok(true)
    }

    /// Other columns may have changed: they do not matter.
    fn go_on_to(&mut self, place: &Position) -> Result<bool, JobError> {
        while self.rows < place.rows {
            if self.row()?.is_none() {
                return Ok(false);
            }
        }
        Ok(self.position(place.rows) == *place)
    }

    fn position(&mut self, rows: u64) -> Position {
        let hash = self.hasher.finalize().to_hex().to_string();
        Position { rows, lines: rows, bytes: self.used, hash }
    }

    /// About: Parquet does not say where a row is.
    fn bytes_read(&self) -> u64 {
        let share = self.rows as f64 / self.all_rows.max(1) as f64;
        ((self.file_bytes as f64 * share) as u64).min(self.file_bytes)
    }
}

/// A value as CSV has it.
fn as_text(column: &ArrayRef, row: usize) -> Option<Cow<'_, [u8]>> {
    if column.is_null(row) {
        return None;
    }
    let text = downcast_primitive_array!(
        column => format!("{:?}", column.value(row)),
        DataType::Binary => return Some(Cow::Borrowed(column.as_binary::<i32>().value(row))),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        other => unreachable!("a column of {other} is refused")
    );
    Some(Cow::Owned(text.into_bytes()))
}

/// Whether CSV would have the column's values in one form only. A date or a decimal number has
/// several.
fn is_read(kind: &DataType, annotation: &BasicTypeInfo) -> bool {
    match kind {
        // BSON and shapes are bytes, too.
        DataType::Binary => {
            annotation.converted_type() != ConvertedType::BSON
                && matches!(annotation.logical_type_ref(), None | Some(LogicalType::Enum))
        }
        DataType::Boolean | DataType::Float32 | DataType::Float64 | DataType::Utf8 => true,
        kind => kind.is_integer(),
    }
}

/// The schema with these columns as bytes where they are text. What is not UTF-8 is a fault of its
/// row then, and not of the file.
fn as_bytes(
    schema: &SchemaDescriptor,
    columns: &[usize],
) -> Result<SchemaDescriptor, ParquetError> {
    let root = schema.root_schema();
    let fields = root.get_fields().iter().enumerate().map(|(at, field)| {
        if !columns.contains(&at) || field.get_physical_type() != Physical::BYTE_ARRAY {
            return Ok(field.clone());
        }
        let bytes = Type::primitive_type_builder(field.name(), Physical::BYTE_ARRAY);
        let bytes = bytes.with_repetition(field.get_basic_info().repetition()).build()?;
        Ok::<_, ParquetError>(Arc::new(bytes))
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(fields).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

/// What a decoder reads of this file.
fn guarded<T, E: Display>(name: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T, JobError> {
    damaged::guarded(read).map_err(|reason| {
        JobError::Refused(format!(
            "{name}: {reason}, or give its format (with `kindred bulk`, --from FORMAT)"
        ))
    })
}
