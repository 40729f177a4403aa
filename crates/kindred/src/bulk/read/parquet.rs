//! Rows of Parquet: of the file's columns, only the one with the text and the one with the id are
//! read, some rows at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::{BulkError, Fault, MOST_ROW_BYTES, Piece, Position, Reading, Rows, too_large};

/// Rows that are decoded together.
const TOGETHER: usize = 256;

/// The columns of a file that are read.
pub(super) struct Columns {
    file: SerializedFileReader<File>,
    /// In messages.
    name: String,
    text: Column,
    id: Option<Column>,
    /// The next group of rows.
    group: usize,
    /// Rows of the current group that are not decoded.
    left: usize,
    /// Rows that were used, and all that the file has.
    rows: u64,
    all_rows: u64,
    file_bytes: u64,
    /// Bytes of the values that were used, and their hash.
    used: u64,
    hasher: blake3::Hasher,
}

/// What a row has in the columns that are read.
type TextAndId = (Option<ByteArray>, Option<ByteArray>);

/// A column.
struct Column {
    /// Among the columns of the file.
    index: usize,
    is_unsigned: bool,
    /// Of the current group of rows.
    reader: Option<ColumnReader>,
    /// What is decoded and was not used: text, or nothing where the column has no value.
    values: VecDeque<Option<ByteArray>>,
}

impl Columns {
    pub(super) fn open(path: &Path, wanted: &Reading<'_>) -> Result<Self, BulkError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (file_bytes, file) = opened.map_err(BulkError::io("open", path))?;
        let file = guarded(&name, || SerializedFileReader::new(file))?;
        let about = file.metadata().file_metadata();
        let schema = about.schema_descr();
        let fields = schema.root_schema().get_fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().to_owned()).collect();
        let column = |column: &str| {
            let at = wanted.find(column, &names)?;
            let index = (0..schema.num_columns())
                .find(|&leaf| schema.get_column_root_idx(leaf) == at)
                .filter(|&leaf| fields[at].is_primitive() && is_read(&schema.column(leaf)));
            let index = index.ok_or_else(|| BulkError::ColumnType {
                file: name.clone(),
                column: column.to_owned(),
            })?;
            let is_unsigned = is_unsigned(&schema.column(index));
            Ok::<_, BulkError>(Column { index, is_unsigned, reader: None, values: VecDeque::new() })
        };
        let text = column(wanted.column)?;
        let id = wanted.id.map(column).transpose()?;
        let all_rows = u64::try_from(about.num_rows()).unwrap_or(0);
        let hasher = blake3::Hasher::new();
        let (group, left, rows, used) = (0, 0, 0, 0);
        Ok(Self { file, name, text, id, group, left, rows, all_rows, file_bytes, used, hasher })
    }

    /// Decodes some rows; `false` at the end.
    fn more(&mut self) -> Result<bool, BulkError> {
        let Self { file, name, text, id, .. } = self;
        while self.left == 0 {
            if self.group == file.num_row_groups() {
                return Ok(false);
            }
            let group = guarded(name, || file.get_row_group(self.group))?;
            self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.group += 1;
            for column in [Some(&mut *text), id.as_mut()].into_iter().flatten() {
                let reader = guarded(name, || group.get_column_reader(column.index))?;
                column.reader = Some(reader);
            }
        }
        let some = self.left.min(TOGETHER);
        for column in [Some(text), id.as_mut()].into_iter().flatten() {
            guarded(name, || match column.read(some)? {
                found if found == some => Ok(()),
                _ => Err(ParquetError::General("a column has fewer rows than its group".into())),
            })?;
        }
        self.left -= some;
        Ok(true)
    }

    /// The text and the id of the next row; `None` at the end.
    fn row(&mut self) -> Result<Option<TextAndId>, BulkError> {
        while self.text.values.is_empty() {
            if !self.more()? {
                return Ok(None);
            }
        }
        let text = self.text.values.pop_front().flatten();
        let id = self.id.as_mut().and_then(|id| id.values.pop_front()).flatten();
        for value in [&text, &id] {
            let length = value.as_ref().map_or(u64::MAX, |value| value.len() as u64);
            self.hasher.update(&length.to_le_bytes());
            if let Some(value) = value {
                self.hasher.update(value.data());
                self.used += length;
            }
        }
        self.rows += 1;
        Ok(Some((text, id)))
    }
}

impl Rows for Columns {
    fn next(&mut self, piece: &mut Piece) -> Result<bool, BulkError> {
        let Some((text, id)) = self.row()? else { return Ok(false) };
        let text = text.as_ref().map(ByteArray::data);
        let id = id.as_ref().map(ByteArray::data).filter(|id| id.len() <= MOST_ROW_BYTES);
        let length = text.map_or(0, <[u8]>::len) + id.map_or(0, <[u8]>::len);
        match text {
            Some(_) if length > MOST_ROW_BYTES => piece.push(self.rows, b"", id, Some(too_large())),
            Some(text) => piece.push(self.rows, text, id, None),
            None => {
                let detail = "it is null; give it a string".to_owned();
                let fault = Fault { code: "invalid_value", detail };
                piece.push(self.rows, b"", id, Some(fault));
            }
        }
        Ok(true)
    }

    /// Other columns may have changed: they do not matter.
    fn go_on_to(&mut self, place: &Position) -> Result<bool, BulkError> {
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

impl Column {
    /// Decodes some rows as CSV has them. Returns their number.
    fn read(&mut self, rows: usize) -> Result<usize, ParquetError> {
        let Self { reader, values, is_unsigned, .. } = self;
        let is_unsigned = *is_unsigned;
        let text = |text: String| ByteArray::from(text.into_bytes());
        match reader.as_mut().expect("a group was opened") {
            ColumnReader::ByteArrayColumnReader(reader) => decode(reader, rows, values, |one| one),
            ColumnReader::BoolColumnReader(reader) => {
                decode(reader, rows, values, |one| text(one.to_string()))
            }
            ColumnReader::Int32ColumnReader(reader) => decode(reader, rows, values, |one| {
                text(if is_unsigned { (one as u32).to_string() } else { one.to_string() })
            }),
            ColumnReader::Int64ColumnReader(reader) => decode(reader, rows, values, |one| {
                text(if is_unsigned { (one as u64).to_string() } else { one.to_string() })
            }),
            ColumnReader::FloatColumnReader(reader) => {
                decode(reader, rows, values, |one| text(format!("{one:?}")))
            }
            ColumnReader::DoubleColumnReader(reader) => {
                decode(reader, rows, values, |one| text(format!("{one:?}")))
            }
            _ => Err(ParquetError::General("the type of a column changes".to_owned())),
        }
    }
}

fn decode<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values: &mut VecDeque<Option<ByteArray>>,
    text: impl Fn(T::T) -> ByteArray,
) -> Result<usize, ParquetError> {
    let (mut levels, mut found) = (Vec::new(), Vec::new());
    let (rows, ..) = reader.read_records(rows, Some(&mut levels), None, &mut found)?;
    let mut found = found.into_iter().map(text);
    if levels.is_empty() {
        // A column where each row has a value.
        values.extend(found.map(Some));
    } else {
        values.extend(levels.iter().map(|&level| if level > 0 { found.next() } else { None }));
    }
    Ok(rows)
}

/// Whether CSV would have the column's values in one form only. A date or a decimal number has
/// several.
fn is_read(column: &ColumnDescriptor) -> bool {
    use ConvertedType as Converted;
    let is_whole = matches!(
        column.converted_type(),
        Converted::NONE
            | Converted::INT_8
            | Converted::INT_16
            | Converted::INT_32
            | Converted::INT_64
            | Converted::UINT_8
            | Converted::UINT_16
            | Converted::UINT_32
            | Converted::UINT_64
    );
    let logical = column.logical_type_ref();
    if column.max_rep_level() > 0 {
        return false;
    }
    match column.physical_type() {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 | Physical::INT64 => {
            is_whole && matches!(logical, None | Some(LogicalType::Integer { .. }))
        }
        Physical::BYTE_ARRAY => matches!(
            (column.converted_type(), logical),
            (Converted::NONE | Converted::UTF8 | Converted::ENUM | Converted::JSON, None)
                | (_, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json))
        ),
        Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    matches!(column.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64)
}

/// Damage can break what the decoders assert. It is an error of the file, and no end of the
/// process.
fn guarded<T>(name: &str, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, BulkError> {
    let read = catch_unwind(AssertUnwindSafe(read));
    let read = read.unwrap_or_else(|_| Err(ParquetError::General("it is damaged".into())));
    read.map_err(|error| BulkError::NotParquet { file: name.to_owned(), reason: error.to_string() })
}
