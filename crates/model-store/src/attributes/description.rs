//! The file `attributes.json`: which columns a folder has, and the checksums of their files.

use serde::{Deserialize, Serialize};

use super::attribute_type::AttributeType;
use super::error::{AttributeError, MAX_ATTRIBUTES};
use super::names::check_name;
use crate::format::Checksum;

/// The name of the description.
pub(crate) const DESCRIPTION_FILE: &str = "attributes.json";

/// The version of the format.
const FORMAT: u32 = 1;

/// The version of one with stored texts, which programs that know none refuse.
pub(super) const FORMAT_WITH_STORED: u32 = 2;

/// An attribute in the description of a model. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeDescription {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: AttributeType,
    /// Number of different values; of a list, of different texts in any of them; of stored texts,
    /// which are not compared, of those that are there.
    pub distinct: usize,
    /// Number of rows without a value.
    pub missing: usize,
}

/// The content of the file. It has no time and no names of other files, so equal attributes are
/// equal bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub(super) format: u32,
    /// Number of rows, those of the vectors.
    pub(super) rows: usize,
    pub(super) columns: Vec<ColumnEntry>,
}

/// A column and its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnEntry {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: AttributeType,
    pub(super) distinct: usize,
    pub(super) missing: usize,
    pub(super) files: Vec<FileEntry>,
}

/// A file beside the description.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) checksum: Checksum,
}

/// A file of a column, by the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Values,
    ListStarts,
    Codes,
    Texts,
    TextStarts,
    Stored,
    BlockStarts,
    BlockRows,
    Missing,
}

impl Part {
    const ALL: [Self; 9] = [
        Self::Values,
        Self::ListStarts,
        Self::Codes,
        Self::Texts,
        Self::TextStarts,
        Self::Stored,
        Self::BlockStarts,
        Self::BlockRows,
        Self::Missing,
    ];

    fn end_of_name(self) -> &'static str {
        match self {
            Self::Values => "values.npy",
            Self::ListStarts => "list-starts.npy",
            Self::Codes => "codes.npy",
            Self::Texts => "texts.jsonl",
            Self::TextStarts => "text-starts.npy",
            Self::Stored => "stored.jsonl.gz",
            Self::BlockStarts => "block-starts.npy",
            Self::BlockRows => "block-rows.npy",
            Self::Missing => "missing.npy",
        }
    }

    /// The files of a column, in order.
    pub(super) fn of(kind: AttributeType, has_missing: bool) -> Vec<Self> {
        let mut parts = match kind {
            AttributeType::Text => vec![Self::Codes, Self::Texts, Self::TextStarts],
            AttributeType::List => {
                vec![Self::ListStarts, Self::Codes, Self::Texts, Self::TextStarts]
            }
            AttributeType::Stored => vec![Self::Stored, Self::BlockStarts, Self::BlockRows],
            _ => vec![Self::Values],
        };
        parts.extend(has_missing.then_some(Self::Missing));
        parts
    }

    /// The name of a column's file. It begins with the column's number, because some file systems
    /// take `Price` and `price` for one name.
    pub(super) fn file_name(self, index: usize, column: &str) -> String {
        format!("{index}-{column}.{}", self.end_of_name())
    }
}

/// Whether a file of this name may be one of a folder of attributes.
pub(crate) fn is_own_file(name: &str) -> bool {
    name == DESCRIPTION_FILE
        || name.split_once('-').is_some_and(|(number, rest)| {
            number.bytes().all(|byte| byte.is_ascii_digit())
                && Part::ALL.iter().any(|part| rest.ends_with(part.end_of_name()))
        })
}

impl Description {
    /// Of columns of this many rows.
    pub(super) fn new(rows: usize, columns: Vec<ColumnEntry>) -> Self {
        let has_stored = columns.iter().any(|column| column.kind == AttributeType::Stored);
        Self { format: if has_stored { FORMAT_WITH_STORED } else { FORMAT }, rows, columns }
    }

    /// Checks that it describes columns of this many rows, each with the files of its type.
    pub(super) fn check(&self, rows: usize) -> Result<(), String> {
        if self.rows != rows {
            return Err(format!("it has {} rows, but there are {rows} vectors", self.rows));
        }
        check_names(self.columns.iter().map(|column| &*column.name)).map_err(|e| e.to_string())?;
        for (index, column) in self.columns.iter().enumerate() {
            let ColumnEntry { name, kind, distinct, missing, files } = column;
            if *missing > rows || *distinct >= u32::MAX as usize {
                return Err(format!("its column `{name}` has impossible counts"));
            }
            let parts = Part::of(*kind, *missing > 0).into_iter();
            if !parts.map(|part| part.file_name(index, name)).eq(files.iter().map(|f| &*f.name)) {
                return Err(format!("its column `{name}` does not have the files of its type"));
            }
        }
        Ok(())
    }
}

/// Checks the names of columns.
pub(crate) fn check_names<'a>(
    names: impl ExactSizeIterator<Item = &'a str> + Clone,
) -> Result<(), AttributeError> {
    let found = names.len();
    if !(1..=MAX_ATTRIBUTES).contains(&found) {
        return Err(AttributeError::Number { found });
    }
    for (index, name) in names.clone().enumerate() {
        check_name(name).map_err(AttributeError::Name)?;
        if names.clone().take(index).any(|before| before == name) {
            return Err(AttributeError::Repeated { name: name.to_owned() });
        }
    }
    Ok(())
}
