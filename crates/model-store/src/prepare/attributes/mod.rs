//! A file of attributes: CSV, JSON lines or Parquet, one line for each row of the vectors file, or joined to
//! the rows by their words.
//!
//! `records` reads the file with `csv_file`, `json_lines` or `table_file`; `field` has the values
//! of its fields, and `guess` the type of a column. The file is read twice: first for the types,
//! then for the values. Only the schema of Parquet is read for the types.

mod csv_file;
mod field;
mod guess;
pub mod json_lines;
mod line;
mod records;
mod table_file;

use std::path::{Path, PathBuf};

use indexmap::{IndexMap, IndexSet};

use super::Input;
use super::encoding::TextEncoding;
use super::options::AttributesFile;
use super::unpack::file_name;
use crate::ModelError;
use crate::attributes::{
    AttributeDescription, AttributeFiles, AttributeType, ColumnBuilder, MAX_ATTRIBUTES, check_names,
};
pub use field::Field;
use guess::Guess;
pub(super) use line::Line;
pub(super) use records::read_wanted;
pub use table_file::{TableReader, TakeRow};

/// Maximum number of lines: each has a number of 32 bits.
const MAX_LINES: u64 = u32::MAX as u64;

/// The attributes of a file, in its order.
#[derive(Debug)]
pub(super) struct AttributeTable {
    path: PathBuf,
    columns: Vec<ColumnBuilder>,
    /// Number of lines, without the header.
    lines: u64,
    /// The lines by the words that they name, if they do, in their order.
    keys: Option<Keys>,
    warning: Option<String>,
}

/// Words, each with the number of its line in the file.
type Keys = IndexMap<Box<str>, u64>;

/// The rows of a model, and those of its vectors file.
#[derive(Debug)]
pub(super) struct ModelRows {
    /// The name of the vectors file.
    pub(super) source: String,
    /// Rows of that file that were read.
    pub(super) records: u64,
    /// Whether it may have more of them.
    pub(super) is_start: bool,
    /// Whether some of the file's words are unknown.
    pub(super) are_missing: bool,
    /// Which of the rows that were read are not in the model, ascending.
    pub(super) dropped: Vec<u64>,
    /// Rows of the model.
    pub(super) rows: usize,
}

/// The attributes of a model's rows.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) files: AttributeFiles,
    pub(super) descriptions: Vec<AttributeDescription>,
    /// A warning if lines were left out.
    pub(super) warning: Option<String>,
}

impl AttributeTable {
    /// Reads a file, compressed or not.
    pub(super) fn read(
        file: &AttributesFile,
        encoding: Option<TextEncoding>,
    ) -> Result<Self, ModelError> {
        let path = &file.path;
        let whole = match path.exists() && !path.is_file() && !path.is_dir() {
            true => Some(records::read_whole(path)?),
            false => None,
        };
        let name = path.display().to_string();
        let input = || match &whole {
            None => Input::File(path),
            Some(bytes) => Input::Bytes { name: &name, bytes },
        };
        let (names, kinds) = kinds(file, input(), encoding)?;
        let key = file.key.as_deref().and_then(|key| names.get_index_of(key));
        let mut columns: Vec<Option<ColumnBuilder>> = names
            .iter()
            .zip(kinds)
            .map(|(name, kind)| file.is_attribute(name).then(|| ColumnBuilder::new(name, kind)))
            .collect();
        let (mut lines, mut keys) = (0_u64, key.map(|_| Keys::new()));
        let is_wanted = |name: &str| file.is_wanted(name);
        let read =
            read_wanted(input(), encoding, file.parquet, Some(&is_wanted), &mut |line, _| {
                if lines == MAX_LINES {
                    return Err(format!("more than {MAX_LINES} lines are too many"));
                }
                if let Some(keys) = &mut keys {
                    add_key(keys, line, key)?;
                }
                take_line(&mut columns, line, lines as usize)?;
                lines += 1;
                Ok(())
            })?;
        let columns = columns.into_iter().flatten().collect();
        Ok(Self { path: path.clone(), columns, lines, keys, warning: read.warning })
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> String {
        file_name(&self.path)
    }

    /// The warning, with the file's name.
    pub(super) fn warning(&self) -> Option<String> {
        let warning = self.warning.as_ref()?;
        Some(format!("{}: {warning}", self.name()))
    }

    /// The attributes of a model's rows; `row_of` finds the row of a word.
    pub(super) fn of_rows(
        self,
        rows: &ModelRows,
        row_of: impl Fn(&str) -> Option<usize>,
    ) -> Result<Joined, ModelError> {
        let (sources, left_out) = match &self.keys {
            Some(keys) => self.joined(keys, rows, row_of)?,
            None => (self.in_order(rows)?, 0),
        };
        let left_out = match left_out {
            0 => None,
            1 => Some("1 line belongs to no row that was read, and was left out".to_owned()),
            _ => {
                Some(format!("{left_out} lines belong to no row that was read, and were left out"))
            }
        };
        let warning = left_out.map(|warning| format!("{}: {warning}", self.name()));
        let files = AttributeFiles::of_columns(self.columns, &sources);
        let descriptions = files.descriptions().to_vec();
        Ok(Joined { files, descriptions, warning })
    }

    /// The line of each row, which has the row's place in the vectors file.
    fn in_order(&self, rows: &ModelRows) -> Result<Vec<Option<u32>>, ModelError> {
        let ModelRows { source, records, is_start, dropped, .. } = rows;
        if self.lines < *records || (self.lines > *records && !is_start) {
            let lines = self.lines;
            let reason = format!(
                "it has {lines} lines of attributes, but {source} has {records} rows; give one \
                 line for each row of {source}, in the same order, also for rows that are skipped \
                 or repeated, or name the column with the rows' words with --key"
            );
            return Err(bad(&self.path, reason));
        }
        let mut dropped = dropped.iter().peekable();
        let kept = (0..*records).filter(|&record| dropped.next_if_eq(&&record).is_none());
        let sources: Vec<Option<u32>> = kept.map(|record| Some(record as u32)).collect();
        assert_eq!(sources.len(), rows.rows, "each record is a row of the model or was dropped");
        Ok(sources)
    }

    /// The line of each row, which names the row's word, and how many lines belong to none.
    fn joined(
        &self,
        keys: &Keys,
        rows: &ModelRows,
        row_of: impl Fn(&str) -> Option<usize>,
    ) -> Result<(Vec<Option<u32>>, u64), ModelError> {
        let mut sources = vec![None; rows.rows];
        let mut left_out = 0;
        for (place, (word, line)) in (0..).zip(keys) {
            match row_of(word) {
                Some(row) => sources[row] = Some(place),
                None if rows.are_missing => left_out += 1,
                None => {
                    let reason = format!(
                        "line {line}: no row of {} has the word `{word}`; correct the line, or \
                         remove it",
                        rows.source
                    );
                    return Err(bad(&self.path, reason));
                }
            }
        }
        Ok((sources, left_out))
    }
}

impl AttributesFile {
    /// Whether a field is an attribute.
    fn is_attribute(&self, name: &str) -> bool {
        self.key.as_deref() != Some(name) && self.fields.has(name)
    }

    /// Whether a field is looked at.
    fn is_wanted(&self, name: &str) -> bool {
        self.key.as_deref() == Some(name) || self.fields.has(name)
    }
}

/// Reads a file for the first time: the names of its fields, and their types.
fn kinds(
    file: &AttributesFile,
    input: Input<'_>,
    encoding: Option<TextEncoding>,
) -> Result<(IndexSet<String>, Vec<AttributeType>), ModelError> {
    let AttributesFile { path, key, types, parquet, .. } = file;
    let is_wanted = |name: &str| file.is_wanted(name);
    let given = |name: &str| types.iter().find(|(given, _)| given == name).map(|(_, kind)| *kind);
    // None of those whose type is known.
    let mut guesses: Vec<Option<Guess>> = Vec::new();
    let declared = records::declared(&input, *parquet)?;
    let mut see = |line: &Line<'_>| {
        if line.names.len() > MAX_ATTRIBUTES + usize::from(key.is_some()) {
            return Err(format!("there are more than {MAX_ATTRIBUTES} attributes by now"));
        }
        for name in line.names.iter().skip(guesses.len()) {
            let is_known =
                given(name).is_some() || key.as_ref() == Some(name) || !file.fields.has(name);
            guesses.push((!is_known).then(Guess::default));
        }
        for (index, field) in line.fields {
            if let Some(guess) = &mut guesses[*index] {
                guess.see(field, line.number).map_err(|reason| {
                    let name = &line.names[*index];
                    format!(
                        "`{name}` {reason}; give all lines the same type, or add --type {name}=text"
                    )
                })?;
            }
        }
        Ok(())
    };
    let names = match &declared {
        Some(columns) => columns.keys().cloned().collect(),
        None => {
            let see = &mut |line: &Line<'_>, _| see(line);
            read_wanted(input, encoding, *parquet, Some(&is_wanted), see)?.names
        }
    };
    let attributes: Vec<&str> = names.iter().map(String::as_str).collect();
    let attributes: Vec<&str> =
        attributes.into_iter().filter(|name| file.is_attribute(name)).collect();
    let unknown = |name: &str, flag: &str, known: &[&str]| {
        bad(path, format!("it has no `{name}`, which {flag} names; it has {}", known.join(", ")))
    };
    if let Some(key) = key.as_ref().filter(|key| !names.contains(*key)) {
        return Err(unknown(key, "--key", &attributes));
    }
    if let Some((name, _)) = types.iter().find(|(name, _)| !attributes.contains(&&**name)) {
        return Err(match key.as_ref() == Some(name) {
            true => bad(path, format!("`{name}` is the key, which has no type; omit its --type")),
            false => unknown(name, "--type", &attributes),
        });
    }
    check_names(attributes.iter().copied()).map_err(|error| bad(path, error.to_string()))?;
    let guessed = |(index, name): (usize, &String)| {
        let declared = declared.as_ref().and_then(|columns| columns.get(name).copied());
        let guess = guesses.get(index).and_then(Option::as_ref);
        let of_values = || guess.map_or(AttributeType::Text, Guess::kind);
        given(name).or(declared).unwrap_or_else(of_values)
    };
    let kinds = names.iter().enumerate().map(guessed).collect();
    Ok((names, kinds))
}

/// Adds the word that a line names.
fn add_key(keys: &mut Keys, line: &Line<'_>, key: Option<usize>) -> Result<(), String> {
    let field = line.fields.iter().find(|(index, _)| Some(*index) == key);
    let word = field.and_then(|(_, field)| field.key());
    let name = key.and_then(|key| line.names.get_index(key)).map_or("the key", String::as_str);
    let word = word.ok_or_else(|| format!("`{name}` does not name a row; give the row's word"))?;
    match keys.insert(Box::from(&*word), line.number) {
        None => Ok(()),
        Some(before) => Err(format!("`{name}` names {word:?}, as line {before} does; remove one")),
    }
}

/// Adds the values of a line to the columns, which had `before` values so far. A field without a
/// column is the key.
fn take_line(
    columns: &mut [Option<ColumnBuilder>],
    line: &Line<'_>,
    before: usize,
) -> Result<(), String> {
    if line.names.len() > columns.len() {
        return Err("the file was changed while it was read".to_owned());
    }
    for (index, field) in line.fields {
        let Some(column) = &mut columns[*index] else { continue };
        let value = field.value(column.kind()).map_err(|reason| {
            let name = column.name();
            format!(
                "`{name}` {reason}; correct it, leave it out if it is missing, or give another \
                 --type"
            )
        })?;
        column.push(value);
    }
    for column in columns.iter_mut().flatten().filter(|column| column.len() == before) {
        column.push(None);
    }
    Ok(())
}

fn bad(path: &Path, reason: String) -> ModelError {
    ModelError::BadInput { path: path.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str, key: Option<&str>, types: &[(&str, AttributeType)]) -> AttributeTable {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, content).unwrap();
        let types = types.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let key = key.map(str::to_owned);
        let file = AttributesFile { path, key, types, ..AttributesFile::default() };
        AttributeTable::read(&file, None).unwrap()
    }

    fn kinds_of(table: &AttributeTable) -> Vec<(&str, AttributeType)> {
        table.columns.iter().map(|column| (column.name(), column.kind())).collect()
    }

    #[test]
    fn a_column_whose_type_breaks_late_is_read_again() {
        use AttributeType::{Integer, Number, Text};
        let mut content = "a,b,c\n".to_owned();
        content += &"1,007,2\n".repeat(1000);
        content += "1.5,x,3\n";
        let table = read(&content, None, &[]);
        assert_eq!(kinds_of(&table), [("a", Number), ("b", Text), ("c", Integer)]);
        assert_eq!((table.lines, table.columns[0].len()), (1001, 1001));
        let table = read(&content, None, &[("c", Text)]);
        assert_eq!(kinds_of(&table)[2], ("c", Text));
    }

    #[test]
    fn the_key_is_no_attribute_and_its_type_does_not_matter() {
        let table = read("key;n\n7;1\n\"a \"\"b\"\"\";2\n", Some("key"), &[]);
        assert_eq!(kinds_of(&table), [("n", AttributeType::Integer)]);
        let keys: Vec<(&str, u64)> =
            table.keys.iter().flatten().map(|(word, line)| (&**word, *line)).collect();
        assert_eq!(keys, [("7", 2), ("a \"b\"", 3)]);
        let table = read("{\"n\":1,\"key\":7}\n{\"key\":\"x\"}\n", Some("key"), &[]);
        assert_eq!(kinds_of(&table), [("n", AttributeType::Integer)]);
        assert_eq!(table.columns[0].len(), 2);
    }
}
